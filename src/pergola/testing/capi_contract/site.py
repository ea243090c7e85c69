"""The Clusters and InfraClusters of one case."""

import secrets
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, suppress
from typing import Final

import pytest

from pergola.api.cluster_api import CLUSTER_NAME, MANAGED_BY
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    annotations_of,
    finalizers_of,
    labels_of,
    metadata_of,
    resource_version_of,
    uid_of,
)
from pergola.externally_managed.predicate import is_externally_managed
from pergola.kube.client import Client
from pergola.kube.errors import ApiError, Conflict, KubeError
from pergola.kube.patches import apply_merge_patch
from pergola.testing.capi_contract.kinds import Kinds
from pergola.testing.capi_contract.subject import Manifest, Subject
from pergola.testing.capi_contract.witness import Witness

HOLD: Final = "contract.pergola.dev/hold"
"""Our own finalizer, which delays deletions."""
TOUCHED: Final = "contract.pergola.dev/touched"
"""Our own annotation, without any meaning."""
_FIELD_MANAGER: Final = "capi-contract"
_ATTEMPTS: Final = 20


class Site:
    """The namespace of a case, in which it creates its objects.

    Attributes:
        kinds: the kinds as the API server serves them.
        subject: the provider under test.
    """

    def __init__(self, client: Client, subject: Subject, kinds: Kinds, namespace: str) -> None:
        self.client = client
        self.subject = subject
        self.kinds = kinds
        self.namespace = namespace
        self._ours: set[str] = set()
        self._created: list[tuple[GroupVersionKind, Key]] = []

    # Creating objects

    def new_key(self) -> Key:
        """Return a new key."""
        return Key(self.namespace, f"contract-{secrets.token_hex(4)}")

    async def create_external(
        self,
        key: Key,
        value: str | None = None,
        *,
        annotations: dict[str, str] | None = None,
        finalizers: Sequence[str] = (),
        applied: bool = False,
    ) -> JsonObject:
        """Create an externally managed InfraCluster, linked to a new Cluster as core does it.

        Args:
            value: the value of the annotation; the manifest's own if None.
            applied: whether to use server-side apply, as an external manager may do.
        """
        marks = {**(annotations or {}), **({} if value is None else {MANAGED_BY: value})}
        metadata = {"annotations": marks, "finalizers": list(finalizers)}
        return await self._create(self.subject.external, key, metadata, applied=applied)

    async def create_managed(self, key: Key, labels: dict[str, str] | None = None) -> JsonObject:
        """Create an InfraCluster that its provider manages, linked to a new Cluster."""
        return await self._create(self.subject.managed, key, {"labels": labels or {}})

    async def create_further(self, obj: JsonObject) -> None:
        """Create an extra object for the case."""
        gvk = GroupVersionKind.of(obj)
        placed = obj
        if (await self.client.resource(gvk)).namespaced:
            placed = {**obj, "metadata": {**metadata_of(obj), "namespace": self.namespace}}
        # Applied, since several cases may share a namespace.
        written = await self.client.apply(placed, manager=_FIELD_MANAGER, force=True)
        self._note(written)
        self._created.append((gvk, Key.of(placed)))

    # Changing objects

    async def get(self, key: Key) -> JsonObject:
        """Return the InfraCluster, in the version that core reads."""
        return await self.client.get(self.kinds.infra, key)

    async def patch(
        self,
        key: Key,
        body: JsonObject | Sequence[JsonObject],
        *,
        subresource: str = "",
        version: str = "",
    ) -> JsonObject:
        """Patch an InfraCluster: a map is a merge patch, a list a JSON patch."""
        gvk = self.kinds.infra._replace(version=version) if version else self.kinds.infra
        return self._note(await self.client.patch(gvk, key, body, subresource=subresource))

    async def annotate(self, key: Key, name: str, value: str | None) -> JsonObject:
        """Set an annotation of an InfraCluster, or remove it."""
        return await self.patch(key, {"metadata": {"annotations": {name: value}}})

    async def replace(self, key: Key, changes: JsonObject) -> JsonObject:
        """Replace an InfraCluster, with a merge patch applied."""
        for _ in range(_ATTEMPTS):
            obj = apply_merge_patch(await self.get(key), changes)
            with suppress(Conflict):
                return self._note(await self.client.update(obj))
        raise AssertionError(f"{self.kinds.infra.kind} {key} is being written constantly")

    async def apply_without(self, key: Key, annotation: str) -> JsonObject:
        """Repeat the last server-side apply without an annotation."""
        owner = await self.client.get(self.kinds.cluster, key)
        obj = self._rendered(self.subject.external, key, {}, uid_of(owner))
        del obj["metadata"]["annotations"][annotation]
        return self._note(await self.client.apply(obj, manager=_FIELD_MANAGER, force=True))

    async def write_status(self, key: Key, status: JsonObject) -> JsonObject:
        """Merge-patch the status, as an external manager does."""
        subresource = "status" if self.kinds.has_status else ""
        return await self.patch(key, {"status": status}, subresource=subresource)

    async def patch_cluster(self, key: Key, body: JsonObject, *, subresource: str = "") -> None:
        """Merge-patch the Cluster of an InfraCluster."""
        await self.client.patch(self.kinds.cluster, key, body, subresource=subresource)

    async def delete(self, key: Key) -> None:
        """Request the deletion of an InfraCluster."""
        await self.client.delete(self.kinds.infra, key)

    # Observing

    @property
    def settle_seconds(self) -> float:
        """The time within which the provider reacts to anything."""
        return self.subject.settle_seconds

    def witness(
        self, key: Key, gvk: GroupVersionKind | None = None
    ) -> AbstractAsyncContextManager[Witness]:
        """Observe all writes to an InfraCluster (or another object) during a block."""
        patience = self.subject.patience_seconds
        witness = Witness(self.client, gvk or self.kinds.infra, key, self._ours, patience)
        return witness.watching()

    async def clean(self) -> None:
        """Delete the objects of the case; the provider has to release those that it manages."""
        for gvk, key in reversed(self._created):
            with suppress(KubeError):
                await self.client.delete(gvk, key)
                obj = await self.client.get(gvk, key)
                if is_externally_managed(obj) and finalizers_of(obj):
                    await self.client.patch(gvk, key, {"metadata": {"finalizers": None}})

    async def _create(
        self, manifest: Manifest, key: Key, metadata: JsonObject, *, applied: bool = False
    ) -> JsonObject:
        for obj in manifest.before:
            await self.create_further(obj)
        try:
            owner = await self.client.create(self._cluster(manifest.gvk, key))
            self._created.append((self.kinds.cluster, key))
            obj = self._rendered(manifest, key, metadata, uid_of(owner))
            self._created.append((self.kinds.infra, key))
            if applied:
                return self._note(await self.client.apply(obj, manager=_FIELD_MANAGER))
            return self._note(await self.client.create(obj))
        except ApiError as error:
            pytest.fail(
                f"cannot create {manifest.gvk.kind} {key} and its Cluster: {error}", pytrace=False
            )

    def _cluster(self, infra: GroupVersionKind, key: Key) -> JsonObject:
        reference = self.kinds.reference(infra, key.name, key.namespace)
        return {
            "apiVersion": self.kinds.cluster.api_version,
            "kind": self.kinds.cluster.kind,
            "metadata": {"name": key.name, "namespace": key.namespace},
            "spec": {"infrastructureRef": reference},
        }

    def _rendered(self, manifest: Manifest, key: Key, metadata: JsonObject, uid: str) -> JsonObject:
        """Return the InfraCluster of a manifest, with the links to its Cluster."""
        obj = manifest.infra_cluster
        owner = {
            "apiVersion": self.kinds.cluster.api_version,
            "kind": self.kinds.cluster.kind,
            "name": key.name,
            "uid": uid,
            "controller": True,
        }
        links = {CLUSTER_NAME: key.name}
        return {
            **obj,
            "metadata": {
                "name": key.name,
                "namespace": key.namespace,
                "labels": {**labels_of(obj), **links, **metadata.get("labels", {})},
                "annotations": {**annotations_of(obj), **metadata.get("annotations", {})},
                "ownerReferences": [owner],
                "finalizers": metadata.get("finalizers", []),
            },
        }

    def _note(self, written: JsonObject) -> JsonObject:
        self._ours.add(resource_version_of(written))
        return written
