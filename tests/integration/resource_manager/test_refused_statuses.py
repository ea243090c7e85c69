"""A status that the API server refuses does not keep objects from being applied."""

from collections.abc import AsyncIterator

import pytest

from pergola.api.kinds import CONFIG_MAP
from pergola.api.objects import GroupVersionKind, JsonObject, Key, annotations_of
from pergola.kube.errors import ApiError
from pergola.runtime.metrics import Metrics
from pergola.testing.world import World, is_applied, is_ready

GROUP = "admissionregistration.k8s.io"
POLICY = GroupVersionKind(GROUP, "v1", "ValidatingAdmissionPolicy")
BINDING = GroupVersionKind(GROUP, "v1", "ValidatingAdmissionPolicyBinding")
BIG = "example.org/big"


def big(world: World, name: str) -> JsonObject:
    """Return a ConfigMap with an annotation that is nearly as large as the server allows."""
    obj = world.config_map(name)
    obj["metadata"]["annotations"] = {BIG: "x" * 240_000}
    return obj


async def test_annotations_that_do_not_fit_into_the_status_are_recorded_as_hashes(
    world: World,
) -> None:
    await world.start(sync_period=3600.0)
    names = [f"c{number}" for number in range(7)]
    for name in names:
        await world.put_secret(name, big(world, name))
    await world.create_resource("demo", names)
    done = await world.healthy("demo")
    recorded = [annotations_of({"metadata": ref})[BIG] for ref in done["status"]["resources"]]
    assert {value[:7] for value in recorded} == {"sha256:"}

    # An annotation that leaves its manifest is removed, unless its live value was changed.
    changed = {"metadata": {"annotations": {BIG: "mine"}}}
    await world.client.patch(CONFIG_MAP, world.key("c0"), changed)
    await world.until_object(
        CONFIG_MAP, world.key("c0"), lambda o: annotations_of(o)[BIG] != "mine"
    )
    await world.stop()
    await world.client.patch(CONFIG_MAP, world.key("c0"), changed)
    for name in names:
        await world.put_secret(name, world.config_map(name))
    await world.start(sync_period=3600.0)
    for name in names[1:]:
        await world.until_object(
            CONFIG_MAP, world.key(name), lambda o: BIG not in annotations_of(o)
        )
    live = await world.client.get(CONFIG_MAP, world.key("c0"))
    assert annotations_of(live)[BIG] == "mine"
    await world.until("demo", is_ready)


@pytest.fixture
async def policy(world: World) -> AsyncIterator[str]:
    """Yield the name of a policy that refuses each status of ManagedResources in the namespace."""
    name = f"{world.namespace}-no-status"
    rule = {
        "apiGroups": ["resources.gardener.cloud"],
        "apiVersions": ["*"],
        "operations": ["UPDATE"],
        "resources": ["managedresources/status"],
    }
    only_here = {"matchLabels": {"kubernetes.io/metadata.name": world.namespace}}
    metadata = {"name": name}
    await world.client.create(
        {
            "apiVersion": POLICY.api_version,
            "kind": POLICY.kind,
            "metadata": metadata,
            "spec": {
                "matchConstraints": {"resourceRules": [rule], "namespaceSelector": only_here},
                "validations": [{"expression": "false", "message": "no status here"}],
            },
        }
    )
    await world.client.create(
        {
            "apiVersion": BINDING.api_version,
            "kind": BINDING.kind,
            "metadata": metadata,
            "spec": {"policyName": name, "validationActions": ["Deny"]},
        }
    )
    await until_in_force(world)
    yield name
    await world.client.delete(BINDING, Key("", name))
    await world.client.delete(POLICY, Key("", name))


async def until_in_force(world: World) -> None:
    probe = await world.create_resource("probe", [], metadata={"annotations": IGNORED})
    while True:
        try:
            probe = await world.client.update({**probe, "status": {}}, subresource="status")
        except ApiError:
            break
    await world.delete("probe")


IGNORED = {"resources.gardener.cloud/ignore": "true"}


async def test_objects_are_applied_repaired_and_deleted_without_a_status(
    world: World, policy: str
) -> None:
    counted = Metrics()
    await world.start(sync_period=3600.0, metrics=counted)
    await world.create("demo", world.config_map("a", text="hello"))

    await world.until_object(CONFIG_MAP, world.key("a"), lambda _: True)
    assert "status" not in await world.resource("demo")
    await world.client.patch(CONFIG_MAP, world.key("a"), {"data": {"text": "bye"}})
    await world.until_object(CONFIG_MAP, world.key("a"), lambda o: o["data"] == {"text": "hello"})

    # An object that leaves the manifests is deleted, although no status lists it.
    await world.put_secret("demo", world.config_map("b"))
    await world.until_gone(CONFIG_MAP, world.key("a"))
    await world.until_object(CONFIG_MAP, world.key("b"), lambda _: True)
    await world.reported("demo", "StatusNotWritten")
    metrics = counted.render().decode()
    assert "pergola_managed_resource_status_refused_total 0.0" not in metrics
    assert "pergola_managed_resource_status_refused_total" in metrics

    await world.delete("demo")
    await world.until_gone(CONFIG_MAP, world.key("b"))


async def test_the_status_is_written_once_it_is_accepted(world: World, policy: str) -> None:
    await world.start(sync_period=3600.0)
    await world.create("demo", world.config_map("a", text="hello"))
    await world.until_object(CONFIG_MAP, world.key("a"), lambda _: True)

    await world.client.delete(BINDING, Key("", policy))

    await world.until("demo", is_applied)
    binding = {
        "apiVersion": BINDING.api_version,
        "kind": BINDING.kind,
        "metadata": {"name": policy},
        "spec": {"policyName": policy, "validationActions": ["Audit"]},
    }
    await world.client.create(binding)
