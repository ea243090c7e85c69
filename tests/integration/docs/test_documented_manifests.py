"""An API server accepts the manifests and kinds in the documentation.

Nothing is stored: each manifest is a dry run in the namespace of the test.
"""

from collections.abc import Iterator
from typing import Final

import pytest

from pergola.api.kinds import ENVOY_FILTER
from pergola.api.objects import GroupVersionKind, JsonObject, map_at
from pergola.kube.client import Client
from pergola.kube.kind_words import kind_called
from pergola.kube.patches import apply_merge_patch
from pergola.testing.crds import (
    definition,
    install_definitions,
    install_extension_crds,
    install_garden_extension_crds,
    install_operator_crds,
    serve,
)
from tests.support import cluster_api
from tests.support.documented import ROOT, blocks, commands_of, pages
from tests.support.documented.guides import TYPED
from tests.support.documented.kubectl import kinds, read
from tests.support.documented.manifests import objects
from tests.support.documented.scripts import documents_of
from tests.support.lost_fields import lost_fields

PROVIDER: Final = ROOT / "examples" / "extensions" / "pergola-aws.yaml"
EXTENSION_FIELDS: Final = "how-to/extensions-of-a-garden.md: Values with credentials"
ELSEWHERE: Final = {"Gardenlet"}
"""Kinds of gardener-apiserver, to which `test_garden_life` sends them."""
GREETING: Final = GroupVersionKind("example.org", "v1", "Greeting")
ETCD: Final = "etcds.druid.gardener.cloud"


def manifests() -> Iterator[tuple[str, JsonObject]]:
    """Yield each object of the documentation, with the location of its block."""
    for page in pages():
        for block in blocks(page):
            texts = {"sh": documents_of(block.text), "yaml": [block.text]}
            for text in texts.get(block.language, ()):
                for obj in objects(text):
                    if {"apiVersion", "kind"} <= obj.keys() and obj["kind"] not in ELSEWHERE:
                        yield f"{page}:{block.line} {obj['kind']}", obj
                    if block.place == EXTENSION_FIELDS:
                        [provider] = objects(PROVIDER.read_text())
                        yield block.place, apply_merge_patch(provider, {"spec": obj})


def words() -> list[str]:
    """Return the words for kinds in commands of kubectl that no reader types."""
    shown = [each for page in pages() for each in blocks(page) if not page.startswith(TYPED)]
    scripts = [each for each in shown if each.language == "sh"]
    called = [each for script in scripts for each in commands_of(script.text)]
    found = {word for each in called if each.program == "kubectl" for word in kinds(read(each[1]))}
    return sorted(found)


@pytest.fixture
async def served(cluster_client: Client) -> Client:
    """Yield a client of the shared API server, which serves all documented kinds."""
    await install_operator_crds(cluster_client)
    await install_extension_crds(cluster_client)
    await install_garden_extension_crds(cluster_client)
    await install_definitions(cluster_client, ETCD)
    await serve(cluster_client, definition(ENVOY_FILTER), definition(GREETING))
    definitions = await cluster_api.aws_provider_crds()
    new = cluster_api.infra_cluster_crd(cluster_api.NEW)
    await cluster_api.install(cluster_client, new, *definitions)
    return cluster_client


async def test_the_api_server_accepts_each_manifest(served: Client, namespace: str) -> None:
    found = [*manifests()]
    assert len(found) > 10
    for place, obj in found:
        resource = await served.discovery.resource(GroupVersionKind.of(obj))
        where = {"namespace": namespace} if resource.namespaced else {}
        sent = {**obj, "metadata": {**map_at(obj, "metadata"), **where}}
        kept = await served.create(sent, dry_run=True)
        assert [path for path in lost_fields(sent, kept) if path != ".stringData"] == [], place


async def test_the_api_server_serves_each_kind_that_a_command_names(served: Client) -> None:
    assert "managedresources" in words()
    for word in words():
        await kind_called(served, word)
