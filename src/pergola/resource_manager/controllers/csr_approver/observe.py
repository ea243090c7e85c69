"""Nodes and Machines, cached and live."""

import re
from collections.abc import Callable, Iterator
from typing import Final

from pergola.api.kinds import MACHINE, NODE
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    labels_of,
    maps_at,
    uid_of,
)
from pergola.kube.client import Client
from pergola.kube.selectors import SelectorError, format_selector
from pergola.resource_manager.controllers.csr_approver.rules import Machine, Node
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
        self._machines: Cache[Machine] | None = None
        if namespace is not None:
            self._machines = Cache(
                source, MACHINE, read_machine, namespace=namespace, metadata_only=True
            )
            self._by_node = Index(self._machines, lambda _, machine: {machine.node})

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
            for name in {m.node for m in (change.old, change.new) if m and m.node}:
                subscriber(name)

        self._nodes.subscribe(node_changed)
        if self._machines is not None:
            self._machines.subscribe(machine_changed)

    async def node(self, name: str) -> Node | None:
        """Return the cached Node."""
        return self._nodes.get(Key("", name))

    async def machines_of(self, node: str) -> int:
        """Count the cached Machines with the Node's name in their label."""
        return len(self._by_node.keys(node)) if self._machines else 0


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
        found = await _get(self._source, MACHINE, Key(self._namespace, name), metadata_only=True)
        return read_machine(found) if found else None

    async def machines_of(self, node: str) -> int:
        """Count the Machines with the Node's name in their label."""
        if self._namespace is None:
            return 0
        try:
            selector = format_selector({"matchLabels": {NODE_LABEL: node}})
        except SelectorError:
            # the name is not a valid label value; for example, it is longer than 63 characters
            return 0
        found = await self._source.list(
            MACHINE, self._namespace, labels=selector, metadata_only=True
        )
        return len(found)


def read_node(obj: JsonObject) -> Node:
    """Return the facts about a Node."""
    addresses = maps_at(obj, "status", "addresses")
    return Node(uid_of(obj), tuple((a.get("type", ""), a.get("address", "")) for a in addresses))


def read_machine(obj: JsonObject) -> Machine:
    """Return the facts about a Machine."""
    return Machine(labels_of(obj).get(NODE_LABEL, ""))


async def _get(
    client: Client, gvk: GroupVersionKind, key: Key, *, metadata_only: bool = False
) -> JsonObject | None:
    # Names come from requests; an invalid one must not change the path of a read.
    if _NAME.fullmatch(key.name) is None:
        return None
    return await client.find(gvk, key, metadata_only=metadata_only)
