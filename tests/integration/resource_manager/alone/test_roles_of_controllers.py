"""Each controller works with exactly the permissions of its manifest: spec 11 §9."""

import secrets
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path

import pytest

from pergola.api.kinds import (
    DEPLOYMENT,
    ENVOY_FILTER,
    EVENT,
    MACHINE,
    NAMESPACE,
    NODE,
    POD,
    SECRET,
    SERVICE,
)
from pergola.api.objects import GroupVersionKind, JsonObject, Key, annotations_of, maps_at
from pergola.kube.client import Client
from pergola.kube.errors import AlreadyExists, Forbidden
from pergola.kube.kubeconfig import load
from pergola.kube.yaml import parse_documents
from pergola.resource_manager.controllers import istio_cluster_configuration as istio
from pergola.resource_manager.controllers import node_agent_reconciliation_delay as delay
from pergola.resource_manager.controllers import node_critical_components as critical
from pergola.resource_manager.controllers.high_availability_retrigger import (
    Settings as Retriggers,
)
from pergola.resource_manager.controllers.high_availability_retrigger import (
    high_availability_retrigger,
)
from pergola.resource_manager.webhooks.facts.environment import ClusterEnvironment
from pergola.resource_manager.webhooks.facts.high_availability import TODAY
from pergola.resource_manager.webhooks.high_availability_config import HighAvailability
from pergola.resource_manager.webhooks.node_agent_authorizer.decide import SECRET_NAME_LABEL
from pergola.resource_manager.webhooks.node_agent_authorizer.lookups import (
    POOL_LABEL,
    ClusterLookups,
)
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.metrics import Metrics
from pergola.sandbox import Sandbox
from pergola.testing.crds import serve
from pergola.testing.waiting import running, settled, until, until_gone
from tests.support.machine_controllers import serve_machines
from tests.support.service_accounts import service_account_config, until_granted

ROOT = Path(__file__).parents[4]
ROLES = ROOT / "charts" / "resource-manager" / "rbac"
RBAC = "rbac.authorization.k8s.io"
TAINT = "node.gardener.cloud/critical-components-not-ready"


def documents(path: Path) -> list[JsonObject]:
    """Return the objects of a file."""
    found = parse_documents(path.read_text())
    return [document.value for document in found if isinstance(document.value, dict)]


@asynccontextmanager
async def restricted(
    admin: Client, sandbox: Sandbox, namespace: str, file: str
) -> AsyncGenerator[tuple[Client, Counter[str]]]:
    """Yield a client with the ClusterRoles of a file, and counts of the HTTP statuses it gets.

    Roles whose names end with the name of a namespace are bound there, and all others everywhere.
    """
    subject = {"kind": "ServiceAccount", "name": "default", "namespace": namespace}
    for role in documents(ROLES / file):
        name = f"{role['metadata']['name']}:{secrets.token_hex(4)}"
        where = "kube-system" if role["metadata"]["name"].endswith("-kube-system") else ""
        kind = "RoleBinding" if where else "ClusterRoleBinding"
        await admin.create({**role, "metadata": {"name": name}})
        await admin.create(
            {
                "apiVersion": f"{RBAC}/v1",
                "kind": kind,
                "metadata": {"name": name, **({"namespace": where} if where else {})},
                "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name},
                "subjects": [subject],
            }
        )
    answers: Counter[str] = Counter()

    def observe(method: str, code: str, host: str, seconds: float) -> None:
        answers[code] += 1

    await until_granted(admin, Key(namespace, "default"))
    config = await service_account_config(load(sandbox.kubeconfig), namespace)
    async with Client.connect(config, observe=observe) as client:
        yield client, answers


async def test_node_critical_components(
    lone_client: Client, lone_sandbox: Sandbox, fresh: str
) -> None:
    name = "node-critical-components"
    async with restricted(lone_client, lone_sandbox, fresh, f"{name}.yaml") as (client, answers):
        spec = {"taints": [{"key": TAINT, "effect": "NoSchedule"}]}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": fresh}, "spec": spec}
        settings = critical.Settings(critical_namespaces=(fresh,))
        unit = critical.node_critical_components(client, settings, metrics=Metrics())
        async with running(unit):
            await lone_client.create(node)
            key = Key("", fresh)
            await until(lone_client, NODE, key, lambda n: TAINT not in str(n["spec"]))
            fields = f"regarding.name={fresh}"
            while not await lone_client.list(EVENT, "default", fields=fields):
                await lone_client.get_raw("/version")
        assert answers["403"] == 0
        await refused(client, SECRET, Key("default", "any"))


async def test_node_agent_reconciliation_delay(
    lone_client: Client, lone_sandbox: Sandbox, fresh: str
) -> None:
    with suppress(AlreadyExists):
        metadata = {"name": "kube-system"}
        await lone_client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    name = "node-agent-reconciliation-delay"
    async with restricted(lone_client, lone_sandbox, fresh, f"{name}.yaml") as (client, answers):
        settings = delay.Settings(timedelta(seconds=5), timedelta(seconds=30))
        unit = delay.node_agent_reconciliation_delay(client, settings, metrics=Metrics())
        async with running(unit):
            node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": fresh}}
            await lone_client.create(node)
            await until(
                lone_client, NODE, Key("", fresh), lambda n: delay.DELAY in annotations_of(n)
            )
            await settled(unit, lone_client)
        assert answers["403"] == 0
        await refused(client, SECRET, Key("default", "any"))


async def test_istio_cluster_configuration(
    lone_client: Client, lone_sandbox: Sandbox, fresh: str
) -> None:
    example = ROOT / "examples" / "istio-cluster-configuration"
    await serve(lone_client, *documents(example / "1-crds.yaml"))
    name = "istio-cluster-configuration"
    async with restricted(lone_client, lone_sandbox, fresh, f"{name}.yaml") as (client, answers):
        unit = istio.istio_cluster_configuration(client, istio.Settings(), metrics=Metrics())
        rule, where = "", Key("example-istio-ingress", "example-shoot-cluster-configuration")
        async with running(unit):
            for obj in documents(example / "2-gateway-and-api-server.yaml"):
                await lone_client.apply(obj, manager="tests", force=True)
                rule = obj["metadata"]["name"]
            found = await until(lone_client, ENVOY_FILTER, where, lambda _: True)
            assert len(maps_at(found, "spec", "configPatches")) == 2
            edited: JsonObject = {"spec": {"configPatches": []}}
            await lone_client.patch(ENVOY_FILTER, where, edited)
            await until(
                lone_client,
                ENVOY_FILTER,
                where,
                lambda f: bool(maps_at(f, "spec", "configPatches")),
            )
            await lone_client.delete(SERVICE, Key("example-shoot", rule))
            await until_gone(lone_client, ENVOY_FILTER, where)
        assert answers["403"] == 0
        await refused(client, SECRET, Key("default", "any"))


@pytest.mark.parametrize("machines", ["", "default"], ids=["node mode", "machine mode"])
async def test_node_agent_authorizer(
    lone_client: Client, lone_sandbox: Sandbox, fresh: str, machines: str
) -> None:
    await serve_machines(lone_client)
    for obj in objects_of_an_agent(fresh):
        await lone_client.create(obj)
    file = "node-agent-authorizer.yaml"
    async with restricted(lone_client, lone_sandbox, fresh, file) as (client, answers):
        lookups = ClusterLookups(client, client, machines)

        agent = await lookups.agent(fresh)
        assert agent.node == fresh
        assert await lookups.own_secrets(agent) == {f"osc-{fresh}"}
        assert await lookups.own_secrets(agent._replace(node="")) >= {f"osc-{fresh}"}
        assert await lookups.node_of_pod(Key(fresh, "gone")) is None
        assert await lookups.requester("gone") is None

        assert answers["403"] == 0
        await refused(client, SECRET, Key("default", "any"))
        with pytest.raises(Forbidden):
            await client.list(POD)
        with pytest.raises(Forbidden):
            await client.list(NODE)


def objects_of_an_agent(name: str) -> list[JsonObject]:
    """Return a Machine, its Node, and the Secret with its configuration."""
    labels = {SECRET_NAME_LABEL: f"osc-{name}"}
    template = {"metadata": {"labels": labels}}
    osc = {"name": f"osc-{name}", "namespace": "kube-system", "labels": {POOL_LABEL: "a"}}
    return [
        {
            "apiVersion": MACHINE.api_version,
            "kind": MACHINE.kind,
            "metadata": {"name": name, "namespace": "default", "labels": {"node": name}},
            "spec": {"nodeTemplate": template},
        },
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": osc},
    ]


async def refused(client: Client, gvk: GroupVersionKind, key: Key) -> None:
    """Check that a request outside the role is refused."""
    with pytest.raises(Forbidden):
        await client.get(gvk, key)


async def test_high_availability(lone_client: Client, lone_sandbox: Sandbox, fresh: str) -> None:
    labels = {"high-availability-config.resources.gardener.cloud/consider": "true"}
    namespace = NAMESPACE
    await lone_client.patch(namespace, Key("", fresh), {"metadata": {"labels": labels}})
    deployment = DEPLOYMENT
    created = await lone_client.create(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web", "namespace": fresh},
            "spec": {
                "replicas": 2,
                "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "c", "image": "registry.example/c:1"}]},
                },
            },
        }
    )
    assert GroupVersionKind.of(created) == deployment
    file = "high-availability-config.yaml"
    async with restricted(lone_client, lone_sandbox, fresh, file) as (client, answers):
        around = ClusterEnvironment(client)
        unit = high_availability_retrigger(
            client, around, HighAvailability(around, TODAY), Retriggers(), metrics=Metrics()
        )
        async with running(Unit(caches=around.caches), unit):
            await settled(unit, lone_client)
    assert answers["200"]
    assert not {code for code in answers if code in ("401", "403")}
