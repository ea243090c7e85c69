"""A runtime cluster without controllers, whose Garden has the components that a test chooses."""

import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from pergola.api.conditions import timestamp
from pergola.api.kinds import DEPLOYMENT, SECRET
from pergola.api.objects import GroupVersionKind, JsonObject, Key, maps_at
from pergola.api.operator_v1alpha1 import GARDEN, Garden, garden_from
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.garden.components.etcds.access import ROLES
from pergola.garden.components.etcds.etcd import etcd
from pergola.garden.components.managed_resources import expected
from pergola.garden.landscape import Landscape
from pergola.garden.landscape.credentials import Credentials
from pergola.garden.landscape.etcd_objects import ETCD
from pergola.kube.client import Client
from pergola.kube.errors import AlreadyExists
from pergola.operator.care.check import DEPLOYMENTS
from pergola.operator.care.servers import Probe
from pergola.operator.conditions import condition_of
from pergola.operator.copies import Copies
from pergola.runtime.clock import SystemClock
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.task_group import TaskGroup
from pergola.testing.crds import install_definitions
from pergola.testing.waiting import until
from tests.support.care import GOOD
from tests.support.garden import landscape
from tests.support.garden_states import is_healthy
from tests.support.gardens import MINIMAL

NAME: Final = "minimal"
ETCDS_CRD: Final = "etcds.druid.gardener.cloud"
_LANDSCAPE: Final = landscape()
_CONTROL_PLANE: Final = {"gardener.cloud/role": "controlplane"}
_KINDS: Final = (
    (MANAGED_RESOURCE, "garden"),
    (MANAGED_RESOURCE, "istio-system"),
    (MANAGED_RESOURCE, "kube-system"),
    (ETCD, "garden"),
    (DEPLOYMENT, "garden"),
)
_READ: Final = (
    (MANAGED_RESOURCE, "garden"),
    (MANAGED_RESOURCE, "istio-system"),
    (ETCD, "garden"),
    (DEPLOYMENT, "garden"),
    (SECRET, "garden"),
)


def template(garden: Garden) -> Landscape:
    """Return the landscape of a Garden without values that are read from clusters."""
    return replace(landscape(), garden=garden, credentials=Credentials())


def with_copies(copies: Copies, care: Unit) -> Unit:
    """Return a unit with care and those copies that it reads."""
    read = [copies.of(kind, namespace) for kind, namespace in _READ]
    beside = [*read, *care.caches]
    return Unit(care.name, caches=[copies.of(GARDEN)], beside=beside, controllers=care.controllers)


class SwitchedCluster:
    """A virtual cluster whose health a test chooses.

    Attributes:
        answer: The answer of its health endpoint.
        probes: The number of requests to it: once in each run of care.
    """

    def __init__(self, answer: Probe | None = Probe(200, "ok")) -> None:  # noqa: B008
        self.answer = answer
        self.probes = 0

    async def probe(self) -> Probe | None:
        """Return the answer."""
        self.probes += 1
        return self.answer


class CareSite:
    """A runtime cluster in which a test decides about the health of a Garden's components.

    Attributes:
        client: The administrator's.
        garden: The key of the Garden.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        self.garden = Key("", NAME)

    async def prepare(self) -> None:
        """Create the kinds and namespaces that care reads."""
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "istio-system"}}
        with contextlib.suppress(AlreadyExists):  # of the test before
            await self.client.create(namespace)
        await install_definitions(self.client, ETCDS_CRD)

    async def create_garden(self, *conditions: JsonObject, name: str = NAME) -> JsonObject:
        """Create a Garden that was reconciled a while ago, with these conditions."""
        metadata = {**MINIMAL["metadata"], "name": name}
        await self.client.create({**MINIMAL, "metadata": metadata})
        operation = last_operation("Succeeded", "2026-01-01T00:00:00Z")
        status = {"lastOperation": operation, "conditions": [*conditions]}
        return await self.patch_status(status, name)

    async def patch_status(self, status: JsonObject, name: str = NAME) -> JsonObject:
        """Patch the status of a Garden."""
        key = Key("", name)
        return await self.client.patch(GARDEN, key, {"status": status}, subresource="status")

    async def heal(self) -> None:
        """Create all components of the Garden, healthy."""
        found = expected(template(garden_from(MINIMAL)))
        async with TaskGroup() as group:
            for key, condition in found:
                group.create_task(self.put_resource(key.name, key.namespace, label=condition))
            for role in ROLES:
                group.create_task(self.put_etcd(role))
            for name in DEPLOYMENTS:
                group.create_task(self.put_deployment(name))

    async def put_resource(
        self,
        name: str,
        namespace: str = "garden",
        *,
        has_class: bool = True,
        label: str = "",
        reason: str = "Because",
        **statuses: str,
    ) -> None:
        """Write a ManagedResource; without statuses it is healthy."""
        labels = {"care.gardener.cloud/condition-type": label} if label else {}
        await self._put(
            MANAGED_RESOURCE,
            Key(namespace, name),
            labels,
            {"secretRefs": [], **({"class": "seed"} if has_class else {})},
            {"observedGeneration": 1, "conditions": _conditions(GOOD | statuses, reason)},
        )

    async def put_etcd(self, role: str, *, ready: bool = True) -> None:
        """Write an Etcd of the control plane, as the operator renders it."""
        obj = etcd(_LANDSCAPE, role)
        await self.client.apply(obj, manager="test", force=True)
        status = {"status": {"ready": ready}}
        await self.client.patch(ETCD, Key.of(obj), status, subresource="status")

    async def put_deployment(self, name: str, **statuses: str) -> None:
        """Write a Deployment of the control plane; without statuses it is available."""
        container = {"name": "it", "image": "example.org/it:v1"}
        pod = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
        await self._put(
            DEPLOYMENT,
            Key("garden", name),
            _CONTROL_PLANE,
            {"selector": {"matchLabels": {"app": name}}, "template": pod},
            {
                "observedGeneration": 1,
                "conditions": _conditions({"Available": "True"} | statuses, "Because"),
            },
        )

    async def delete(self, gvk: GroupVersionKind, name: str, namespace: str = "garden") -> None:
        """Delete a component."""
        await self.client.delete(gvk, Key(namespace, name))

    async def until(self, condition: str, status: str, reason: str = "") -> JsonObject:
        """Wait until a condition of the Garden has a status and a reason; return the condition."""
        holds = _says(condition, status, reason)
        garden = await until(self.client, GARDEN, self.garden, holds)
        return condition_of(garden, condition)

    async def until_healthy(self) -> JsonObject:
        """Wait until all four conditions are true; return the Garden."""
        return await until(self.client, GARDEN, self.garden, is_healthy)

    async def clean_up(self) -> None:
        """Delete all Gardens and components."""
        for obj in await self.client.list(GARDEN, metadata_only=True):
            await self.client.delete(GARDEN, Key.of(obj))
        for gvk, namespace in _KINDS:
            for obj in await self.client.list(gvk, namespace, metadata_only=True):
                await self.client.delete(gvk, Key.of(obj))

    async def _put(
        self,
        gvk: GroupVersionKind,
        key: Key,
        labels: dict[str, str],
        spec: JsonObject,
        status: JsonObject,
    ) -> None:
        obj = {**manifest(gvk, key, labels), "spec": spec}
        await self.client.apply(obj, manager="test", force=True)
        await self.client.patch(gvk, key, {"status": status}, subresource="status")


def manifest(gvk: GroupVersionKind, key: Key, labels: dict[str, str]) -> JsonObject:
    """Return an object without content."""
    metadata = {"name": key.name, "namespace": key.namespace, "labels": labels}
    return {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": metadata}


def last_operation(state: str, time: str = "") -> JsonObject:
    """Return the last operation of a Garden; it was updated now unless a time is given."""
    return {
        "type": "Reconcile",
        "state": state,
        "progress": 100 if state == "Succeeded" else 50,
        "description": "Test",
        "lastUpdateTime": time or timestamp(SystemClock().now()),
    }


def statuses_of(garden: JsonObject) -> dict[str, str]:
    """Return the status of each condition of a Garden, in order."""
    return {str(c["type"]): str(c["status"]) for c in maps_at(garden, "status", "conditions")}


def _says(condition: str, status: str, reason: str) -> Callable[[JsonObject], bool]:
    def holds(garden: JsonObject) -> bool:
        found = condition_of(garden, condition)
        return found.get("status") == status and reason in ("", found.get("reason"))

    return holds


def _conditions(statuses: dict[str, str], reason: str) -> list[JsonObject]:
    time = "2026-01-01T00:00:00Z"
    return [
        {
            "type": kind,
            "status": status,
            "reason": reason,
            "message": f"{kind} is {status}",
            "lastTransitionTime": time,
            "lastUpdateTime": time,
        }
        for kind, status in statuses.items()
    ]
