"""Reading and decoding Secrets, pending checks, moved objects: spec 10 §4.3 to §4.5."""

import re

import brotli
import orjson
import pytest

from pergola.api.kinds import CLUSTER_ROLE, CONFIG_MAP, NETWORK_POLICY
from pergola.api.objects import Key, annotations_of, namespace_of
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.testing.world import World, condition, config_map, has, is_applied, is_ready, message
from tests.support.documented.symptoms import symptom

NO_OBJECTS = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@pytest.mark.in_cluster
async def test_plain_and_compressed_keys_are_both_applied(world: World) -> None:
    await world.put_data(
        "demo",
        {
            "a.yaml": orjson.dumps(world.config_map("a")),
            "b.yaml.br": brotli.compress(orjson.dumps(world.config_map("b"))),
        },
    )
    await world.create_resource("demo", ["demo"])
    await world.until("demo", has("ResourcesApplied", "True", "ApplySucceeded"))
    assert await world.exists(CONFIG_MAP, "a")
    assert await world.exists(CONFIG_MAP, "b")


@pytest.mark.in_cluster
async def test_documents_without_a_namespace_are_applied_to_the_default_namespace(
    world: World,
) -> None:
    names = [f"{world.namespace}-one", f"{world.namespace}-two"]
    documents = "---\n".join(
        f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n" for name in names
    )
    await world.put_data("demo", {"configmaps.yaml": documents.encode()})
    await world.create_resource("demo", ["demo"])
    await world.applied("demo")
    for name in names:
        live = await world.client.get(CONFIG_MAP, Key("default", name))
        assert namespace_of(live) == "default"
    await world.delete("demo")
    for name in names:
        await world.until_gone(CONFIG_MAP, Key("default", name))


@pytest.mark.in_cluster
async def test_a_missing_secret_fails_the_run_and_changes_nothing(world: World) -> None:
    await world.create("demo", world.config_map("greeting", text="hello"))
    before = await world.healthy("demo")
    await world.edit("demo", {"spec": {"secretRefs": [{"name": "nowhere"}]}})
    failed = await world.until("demo", has("ResourcesApplied", "False", "CannotReadSecret"))
    assert "nowhere" in message(failed, "ResourcesApplied")
    assert failed["status"]["resources"] == before["status"]["resources"]
    assert await world.exists(CONFIG_MAP, "greeting")


async def test_an_insignificant_byte_changes_the_checksum(world: World) -> None:
    await world.put_data("demo", {"a.yaml": orjson.dumps(world.config_map("a"))})
    await world.start()
    await world.create_resource("demo", ["demo"])
    before = await world.healthy("demo")
    await world.settled()
    world.recorder.taken()
    await world.put_data("demo", {"a.yaml": orjson.dumps(world.config_map("a")) + b"\n"})
    checksum = before["status"]["secretsDataChecksum"]
    after = await world.until(
        "demo", lambda r: is_ready(r) and r["status"]["secretsDataChecksum"] != checksum
    )
    assert after["status"]["resources"] == before["status"]["resources"]
    # The checks were pending in between, and the object was not written.
    assert {*world.recorder.taken()} == {f"update/status ManagedResource {world.key('demo')}"}


@pytest.mark.in_cluster
async def test_a_cluster_scoped_kind_loses_its_namespace(world: World) -> None:
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": world.namespace, "namespace": "ignored"},
        "rules": [],
    }
    await world.create("demo", role)
    await world.applied("demo")
    await world.client.get(CLUSTER_ROLE, Key("", world.namespace))
    await world.delete("demo")
    await world.until_gone(CLUSTER_ROLE, Key("", world.namespace))


@pytest.mark.parametrize("damage", [b"no brotli at all", brotli.compress(b"a: b" * 999)[:-3]])
async def test_a_corrupt_compressed_value_is_one_error(world: World, damage: bytes) -> None:
    await world.put_data(
        "demo", {"a.yaml": orjson.dumps(world.config_map("a")), "b.yaml.br": damage}
    )
    await world.start()
    await world.create_resource("demo", ["demo"])
    failed = await world.until("demo", has("ResourcesApplied", "False", "DecodingFailed"))
    text = message(failed, "ResourcesApplied")
    assert "b.yaml.br" in text
    assert "errors occurred" not in text
    assert await world.exists(CONFIG_MAP, "a")


async def test_values_that_look_like_times_reach_the_api_as_strings(world: World) -> None:
    text = (
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n"
        f"  name: times\n  namespace: {world.namespace}\n"
        "  annotations: {a: 2001-12-14, b: 1:30}\n"
    )
    await world.put_data("demo", {"a.yaml": text.encode()})
    await world.start()
    await world.create_resource("demo", ["demo"])
    await world.applied("demo")
    annotations = annotations_of(await world.client.get(CONFIG_MAP, world.key("times")))
    assert (annotations["a"], annotations["b"]) == ("2001-12-14", "1:30")


@pytest.mark.in_cluster
async def test_a_broken_document_is_named_and_the_others_are_applied(world: World) -> None:
    good = orjson.dumps(world.config_map("good"))
    await world.put_data("demo", {"both.yaml": good + b"\n---\nkind: [unclosed\n"})
    await world.create_resource("demo", ["demo"])
    failed = await world.until("demo", has("ResourcesApplied", "False", "DecodingFailed"))
    text = message(failed, "ResourcesApplied")
    assert "demo" in text
    assert "both.yaml" in text
    assert "1" in text
    assert await world.exists(CONFIG_MAP, "good")


@pytest.mark.in_cluster
async def test_the_object_of_a_document_that_is_broken_now_is_not_deleted(world: World) -> None:
    await world.create("demo", world.config_map("a"), world.config_map("b"))
    before = await world.healthy("demo")
    await world.put_data(
        "demo",
        {"000.yaml": orjson.dumps(world.config_map("a")), "001.yaml": b"kind: [unclosed"},
    )
    failed = await world.until("demo", has("ResourcesApplied", "False", "DecodingFailed"))
    assert failed["status"]["resources"] == before["status"]["resources"]
    assert await world.exists(CONFIG_MAP, "b")


@pytest.mark.in_cluster
async def test_content_without_documents_deletes_nothing(world: World) -> None:
    await world.create("demo", world.config_map("a"))
    await world.healthy("demo")
    await world.put_data("demo", {"000.yaml": b"# everything is commented out\n"})
    failed = await world.until("demo", has("ResourcesApplied", "False", "DecodingFailed"))
    assert "nothing is deleted" in message(failed, "ResourcesApplied")
    assert await world.exists(CONFIG_MAP, "a")

    await world.put_data("demo", {})
    emptied = await world.until("demo", has("ResourcesApplied", "True", "ApplySucceeded"))
    assert emptied["status"].get("resources", []) == []
    assert emptied["status"]["secretsDataChecksum"] == NO_OBJECTS
    assert not await world.exists(CONFIG_MAP, "a")


# §4.4 and §4.5


async def test_the_first_write_of_a_change_makes_the_checks_pending(
    world: World,
) -> None:
    await world.start()
    await world.create("demo", world.config_map("a"))
    await world.healthy("demo")
    blocked = world.config_map("b")
    blocked["metadata"]["finalizers"] = ["example.org/stuck"]
    await world.put_secret("demo", world.config_map("a"), blocked)
    await world.until("demo", lambda r: is_ready(r) and len(r["status"]["resources"]) == 2)
    await world.put_secret("demo", world.config_map("a"))
    pending = await world.until(
        "demo", lambda r: condition(r, "ResourcesApplied")[0] == "Progressing"
    )
    assert condition(pending, "ResourcesHealthy") == ("Unknown", "ChecksPending")
    assert condition(pending, "ResourcesProgressing") == ("Unknown", "ChecksPending")
    await world.client.patch(CONFIG_MAP, world.key("b"), {"metadata": {"finalizers": None}})
    await world.healthy("demo")


async def test_an_unchanged_resource_is_never_written(world: World) -> None:
    await world.start(sync_period=0.2, health_sync_period=0.2)
    await world.create("demo", world.config_map("a"))
    steady = await world.healthy("demo")
    await world.settled()
    world.recorder.taken()
    await world.create("later", world.config_map("b"))
    await world.healthy("later")
    await world.until("later", lambda r: True)
    writes = [w for w in world.recorder.taken() if w.endswith(("/demo", "/a"))]
    assert writes == []
    assert (await world.resource("demo"))["status"] == steady["status"]


async def test_an_object_of_an_equivalent_kind_is_the_same_object(world: World) -> None:
    policy = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "deny", "namespace": world.namespace},
        "spec": {"podSelector": {}},
    }
    kind = NETWORK_POLICY
    await world.start()
    await world.create("demo", policy)
    applied = await world.applied("demo")
    uid = (await world.client.get(kind, world.key("deny")))["metadata"]["uid"]
    await world.stop()

    # As if an older version of the manifest had used the former group of the kind.
    was = [{**applied["status"]["resources"][0], "apiVersion": "extensions/v1beta1"}]
    await world.client.patch(
        MANAGED_RESOURCE, world.key("demo"), {"status": {"resources": was}}, subresource="status"
    )
    world.recorder.taken()
    await world.start()
    await world.until(
        "demo",
        lambda r: (
            is_applied(r) and r["status"]["resources"][0]["apiVersion"] == "networking.k8s.io/v1"
        ),
    )
    live = await world.client.get(kind, world.key("deny"))
    assert live["metadata"]["uid"] == uid
    assert not [w for w in world.recorder.taken() if w.startswith("delete")]


# Documents and references without valid names


@pytest.mark.parametrize(
    "metadata",
    ["{nmae: typo, namespace: NS}", "{name: '', namespace: NS}", "{name: 7, namespace: NS}"],
)
async def test_a_document_without_a_name_never_touches_anything(
    world: World, metadata: str
) -> None:
    await world.client.create(world.config_map("bystander"))
    text = f"{{apiVersion: v1, kind: ConfigMap, metadata: {metadata}}}"
    await world.put_data("demo", {"a.yaml": text.replace("NS", world.namespace).encode()})
    await world.start()
    await world.create_resource("demo", ["demo"])
    failed = await world.until("demo", has("ResourcesApplied", "False", "DecodingFailed"))
    assert "metadata.name" in message(failed, "ResourcesApplied")
    assert failed["status"].get("resources", []) == []

    await world.put_data("demo", {"a.yaml": orjson.dumps(world.config_map("typo"))})
    await world.applied("demo")
    await world.delete("demo")
    await world.until_gone(MANAGED_RESOURCE, world.key("demo"))
    assert await world.exists(CONFIG_MAP, "bystander")
    assert not await world.exists(CONFIG_MAP, "typo")


@pytest.mark.parametrize("name", [None, "", ".", "..", "a/b", "a%2Fb"])
async def test_a_recorded_reference_without_a_valid_name_counts_as_absent(
    world: World, name: str | None
) -> None:
    await world.client.create(world.config_map("bystander"))
    await world.start()
    await world.create("demo", world.config_map("a"))
    applied = await world.applied("demo")
    await world.stop()
    nowhere = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": world.namespace}
    recorded = [*applied["status"]["resources"], {**nowhere, "name": name} if name else nowhere]
    await world.client.patch(
        MANAGED_RESOURCE,
        world.key("demo"),
        {"status": {"resources": recorded}},
        subresource="status",
    )
    await world.delete("demo")
    await world.start()
    await world.until_gone(MANAGED_RESOURCE, world.key("demo"))
    assert not await world.exists(CONFIG_MAP, "a")
    assert await world.exists(CONFIG_MAP, "bystander")


async def test_an_object_with_a_generated_name_is_not_created(world: World) -> None:
    generated = world.config_map("x")
    generated["metadata"] = {"generateName": "many-", "namespace": world.namespace}
    await world.start()
    await world.create("demo", generated, world.config_map("good"))
    failed = await world.until("demo", has("ResourcesApplied", "False", "DecodingFailed"))
    assert re.search(symptom("An object has no name"), message(failed, "ResourcesApplied"))
    await world.settled()
    creations = [write for write in world.recorder.taken() if write.startswith("create")]
    assert creations == [f"create ConfigMap {world.key('good')}"]


@pytest.mark.parametrize("reference", [{}, {"name": ""}, {"name": ".."}])
async def test_a_secret_reference_without_a_valid_name_deletes_nothing(
    world: World, reference: dict[str, str]
) -> None:
    await world.start()
    await world.create("demo", world.config_map("a"))
    before = await world.healthy("demo")
    await world.edit("demo", {"spec": {"secretRefs": [reference]}})
    failed = await world.until("demo", has("ResourcesApplied", "False", "CannotReadSecret"))
    assert "spec.secretRefs[0].name" in message(failed, "ResourcesApplied")
    assert failed["status"]["resources"] == before["status"]["resources"]
    assert await world.exists(CONFIG_MAP, "a")

    await world.delete("demo")
    await world.until_gone(MANAGED_RESOURCE, world.key("demo"))
    assert not await world.exists(CONFIG_MAP, "a")


# Endless documents


@pytest.mark.in_cluster
async def test_a_decompression_bomb_does_not_block_other_resources(world: World) -> None:
    start = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"},"data":['
    bomb = brotli.compress(start + b"[]," * 5_000_000 + b"[]]}", quality=1)
    await world.create("demo", world.config_map("a"))
    await world.healthy("demo")
    await world.put_data(
        "demo", {"000.yaml": orjson.dumps(world.config_map("a")), "001.yaml.br": bomb}
    )
    failed = await world.until("demo", has("ResourcesApplied", "False", "DecodingFailed"))
    assert "the rest was not read" in message(failed, "ResourcesApplied")
    assert await world.exists(CONFIG_MAP, "a")
    await world.create("other", world.config_map("b"))
    await world.healthy("other")


async def test_a_flood_of_broken_documents_gets_a_short_report(world: World) -> None:
    await world.put_data("demo", {"a.yaml": b"---\n@\n" * 100_000})
    await world.start()
    await world.create_resource("demo", ["demo"])
    failed = await world.until("demo", has("ResourcesApplied", "False", "DecodingFailed"))
    assert "errors occurred" in message(failed, "ResourcesApplied")
    assert len(message(failed, "ResourcesApplied")) < 4096


async def test_broken_documents_are_reported_beside_objects_that_cannot_be_applied(
    world: World,
) -> None:
    nowhere = orjson.dumps(config_map("b", f"{world.namespace}-missing"))
    await world.put_data("demo", {"000.yaml": nowhere, "001.yaml": b"name: y"})
    await world.start()
    await world.create_resource("demo", ["demo"])
    failed = await world.until("demo", has("ResourcesApplied", "False", "ApplyFailed"))
    text = message(failed, "ResourcesApplied")
    assert "error during apply of object" in text
    assert "Secret demo, key 001.yaml, document 0: metadata is missing" in text
