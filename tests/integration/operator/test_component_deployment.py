"""Objects of components are applied, awaited and removed on a real API server."""

import asyncio
import uuid
from typing import Final

import pytest

from pergola.api.kinds import CONFIG_MAP, CRD, DEPLOYMENT, POD, SECRET
from pergola.api.objects import GroupVersionKind, Identity, JsonObject, Key, labels_of, map_at
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.garden.components.component import Managed, Removable, Rendered, Target
from pergola.garden.landscape.errors import NotReady
from pergola.kube.errors import Invalid
from pergola.operator.run.deploy import Deployer
from pergola.operator.run.listed_kinds import until_listed
from pergola.runtime.failures import Failures
from pergola.testing.crds import definition
from pergola.testing.waiting import until
from pergola.testing.world import RecordingClient, World, config_map

ENOUGH_TO_READ: Final = 20.0
"""Seconds that suffice to read an object, even on a busy machine."""


def deployment(namespace: str, replicas: int) -> JsonObject:
    labels = {"app": "direct"}
    containers = [{"name": "a", "image": "registry.k8s.io/pause"}]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "direct", "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
        },
    }


def thing(plural: str) -> JsonObject:
    """Return the definition of a kind in its own group."""
    return definition(GroupVersionKind(f"{plural}.example.org", "v1", "Thing"), plural=plural)


def kind_of(crd: JsonObject) -> GroupVersionKind:
    return GroupVersionKind(crd["spec"]["group"], "v1", "Thing")


def rendered(namespace: str, text: str = "1", **attributes: object) -> Rendered:
    kept = {**config_map("kept", namespace), "data": {"text": text}}
    managed = Managed(name="demo", namespace=namespace, objects=(kept,), **attributes)  # type: ignore[arg-type]
    return Rendered(managed=(managed,), direct=(deployment(namespace, 0),))


async def test_objects_are_applied_once_and_again_when_they_change(
    recorder: RecordingClient, namespace: str
) -> None:
    deployer = Deployer(recorder)
    await deployer.apply(rendered(namespace))
    writes = recorder.taken()
    assert f"apply Deployment {namespace}/direct" in writes
    assert f"create ManagedResource {namespace}/demo" in writes

    await deployer.apply(rendered(namespace))
    assert recorder.taken() == []

    await deployer.apply(rendered(namespace, "2"))
    assert not any("Deployment" in write for write in recorder.taken())


async def test_a_directly_applied_object_that_was_changed_is_restored(
    recorder: RecordingClient, namespace: str
) -> None:
    deployer, key = Deployer(recorder), Key(namespace, "direct")
    await deployer.apply(rendered(namespace))
    await recorder.patch(DEPLOYMENT, key, {"spec": {"replicas": 3}})
    await deployer.apply(rendered(namespace))
    assert map_at(await recorder.get(DEPLOYMENT, key), "spec")["replicas"] == 0


async def test_objects_of_one_kind_are_all_applied_before_the_next_kind(
    recorder: RecordingClient, namespace: str
) -> None:
    maps = [config_map(f"map-{number}", namespace) for number in range(9)]
    last = {**config_map("last", namespace), "kind": "Secret", "data": {}}
    await Deployer(recorder).apply(Rendered(direct=(*maps, last, config_map("later", namespace))))
    kinds = [write.split()[1] for write in recorder.taken()]
    assert kinds == ["ConfigMap"] * 9 + ["Secret", "ConfigMap"]


async def test_objects_after_a_refused_one_are_not_applied(
    recorder: RecordingClient, namespace: str
) -> None:
    refused = {**config_map("refused", namespace), "data": {"not a key": ""}}
    secret = {**config_map("secret", namespace), "kind": "Secret", "data": {}}
    direct = (refused, config_map("accepted", namespace), secret)
    with pytest.raises(Invalid, match="not a key"):
        await Deployer(recorder).apply(Rendered(direct=direct))
    assert await recorder.find(CONFIG_MAP, Key(namespace, "accepted"))
    assert await recorder.find(SECRET, Key(namespace, "secret")) is None


async def test_an_object_of_a_kind_without_a_readiness_rule_is_not_awaited(
    recorder: RecordingClient, namespace: str
) -> None:
    absent = Rendered(direct=(config_map("absent", namespace),))
    await Deployer(recorder).wait(absent, 0.0)


async def test_a_wait_without_an_earlier_apply_reads_the_object(
    recorder: RecordingClient, namespace: str
) -> None:
    deployer = Deployer(recorder)
    applied = Rendered(direct=(deployment(namespace, 0),))
    await deployer.apply(applied)
    await deployer.wait(applied, 60)
    await deployer.apply(applied)
    await deployer.wait(applied, 0.0)

    with pytest.raises(Failures) as unread:
        await deployer.wait(applied, 0.0)
    [error] = unread.value.exceptions
    assert isinstance(error, NotReady)
    assert "it was not read yet" in str(unread.value)


async def test_a_component_is_ready_when_its_managed_resource_is(
    world: World, recorder: RecordingClient, namespace: str
) -> None:
    await world.start(resource_class="seed")
    deployer = Deployer(recorder)
    await deployer.apply(rendered(namespace))
    await deployer.wait(rendered(namespace), 60)
    assert (await recorder.get(CONFIG_MAP, Key(namespace, "kept")))["data"] == {"text": "1"}


async def test_a_deployment_that_the_resource_manager_applies_is_awaited(
    world: World, recorder: RecordingClient, namespace: str
) -> None:
    await world.start(resource_class="seed")
    deployer, objects = Deployer(recorder), (deployment(namespace, 0),)
    managed = Managed(name="demo", namespace=namespace, objects=objects, deployment="direct")
    await deployer.apply(Rendered(managed=(managed,)))
    await deployer.wait(Rendered(managed=(managed,)), 60)
    assert await recorder.get(DEPLOYMENT, Key(namespace, "direct"))


@pytest.mark.parametrize("is_managed", [False, True], ids=["direct", "managed"])
async def test_a_rollout_is_awaited_until_replaced_pods_are_gone(
    world: World, recorder: RecordingClient, namespace: str, *, is_managed: bool
) -> None:
    """A terminating pod still serves, but the status of the Deployment no longer counts it."""
    await world.start(resource_class="seed")
    awaited: asyncio.Queue[str] = asyncio.Queue()
    deployer = Deployer(recorder, note=lambda _, problem: awaited.put_nowait(problem))

    def version(image: str) -> Rendered:
        obj = deployment(namespace, 1)
        template = obj["spec"]["template"]
        template["metadata"]["finalizers"] = ["example.org/still-serving"]
        template["spec"]["containers"][0]["image"] = image
        managed = Managed(name="demo", namespace=namespace, objects=(obj,), deployment="direct")
        return Rendered(managed=(managed,)) if is_managed else Rendered(direct=(obj,))

    first, second = version("registry.k8s.io/pause:1"), version("registry.k8s.io/pause:2")
    await deployer.apply(first)
    await deployer.wait(first, 60)
    [old] = await recorder.list(POD, namespace)

    await deployer.apply(second)
    waiting = asyncio.create_task(deployer.wait(second, 60))
    while await awaited.get() != "there are 2 pods, expected 1":
        assert not waiting.done()
    assert not waiting.done()
    await recorder.patch(POD, Key.of(old), {"metadata": {"finalizers": None}})
    await waiting
    assert await recorder.find(POD, Key.of(old)) is None


async def test_a_dependent_managed_resource_is_applied_once_the_one_before_is_ready(
    world: World, recorder: RecordingClient, namespace: str
) -> None:
    deployer = Deployer(recorder)
    first, last = (
        Managed(
            name=name,
            namespace=namespace,
            objects=(config_map(name, namespace),),
            follows=name == "last",
        )
        for name in ("first", "last")
    )
    applying = asyncio.create_task(deployer.apply(Rendered(managed=(first, last))))
    await until(recorder, MANAGED_RESOURCE, Key(namespace, "first"), bool)
    assert await recorder.find(MANAGED_RESOURCE, Key(namespace, "last")) is None

    await world.start(resource_class="seed")
    await applying
    assert await recorder.find(MANAGED_RESOURCE, Key(namespace, "last"))


async def test_a_kind_that_is_applied_with_other_objects_can_be_used_at_once(
    recorder: RecordingClient, namespace: str
) -> None:
    crd = thing(f"x{uuid.uuid4().hex[:8]}")
    try:
        direct = (crd, config_map("other", namespace))
        await Deployer(recorder).apply(Rendered(direct=direct))
        assert await recorder.list(kind_of(crd), namespace) == []
    finally:
        await recorder.delete(CRD, Key.of(crd))


async def test_a_kind_is_awaited_until_discovery_lists_it(recorder: RecordingClient) -> None:
    crd = thing(f"x{uuid.uuid4().hex[:8]}")
    with pytest.raises(NotReady, match="the API server does not list its kind"):
        await until_listed(recorder, crd, 0.0)

    deployer, applied = Deployer(recorder), Rendered(direct=(crd,))
    try:
        await deployer.apply(applied)
        await deployer.wait(applied, 60)
        assert await recorder.list(kind_of(crd)) == []
    finally:
        await recorder.delete(CRD, Key.of(crd))


async def test_the_error_of_a_timed_out_wait_names_the_object_and_the_problem(
    recorder: RecordingClient, namespace: str
) -> None:
    deployer = Deployer(recorder)
    waiting = Rendered(direct=(deployment(namespace, 1),))
    managed = Rendered(managed=rendered(namespace).managed)
    await deployer.apply(managed)
    missing, unserved = await asyncio.gather(
        *(deployer.wait(each, ENOUGH_TO_READ) for each in (waiting, managed)),
        return_exceptions=True,
    )
    assert isinstance(missing, ExceptionGroup)
    [error] = missing.exceptions
    assert isinstance(error, NotReady)
    assert str(error) == (
        f"Deployment {namespace}/direct is not ready after {ENOUGH_TO_READ:g} s: it does not exist"
    )
    assert isinstance(unserved, ExceptionGroup)
    [error] = unserved.exceptions
    assert isinstance(error, NotReady)
    assert f"ManagedResource {namespace}/demo is not ready after {ENOUGH_TO_READ:g} s" in str(error)


async def test_objects_of_a_removed_component_are_deleted(
    world: World, recorder: RecordingClient, namespace: str
) -> None:
    await world.start(resource_class="seed")
    deployer = Deployer(recorder)
    await deployer.apply(rendered(namespace))
    await deployer.wait(rendered(namespace), 60)
    left = Removable(
        managed=(Key(namespace, "demo"),),
        direct=(Identity(DEPLOYMENT, Key(namespace, "direct")),),
    )
    await deployer.remove(left)
    await deployer.wait_removed(left, 60)
    assert await recorder.find(CONFIG_MAP, Key(namespace, "kept")) is None
    assert await recorder.find(DEPLOYMENT, Key(namespace, "direct")) is None

    recorder.taken()
    await deployer.remove(left)
    await deployer.wait_removed(left, 60)
    assert recorder.taken() == []


async def test_objects_of_the_virtual_cluster_are_left_to_its_resource_manager(
    recorder: RecordingClient, namespace: str
) -> None:
    deployer = Deployer(recorder)
    condition = "VirtualComponentsHealthy"
    await deployer.apply(rendered(namespace, target=Target.VIRTUAL, condition=condition, keep=True))
    resource = await recorder.get(MANAGED_RESOURCE, Key(namespace, "demo"))
    assert labels_of(resource) == {
        "origin": "gardener",
        "care.gardener.cloud/condition-type": condition,
    }
    assert "class" not in resource["spec"]
    assert resource["spec"]["keepObjects"] is True
    assert resource["spec"]["injectLabels"] == {"shoot.gardener.cloud/no-cleanup": "true"}
