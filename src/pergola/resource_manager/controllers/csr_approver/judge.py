"""The verdict on a request, by the rules and the state of Nodes and Machines.

An approval of a kubelet's request may rely on caches. A denial is final, so it never does: Nodes
and Machines are read again first.

A request that cannot be decoded is denied if it is for a kubelet's serving certificate, which has
no other approver; other requests may have one and are ignored.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Final, NamedTuple, TypeVar

from pergola.api.kinds import MACHINE, NODE
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    deletion_timestamp_of,
    labels_of,
    map_at,
    maps_at,
    name_of,
    uid_of,
)
from pergola.kube.client import Client
from pergola.resource_manager.controllers.csr_approver import rules
from pergola.resource_manager.controllers.csr_approver.request import (
    Request,
    UndecodableRequest,
    decode,
)
from pergola.resource_manager.controllers.csr_approver.rules import (
    Approved,
    Denied,
    Machine,
    Node,
    Verdict,
)
from pergola.runtime.caching.cache import Cache
from pergola.runtime.caching.index import Index
from pergola.runtime.logging import get_logger

T = TypeVar("T")
log = get_logger("csr-approver")

KUBELET_SERVING: Final = "kubernetes.io/kubelet-serving"
_NODE_LABEL: Final = "node"
_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")


class Judged(NamedTuple):
    """A verdict, and the name of the Node it concerns; empty if unknown."""

    verdict: Verdict
    node: str = ""


class State(NamedTuple):
    """Nodes and Machines by name: at least those that concern a request."""

    nodes: dict[str, Node]
    machines: dict[str, Machine]


class Seen:
    """Nodes and Machines in caches.

    Args:
        source: For the cluster with the Machines.
        target: For the cluster with the Nodes.
        namespace: Of the Machines; None if Nodes have no Machines.
    """

    def __init__(self, source: Client, target: Client, namespace: str | None) -> None:
        self.nodes = Cache(target, NODE, read_node)
        self._by_claim = Index(self.nodes, lambda key, node: rules.claims_of(key.name, node))
        self.machines: Cache[Machine] | None = None
        if namespace is not None:
            self.machines = Cache(source, MACHINE, read_machine, namespace=namespace)
            self._by_node = Index(self.machines, lambda _, machine: {machine.node})
            self._by_attested = Index(self.machines, lambda _, machine: machine.addresses)

    @property
    def is_synced(self) -> bool:
        """Whether all caches are up to date."""
        return self.nodes.is_synced and (self.machines is None or self.machines.is_synced)

    def state(self, name: str, claims: Collection[str]) -> State:
        """Return a Node with its Machines, and what else has one of the names and addresses."""
        nodes = {Key("", name)}.union(*(self._by_claim.keys(claim) for claim in claims))
        if self.machines is None:
            return State(_found(self.nodes, nodes), {})
        attested = (self._by_attested.keys(claim) for claim in claims)
        machines = set(self._by_node.keys(name)).union(*attested)
        return State(_found(self.nodes, nodes), _found(self.machines, machines))


class Judge:
    """Judges requests without writing anything.

    Args:
        source: For the cluster with the Machines.
        target: For the cluster with the Nodes.
        namespace: Of the Machines; None if Nodes have no Machines.
        seen: The caches that save reads; None without any.
    """

    def __init__(
        self, source: Client, target: Client, namespace: str | None, seen: Seen | None = None
    ) -> None:
        self._source = source
        self._target = target
        self._namespace = namespace
        self._seen = seen

    async def judge(self, csr: JsonObject) -> Judged | None:
        """Return the verdict on a request, or None if it is not ours."""
        spec = map_at(csr, "spec")
        for_kubelet = spec.get("signerName") == KUBELET_SERVING
        kubelet = rules.node_name(spec.get("username") or "")
        try:
            request = decode(csr)
        except UndecodableRequest as error:
            log.warning("csr cannot be decoded", csr=name_of(csr), error=str(error))
            denied = Denied(f"unable to parse csr: {error}")
            return Judged(denied, kubelet) if for_kubelet else None
        if for_kubelet:
            early = rules.kubelet_request(request)
            return Judged(early or await self._kubelet(request, kubelet), kubelet)
        if request.common_name.startswith(rules.GARDENADM):
            return Judged(rules.gardenadm(request))
        machine = rules.machine_name(request.common_name)
        return None if machine is None else await self._node_agent(request, machine)

    async def _kubelet(self, request: Request, name: str) -> Verdict:
        if self._seen is not None and self._seen.is_synced:
            state = self._seen.state(name, rules.claims_in(request))
            verdict = self._by_state(request, name, state)
            if isinstance(verdict, Approved):
                return verdict
        return self._by_state(request, name, await self._read(name))

    def _by_state(self, request: Request, name: str, state: State) -> Verdict:
        machines = [machine for machine in state.machines.values() if machine.node == name]
        others = rules.claimed_by_others(request, name, *state)
        return rules.kubelet_node(request, state.nodes.get(name), machines, self._namespace, others)

    async def _node_agent(self, request: Request, name: str) -> Judged:
        """Judge by live state only: here, the absence of a Node justifies an approval."""
        machine: Machine | None = Machine(node=name)
        if self._namespace is not None:
            found = await _get(self._source, MACHINE, Key(self._namespace, name))
            machine = read_machine(found) if found else None
        if machine is None:
            return Judged(rules.node_agent(request, None, None))
        found = await _get(self._target, NODE, Key("", machine.node))
        node = read_node(found) if found else None
        return Judged(rules.node_agent(request, machine, node), machine.node)

    async def _read(self, name: str) -> State:
        """Read the Node and, if it exists, all others and the Machines."""
        node = await _get(self._target, NODE, Key("", name))
        if node is None:
            return State({}, {})
        machines = {}
        if self._namespace is not None:
            found = await self._source.list(MACHINE, self._namespace)
            machines = {name_of(obj): read_machine(obj) for obj in found}
        nodes = {
            name_of(obj): read_node(obj)
            async for page in self._target.pages(NODE)
            for obj in page.items
        }
        return State(nodes | {name: read_node(node)}, machines)


def read_node(obj: JsonObject) -> Node:
    """Return the facts about a Node."""
    return Node(uid_of(obj), tuple(_addresses(obj)))


def read_machine(obj: JsonObject) -> Machine:
    """Return the facts about a Machine."""
    addresses = frozenset(rules.as_claim(address) for _, address in _addresses(obj))
    is_deleting = deletion_timestamp_of(obj) is not None
    return Machine(labels_of(obj).get(_NODE_LABEL, ""), addresses, is_deleting)


def _addresses(obj: JsonObject) -> Iterator[tuple[str, str]]:
    for entry in maps_at(obj, "status", "addresses"):
        yield str(entry.get("type") or ""), str(entry.get("address") or "")


def _found(cache: Cache[T], keys: Iterable[Key]) -> dict[str, T]:
    found = ((key.name, cache.get(key)) for key in keys)
    return {name: kept for name, kept in found if kept is not None}


async def _get(client: Client, gvk: GroupVersionKind, key: Key) -> JsonObject | None:
    # Names come from requests; an invalid one must not change the path of a read.
    if _NAME.fullmatch(key.name) is None:
        return None
    return await client.find(gvk, key)
