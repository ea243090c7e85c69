"""Producing ManagedResources on a real API server; the tests act as the resource manager."""

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pergola.api.kinds import SECRET
from pergola.api.objects import (
    JsonObject,
    Key,
    annotations_of,
    generation_of,
    labels_of,
    name_of,
    resource_version_of,
)
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.bundle import (
    Bundle,
    Registry,
    Settings,
    apply,
    build,
    delete,
    delete_by_origin,
    exists,
    for_shoot,
    set_keep_objects,
    update,
    wait_deleted,
    wait_healthy,
    wait_not_progressing,
    waits,
)
from pergola.bundle.errors import NameTaken, WaitTimeout
from pergola.bundle.references import Reference, annotated_references
from pergola.kube import states
from pergola.kube.client import Client
from pergola.kube.credentials import Combined, Constant
from pergola.kube.errors import Forbidden, NotFound
from pergola.kube.kubeconfig import load
from pergola.runtime.clock import FakeClock
from pergola.testing.crds import install_crds
from pergola.testing.waiting import PATIENCE
from pergola.testing.world import RecordingClient

COLLECTABLE = "resources.gardener.cloud/garbage-collectable-reference"
NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)


@pytest.fixture
async def client(kubeconfig: Path, cluster_client: Client) -> AsyncIterator[RecordingClient]:
    """Yield a client that records its writes."""
    await install_crds(cluster_client)
    async with RecordingClient.connect(load(kubeconfig)) as recorder:
        yield recorder


def metadata(name: str, namespace: str) -> JsonObject:
    return {"name": name, "namespace": namespace}


def config_map(name: str, **data: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(name, "default"),
        "data": data,
    }


def bundle(namespace: str, text: str = "hello") -> Bundle:
    objects = Registry(config_map("greeting", text=text))
    return build(namespace, "demo", objects)


async def secrets(client: Client, namespace: str) -> dict[str, JsonObject]:
    return {name_of(s): s for s in await client.list(SECRET, namespace)}


def only_secret(desired: Bundle) -> str:
    return name_of(desired.secrets[0])


async def set_status(client: Client, key: Key, **conditions: str) -> None:
    """Write the conditions of the current generation, as the resource manager would."""
    live = await client.get(MANAGED_RESOURCE, key)
    status = {
        "observedGeneration": generation_of(live),
        "conditions": [
            {
                "type": f"Resources{name}",
                "status": status,
                "reason": "Test",
                "message": "of a test",
                "lastTransitionTime": "2026-11-21T12:00:00Z",
                "lastUpdateTime": "2026-11-21T12:00:00Z",
            }
            for name, status in conditions.items()
        ],
    }
    await client.update({**live, "status": status}, subresource="status")


async def test_the_secret_is_written_before_the_resource_that_reads_it(
    client: RecordingClient, namespace: str
) -> None:
    desired = bundle(namespace)

    stored = await apply(client, desired)

    assert client.taken() == [
        f"create Secret {namespace}/{only_secret(desired)}",
        f"create ManagedResource {namespace}/demo",
    ]
    assert stored["spec"] == {"secretRefs": [{"name": only_secret(desired)}]}
    assert annotated_references(annotations_of(stored)) == {
        Reference("secret", only_secret(desired))
    }
    secret = (await secrets(client, namespace))[only_secret(desired)]
    assert secret["immutable"] is True
    assert labels_of(secret) == {COLLECTABLE: "true"}


async def test_nothing_is_written_if_nothing_changed(
    client: RecordingClient, namespace: str
) -> None:
    first = await apply(client, bundle(namespace))
    client.taken()

    again = await apply(client, bundle(namespace))

    assert client.taken() == []
    assert resource_version_of(again) == resource_version_of(first)


async def test_applying_all_settings_again_writes_nothing(
    client: RecordingClient, namespace: str
) -> None:
    desired = for_shoot(
        namespace,
        "demo",
        Registry(config_map("a")),
        origin="gardener",
        settings=Settings(
            force_overwrite_labels=False,
            force_overwrite_annotations=True,
            equivalences=[],
            delete_persistent_volume_claims=False,
        ),
    )
    await apply(client, desired)
    client.taken()
    await apply(client, desired)
    assert client.taken() == []


async def test_changed_content_gets_a_new_secret_and_the_old_one_becomes_collectable(
    client: RecordingClient, namespace: str
) -> None:
    old, new = bundle(namespace, "hello"), bundle(namespace, "goodbye")
    await apply(client, old)
    client.taken()

    stored = await apply(client, new)

    assert client.taken() == [
        f"create Secret {namespace}/{only_secret(new)}",
        f"update ManagedResource {namespace}/demo",
    ]
    assert stored["spec"]["secretRefs"] == [{"name": only_secret(new)}]
    used = annotated_references(annotations_of(stored))
    assert used == {Reference("secret", only_secret(new))}
    assert labels_of((await secrets(client, namespace))[only_secret(old)]) == {COLLECTABLE: "true"}


async def test_replaced_secrets_become_collectable_even_if_some_are_missing(
    client: RecordingClient, namespace: str
) -> None:
    plain = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata("plain", namespace)}
    await client.create(plain)
    old = bundle(namespace).managed_resource
    names = [{"name": "plain"}, {"name": "missing"}]
    await client.create({**old, "spec": {"secretRefs": names, "keepObjects": True}})
    client.taken()

    stored = await apply(client, bundle(namespace))

    assert client.taken() == [
        f"create Secret {namespace}/{only_secret(bundle(namespace))}",
        f"patch Secret {namespace}/plain",
        f"update ManagedResource {namespace}/demo",
    ]
    assert labels_of((await secrets(client, namespace))["plain"]) == {COLLECTABLE: "true"}
    assert stored["spec"] == bundle(namespace).managed_resource["spec"]


async def test_labels_and_annotations_of_other_writers_are_kept(
    client: RecordingClient, namespace: str
) -> None:
    await apply(client, bundle(namespace))
    own = {"labels": {"own": "label"}, "annotations": {"own": "annotation"}}
    await client.patch(MANAGED_RESOURCE, Key(namespace, "demo"), {"metadata": own})

    stored = await apply(client, bundle(namespace, "goodbye"))

    assert labels_of(stored) == {"own": "label"}
    assert annotations_of(stored)["own"] == "annotation"


async def test_a_secret_that_is_used_again_gets_a_new_resource_version_for_the_garbage_collector(
    client: RecordingClient, namespace: str
) -> None:
    clock = FakeClock(NOW)
    await apply(client, bundle(namespace, "hello"), clock=clock)
    await apply(client, bundle(namespace, "goodbye"), clock=clock)
    name = only_secret(bundle(namespace, "hello"))
    looked_at = (await secrets(client, namespace))[name]
    client.taken()

    clock.set(NOW + timedelta(minutes=1))
    await apply(client, bundle(namespace, "hello"), clock=clock)

    assert client.taken() == [
        f"patch Secret {namespace}/{name}",
        f"update ManagedResource {namespace}/demo",
    ]
    now = (await secrets(client, namespace))[name]
    assert resource_version_of(now) != resource_version_of(looked_at)
    assert now["data"] == looked_at["data"]


async def test_a_removed_label_of_a_secret_is_restored(
    client: RecordingClient, namespace: str
) -> None:
    desired = bundle(namespace)
    await apply(client, desired)
    key = Key(namespace, only_secret(desired))
    await client.patch(SECRET, key, {"metadata": {"labels": {COLLECTABLE: None}}})
    client.taken()

    await apply(client, desired)

    assert client.taken() == [f"patch Secret {key}"]
    assert labels_of(await client.get(SECRET, key)) == {COLLECTABLE: "true"}


async def test_a_secret_name_with_different_content_is_refused_before_any_write(
    client: RecordingClient, namespace: str
) -> None:
    desired = bundle(namespace)
    [data] = desired.secrets[0]["data"].values()
    await client.create({**desired.secrets[0], "data": {"renamed.yaml.br": data}})
    client.taken()

    with pytest.raises(NameTaken, match=r"same values under other keys \(renamed.yaml.br instead"):
        await apply(client, desired)

    assert client.taken() == []


async def test_concurrent_writes_are_not_lost(
    kubeconfig: Path, client: Client, namespace: str
) -> None:
    await apply(client, bundle(namespace))

    async with Interrupted.connect(load(kubeconfig)) as interrupted:
        stored = await apply(interrupted, bundle(namespace, "goodbye"))

    assert stored["spec"] == bundle(namespace, "goodbye").managed_resource["spec"]
    assert [c["status"] for c in stored["status"]["conditions"]] == ["True"]


class Interrupted(Client):
    """A client that loses the race for its first two updates."""

    lost = 0

    async def update(self, obj: JsonObject, *, subresource: str = "") -> JsonObject:
        if not subresource and self.lost < 2:
            self.lost += 1
            await set_status(self, Key.of(obj), Applied=str(self.lost == 2))
        return await super().update(obj, subresource=subresource)


async def test_update_does_nothing_if_the_resource_does_not_exist(
    client: RecordingClient, namespace: str
) -> None:
    assert await update(client, bundle(namespace)) is None
    assert client.taken() == []

    await apply(client, bundle(namespace))
    stored = await update(client, bundle(namespace, "goodbye"))
    assert stored is not None
    assert stored["spec"] == bundle(namespace, "goodbye").managed_resource["spec"]


async def test_without_objects_the_list_of_secrets_is_empty(
    client: RecordingClient, namespace: str
) -> None:
    stored = await apply(client, build(namespace, "demo", Registry()))
    assert stored["spec"] == {"secretRefs": []}
    assert client.taken() == [f"create ManagedResource {namespace}/demo"]


async def test_megabytes_are_split_into_secrets_that_the_server_accepts(
    client: RecordingClient, namespace: str
) -> None:
    source = random.Random(5)  # noqa: S311 - the same every time
    noise = [config_map(f"map-{n}", noise=source.randbytes(300_000).hex()) for n in range(5)]
    desired = build(namespace, "demo", Registry(*noise), quality=1)

    stored = await apply(client, desired)

    assert len(stored["spec"]["secretRefs"]) == len(desired.secrets) == 3
    assert len(await secrets(client, namespace)) == 3


async def test_secrets_are_deleted_before_the_resource(
    client: RecordingClient, namespace: str
) -> None:
    desired = bundle(namespace)
    await apply(client, desired)
    key = Key(namespace, "managedresource-demo")
    await client.create({**desired.secrets[0], "metadata": metadata(key.name, namespace)})
    client.taken()

    await delete(client, desired.key)

    assert client.taken() == [
        f"delete Secret {namespace}/managedresource-demo",
        f"delete Secret {namespace}/{only_secret(desired)}",
        f"delete ManagedResource {namespace}/demo",
    ]
    assert await secrets(client, namespace) == {}
    await wait_deleted(client, desired.key, timeout=PATIENCE)
    await delete(client, desired.key)  # deleting it again is not an error


async def test_a_secret_that_no_bundle_created_outlives_its_resource(
    client: RecordingClient, namespace: str
) -> None:
    desired = bundle(namespace)
    await apply(client, desired)
    own = {**desired.secrets[0], "metadata": metadata("precious", namespace)}
    await client.create(own)
    references = [*desired.managed_resource["spec"]["secretRefs"], {"name": "precious"}]
    await client.patch(MANAGED_RESOURCE, desired.key, {"spec": {"secretRefs": references}})

    await delete(client, desired.key)

    assert list(await secrets(client, namespace)) == ["precious"]


async def test_resources_of_an_origin_are_deleted_together(
    client: RecordingClient, namespace: str
) -> None:
    for name, origin in (("a", "gardener"), ("b", "gardener"), ("c", "extension")):
        await apply(client, for_shoot(namespace, name, Registry(), origin=origin))
    deleted = await delete_by_origin(client, namespace, "gardener")
    assert sorted(deleted) == [Key(namespace, "a"), Key(namespace, "b")]
    assert [name_of(r) for r in await client.list(MANAGED_RESOURCE, namespace)] == ["c"]


async def test_objects_can_be_kept(client: RecordingClient, namespace: str) -> None:
    await apply(client, bundle(namespace))
    await set_keep_objects(client, Key(namespace, "demo"), keep=True)
    assert (await client.get(MANAGED_RESOURCE, Key(namespace, "demo")))["spec"]["keepObjects"]
    await set_keep_objects(client, Key(namespace, "missing"), keep=True)


@pytest.mark.parametrize(
    ("resource_class", "excluded", "found"),
    [
        ("seed", [], True),
        (None, [], True),
        ("", [], False),
        ("other", [], False),
        ("seed", ["of-seed"], False),
    ],
)
async def test_resources_of_a_class_are_found(
    client: RecordingClient,
    namespace: str,
    resource_class: str | None,
    excluded: Sequence[str],
    found: bool,
) -> None:
    seed = Settings(resource_class="seed")
    await apply(client, build(namespace, "of-seed", Registry(), settings=seed))
    await apply(client, build(namespace, "of-shoot", Registry()))
    assert found == await exists(
        client, resource_class, namespace=namespace, excluded_names=excluded
    )
    assert not await exists(
        client, resource_class, namespace=namespace, excluded_namespaces=[namespace]
    )


async def test_waiting_ends_as_soon_as_the_conditions_are_true(
    client: RecordingClient, namespace: str
) -> None:
    key = Key(namespace, "demo")
    async with asyncio.TaskGroup() as group:
        healthy = group.create_task(wait_healthy(client, key, timeout=20))
        rolled_out = group.create_task(wait_not_progressing(client, key, timeout=20))
        await apply(client, bundle(namespace))
        await set_status(client, key, Applied="True", Healthy="False")
        await set_status(client, key, Applied="True", Healthy="True", Progressing="True")
        assert name_of(await healthy) == "demo"
        assert not rolled_out.done()
        await set_status(client, key, Applied="True", Healthy="True", Progressing="False")
    assert name_of(rolled_out.result()) == "demo"

    changed = await apply(client, bundle(namespace, "goodbye"))

    async def states(_client: Client, _key: Key) -> AsyncGenerator[JsonObject | None]:
        yield changed
        await asyncio.Event().wait()

    with pytest.raises(WaitTimeout, match="generation 2 was not applied yet"):
        await wait_healthy(client, key, timeout=0.3, states=states)


async def test_waiting_survives_an_interrupted_watch(
    client: RecordingClient, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(states, "_WATCH_SECONDS", 1)
    await apply(client, bundle(namespace))
    async with aclosing(waits.watched(client, Key(namespace, "demo"))) as seen:
        first, after_the_end = await anext(seen), await anext(seen)
        assert first is not None
        assert after_the_end == first
        await set_status(client, Key(namespace, "demo"), Applied="True")
        while (last := await anext(seen)) == first:
            pass  # the second watch ends, too
    assert last is not None
    assert last["status"]["observedGeneration"] == 1


async def test_a_deletion_can_be_awaited(client: RecordingClient, namespace: str) -> None:
    key = Key(namespace, "demo")
    await apply(client, bundle(namespace))
    finalizer = {"metadata": {"finalizers": ["example.org/wait"]}}
    await client.patch(MANAGED_RESOURCE, key, finalizer)
    await delete(client, key)
    with pytest.raises(WaitTimeout, match=r"is not deleted after 0\.3 s"):
        await wait_deleted(client, key, timeout=0.3)
    async with asyncio.TaskGroup() as group:
        group.create_task(wait_deleted(client, key, timeout=20))
        await client.patch(MANAGED_RESOURCE, key, {"metadata": {"finalizers": []}})


async def test_a_client_without_permission_to_watch_polls(
    client: RecordingClient, kubeconfig: Path, namespace: str
) -> None:
    rbac = "rbac.authorization.k8s.io"
    rule = {"apiGroups": [MANAGED_RESOURCE.group], "resources": ["*"], "verbs": ["get"]}
    common = {"apiVersion": f"{rbac}/v1", "metadata": metadata("reader", namespace)}
    await client.create({**common, "kind": "Role", "rules": [rule]})
    subject = {"kind": "User", "name": "reader", "apiGroup": rbac}
    role = {"kind": "Role", "name": "reader", "apiGroup": rbac}
    binding = {**common, "kind": "RoleBinding", "subjects": [subject], "roleRef": role}
    await client.create(binding)
    config = load(kubeconfig)
    as_reader = Combined([config.credentials, Constant({"Impersonate-User": "reader"})])
    async with Client.connect(replace(config, credentials=as_reader)) as reader:
        async with asyncio.timeout(PATIENCE):
            while not await may_get(reader, Key(namespace, "demo")):
                pass  # until the API server has seen the binding
        await wait_deleted(reader, Key(namespace, "demo"), timeout=PATIENCE)


async def may_get(client: Client, key: Key) -> bool:
    try:
        await client.get(MANAGED_RESOURCE, key)
    except NotFound:
        return True
    except Forbidden:
        return False
    return True
