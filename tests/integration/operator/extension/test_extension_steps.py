"""Single steps of an Extension's installation and deletion (spec 21 §13.2, §13.3)."""

from typing import Any, Final

import pytest

from pergola.api import marks
from pergola.api.conditions import get_condition
from pergola.api.kinds import NAMESPACE, SECRET
from pergola.api.objects import (
    JsonObject,
    Key,
    annotations_of,
    deletion_timestamp_of,
    finalizers_of,
    labels_of,
    maps_at,
)
from pergola.api.operator_v1alpha1 import EXTENSION, GARDEN
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.garden.components.virtual_access import GENERIC_NAME
from pergola.manifests import manifest
from pergola.operator.chart_source import Charts
from pergola.operator.conditions import Conditions
from pergola.operator.extension.admission import AdmissionPart
from pergola.operator.extension.deployments import Deployments
from pergola.operator.extension.errors import NotYet
from pergola.operator.extension.reconcile import ExtensionReconciler, Parts
from pergola.operator.extension.registration import RegistrationPart
from pergola.operator.extension.runtime import PRIORITY, PRIORITY_CLASS, RuntimePart
from pergola.operator.extension.values import Resolved
from pergola.operator.virtual_cluster import VirtualCluster
from pergola.runtime.clock import SystemClock
from pergola.runtime.controlling.controller import DONE, ReconcileError
from pergola.runtime.controlling.events import Recorder
from pergola.testing.waiting import until_gone
from tests.support.extension_garden import ExtensionGarden, prepare

NAME: Final = Key("", "dns")
SPACE: Final = Key("", "runtime-extension-dns")
GARDEN_SPACE: Final = Key("", "garden")
ZONES: Final = "high-availability-config.resources.gardener.cloud/zones"
ENFORCE: Final = "pod-security.kubernetes.io/enforce"
FOREIGN: Final = "example.org/any"
RUNTIME: Final = Key("garden", "extension-admission-runtime-dns")
VIRTUAL: Final = Key("garden", "extension-admission-virtual-dns")
REGISTRATION: Final = Key("garden", "extension-registration-dns")
ACCESS: Final = Key("garden", "shoot-access-extension-admission-dns")


class NoObjects(Charts):
    """Charts without objects."""

    def __init__(self) -> None:
        pass

    async def pull(self, source: JsonObject) -> Any:
        """Return no chart."""
        del source

    async def render(self, chart: Any, release: Any) -> list[JsonObject]:
        """Return no objects."""
        del chart, release
        return []


def extension(**metadata: Any) -> JsonObject:
    spec = {"deployment": {"extension": {"helm": {"ociRepository": {"ref": "example.org/dns"}}}}}
    found = manifest(EXTENSION.api_version, EXTENSION.kind, NAME.name, spec=spec)
    return {**found, "metadata": {**found["metadata"], **metadata}}


async def test_the_namespace_of_an_extension_follows_the_garden_and_the_extension(
    garden: ExtensionGarden,
) -> None:
    client = garden.runtime
    part = RuntimePart(client, NoObjects(), Deployments(client, SystemClock()))
    values = Resolved({}, frozenset())
    await client.delete(PRIORITY_CLASS, Key("", PRIORITY))
    with pytest.raises(NotYet, match=f'priority class "{PRIORITY}" not found yet'):
        await part.apply(extension(), values)
    assert await client.find(NAMESPACE, SPACE) is None
    await prepare(client, garden.virtual)

    await client.patch(NAMESPACE, GARDEN_SPACE, {"metadata": {"annotations": {ZONES: "a,b"}}})
    try:
        enforcing = extension(
            annotations={"security.gardener.cloud/pod-security-enforce": "baseline"}
        )
        await part.apply(enforcing, values)
        space = await client.get(NAMESPACE, SPACE)
        assert annotations_of(space)[ZONES] == "a,b"
        assert labels_of(space)[ENFORCE] == "baseline"
    finally:
        await client.patch(NAMESPACE, GARDEN_SPACE, {"metadata": {"annotations": {ZONES: None}}})

    await client.patch(NAMESPACE, SPACE, {"metadata": {"labels": {"example.org/any": "label"}}})
    await part.apply(extension(), values)
    space = await client.get(NAMESPACE, SPACE)
    assert ZONES not in annotations_of(space)
    assert ENFORCE not in labels_of(space)
    assert labels_of(space)["example.org/any"] == "label"
    assert await part.delete(NAME.name)
    assert not await part.delete(NAME.name)


async def test_a_blocked_deletion_is_reported_and_keeps_its_order(
    garden: ExtensionGarden,
) -> None:
    client = garden.runtime
    await client.create(extension(finalizers=[marks.OPERATOR_FINALIZER]))
    await client.delete(EXTENSION, NAME)
    # No resource manager works on this class, so only the finalizer blocks the deletion.
    await client.create(managed(RUNTIME, finalizers=[FOREIGN]))
    await client.create(managed(VIRTUAL))
    await garden.secret(ACCESS.name, {})

    with pytest.raises(ReconcileError, match=RUNTIME.name):
        await reconciler(garden, limit=0.5).reconcile(NAME)

    live = await client.get(EXTENSION, NAME)
    installed = get_condition(maps_at(live, "status", "conditions"), "Installed") or {}
    assert (installed["status"], installed["reason"]) == ("False", "DeleteFailed")
    assert RUNTIME.name in installed["message"]
    assert finalizers_of(live) == [marks.OPERATOR_FINALIZER]
    assert await client.find(SECRET, ACCESS) is not None
    assert deletion_timestamp_of(await client.get(MANAGED_RESOURCE, VIRTUAL)) is None

    await client.patch(MANAGED_RESOURCE, RUNTIME, {"metadata": {"finalizers": None}})
    await reconciler(garden).reconcile(NAME)
    await until_gone(client, EXTENSION, NAME)
    assert await client.find(SECRET, ACCESS) is None
    assert await client.find(MANAGED_RESOURCE, VIRTUAL) is None


@pytest.mark.parametrize("part", ["", "extension", "admission"])
async def test_parts_that_are_not_in_the_extension_are_removed(
    garden: ExtensionGarden, part: str
) -> None:
    """Values that a removed chart had, and that cannot be resolved, do not matter."""
    client = garden.runtime
    await garden.create_garden()
    await garden.reconciled()
    without_chart = of_missing_secret(part or "admission", "values")
    del without_chart["spec"]["deployment"]["extension"]["helm"]
    nothing: JsonObject = {"spec": {"deployment": {}}}
    await client.create(without_chart if part else {**extension(), **nothing})
    for key in (RUNTIME, VIRTUAL, REGISTRATION):
        await client.create(managed(key))
    await garden.secret(ACCESS.name, {})

    assert await reconciler(garden).reconcile(NAME) == DONE

    await garden.condition("dns", "Installed", "True", "ReconcileSuccessful")
    for key in (RUNTIME, VIRTUAL, REGISTRATION):
        assert await client.find(MANAGED_RESOURCE, key) is None
    assert await client.find(SECRET, ACCESS) is None


def of_missing_secret(part: str, field: str) -> JsonObject:
    """Return an Extension in which the values of one part need a Secret that does not exist."""
    found = extension(finalizers=[marks.OPERATOR_FINALIZER])
    reference = {"apiVersion": "v1", "kind": "Secret", "name": "missing"}
    deployment = found["spec"]["deployment"]
    deployment["resources"] = [{"name": "creds", "resourceRef": reference}]
    deployment.setdefault(part, {})[field] = {"p": "{{ .resources.creds.data.password }}"}
    return found


@pytest.mark.parametrize(
    ("part", "field"),
    [("extension", "values"), ("extension", "runtimeClusterValues"), ("admission", "values")],
)
async def test_parts_are_deleted_without_the_values_of_any(
    garden: ExtensionGarden, part: str, field: str
) -> None:
    client = garden.runtime
    await client.create(of_missing_secret(part, field))
    await client.create(managed(VIRTUAL))
    await client.create(managed(REGISTRATION))
    await client.delete(EXTENSION, NAME)

    assert await reconciler(garden).reconcile(NAME) == DONE

    await until_gone(client, EXTENSION, NAME)
    for key in (VIRTUAL, REGISTRATION):
        assert await client.find(MANAGED_RESOURCE, key) is None


async def test_a_required_part_without_its_values_does_not_keep_the_other_parts(
    garden: ExtensionGarden,
) -> None:
    client = garden.runtime
    await client.create(of_missing_secret("extension", "runtimeClusterValues"))
    required = {"type": "RequiredRuntime", "status": "True", "reason": "x", "message": "x"}
    times = dict.fromkeys(("lastTransitionTime", "lastUpdateTime"), "2026-01-01T00:00:00Z")
    status: JsonObject = {"status": {"conditions": [{**required, **times}]}}
    await client.patch(EXTENSION, NAME, status, subresource="status")
    await client.create(managed(VIRTUAL))
    await client.create(managed(REGISTRATION))
    await client.delete(EXTENSION, NAME)

    with pytest.raises(ReconcileError, match="missing"):
        await reconciler(garden).reconcile(NAME)

    for key in (VIRTUAL, REGISTRATION):
        assert await client.find(MANAGED_RESOURCE, key) is None
    await client.patch(EXTENSION, NAME, {"metadata": {"finalizers": None}})


async def test_an_admission_waits_for_the_generic_kubeconfig(
    garden: ExtensionGarden,
) -> None:
    client = garden.runtime
    await garden.create_garden()
    await garden.reconciled()
    without = {"metadata": {"annotations": {GENERIC_NAME: None}}}
    await client.patch(GARDEN, Key("", "minimal"), without)
    admission = {"runtimeCluster": {"helm": {"ociRepository": {"ref": "example.org/dns"}}}}
    await client.create({**extension(), "spec": {"deployment": {"admission": admission}}})

    text = "generic kubeconfig secret name is not set for garden"
    with pytest.raises(ReconcileError, match=text):
        await reconciler(garden).reconcile(NAME)

    await garden.condition("dns", "Installed", "False", "ReconcileFailed", holds=text)
    assert await client.find(SECRET, ACCESS) is None


def managed(key: Key, **metadata: Any) -> JsonObject:
    spec = {"class": "none", "secretRefs": []}
    found = manifest(
        MANAGED_RESOURCE.api_version,
        MANAGED_RESOURCE.kind,
        key.name,
        namespace=key.namespace,
        spec=spec,
    )
    return {**found, "metadata": {**found["metadata"], **metadata}}


def reconciler(garden: ExtensionGarden, **limit: float) -> ExtensionReconciler:
    client, clock, charts = garden.runtime, SystemClock(), NoObjects()
    deployments = Deployments(client, clock, **limit)
    parts = Parts(
        RuntimePart(client, charts, deployments),
        AdmissionPart(client, charts, deployments),
        RegistrationPart(client, deployments),
    )
    conditions = Conditions(client, EXTENSION, clock)
    events = Recorder(client, "extension-controller", clock=clock)
    return ExtensionReconciler(client, VirtualCluster(client), parts, conditions, events)
