"""The TokenRequestor with exactly its ClusterRoles (spec 11 §9), and its example."""

from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from pergola.api.kinds import EVENT, SECRET, SERVICE_ACCOUNT
from pergola.api.objects import GroupVersionKind, JsonObject, Key, labels_of, map_at
from pergola.api.resource_manager_config import configuration_from
from pergola.kube.client import Client
from pergola.kube.errors import Forbidden
from pergola.kube.kubeconfig import ClusterConfig, load
from pergola.kube.yaml import parse_documents
from pergola.resource_manager.controllers.token_requestor import names
from pergola.resource_manager.controllers.token_requestor.observe import token_of
from pergola.sandbox import Sandbox
from tests.support.service_accounts import service_account_config, until_granted
from tests.support.token_clusters import Clusters, Recording, token_clusters

ROOT = Path(__file__).parents[3]
ROLES = ROOT / "charts" / "resource-manager" / "rbac" / "token-requestor.yaml"
EXAMPLE = ROOT / "examples" / "token-requestor"
RBAC = "rbac.authorization.k8s.io"
CLUSTER_ROLE = GroupVersionKind(RBAC, "v1", "ClusterRole")
CLUSTER_ROLE_BINDING = GroupVersionKind(RBAC, "v1", "ClusterRoleBinding")
IDENTITY = "token-requestor"


@pytest.fixture
async def clusters(
    kubeconfig: Path, cluster_client: Client, namespace: str, second_sandbox: Sandbox
) -> AsyncIterator[Clusters]:
    """Yield two clusters, in which the instance has exactly its ClusterRoles."""
    source, target = load(kubeconfig), load(second_sandbox.kubeconfig)
    async with token_clusters(source, target, cluster_client, namespace) as clusters:
        yield clusters


class Restricted:
    """Clients with one identity in both clusters, and counts of the HTTP statuses they get."""

    def __init__(self, source: Recording, target: Recording, answers: Counter[str]) -> None:
        self.source = source
        self.target = target
        self.answers = answers


@pytest.fixture
async def restricted(
    clusters: Clusters, kubeconfig: Path, second_sandbox: Sandbox
) -> AsyncIterator[Restricted]:
    answers: Counter[str] = Counter()

    def observe(method: str, code: str, host: str, seconds: float) -> None:
        answers[code] += 1

    here, there = clusters.namespace, clusters.target_namespace
    source = await identity(clusters.source, load(kubeconfig), here)
    target = await identity(clusters.target, load(second_sandbox.kubeconfig), there)
    await bind(clusters.source, "source", here)
    await bind(clusters.target, "target", there)
    reviews = await bind_reviews(clusters.target, there)
    async with (
        Recording.connect(source, observe=observe) as source_client,
        Recording.connect(target, observe=observe) as target_client,
    ):
        await until_granted(clusters.source, Key(here, IDENTITY))
        await until_granted(clusters.target, Key(there, IDENTITY))
        clusters.source_recorder, clusters.target_recorder = source_client, target_client
        yield Restricted(source_client, target_client, answers)
    for kind in (CLUSTER_ROLE, CLUSTER_ROLE_BINDING):
        await clusters.target.delete(kind, Key("", reviews))


async def identity(admin: Client, config: ClusterConfig, namespace: str) -> ClusterConfig:
    metadata = {"name": IDENTITY, "namespace": namespace}
    await admin.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
    return await service_account_config(config, namespace, IDENTITY)


async def bind(admin: Client, side: str, namespace: str) -> None:
    """Grant the ClusterRole of a cluster in one namespace, as a Role."""
    metadata = {"name": IDENTITY, "namespace": namespace}
    await admin.create(role(side) | {"kind": "Role", "metadata": metadata})
    await admin.create(binding("Role", metadata, namespace))


async def bind_reviews(admin: Client, namespace: str) -> str:
    """Grant the ClusterRole for reviews under a unique name, and return the name."""
    name = f"{IDENTITY}-{namespace}"
    await admin.create(role("target-reviews") | {"metadata": {"name": name}})
    await admin.create(binding("ClusterRole", {"name": name}, namespace))
    return name


def role(side: str) -> JsonObject:
    documents = [d.value for d in parse_documents(ROLES.read_bytes()) if isinstance(d.value, dict)]
    (found,) = (
        d for d in documents if map_at(d, "metadata")["name"] == f"pergola:{IDENTITY}:{side}"
    )
    return found


def binding(kind: str, metadata: dict[str, str], namespace: str) -> JsonObject:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": f"{kind}Binding",
        "metadata": metadata,
        "roleRef": {"apiGroup": RBAC, "kind": kind, "name": metadata["name"]},
        "subjects": [{"kind": "ServiceAccount", "name": IDENTITY, "namespace": namespace}],
    }


async def test_with_its_roles_alone_every_function_works(
    clusters: Clusters, restricted: Restricted
) -> None:
    await clusters.put(annotations={names.LABELS: '{"a": "b"}'})
    await clusters.put("mistaken", annotations={names.EXPIRATION: "1d"})
    async with clusters.start():
        first = token_of(await clusters.issued())
        await clusters.warning("InvalidTokenRequest")
    async with clusters.start():
        await clusters.settle()  # it reviews tokens that it did not issue itself
        await clusters.annotate(RENEW=None, LABELS='{"a": "c"}')
        await clusters.issued(other_than=first)
        assert labels_of(await clusters.account()) == {"a": "c"}
        await clusters.edit({"metadata": {"annotations": clusters.to_target}})
        moved = token_of(await clusters.moved())
        await clusters.annotate(RENEW=None)
        await clusters.moved()
        await clusters.settle()
        assert token_of(await clusters.target_secret()) != moved
        await clusters.settle()
    assert restricted.answers["403"] == 0
    assert any(event for event in await clusters.source.list(EVENT, clusters.namespace))


async def test_its_roles_grant_nothing_else(clusters: Clusters, restricted: Restricted) -> None:
    await clusters.put()
    here, there = clusters.namespace, clusters.target_namespace
    attempts: list[Callable[[], Any]] = [
        lambda: restricted.source.delete(SECRET, Key(here, "access")),
        lambda: restricted.source.get(SECRET, Key("kube-system", "any")),
        lambda: restricted.source.list(SERVICE_ACCOUNT, here),
        lambda: restricted.target.list(SECRET, there),
        lambda: restricted.target.delete(SERVICE_ACCOUNT, Key(there, IDENTITY)),
        lambda: restricted.target.get(SERVICE_ACCOUNT, Key("kube-system", "default")),
    ]
    for attempt in attempts:
        with pytest.raises(Forbidden):
            await attempt()


def example(file: str, namespace: str) -> list[JsonObject]:
    text = (EXAMPLE / file).read_text().replace("demo-access", namespace)
    return [d.value for d in parse_documents(text) if isinstance(d.value, dict)]


async def test_the_example_does_what_its_readme_says(clusters: Clusters) -> None:
    (configuration,) = example("config.yaml", clusters.namespace)
    config, warnings = configuration_from(configuration)
    assert warnings == []
    assert config.controllers.token_requestor.enabled
    # In the example, source and target are one cluster.
    clusters.target_recorder = clusters.source_recorder
    for obj in example("manifests.yaml", clusters.namespace):
        if obj["kind"] != "Namespace":
            await clusters.source.create(obj)
    async with clusters.start(target_namespaces=()):
        first = token_of(await clusters.issued("access-robot"))
        await clusters.issued("access-by-kubeconfig")
        assert "unknown unit" in await clusters.warning("InvalidTokenRequest")
        await clusters.annotate("access-mistaken", EXPIRATION="24h")
        await clusters.issued("access-mistaken")
        await clusters.annotate("access-robot", RENEW=None)
        second = token_of(await clusters.issued("access-robot", other_than=first))
        damaged = await clusters.edit({"stringData": {"token": "damaged"}}, "access-robot")
        assert token_of(damaged) == b"damaged"
        assert token_of(await clusters.issued("access-robot", other_than=b"damaged")) != second
