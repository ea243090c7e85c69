"""A Seed changes from the original's resource manager to Pergola's, and back.

The commands are those of docs/how-to/replace-the-resource-manager-of-a-seed.md.
"""

import base64
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from pergola.api.kinds import CONFIG_MAP, DEPLOYMENT, SEED
from pergola.api.objects import JsonObject, Key, map_at, maps_at, uid_of
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.health import check, progressing
from pergola.kube.client import Client
from pergola.kube.yaml import dump
from pergola.manifests import manifest
from pergola.testing.waiting import until, until_gone
from tests.support.documented.guides import REPLACEMENT
from tests.support.documented.pages import blocks
from tests.support.documented.shell import Shell
from tests.support.landscape import PATIENCE, World, uids

pytestmark = [
    pytest.mark.soak("landscape"),
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(1800),
]

MANAGER: Final = Key("garden", "gardener-resource-manager")
APPLIED: Final = Key("garden", "applied")


async def test_a_seed_changes_to_pergola_and_back(landscape: World, tmp_path: Path) -> None:
    seed = await landscape.seed("changed", original=True)
    client = seed.site.client
    garden = Shell(await landscape.kubeconfig(tmp_path), tmp_path)
    original = map_at(await client.get(DEPLOYMENT, MANAGER), "spec", "template", "spec")
    first = await apply(client, "by the original")
    before = await uids(client)
    overwrite, wait, inspect = typed("Switch over")

    await garden.run(overwrite)
    await rolled_out(client, lambda image: image.startswith("registry.example/pergola:"))
    await garden.run(wait)
    assert "registry.example/pergola" in await Shell(seed.site.sandbox.kubeconfig, tmp_path).run(
        inspect
    )
    await landscape.healthy(SEED, Key("", seed.name))
    assert (await uids(client)).items() >= before.items()
    assert uid_of(await apply(client, "by Pergola")) == uid_of(first)

    await garden.run(*typed("Go back"))
    await rolled_out(client, lambda image: image == original["containers"][0]["image"])
    await landscape.healthy(SEED, Key("", seed.name))
    assert (await uids(client)).items() >= before.items()
    assert uid_of(await apply(client, "by the original again")) == uid_of(first)
    await client.delete(MANAGED_RESOURCE, APPLIED)
    await until_gone(client, CONFIG_MAP, APPLIED)
    assert seed.refused() == []


def typed(heading: str) -> list[str]:
    """Return the blocks below a heading of the page, for the Seed of this test."""
    texts = [each.text for each in blocks(REPLACEMENT) if each.heading == heading]
    return [re.sub(r"\b(gardenlet|seed) local\b", r"\1 changed", text) for text in texts]


async def rolled_out(client: Client, matches: Callable[[str], bool]) -> None:
    """Wait until the resource manager of a Seed runs an image, and nothing else."""

    def is_rolled_out(obj: JsonObject) -> bool:
        [container, *_] = maps_at(obj, "spec", "template", "spec", "containers")
        return matches(container["image"]) and not check(obj) and not progressing(obj)

    await until(client, DEPLOYMENT, MANAGER, is_rolled_out, patience=PATIENCE)


async def apply(client: Client, text: str) -> JsonObject:
    """Write a ManagedResource, and return its object when it has a text."""
    obj = manifest("v1", "ConfigMap", APPLIED.name, namespace="garden", data={"applied": text})
    data = {"objects.yaml": base64.b64encode(dump(obj).encode()).decode()}
    secret = manifest("v1", "Secret", APPLIED.name, namespace="garden", data=data)
    resource = manifest(
        MANAGED_RESOURCE.api_version,
        MANAGED_RESOURCE.kind,
        APPLIED.name,
        namespace="garden",
        spec={"class": "seed", "secretRefs": [{"name": APPLIED.name}]},
    )
    for each in (secret, resource):
        await client.apply(each, manager="test", force=True)
    return await until(
        client, CONFIG_MAP, APPLIED, lambda found: found["data"] == {"applied": text}
    )
