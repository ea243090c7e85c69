"""A runtime cluster that is also a Seed: neither side touches the other's objects.

A separate field manager applies the objects of gardenlet again and again, as gardenlet does (spec
20 §20, 21 §11).
"""

import asyncio
import base64
from collections.abc import Iterable
from typing import Any, Final

import orjson
import pytest

from pergola.api.objects import GroupVersionKind, JsonObject, Key, maps_at
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.kube.client import Client
from pergola.kube.errors import ApiError
from pergola.kube.yaml import dump
from pergola.sandbox.simulated import Site
from pergola.testing.shared import require_images
from pergola.testing.waiting import until, until_gone
from tests.support.garden_states import has_succeeded, is_healthy, reconciled_after
from tests.support.garden_world import (
    CONFIRMED,
    RECONCILE,
    example,
    operating,
)

pytestmark = [pytest.mark.soak("gardens"), pytest.mark.timeout(2400)]

LOCAL: Final = Key("", "local")
PATIENCE: Final = 600.0
GARDENLET: Final = "gardenlet"
SHOOT: Final = "shoot--local--one"
ROUNDS: Final = 2
"""Reconciliations without a change: one per hour, and one per start of the operator."""
VOLATILE: Final = frozenset({"managedFields", "resourceVersion"})
"""Metadata that changes with the status; the generation counts the other writes."""
UNSTABLE_KINDS: Final = frozenset(
    {"Event", "Lease", "Node", "Pod", "Endpoints", "EndpointSlice", "ComponentStatus"}
)
"""Kinds that change by themselves: reports, heartbeats, and effects of kubelets."""


def manifest(api_version: str, kind: str, name: str, **more: Any) -> JsonObject:
    metadata: JsonObject = {"name": name}
    for part in ("namespace", "labels", "annotations"):
        if part in more:
            metadata[part] = more.pop(part)
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **more}


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def managed(name: str, *objects: JsonObject) -> list[JsonObject]:
    """Return a ManagedResource of the Seed with its Secret."""
    text = "---\n".join(dump(obj) for obj in objects)
    secret = manifest(
        "v1",
        "Secret",
        f"managedresource-{name}",
        namespace="garden",
        data={"objects.yaml": encoded(text)},
    )
    resource = manifest(
        "resources.gardener.cloud/v1alpha1",
        "ManagedResource",
        name,
        namespace="garden",
        labels={"gardener.cloud/role": "seed-system-component"},
        spec={"class": "seed", "secretRefs": [{"name": secret["metadata"]["name"]}]},
    )
    return [secret, resource]


def config_map(name: str, namespace: str = "garden") -> JsonObject:
    return manifest("v1", "ConfigMap", name, namespace=namespace, data={"seed": "true"})


def of_the_seed() -> list[JsonObject]:
    """Return the objects that gardenlet adds beside a Garden, namespaces first."""
    of_gardenlet = {"managed-by": "secrets-manager", "manager-identity": GARDENLET}
    return [
        manifest("v1", "Namespace", "istio-ingress", labels=role("istio-ingress")),
        manifest("v1", "Namespace", "istio-ingress--0", labels=role("istio-ingress")),
        manifest("v1", "Namespace", "extension-provider-local", labels=role("extension")),
        manifest("v1", "Namespace", SHOOT, labels=role("shoot")),
        *(
            manifest(
                "v1",
                "Secret",
                name,
                namespace="garden",
                labels={**of_gardenlet, "name": "ca-seed"},
                data={"ca.crt": encoded("of the Seed")},
            )
            for name in ("ca-seed-1a2b3c4d", "ca-seed-1a2b3c4d-5e6f7")
        ),
        manifest(
            "v1",
            "Secret",
            "seed-credentials",
            namespace="garden",
            labels=role("global-monitoring"),
            data={"auth": encoded("of the Seed")},
        ),
        *(
            each
            for name in ("prometheus-cache", "prometheus-seed", "prometheus-aggregate", "system")
            for each in managed(name, config_map(f"{name}-content"))
        ),
        manifest(
            "scheduling.k8s.io/v1",
            "PriorityClass",
            "gardener-shoot-controlplane",
            value=100,
            description="of the Seed",
        ),
        config_map("cluster-identity", "kube-system"),
        manifest(
            "networking.istio.io/v1",
            "Gateway",
            "kube-apiserver",
            namespace=SHOOT,
            spec={
                "selector": {"app": "istio-ingressgateway"},
                "servers": [
                    {
                        "hosts": ["api.one.local.example.org"],
                        "port": {"name": "tls", "number": 443, "protocol": "TLS"},
                        "tls": {"mode": "PASSTHROUGH"},
                    }
                ],
            },
        ),
        manifest(
            "apps/v1",
            "Deployment",
            GARDENLET,
            namespace="garden",
            spec={
                "replicas": 0,
                "selector": {"matchLabels": {"app": GARDENLET}},
                "template": {
                    "metadata": {"labels": {"app": GARDENLET}},
                    "spec": {"containers": [{"name": GARDENLET, "image": GARDENLET}]},
                },
            },
        ),
    ]


def role(name: str) -> dict[str, str]:
    return {"gardener.cloud/role": name}


@pytest.fixture(autouse=True)
def images() -> None:
    require_images("gardener-apiserver")


async def test_a_garden_and_a_seed_can_share_a_cluster(garden_world: Site) -> None:
    client = garden_world.client
    async with operating(garden_world):
        await client.create(example())
        await until(client, GARDEN, LOCAL, is_well, patience=PATIENCE)
        await seed_reconciles(client)
        await until(client, MANAGED_RESOURCE, Key("garden", "system"), is_applied)
        await policies_are_written(client)
        before = await at_rest(client)
        for _ in range(ROUNDS):
            await garden_reconciles(client)
            await seed_reconciles(client)
        assert differences(before, await everything(client)) == []
    # The same holds for an operator that starts, which reconciles once.
    last = await client.get(GARDEN, LOCAL)
    async with operating(garden_world):
        await until(client, GARDEN, LOCAL, reconciled_after(last), patience=PATIENCE)
        after = await everything(client)
        changed = {name for name, _ in differences(before, after)}
        assert {name for name in changed if not is_registration(name)} == set()
        await _seed_is_deleted_first(client, after)
        await _garden_is_deleted(client)


async def _seed_is_deleted_first(client: Client, before: dict[str, bytes]) -> None:
    """Check that no object of the Garden is deleted with the Seed."""
    for obj in of_the_seed():
        if obj["kind"] == "ManagedResource":
            key = Key.of(obj)
            await client.delete(MANAGED_RESOURCE, key)
            await until_gone(client, MANAGED_RESOURCE, key)
    await garden_reconciles(client)
    after = await everything(client)
    changed = {name for name, _ in differences(before, after) if not is_registration(name)}
    assert {name for name in changed if not is_content_of_the_seed(name)} == set()
    await until(client, GARDEN, LOCAL, is_well, patience=PATIENCE)


def is_registration(name: str) -> bool:
    """Return whether an object registers webhooks, whose ports differ between local processes."""
    return name.endswith("WebhookConfiguration.admissionregistration.k8s.io gardener-operator")


def is_content_of_the_seed(name: str) -> bool:
    """Return whether an object is deleted or released with a ManagedResource of the Seed."""
    kind, _, key = name.partition(" ")
    names = {Key.of(obj).name for obj in of_the_seed() if obj["kind"] == "ManagedResource"}
    name = Key(*key.split("/")).name if "/" in key else key
    return any(name in (each, f"{each}-content", f"managedresource-{each}") for each in names) and (
        kind.split(".")[0] in ("ConfigMap", "ManagedResource", "Secret")
    )


async def _garden_is_deleted(client: Client) -> None:
    """Check that all objects of the Seed are kept, except for its deleted ManagedResources."""
    kept = [obj for obj in of_the_seed() if obj["kind"] in ("Namespace", "PriorityClass")]
    kept += [obj for obj in of_the_seed() if obj["metadata"]["name"].startswith("ca-seed")]
    await client.patch(GARDEN, LOCAL, CONFIRMED)
    await client.delete(GARDEN, LOCAL)
    await until_gone(client, GARDEN, LOCAL, patience=PATIENCE)
    for obj in kept:
        found = await client.get(GroupVersionKind.of(obj), Key.of(obj))
        assert "deletionTimestamp" not in found["metadata"]


async def seed_reconciles(client: Client) -> None:
    """Apply all objects of the Seed, as each run of gardenlet does."""
    for obj in of_the_seed():
        await client.apply(obj, manager=GARDENLET, force=True)


async def garden_reconciles(client: Client) -> None:
    last = await client.patch(GARDEN, LOCAL, RECONCILE)
    await until(client, GARDEN, LOCAL, reconciled_after(last), patience=PATIENCE)


async def policies_are_written(client: Client) -> None:
    """Wait until the operator has written its policies into the namespaces of the Seed."""
    policy = GroupVersionKind("networking.k8s.io", "v1", "NetworkPolicy")
    for namespace in (SHOOT, "extension-provider-local"):
        await until(client, policy, Key(namespace, "deny-all"), lambda _: True)


def is_well(garden: JsonObject) -> bool:
    return has_succeeded(garden) and is_healthy(garden)


def is_applied(resource: JsonObject) -> bool:
    conditions = {
        each["type"]: each["status"] for each in maps_at(resource, "status", "conditions")
    }
    return conditions.get("ResourcesApplied") == "True"


async def at_rest(client: Client) -> dict[str, bytes]:
    """Return all objects once a reconciliation changes nothing.

    The first one after the start cleans up, and other programs may lag behind the operator.
    """
    before = await everything(client)
    while True:
        await garden_reconciles(client)
        after = await everything(client)
        if not differences(before, after):
            return after
        before = after


async def everything(client: Client) -> dict[str, bytes]:
    """Return all objects of a cluster without their status, by kind and key.

    Objects without a status have their resourceVersion: if two writers change one back and forth,
    only its version shows that.
    """
    found: dict[str, bytes] = {}
    for kind in await kinds(client):
        for obj in await client.list(kind):
            found[f"{kind.kind}.{kind.group} {Key.of(obj)}"] = stable(obj)
    return found


def stable(obj: JsonObject) -> bytes:
    volatile = VOLATILE if "status" in obj else {"managedFields"}
    metadata = {name: each for name, each in obj["metadata"].items() if name not in volatile}
    rest = {name: each for name, each in obj.items() if name not in ("status", "metadata")}
    return orjson.dumps({**rest, "metadata": metadata}, option=orjson.OPT_SORT_KEYS)


def differences(before: dict[str, bytes], after: dict[str, bytes]) -> list[tuple[str, str]]:
    """Return the objects that were created, deleted or changed, with their last state."""
    names = sorted(before.keys() | after.keys())
    return [
        (name, after.get(name, b"gone").decode())
        for name in names
        if before.get(name) != after.get(name)
    ]


async def kinds(client: Client) -> list[GroupVersionKind]:
    """Return all kinds whose objects can be listed, in the preferred version of each group."""
    groups = maps_at(orjson.loads(await client.get_raw("/apis")), "groups")
    paths = ["/api/v1", *(f"/apis/{group['preferredVersion']['groupVersion']}" for group in groups)]
    answers = await asyncio.gather(*(resources(client, path) for path in paths))
    return [kind for answer in answers for kind in answer]


async def resources(client: Client, path: str) -> Iterable[GroupVersionKind]:
    try:
        answer = orjson.loads(await client.get_raw(path))
    except ApiError:
        return ()
    group, _, version = str(answer["groupVersion"]).rpartition("/")
    return [
        GroupVersionKind(group, version, each["kind"])
        for each in maps_at(answer, "resources")
        if "list" in each["verbs"]
        and each["kind"] not in UNSTABLE_KINDS
        and "/" not in each["name"]
    ]
