"""Lookups in manifests, for running webhooks without a cluster."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from pergola.api.kinds import HPA, HVPA
from pergola.api.objects import (
    GroupKind,
    GroupVersionKind,
    JsonObject,
    Key,
    annotations_of,
    labels_of,
)
from pergola.kube.selectors import matches, parse_selector
from pergola.resource_manager.webhooks.facts.environment import (
    scaled_by_hpa,
    scaled_by_hvpa,
)
from pergola.resource_manager.webhooks.facts.high_availability import (
    NamespaceSettings,
    read_namespace,
)
from pergola.resource_manager.webhooks.facts.lookups import Lookups, automounts
from pergola.resource_manager.webhooks.facts.taints import Taint, in_order, taints_of

_NODE: Final = "Node"


class Unanswered(Exception):
    """A webhook needs an object that is not in the manifests; the text names it."""


class DocumentLookups:
    """Lookups in manifests, and in a cluster for objects missing from them.

    Args:
        documents: of any kinds; objects without a namespace belong to `namespace`.
        beyond: the cluster; without one, missing objects raise `Unanswered`.
        system_nodes: the labels of the nodes for system components; all nodes if empty.
    """

    def __init__(
        self,
        documents: Iterable[JsonObject],
        beyond: Lookups | None = None,
        *,
        namespace: str = "default",
        system_nodes: Mapping[str, str] | None = None,
    ) -> None:
        self._documents = list(documents)
        self._beyond = beyond
        self._namespace = namespace
        self._system_nodes = {"matchLabels": dict(system_nodes or {})}

    def known_mount(self, account: Key) -> bool | None:
        """Return None: `mounts_token` answers."""
        return None

    def known_taints(self) -> Sequence[Taint] | None:
        """Return None: `system_taints` answers."""
        return None

    async def mounts_token(self, account: Key) -> bool:
        """Return whether a ServiceAccount mounts its token into pods."""
        found = self.find("ServiceAccount", account)
        if found is not None:
            return automounts(found)
        return await self._beyond_documents("ServiceAccount", account).mounts_token(account)

    async def system_taints(self) -> Sequence[Taint]:
        """Return the taints of the Nodes in the manifests, if any, else of the cluster's."""
        nodes = [d for d in self._documents if GroupVersionKind.of(d).group_kind == _kind(_NODE)]
        if not nodes and self._beyond is not None:
            return await self._beyond.system_taints()
        system = (node for node in nodes if matches(self._system_nodes, labels_of(node)))
        return in_order(taint for node in system for taint in taints_of(node))

    async def namespace(self, name: str) -> NamespaceSettings:
        """Return the Namespace's settings for high availability."""
        found = self.find("Namespace", Key("", name))
        if found is not None:
            return read_namespace(annotations_of(found))
        return await self._beyond_documents("Namespace", Key("", name)).namespace(name)

    async def most_replicas(self, workload: GroupVersionKind, key: Key) -> int | None:
        """Return the maximum from the manifests' autoscalers, else from the cluster's."""
        identity = (workload.api_version, workload.kind, key.name)
        for read, gvk in ((scaled_by_hpa, HPA), (scaled_by_hvpa, HVPA)):
            for document in self._documents:
                is_near = self._key(document).namespace == key.namespace
                if is_near and GroupVersionKind.of(document).group_kind == gvk.group_kind:
                    scaled = read(document)
                    if scaled is not None and scaled[:3] == identity:
                        return scaled.most
        return await self._beyond.most_replicas(workload, key) if self._beyond else None

    async def many_nodes(self) -> bool:
        """Count the Nodes in the manifests, else in the cluster; without either, assume many."""
        nodes = [d for d in self._documents if GroupVersionKind.of(d).group_kind == _kind(_NODE)]
        if nodes:
            return len(nodes) > 1
        return await self._beyond.many_nodes() if self._beyond else True

    async def config_map(self, key: Key) -> JsonObject:
        """Read a ConfigMap."""
        found = self.find("ConfigMap", key)
        return found or await self._beyond_documents("ConfigMap", key).config_map(key)

    async def service(self, key: Key) -> JsonObject:
        """Read a Service."""
        found = self.find("Service", key)
        return found or await self._beyond_documents("Service", key).service(key)

    async def objects(self, gvk: GroupVersionKind, namespace: str, labels: str) -> list[JsonObject]:
        """List objects of the cluster, if there is one: deletions affect stored objects."""
        if self._beyond is not None:
            return await self._beyond.objects(gvk, namespace, labels)
        selector = parse_selector(labels)
        return [
            document
            for document in self._documents
            if GroupVersionKind.of(document).group_kind == gvk.group_kind
            and namespace in ("", self._key(document).namespace)
            and matches(selector, labels_of(document))
        ]

    def find(self, kind: str, key: Key) -> JsonObject | None:
        """Return an object of the core group, or None if it is not in the manifests."""
        of_kind = (d for d in self._documents if GroupVersionKind.of(d).group_kind == _kind(kind))
        key_of = self._key if key.namespace else Key.of
        return next((document for document in of_kind if key_of(document) == key), None)

    def _key(self, document: JsonObject) -> Key:
        key = Key.of(document)
        return key if key.namespace else Key(self._namespace, key.name)

    def _beyond_documents(self, kind: str, key: Key) -> Lookups:
        if self._beyond is None:
            raise Unanswered(
                f"{kind} {key} is in none of the files; add it to them, or name a cluster with "
                "--kubeconfig or --context"
            )
        return self._beyond


def _kind(name: str) -> GroupKind:
    return GroupKind("", name)
