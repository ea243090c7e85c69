"""Objects that a plugin applies to the seed besides its Network: applied, recorded, removed."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.api.kinds import CONFIG_MAP
from pergola.api.object_names import name_problem
from pergola.api.objects import JsonObject, Key, labels_of, name_of
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.kube.kubeconfig import load
from pergola.providers.networking.seed_objects import SeedObject, SeedObjects
from pergola.testing.world import RecordingClient, config_map

OWNER = "extension-networking-tulip"
RECORD = f"{OWNER}-seed-objects"


@pytest.fixture
async def recorder(kubeconfig: Path) -> AsyncIterator[RecordingClient]:
    async with RecordingClient.connect(load(kubeconfig)) as client:
        yield client


async def there(client: Client, namespace: str) -> set[str]:
    """Return the ConfigMaps of the owner."""
    found = await client.list(CONFIG_MAP, namespace)
    return {name_of(obj) for obj in found if labels_of(obj).get("origin") == OWNER}


def scrape_config(name: str) -> JsonObject:
    """Return an object of a kind that the sandbox does not serve."""
    return {
        "apiVersion": "monitoring.example.org/v1alpha1",
        "kind": "ScrapeConfig",
        "metadata": {"name": name},
    }


async def test_obsolete_objects_are_deleted(recorder: RecordingClient, namespace: str) -> None:
    objects = SeedObjects(recorder, namespace, OWNER)
    await objects.apply([config_map("a", ""), config_map("b", "")])
    assert await there(recorder, namespace) == {"a", "b", RECORD}
    await recorder.create(config_map("of-somebody", namespace))

    await objects.apply([config_map("b", ""), config_map("c", "")])
    assert await there(recorder, namespace) == {"b", "c", RECORD}

    await objects.delete()
    assert await there(recorder, namespace) == set()
    assert await recorder.get(CONFIG_MAP, Key(namespace, "of-somebody"))


async def test_objects_are_not_written_without_a_change(
    recorder: RecordingClient, namespace: str
) -> None:
    desired = [config_map("a", "", x="1", y="2"), config_map("b", "")]
    await SeedObjects(recorder, namespace, OWNER).apply(desired)
    recorder.taken()

    await SeedObjects(recorder, namespace, OWNER).apply(desired)
    assert recorder.taken() == []


@pytest.mark.parametrize(
    "edit", [{"data": {"x": "other"}}, {"data": {"x": None}}, {"metadata": {"labels": None}}]
)
async def test_changes_by_others_are_reverted(
    recorder: RecordingClient, namespace: str, edit: JsonObject
) -> None:
    objects = SeedObjects(recorder, namespace, OWNER)
    await objects.apply([config_map("a", "", x="1")])
    await recorder.patch(CONFIG_MAP, Key(namespace, "a"), edit)
    recorder.taken()

    await objects.apply([config_map("a", "", x="1")])

    assert recorder.taken() == [f"apply ConfigMap {namespace}/a"]
    live = await recorder.get(CONFIG_MAP, Key(namespace, "a"))
    assert (live["data"], labels_of(live)["origin"]) == ({"x": "1"}, OWNER)


async def test_an_obsolete_field_is_removed(recorder: RecordingClient, namespace: str) -> None:
    objects = SeedObjects(recorder, namespace, OWNER)
    await objects.apply([config_map("a", "", x="1", y="2")])

    await objects.apply([config_map("a", "", x="1")])

    assert (await recorder.get(CONFIG_MAP, Key(namespace, "a")))["data"] == {"x": "1"}


async def test_the_record_is_written_before_the_objects_and_outlives_their_removal(
    recorder: RecordingClient, namespace: str
) -> None:
    objects = SeedObjects(recorder, namespace, OWNER)
    await objects.apply([config_map("a", "")])
    await objects.delete()

    assert recorder.taken() == [
        f"apply ConfigMap {namespace}/{RECORD}",
        f"apply ConfigMap {namespace}/a",
        f"delete ConfigMap {namespace}/a",
        f"delete ConfigMap {namespace}/{RECORD}",
    ]


async def test_a_kind_that_the_seed_does_not_serve_is_skipped(
    recorder: RecordingClient, namespace: str
) -> None:
    objects = SeedObjects(recorder, namespace, OWNER)

    await objects.apply([scrape_config("agents"), config_map("a", "")])

    assert await there(recorder, namespace) == {"a", RECORD}
    await objects.delete()
    assert await there(recorder, namespace) == set()


async def test_a_foreign_object_in_a_record_is_kept(
    recorder: RecordingClient, namespace: str
) -> None:
    """Anyone who may write ConfigMaps in the namespace may edit the record."""
    objects = SeedObjects(recorder, namespace, OWNER)
    await objects.apply([config_map("a", "")])
    await recorder.create(config_map("of-others", namespace))
    record = {"data": {"objects": "v1 ConfigMap a\nv1 ConfigMap of-others"}}
    await recorder.patch(CONFIG_MAP, Key(namespace, RECORD), record)

    await objects.delete()

    assert await there(recorder, namespace) == set()
    assert await recorder.get(CONFIG_MAP, Key(namespace, "of-others"))


async def test_an_object_that_others_recreated_is_kept(
    recorder: RecordingClient, namespace: str
) -> None:
    objects = SeedObjects(recorder, namespace, OWNER)
    await objects.apply([config_map("a", "")])
    await recorder.delete(CONFIG_MAP, Key(namespace, "a"))
    await recorder.create(config_map("a", namespace, of="others"))

    await objects.delete()

    assert (await recorder.get(CONFIG_MAP, Key(namespace, "a")))["data"] == {"of": "others"}
    assert await there(recorder, namespace) == set()


@pytest.mark.parametrize("line", ["v1 ConfigMap ", "v1 ConfigMap ..", "v1 ConfigMap a/b"])
async def test_a_record_cannot_name_a_whole_collection(
    recorder: RecordingClient, namespace: str, line: str
) -> None:
    await recorder.create(config_map("of-others", namespace))
    await recorder.create(config_map(RECORD, namespace, objects=line))

    await SeedObjects(recorder, namespace, OWNER).delete()

    assert await recorder.get(CONFIG_MAP, Key(namespace, "of-others"))
    with pytest.raises(NotFound):
        await recorder.get(CONFIG_MAP, Key(namespace, RECORD))


@given(st.lists(st.text(max_size=20), max_size=4).map(" ".join))
def test_only_lines_that_name_one_object_are_read(line: str) -> None:
    found = SeedObject.parse(line)

    assert found is None or (name_problem(found.name) is None and str(found) == line)
