"""Pergola knows the same defaults as the API server (spec 10 B7)."""

import base64
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import orjson
import pytest

from pergola.api.objects import GroupVersionKind, JsonObject, Key, labels_of, name_of
from pergola.kube.client import Client
from pergola.kube.errors import Conflict, NotFound
from pergola.kube.yaml import parse_documents
from pergola.pki.authorities import Authority
from pergola.resource_manager.controllers.managed_resource.compare import (
    content_digest,
    needs_update,
)
from pergola.resource_manager.controllers.managed_resource.merge import (
    MergeOptions,
    for_creation,
    merge,
)

MANIFESTS: Final = (Path(__file__).parent / "api_defaults.yaml").read_text()
OPTIONS: Final = MergeOptions("ns/name", {"injected": "yes"})
AUTHORITY: Final = base64.b64encode(
    Authority.create("ca", datetime.now(UTC), timedelta(days=1)).pair.public
).decode()
Path_ = tuple[str | int, ...]


def manifests(namespace: str) -> list[JsonObject]:
    found = []
    for document in parse_documents(MANIFESTS.replace("NAMESPACE", namespace)):
        assert isinstance(document.value, dict), document
        found.append(document.value)
    return found


def described(manifest: JsonObject) -> str:
    return f"{manifest['kind']}-{name_of(manifest)}"


ALL: Final = [described(manifest) for manifest in manifests("ns")]
# The API server rejects changes of pods that are assigned to a node.
UPDATABLE: Final = [name for name in ALL if not name.startswith("Pod-")]


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


async def test_a_created_object_needs_no_update(
    manifest: JsonObject, cluster_client: Client
) -> None:
    live = await cluster_client.create(for_creation(manifest, OPTIONS))

    assert_equal(live, merge(manifest, live, previous=None, options=OPTIONS))


@pytest.mark.parametrize("manifest", UPDATABLE, indirect=True)
async def test_a_skipped_update_would_change_nothing(
    manifest: JsonObject, cluster_client: Client
) -> None:
    live = await cluster_client.create(for_creation(manifest, OPTIONS))

    while True:
        live = await cluster_client.get(GroupVersionKind.of(manifest), Key.of(live))
        merged = merge(manifest, live, previous=None, options=OPTIONS)
        with suppress(Conflict):
            updated = await cluster_client.update(merged)
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
    match obj["kind"]:
        case "PersistentVolume":
            obj["spec"]["claimRef"] = {**CLAIM_REF, **obj["spec"].get("claimRef", {})}
        case "PersistentVolumeClaim":
            obj["spec"]["volumeName"] = "bound"
        case "Node":
            obj["spec"] |= {"providerID": "example:///node", "podCIDR": "10.1.2.0/24"}
        case "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration":
            for webhook in obj["webhooks"]:
                webhook["clientConfig"].setdefault("caBundle", AUTHORITY)
        case "APIService" if "service" in obj["spec"] and not is_insecure(obj):
            obj["spec"].setdefault("caBundle", AUTHORITY)
        case "CustomResourceDefinition" if "webhook" in obj["spec"].get("conversion", {}):
            client = obj["spec"]["conversion"]["webhook"]["clientConfig"]
            client.setdefault("caBundle", AUTHORITY)


def is_insecure(service: JsonObject) -> bool:
    return bool(service["spec"].get("insecureSkipTLSVerify"))


async def test_a_changed_label_keeps_everything_that_others_filled_in(
    manifest: JsonObject, cluster_client: Client
) -> None:
    gvk = GroupVersionKind.of(manifest)
    created = await cluster_client.create(for_creation(manifest, OPTIONS))
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


def content_of(obj: JsonObject) -> JsonObject:
    return {name: value for name, value in obj.items() if name not in ("metadata", "status")}


async def test_every_edit_of_a_field_in_the_manifest_is_detected(
    manifest: JsonObject, cluster_client: Client
) -> None:
    live = await cluster_client.create(for_creation(manifest, OPTIONS))
    merged = merge(manifest, live, previous=None, options=OPTIONS)

    for path, edited in edits(live, manifest):
        assert needs_update(edited, merged), path


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
        edited = orjson.loads(orjson.dumps(live))
        here = edited
        try:
            for step in path[:-1]:
                here = here[step]
            here[path[-1]] = other(here[path[-1]])
        except KeyError:
            continue  # stored in another form, or not at all
        yield path, edited


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
