"""Pergola knows the same defaults as the API server (spec 10 B7)."""

import asyncio
import base64
import copy
import hashlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from ipaddress import IPv6Address
from pathlib import Path
from typing import Any, Final

import orjson
import pytest

from pergola.api import marks
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    JsonValue,
    Key,
    annotations_of,
    labels_of,
    maps_at,
    name_of,
    uid_of,
)
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.kube.client import Client
from pergola.kube.discovery import group_version_path, resources_in
from pergola.kube.errors import Conflict, NotFound
from pergola.kube.yaml import parse_documents
from pergola.pki.authorities import Authority
from pergola.resource_manager.controllers.managed_resource.compare import needs_update
from pergola.resource_manager.controllers.managed_resource.merge import (
    MergeOptions,
    for_creation,
    merge,
)
from pergola.resource_manager.target.content import content_digest
from pergola.testing.waiting import until, until_gone
from pergola.testing.world import World, is_applied

MANIFESTS: Final = (Path(__file__).parent / "api_defaults.yaml").read_text()
OPTIONS: Final = MergeOptions("ns/name", {"injected": "yes"})
AUTHORITY: Final = base64.b64encode(
    Authority.create("ca", datetime.now(UTC), timedelta(days=1)).pair.public
).decode()
API_SERVICE: Final = GroupVersionKind("apiregistration.k8s.io", "v1", "APIService")
AUTOMANAGED: Final = "kube-aggregator.kubernetes.io/automanaged"
Path_ = tuple[str | int, ...]


def manifests(namespace: str) -> list[JsonObject]:
    found = []
    text = MANIFESTS.replace("NAMESPACE", namespace).replace("ADDRESS", address(namespace))
    for document in parse_documents(text):
        assert isinstance(document.value, dict), document
        found.append(document.value)
    return found


def address(namespace: str) -> str:
    """Return an address that no other test uses."""
    digits = hashlib.sha256(namespace.encode()).hexdigest()[:8]
    return str(IPv6Address(int(f"20010db8{digits}", 16) << 64))


def described(manifest: JsonObject) -> str:
    name = "address" if manifest["kind"] == "IPAddress" else name_of(manifest)
    return f"{manifest['kind']}-{name}"


ALL: Final = [described(manifest) for manifest in manifests("ns")]


@pytest.fixture(params=ALL)
async def manifest(
    request: pytest.FixtureRequest, cluster_client: Client, namespace: str
) -> AsyncIterator[JsonObject]:
    manifest = manifests(namespace)[ALL.index(request.param)]
    gvk = GroupVersionKind.of(manifest)
    if (await cluster_client.resource(gvk)).namespaced:
        manifest["metadata"]["namespace"] = namespace
    yield manifest
    with suppress(NotFound):
        await cluster_client.delete(gvk, Key.of(manifest))


async def test_a_created_object_differs_only_by_what_users_edit(
    manifest: JsonObject, cluster_client: Client
) -> None:
    live = await cluster_client.create(for_creation(manifest, OPTIONS))

    merged = merge(manifest, live, previous=None, options=OPTIONS)
    assert_equal(live, merged)
    for path, edited in edits(live, manifest):
        assert needs_update(edited, merged), path
    for path, edited in additions(live, manifest):
        reverted = merge(manifest, edited, previous=None, options=OPTIONS)
        assert needs_update(edited, reverted), path
        assert "userAdded" not in orjson.dumps(content_of(reverted)).decode(), path
    if manifest["kind"] != "Pod":  # the API server rejects changes of those with a node
        await assert_update_changes_nothing(manifest, cluster_client)


async def assert_update_changes_nothing(manifest: JsonObject, client: Client) -> None:
    """Send the update that a comparison skips."""
    gvk = GroupVersionKind.of(manifest)
    while True:
        live = await client.get(gvk, Key.of(manifest))
        merged = merge(manifest, live, previous=None, options=OPTIONS)
        with suppress(Conflict):
            updated = await client.update(merged)
            break
    assert_equal(live, merged)
    if "aggregationRule" not in manifest:
        assert content_digest(updated) == content_digest(live)


CLAIM_REF: Final[JsonObject] = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "namespace": "default",
    "name": "bound",
    "uid": "5dcf1b6d-7bb1-4d9e-9fb1-3a0d9e1f0a11",
    "resourceVersion": "1",
}


def fill_in(obj: JsonObject) -> None:
    """Set, in place, what controllers and injectors set in an object of its kind."""
    spec = obj.get("spec", {})
    match obj["kind"]:
        case "PersistentVolume":
            spec["claimRef"] = {**CLAIM_REF, **spec.get("claimRef", {})}
            spec["capacity"] = {"storage": "9Gi"}
            spec.setdefault("nodeAffinity", NODE_AFFINITY)
            spec |= {"volumeAttributesClassName": "fast"} if "csi" in spec else {}
        case "PersistentVolumeClaim":
            spec.setdefault("volumeName", "bound")
        case "Node":
            others = [t for t in spec.get("taints", []) if t["key"] != TAINT["key"]]
            spec |= {"providerID": "example:///node", "podCIDR": "10.1.2.0/24"}
            spec["taints"] = [*others, TAINT]
        case "CSINode":
            spec["drivers"] = [{"name": "example.com", "nodeID": "a", "topologyKeys": ["a"]}]
        case "Lease":
            obj["spec"] = {"holderIdentity": "a", "renewTime": "2026-01-01T00:00:00.000000Z"}
        case "Secret" if obj["type"] == "kubernetes.io/service-account-token":
            obj["data"] = {**(obj.get("data") or {}), "token": "eA=="}
        case _:
            inject_authority(obj, spec)


def inject_authority(obj: JsonObject, spec: JsonObject) -> None:
    match obj["kind"]:
        case "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration":
            clients = [webhook["clientConfig"] for webhook in obj["webhooks"]]
        case "APIService" if "service" in spec and not spec.get("insecureSkipTLSVerify"):
            clients = [spec]
        case "CustomResourceDefinition" if "webhook" in spec.get("conversion", {}):
            clients = [spec["conversion"]["webhook"]["clientConfig"]]
        case _:
            clients = []
    for client in clients:
        client.setdefault("caBundle", AUTHORITY)


TAINT: Final = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}
NODE_AFFINITY: Final[JsonObject] = {
    "required": {
        "nodeSelectorTerms": [
            {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
        ]
    }
}
SIDECAR: Final[JsonObject] = {"name": "sidecar", "image": "registry/sidecar:1"}


def admitted(obj: JsonObject) -> JsonObject:
    """Return an object to create with what webhooks add to it."""
    obj = copy.deepcopy(obj)
    spec = obj.get("spec", {})
    if obj["kind"] == "Service" and spec.get("type") == "LoadBalancer":
        spec["loadBalancerClass"] = "example.com/balancer"
    if obj["kind"] == "Pod":
        spec["securityContext"] = {
            **spec.get("securityContext", {}),
            "seccompProfile": {"type": "RuntimeDefault"},
        }
        spec["containers"][0].setdefault("env", []).append({"name": "INJECTED", "value": "x"})
        spec["containers"].append(SIDECAR)
        spec["initContainers"] = [{**SIDECAR, "name": "first"}, *spec.get("initContainers", [])]
        spec["volumes"] = [{"name": "injected", "emptyDir": {}}, *spec.get("volumes", [])]
        spec.setdefault("tolerations", []).append({"key": "injected", "operator": "Exists"})
    return obj


async def test_a_changed_label_keeps_everything_that_others_filled_in(
    manifest: JsonObject, cluster_client: Client
) -> None:
    gvk = GroupVersionKind.of(manifest)
    created = await cluster_client.create(admitted(for_creation(manifest, OPTIONS)))
    manifest["metadata"]["labels"] = {**labels_of(manifest), "changed": "yes"}

    while True:
        live = await cluster_client.get(gvk, Key.of(created))
        fill_in(live)
        with suppress(Conflict):
            live = await cluster_client.update(live)
            merged = merge(manifest, live, previous=None, options=OPTIONS)
            updated = await cluster_client.update(merged)
            break

    assert labels_of(updated)["changed"] == "yes"
    assert content_of(updated) == content_of(live)


async def test_an_exported_object_can_be_created_again(
    manifest: JsonObject, cluster_client: Client
) -> None:
    gvk = GroupVersionKind.of(manifest)
    exported = await cluster_client.create(for_creation(manifest, OPTIONS))
    if "aggregationRule" in manifest:
        # Its controller applies the rules, which would create a deleted role again.
        exported = await until(
            cluster_client, gvk, Key.of(exported), lambda obj: bool(obj.get("rules"))
        )
    await cluster_client.delete(gvk, Key.of(exported), propagation="Background")
    await until_gone(cluster_client, gvk, Key.of(exported))

    live = await cluster_client.create(for_creation(exported, OPTIONS))

    assert uid_of(live) != uid_of(exported)
    assert not needs_update(live, merge(exported, live, previous=None, options=OPTIONS))


@pytest.fixture
async def described_world(world: World) -> AsyncIterator[tuple[World, list[JsonObject]]]:
    """Yield a world with all manifests in the ManagedResource `demo`, and these manifests."""
    objects = manifests(world.namespace)
    for obj in objects:
        if (await world.client.resource(GroupVersionKind.of(obj))).namespaced:
            obj["metadata"]["namespace"] = world.namespace
    await world.start(sync_period=3600.0)
    await world.create("demo", *objects)
    yield world, objects
    await world.delete("demo")
    await world.until_gone(MANAGED_RESOURCE, world.key("demo"))


async def test_all_kinds_keep_what_others_filled_in_through_runs_of_every_sort(
    described_world: tuple[World, list[JsonObject]],
) -> None:
    """Objects of all kinds in one ManagedResource, with the real controllers of Kubernetes."""
    world, objects = described_world
    await world.applied("demo")
    await asyncio.gather(*(edit(world.client, obj, fill_in) for obj in objects))
    await world.settled()
    before = await all_live(world.client, objects)

    async def assert_kept() -> None:
        for live, now in zip(before, await all_live(world.client, before), strict=True):
            assert lost(content_of(live), content_of(now)) == [], described(live)

    for obj in objects:
        obj["metadata"]["labels"] = {**labels_of(obj), "changed": "yes"}
    await world.put_secret("demo", *objects)
    await world.until("demo", lambda r: is_applied(r) and all_labelled(r, "changed"))
    await assert_kept()

    await world.edit("demo", {"spec": {"injectLabels": {"injected": "yes"}}})
    await world.until("demo", lambda r: is_applied(r) and all_labelled(r, "injected"))
    await assert_kept()

    await world.settled()
    world.recorder.taken()
    await world.edit("demo", {"metadata": {"annotations": {marks.OPERATION: "reconcile"}}})
    await world.until("demo", lambda r: marks.OPERATION not in annotations_of(r))
    await world.settled()
    assert {w for w in world.recorder.taken() if " ManagedResource " not in w} == set()
    await assert_kept()


async def edit(client: Client, manifest: JsonObject, change: Callable[[JsonObject], None]) -> None:
    """Change the live object of a manifest, if that changes anything."""
    while True:
        live = await client.get(GroupVersionKind.of(manifest), Key.of(manifest))
        edited = copy.deepcopy(live)
        change(edited)
        if edited == live:
            return
        with suppress(Conflict):
            await client.update(edited)
            return


async def all_live(client: Client, objects: list[JsonObject]) -> list[JsonObject]:
    return await asyncio.gather(*(client.get(GroupVersionKind.of(o), Key.of(o)) for o in objects))


def all_labelled(resource: JsonObject, label: str) -> bool:
    return all(label in ref["labels"] for ref in maps_at(resource, "status", "resources"))


def lost(before: JsonValue, after: JsonValue, path: Path_ = ()) -> list[Path_]:
    """Return the paths of values that are gone or changed."""
    if isinstance(before, dict) and isinstance(after, dict):
        return [p for name in before for p in lost(before[name], after.get(name), (*path, name))]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return [p for i, item in enumerate(before) for p in lost(item, after[i], (*path, i))]
    return [] if before == after else [path]


async def test_the_manifests_cover_every_kind_of_the_api_server(cluster_client: Client) -> None:
    covered = {(manifest["apiVersion"], manifest["kind"]) for manifest in manifests("ns")}

    served = [gvk async for gvk in kinds_to_manage(cluster_client)]

    assert {(gvk.api_version, gvk.kind) for gvk in served} - covered == set()


async def kinds_to_manage(client: Client) -> AsyncIterator[GroupVersionKind]:
    """Yield the kinds of Kubernetes itself that can be created, updated and deleted."""
    for service in await client.list(API_SERVICE, labels=f"{AUTOMANAGED}=onstart"):
        group, version = service["spec"].get("group", ""), service["spec"]["version"]
        answer = orjson.loads(await client.get_raw(group_version_path(group, version)))
        for resource, entry in resources_in(answer, group, version):
            if {"create", "get", "update", "delete"} <= set(entry["verbs"]):
                yield resource.gvk


def content_of(obj: JsonObject) -> JsonObject:
    return {name: value for name, value in obj.items() if name not in ("metadata", "status")}


def assert_equal(live: JsonObject, merged: JsonObject) -> None:
    shown = {name: [live.get(name), merged.get(name)] for name in live.keys() | merged.keys()}
    for apart in ("metadata", "status"):
        shown.pop(apart, None)
    assert not needs_update(live, merged), orjson.dumps(shown).decode()


def edits(live: JsonObject, manifest: JsonObject) -> Iterator[tuple[Path_, JsonObject]]:
    """Yield copies of the live object, each with another value of the manifest changed."""
    for path in leaves(manifest):
        if path[0] in ("apiVersion", "kind", "metadata", "status"):
            continue
        if path[0] == "rules" and "aggregationRule" in manifest:
            continue  # a controller owns them
        if (manifest["kind"], path[-1]) in KEPT:
            continue
        edited = orjson.loads(orjson.dumps(live))
        here = edited
        try:
            for step in path[:-1]:
                here = here[step]
            here[path[-1]] = other(here[path[-1]])
        except KeyError:
            continue  # stored in another form, or not at all
        yield path, edited


KEPT: Final = {
    # Controllers own these, and the server refuses to remove anything from a pod.
    ("CSINode", "drivers"),
    ("Node", "taints"),
    ("ServiceAccount", "secrets"),
    ("ServiceAccount", "imagePullSecrets"),
    ("StatefulSet", "volumeClaimTemplates"),
}


def additions(live: JsonObject, manifest: JsonObject) -> Iterator[tuple[Path_, JsonObject]]:
    """Yield copies of the live object, each with one more field or item of a list."""
    if manifest["kind"] == "Pod" or "aggregationRule" in manifest:
        return
    for path in (*inner(content_of(manifest)), ()):
        edited = copy.deepcopy(live)
        here: Any = edited
        try:
            for step in path:
                here = here[step]
        except (KeyError, IndexError):
            continue  # stored in another form, or not at all
        if any((manifest["kind"], step) in KEPT for step in path) or is_labels(path):
            continue
        if isinstance(here, dict):
            here["userAdded"] = "x"
        else:
            here.append({"name": "userAdded"} if isinstance(here[0], dict) else "userAdded")
        yield path, edited


def is_labels(path: Path_) -> bool:
    """Return whether a path is that of a template's labels, which a Job keeps."""
    return path[-2:] == ("metadata", "labels")


def inner(value: object, path: Path_ = ()) -> Iterator[Path_]:
    """Yield the paths of maps and lists that are not empty."""
    if not isinstance(value, dict | list) or not value:
        return
    if path:
        yield path
    for name, item in value.items() if isinstance(value, dict) else enumerate(value):
        yield from inner(item, (*path, name))


def leaves(value: object, path: Path_ = ()) -> Iterator[Path_]:
    if isinstance(value, dict) and value:
        for name, item in value.items():
            yield from leaves(item, (*path, name))
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            yield from leaves(item, (*path, index))
    else:
        yield path


def other(value: object) -> object:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    return f"{value}x" if isinstance(value, str) else {"x": "y"}
