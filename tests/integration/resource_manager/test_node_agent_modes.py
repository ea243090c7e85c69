"""Permissions of node agents with and without their Node, in both modes: spec 12 §16."""

import base64
from collections.abc import AsyncIterator
from typing import Final, Literal

import pytest

from pergola.api.kinds import MACHINE, NODE, POD, SECRET
from pergola.api.objects import Key
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.kube.yaml import dump
from pergola.resource_manager.webhooks.node_agent_authorizer.decide import (
    GROUP,
    HOST_NAME_LABEL,
    SECRET_NAME_LABEL,
    USER_PREFIX,
    Attributes,
    Selection,
    decide,
)
from pergola.resource_manager.webhooks.node_agent_authorizer.lookups import (
    POOL_LABEL,
    ClusterLookups,
)
from tests.support.machine_controllers import serve_machines

Mode = Literal["node mode", "machine mode"]
Condition = Literal["always", "with a machine", "with a node", "never"]

CERTIFICATES: Final = "certificates.k8s.io"
EVENTS: Final = "events.k8s.io"
LEASES: Final = "coordination.k8s.io"
SYSTEM: Final = "kube-system"

# Each test replaces the names `{node}`, `{secret}`, …
TABLE: Final[list[tuple[Condition, str, str, list[str], str, str]]] = [
    ("always", CERTIFICATES, "certificatesigningrequests", ["create"], "", ""),
    ("never", CERTIFICATES, "certificatesigningrequests", ["list", "watch", "delete"], "", ""),
    ("always", "", "events", ["create", "patch"], "default", "event"),
    ("always", EVENTS, "events", ["create", "patch"], "default", "event"),
    ("never", "", "events", ["get", "delete"], "default", "event"),
    ("with a node", LEASES, "leases", ["create"], SYSTEM, ""),
    ("with a node", LEASES, "leases", ["create"], SYSTEM, "gardener-node-agent-{node}"),
    (
        "with a node",
        LEASES,
        "leases",
        ["get", "list", "watch", "update"],
        SYSTEM,
        "gardener-node-agent-{node}",
    ),
    ("with a node", LEASES, "leases", ["get", "update"], SYSTEM, "{secret}"),
    ("never", LEASES, "leases", ["get", "update"], SYSTEM, "gardener-node-agent-other"),
    ("never", LEASES, "leases", ["create", "get"], "default", "gardener-node-agent-{node}"),
    ("never", LEASES, "leases", ["patch", "delete"], SYSTEM, "gardener-node-agent-{node}"),
    ("always", "", "nodes", ["list", "watch"], "", ""),
    ("with a node", "", "nodes", ["get", "patch", "update"], "", "{node}"),
    ("with a node", "", "nodes/status", ["get", "patch", "update"], "", "{node}"),
    ("never", "", "nodes", ["get", "patch", "update"], "", "other"),
    ("never", "", "nodes", ["get"], "", ""),
    ("never", "", "nodes", ["create", "delete"], "", "{node}"),
    ("with a node", "", "pods", ["get", "delete"], "{namespace}", "on-node"),
    ("with a node", "", "pods", ["list", "watch"], "", ""),
    ("never", "", "pods", ["get", "delete"], "{namespace}", "elsewhere"),
    ("never", "", "pods", ["get", "delete"], "{namespace}", "gone"),
    ("never", "", "pods", ["create", "patch"], "{namespace}", "on-node"),
    ("with a machine", "", "secrets", ["get", "list", "watch"], SYSTEM, "gardener-valitail"),
    ("with a machine", "", "secrets", ["get"], SYSTEM, "shoot-access-cluster-admin"),
    ("with a machine", "", "secrets", ["get", "list", "watch"], SYSTEM, "{secret}"),
    ("with a machine", "", "secrets", ["get"], SYSTEM, "named-{node}"),
    ("never", "", "secrets", ["get"], SYSTEM, "foreign-{node}"),
    ("never", "", "secrets", ["list", "watch"], SYSTEM, ""),
    ("never", "", "secrets", ["get"], "default", "{secret}"),
    ("never", "", "configmaps", ["get"], SYSTEM, "x"),
]


class Site:
    """The objects of one agent; each test creates those that should exist."""

    def __init__(self, client: Client, namespace: str, mode: Mode) -> None:
        self.client = client
        self.namespace = namespace
        self.node = f"n-{namespace[-20:].strip('-')}"
        self.secret = f"osc-{self.node}"
        self.is_machine_mode = mode == "machine mode"
        self.agent = f"m-{self.node}" if self.is_machine_mode else self.node
        self.lookups = ClusterLookups(client, client, namespace if self.is_machine_mode else "")

    async def prepare(self) -> None:
        await serve_machines(self.client)
        osc = dump(
            {"spec": {"files": [{"content": {"secretRef": {"name": f"named-{self.node}"}}}]}}
        )
        for name, labels, text in (
            (self.secret, {POOL_LABEL: self.node}, osc),
            (f"foreign-{self.node}", {}, "{}"),
        ):
            await self.client.create(
                {
                    "apiVersion": "v1",
                    "kind": "Secret",
                    "metadata": {"name": name, "namespace": SYSTEM, "labels": labels},
                    "data": {"osc.yaml": base64.b64encode(text.encode()).decode()},
                }
            )
        await self.add_pod("on-node", self.node)
        await self.add_pod("elsewhere", "other")

    async def add_pod(self, name: str, node: str) -> None:
        await self.client.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": self.namespace},
                "spec": {"nodeName": node, "containers": [{"name": "app", "image": "app"}]},
            }
        )

    async def add_node(self) -> None:
        labels = {SECRET_NAME_LABEL: self.secret, HOST_NAME_LABEL: self.node}
        await self.client.create(
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": self.node, "labels": labels}}
        )

    async def add_machine(self, node: str = "") -> None:
        template = {"metadata": {"labels": {SECRET_NAME_LABEL: self.secret}}}
        await self.client.create(
            {
                "apiVersion": MACHINE.api_version,
                "kind": MACHINE.kind,
                "metadata": {
                    "name": self.agent,
                    "namespace": self.namespace,
                    "labels": {"node": node} if node else {},
                },
                "spec": {"nodeTemplate": template},
            }
        )

    def requests(self) -> list[tuple[str, Condition, Attributes]]:
        names = {"node": self.node, "secret": self.secret, "namespace": self.namespace}
        found = []
        for condition, group, resource, verbs, namespace, name in TABLE:
            plural, _, subresource = resource.partition("/")
            for verb in verbs:
                attributes = Attributes(
                    user=f"{USER_PREFIX}{self.agent}",
                    groups=(GROUP,),
                    verb=verb,
                    group=group,
                    resource=plural,
                    subresource=subresource,
                    namespace=namespace.format(**names),
                    name=name.format(**names),
                )
                found.append((f"{verb} {resource} {namespace}/{name}", condition, attributes))
        return found

    async def answers(self) -> dict[str, str]:
        return {title: await self._answer(attributes) for title, _, attributes in self.requests()}

    async def _answer(self, attributes: Attributes) -> str:
        try:
            return (await decide(attributes, self.lookups)).answer
        except NotFound:
            return "error"

    def expected(self, *conditions: Condition, otherwise: str = "deny") -> dict[str, str]:
        """Return the expected answers, with `otherwise` for requests that require a Node."""
        return {
            title: "allow" if condition in conditions else "deny" if never else otherwise
            for title, condition, _ in self.requests()
            for never in [condition == "never"]
        }


@pytest.fixture
def mode() -> Mode:
    return "machine mode"


@pytest.fixture
async def site(cluster_client: Client, namespace: str, mode: Mode) -> AsyncIterator[Site]:
    own = Site(cluster_client, namespace, mode)
    await own.prepare()
    yield own
    keys = [(SECRET, Key(SYSTEM, own.secret)), (SECRET, Key(SYSTEM, f"foreign-{own.node}"))]
    keys += [(POD, Key(namespace, name)) for name in ("on-node", "elsewhere")]
    for gvk, key in [*keys, (NODE, Key("", own.node))]:
        try:
            await cluster_client.delete(gvk, key)
        except NotFound:
            continue


@pytest.mark.parametrize("mode", ["node mode", "machine mode"])
async def test_an_agent_with_a_node_has_the_permissions_in_the_table(site: Site) -> None:
    await site.add_node()
    if site.is_machine_mode:
        await site.add_machine(site.node)
    expected = site.expected("always", "with a machine", "with a node")
    assert await site.answers() == expected


@pytest.mark.parametrize("mode", ["node mode"])
async def test_an_agent_whose_node_is_missing_may_only_join(site: Site) -> None:
    assert await site.answers() == site.expected("always", "with a machine")


async def test_an_agent_whose_machine_has_no_node_yet_may_only_join(site: Site) -> None:
    await site.add_machine()
    assert await site.answers() == site.expected("always", "with a machine")


async def test_a_machine_that_names_a_missing_node_has_no_node(site: Site) -> None:
    await site.add_machine(node=site.node)
    assert await site.answers() == site.expected("always", "with a machine")


async def test_an_agent_without_a_machine_gets_errors_for_requests_that_depend_on_it(
    site: Site,
) -> None:
    await site.add_node()
    answers = await site.answers()
    for title, condition, _ in site.requests():
        if condition == "always":
            assert answers[title] == "allow", title
        else:
            assert answers[title] != "allow", title
        if condition in ("with a machine", "with a node"):
            assert answers[title] == "error", title


@pytest.mark.parametrize("mode", ["node mode", "machine mode"])
async def test_a_missing_node_is_named_in_the_reason(site: Site) -> None:
    if site.is_machine_mode:
        await site.add_machine(node=site.node)
    for title, condition, attributes in site.requests():
        if condition == "with a node":
            decision = await decide(attributes, site.lookups)
            assert decision.reason == f'no node for "{site.agent}" found', title


@pytest.mark.parametrize("mode", ["node mode", "machine mode"])
async def test_a_missing_node_must_not_select_pods(site: Site) -> None:
    if site.is_machine_mode:
        await site.add_machine(node=site.node)
    request = Attributes(
        user=f"{USER_PREFIX}{site.agent}",
        groups=(GROUP,),
        verb="list",
        resource="pods",
        fields=(Selection("spec.nodeName", "In", (site.node,)),),
    )
    assert (await decide(request, site.lookups, by_selectors=True)).answer == "deny"
    await site.add_node()
    assert (await decide(request, site.lookups, by_selectors=True)).answer == "allow"


async def test_an_agent_may_request_the_configuration_of_its_machine_before_it_exists(
    site: Site,
) -> None:
    await site.add_machine()
    await site.client.delete(SECRET, Key(SYSTEM, site.secret))
    for verb in ("get", "list", "watch"):
        request = Attributes(
            user=f"{USER_PREFIX}{site.agent}",
            groups=(GROUP,),
            verb=verb,
            resource="secrets",
            namespace=SYSTEM,
            name=site.secret,
        )
        assert (await decide(request, site.lookups)).answer == "allow", verb
    await site.client.create(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": site.secret, "namespace": SYSTEM},
        }
    )
