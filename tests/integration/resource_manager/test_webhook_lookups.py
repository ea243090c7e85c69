"""Lookups of webhooks in a cluster, and their registrations on a real API server."""

import asyncio
import builtins
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from pergola.admission.configurations import MUTATING, VALIDATING
from pergola.admission.webhook import registrations
from pergola.api.kinds import CRD, NODE, SERVICE_ACCOUNT
from pergola.api.objects import GroupVersionKind, JsonObject, Key, maps_at, name_of
from pergola.api.resource_manager_config.controllers import Switch
from pergola.api.resource_manager_config.webhooks import KubernetesServiceHost, Webhooks
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.kube.kubeconfig import load
from pergola.kube.yaml import parse_documents
from pergola.resource_manager.webhooks.catalog import webhooks
from pergola.resource_manager.webhooks.dependencies import Dependencies
from pergola.resource_manager.webhooks.facts.environment import serves_hvpas
from pergola.resource_manager.webhooks.facts.lookups import ClusterLookups
from pergola.resource_manager.webhooks.facts.taints import Taint
from pergola.resource_manager.webhooks.installation import Installation
from pergola.resource_manager.webhooks.projected_token_mount import ProjectedTokenMount
from pergola.runtime.controlling.unit import Unit
from pergola.testing.waiting import PATIENCE, running
from tests.support.reviews import pod, review_of
from tests.support.service_accounts import service_account_config, until_allowed

RULES = Path(__file__).parents[3] / "charts" / "resource-manager" / "rbac"
SHIPPED = {
    "webhooks.yaml": "pergola:webhooks:target",
    "high-availability-config.yaml": "pergola:high-availability-config:target",
}
POOL = "webhook-lookups"
X, Y = Taint("x", "1", "NoSchedule"), Taint("y", "", "NoExecute")


class Asked(Client):
    """A client that records its live reads."""

    read: list[str]

    async def get(
        self, gvk: GroupVersionKind, key: Key, *, metadata_only: bool = False
    ) -> JsonObject:
        self.read = [*getattr(self, "read", []), f"{gvk.kind} {key}"]
        return await super().get(gvk, key, metadata_only=metadata_only)

    async def list(
        self,
        gvk: GroupVersionKind,
        namespace: str | None = None,
        *,
        labels: str | None = None,
        fields: str | None = None,
        metadata_only: bool = False,
    ) -> builtins.list[JsonObject]:
        self.read = [*getattr(self, "read", []), f"{gvk.kind} list"]
        return await super().list(
            gvk, namespace, labels=labels, fields=fields, metadata_only=metadata_only
        )

    def taken(self) -> Sequence[str]:
        """Return the reads since the last call."""
        read, self.read = getattr(self, "read", []), []
        return read


@pytest.fixture
async def asked(kubeconfig: Path) -> AsyncIterator[Asked]:
    async with Asked.connect(load(kubeconfig)) as client:
        yield client


@pytest.fixture
async def nodes(cluster_client: Client, namespace: str) -> AsyncIterator[str]:
    """Yield the label value and name suffix of a test's nodes, which are deleted afterwards."""
    yield namespace
    for node in await cluster_client.list(NODE, labels=POOL):
        if name_of(node).endswith(namespace):
            with suppress(NotFound):
                await cluster_client.delete(NODE, Key.of(node))


def account(namespace: str, name: str, *, automount: bool | None) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": name, "namespace": namespace},
        "automountServiceAccountToken": automount,
    }


def node(name: str, pool: str, *taints: Taint) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {POOL: pool}},
        "spec": {"taints": [taint._asdict() for taint in taints], "unschedulable": True},
    }


async def test_service_accounts_are_read_from_the_cache(
    cluster_client: Client, asked: Asked, namespace: str
) -> None:
    await cluster_client.create(account(namespace, "quiet", automount=False))
    await cluster_client.create(account(namespace, "loud", automount=None))
    lookups = ClusterLookups(asked, namespaces=[namespace], nodes=False)
    async with running(Unit(caches=lookups.caches)):
        asked.taken()
        assert await lookups.mounts_token(Key(namespace, "quiet")) is False
        assert await lookups.mounts_token(Key(namespace, "loud")) is True
        assert asked.taken() == []


async def test_an_account_that_is_not_cached_is_read_live_only_once(
    cluster_client: Client, asked: Asked, namespace: str
) -> None:
    lookups = ClusterLookups(asked, namespaces=["another-namespace"], nodes=False)
    handler = ProjectedTokenMount(lookups.mounts_token)
    request = review_of(pod(serviceAccountName="quiet"), namespace=namespace)
    async with running(Unit(caches=lookups.caches)):
        asked.taken()
        missing = await handler(request)
        assert (missing.allowed, missing.code, missing.reason) == (False, 404, "NotFound")
        assert '"quiet" not found (' in missing.message
        assert asked.taken() == [f"ServiceAccount {namespace}/quiet"]
        await cluster_client.create(account(namespace, "quiet", automount=False))
        assert (await handler(request)).edits


async def test_taints_for_system_components_follow_their_nodes(
    cluster_client: Client, asked: Asked, nodes: str
) -> None:
    await cluster_client.create(node(f"a-{nodes}", nodes, X))
    await cluster_client.create(node(f"b-{nodes}", "another-pool", Y))
    lookups = ClusterLookups(asked, system_nodes={POOL: nodes}, accounts=False)
    assert await lookups.system_taints() == [X]
    assert asked.taken() == ["Node list"]
    async with running(Unit(caches=lookups.caches)):
        first = await lookups.system_taints()
        assert first == [X]
        assert await lookups.system_taints() is first
        await cluster_client.create(node(f"c-{nodes}", nodes, Y, X))
        async with asyncio.timeout(PATIENCE):
            while await lookups.system_taints() == [X]:
                await cluster_client.get_raw("/version")
        assert await lookups.system_taints() == [X, Y]
        assert asked.taken() == []


async def test_unserved_hvpas_are_not_registered(cluster_client: Client) -> None:
    assert not await serves_hvpas(cluster_client)


def shipped_rules() -> list[JsonObject]:
    """Return the rules of all roles that the lookups of the webhooks need."""
    rules: list[JsonObject] = []
    for file, role in SHIPPED.items():
        first = next(document.value for document in parse_documents((RULES / file).read_bytes()))
        assert isinstance(first, dict)
        assert first["metadata"] == {"name": role}
        rules += maps_at(first, "rules")
    return rules


async def test_the_shipped_rules_are_enough(
    cluster_client: Client, kubeconfig: Path, namespace: str, nodes: str
) -> None:
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": f"webhooks-{namespace}"},
        "rules": shipped_rules(),
    }
    subject = {"kind": "ServiceAccount", "name": "default", "namespace": namespace}
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": role["metadata"],
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": f"webhooks-{namespace}",
        },
        "subjects": [subject],
    }
    await cluster_client.create(role)
    await cluster_client.create(binding)
    await cluster_client.create(account(namespace, "quiet", automount=False))
    await cluster_client.create(node(f"a-{nodes}", nodes, X))
    try:
        config = await service_account_config(load(kubeconfig), namespace)
        async with Client.connect(config) as restricted:
            await until_allowed(restricted, SERVICE_ACCOUNT)
            lookups = ClusterLookups(restricted, system_nodes={POOL: nodes})
            await lookups.system_taints()
            async with running(Unit(caches=lookups.caches)):
                assert await lookups.mounts_token(Key(namespace, "quiet")) is False
                assert await lookups.system_taints() == [X]
                assert await lookups.objects(CRD, "", f"nobody-has={namespace}") == []
                for read, name in (
                    (lookups.config_map, "istio-internal-load-balancing"),
                    (lookups.service, "istio-ingressgateway-internal"),
                ):
                    with pytest.raises(NotFound):
                        await read(Key(namespace, name))
    finally:
        for kind in ("ClusterRole", "ClusterRoleBinding"):
            gvk = GroupVersionKind("rbac.authorization.k8s.io", "v1", kind)
            await cluster_client.delete(gvk, Key("", f"webhooks-{namespace}"))


@pytest.mark.parametrize(
    "installation", [Installation("runtime", garden=True), Installation("target")]
)
async def test_the_api_server_stores_all_entries_unchanged(
    cluster_client: Client, installation: Installation, namespace: str
) -> None:
    settings = Webhooks(kubernetes_service_host=KubernetesServiceHost(host="api.example.com"))
    for name in settings.__struct_fields__:
        switch: Switch = getattr(settings, name)
        switch.enabled = True
    around = Dependencies(installation, ClusterLookups(cluster_client))
    entries = registrations(webhooks(settings, around))
    for gvk, kind in ((MUTATING, "mutating"), (VALIDATING, "validating")):
        rendered = [
            entry.render({"url": f"https://webhooks.example.com{entry.path}"})
            for entry in entries
            if entry.kind == kind
        ]
        configuration = {
            "apiVersion": gvk.api_version,
            "kind": gvk.kind,
            "metadata": {"name": f"webhooks-{namespace}"},
            "webhooks": rendered,
        }
        stored = await cluster_client.create(configuration, dry_run=True)
        assert stored.get("webhooks", []) == rendered
