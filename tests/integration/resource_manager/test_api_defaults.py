"""Pergola knows the same defaults as the API server (spec 10 B7)."""

from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import orjson
import pytest

from pergola.api.objects import GroupVersionKind, JsonObject, Key, name_of
from pergola.kube.client import Client
from pergola.kube.errors import Conflict, NotFound
from pergola.kube.yaml import parse_documents
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
