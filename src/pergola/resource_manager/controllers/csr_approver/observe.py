"""Nodes and Machines, cached and live."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from pergola.api.kinds import MACHINE, NODE
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    deletion_timestamp_of,
    labels_of,
    maps_at,
    name_of,
    uid_of,
)
from pergola.kube.client import Client
from pergola.kube.selectors import SelectorError, format_selector
from pergola.resource_manager.controllers.csr_approver.rules import (
    Machine,
    Node,
    as_claim,
    claims_of,
)
from pergola.runtime.caching.cache import Cache, Change
from pergola.runtime.caching.index import Index

NODE_LABEL: Final = "node"
_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")


class Seen:
    """Nodes and Machines from caches.

    Args:
        source: For the cluster with the Machines.
        target: For the cluster with the Nodes.
        namespace: Of the Machines; None if there are none.
    """

    def __init__(self, source: Client, target: Client, namespace: str | None) -> None:
        self._namespace = namespace or ""
        self._nodes = Cache(target, NODE, read_node)
        self._by_claim = Index(self._nodes, lambda key, node: claims_of(key.name, node))
        self._machines: Cache[Machine] | None = None
        if namespace is not None:
            self._machines = Cache(source, MACHINE, read_machine, namespace=namespace)
            self._by_node = Index(self._machines, lambda _, machine: {machine.node})
            self._by_attested = Index(self._machines, lambda _, machine: machine.addresses)

    @property
    def caches(self) -> Iterator[Cache[Node] | Cache[Machine]]:
        """The caches to run."""
        yield self._nodes
        if self._machines is not None:
            yield self._machines

    @property
    def is_synced(self) -> bool:
        """Whether all caches are up to date."""
        return all(cache.is_synced for cache in self.caches)

    def subscribe(self, subscriber: Callable[[str], None]) -> None:
        """Call `subscriber` with the name of each Node that changes, or whose Machine changes.

        Heartbeats of Nodes are ignored.
        """

        def node_changed(change: Change[Node]) -> None:
            if change.old != change.new:
                subscriber(change.key.name)

        def machine_changed(change: Change[Machine]) -> None:
            if change.old == change.new:
                return
            for name in {m.node for m in (change.old, change.new) if m and m.node}:
                subscriber(name)

        self._nodes.subscribe(node_changed)
        if self._machines is not None:
            self._machines.subscribe(machine_changed)

    async def node(self, name: str) -> Node | None:
        """Return the cached Node."""
        return self._nodes.get(Key("", name))

    async def machines_of(self, node: str) -> list[Machine]:
        """Return the cached Machines with the Node's name in their label."""
        machines = self._machines
        if machines is None:
            return []
        found = (machines.get(key) for key in self._by_node.keys(node))
        return [machine for machine in found if machine is not None]

    async def others(self, node: str, claims: Iterable[str]) -> dict[str, str]:
        """Return the claims that a cached Node or Machine of another node has, with its name."""
        found: dict[str, str] = {}
        for claim in claims:
            nodes = {key.name for key in self._by_claim.keys(claim)}
            if others := nodes - {node}:
                found[claim] = _node(min(others))
            elif self._machines is not None:
                for key in self._by_attested.keys(claim):
                    machine = self._machines.get(key)
                    if machine is not None and machine.node != node:
                        found[claim] = _machine(key.name)
        return found


class Live:
    """Nodes and Machines read from the API servers, for decisions that must not use stale state."""

    def __init__(self, source: Client, target: Client, namespace: str | None) -> None:
        self._source = source
        self._target = target
        self._namespace = namespace

    async def node(self, name: str) -> Node | None:
        """Read the Node."""
        found = await _get(self._target, NODE, Key("", name))
        return read_node(found) if found else None

    async def machine(self, name: str) -> Machine | None:
        """Read the Machine."""
        if self._namespace is None:
            return None
        found = await _get(self._source, MACHINE, Key(self._namespace, name))
        return read_machine(found) if found else None

    async def machines_of(self, node: str) -> list[Machine]:
        """Return the Machines with the Node's name in their label."""
        if self._namespace is None:
            return []
        try:
            selector = format_selector({"matchLabels": {NODE_LABEL: node}})
        except SelectorError:
            # the name is not a valid label value; for example, it is longer than 63 characters
            return []
        found = await self._source.list(MACHINE, self._namespace, labels=selector)
        return [read_machine(obj) for obj in found]

    async def others(self, node: str, claims: Iterable[str]) -> dict[str, str]:
        """Return the claims that a Node or Machine of another node has, with its name."""
        asked, found = frozenset(claims), dict[str, str]()
        if self._namespace is not None:
            for obj in await self._source.list(MACHINE, self._namespace):
                machine = read_machine(obj)
                if machine.node != node:
                    found |= dict.fromkeys(asked & machine.addresses, _machine(name_of(obj)))
        async for page in self._target.pages(NODE):
            for obj in page.items:
                if (name := name_of(obj)) != node:
                    found |= dict.fromkeys(asked & claims_of(name, read_node(obj)), _node(name))
        return found


def read_node(obj: JsonObject) -> Node:
    """Return the facts about a Node."""
    return Node(uid_of(obj), tuple(_addresses(obj)))


def read_machine(obj: JsonObject) -> Machine:
    """Return the facts about a Machine."""
    addresses = frozenset(as_claim(address) for _, address in _addresses(obj))
    is_deleting = deletion_timestamp_of(obj) is not None
    return Machine(labels_of(obj).get(NODE_LABEL, ""), addresses, is_deleting)


def _addresses(obj: JsonObject) -> Iterator[tuple[str, str]]:
    for entry in maps_at(obj, "status", "addresses"):
        yield str(entry.get("type") or ""), str(entry.get("address") or "")


def _node(name: str) -> str:
    return f'node "{name}"'


def _machine(name: str) -> str:
    return f'machine "{name}"'


async def _get(client: Client, gvk: GroupVersionKind, key: Key) -> JsonObject | None:
    # Names come from requests; an invalid one must not change the path of a read.
    if _NAME.fullmatch(key.name) is None:
        return None
    return await client.find(gvk, key)
