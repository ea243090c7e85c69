"""An API group that does not answer concerns only its own objects (spec 10 B10)."""

import re
from collections.abc import AsyncIterator

import pytest

from pergola.api.kinds import CONFIG_MAP
from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.testing.world import World, has, is_applied, message
from tests.support.documented.symptoms import symptom

API_SERVICE = GroupVersionKind("apiregistration.k8s.io", "v1", "APIService")
APPLIED = "ResourcesApplied"


@pytest.fixture
async def group(world: World) -> AsyncIterator[str]:
    """Yield an API group that answers 503, because its Service does not exist."""
    group = f"{world.namespace}.example.org"
    name = f"v1.{group}"
    await world.client.create(
        {
            "apiVersion": API_SERVICE.api_version,
            "kind": API_SERVICE.kind,
            "metadata": {"name": name},
            "spec": {
                "group": group,
                "version": "v1",
                "groupPriorityMinimum": 100,
                "versionPriority": 10,
                "insecureSkipTLSVerify": True,
                "service": {"name": "nothing", "namespace": world.namespace},
            },
        }
    )
    yield group
    await world.client.delete(API_SERVICE, Key("", name))


def widget(world: World, group: str) -> JsonObject:
    return {
        "apiVersion": f"{group}/v1",
        "kind": "Widget",
        "metadata": {"name": "w", "namespace": world.namespace},
    }


async def test_the_objects_of_other_groups_are_applied_and_repaired(
    world: World, group: str
) -> None:
    await world.start(sync_period=3600.0)
    await world.create("demo", widget(world, group), world.config_map("a", text="hello"))

    failed = await world.until("demo", has(APPLIED, "False", "ApplyFailed"))

    assert f'"{group}/v1/Widget/{world.namespace}/w"' in message(failed, APPLIED)
    assert f"API group {group}/v1 does not answer" in message(failed, APPLIED)
    assert re.search(symptom("An API group does not answer"), message(failed, APPLIED))
    await world.client.patch(CONFIG_MAP, world.key("a"), {"data": {"text": "bye"}})
    await world.until_object(CONFIG_MAP, world.key("a"), lambda o: o["data"] == {"text": "hello"})


async def test_an_object_of_the_group_that_left_the_manifests_does_not_hold_up_the_others(
    world: World, group: str
) -> None:
    await world.start(sync_period=3600.0)
    await world.create("demo", widget(world, group), world.config_map("a", text="broken"))
    await world.until("demo", has(APPLIED, "False", "ApplyFailed"))

    await world.put_secret("demo", world.config_map("a", text="repaired"))

    await world.until_object(
        CONFIG_MAP, world.key("a"), lambda o: o["data"] == {"text": "repaired"}
    )
    pending = await world.until("demo", has(APPLIED, "Progressing", "DeletionPending"))
    assert f"API group {group}/v1 does not answer" in message(pending, APPLIED)
    kinds = [ref["kind"] for ref in pending["status"]["resources"]]
    assert kinds == ["ConfigMap", "Widget"]

    await world.client.patch(
        API_SERVICE,
        Key("", f"v1.{group}"),
        {"spec": {"service": None, "insecureSkipTLSVerify": None}},
    )
    await world.until("demo", is_applied)
