"""Requirements of Seeds on Extensions, their health, and protection of the objects they name."""

from pathlib import Path
from typing import Final

from pergola.api.kinds import SECRET
from pergola.api.objects import Key, finalizers_of, resource_version_of
from pergola.api.operator_v1alpha1 import EXTENSION
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.kube.client import Client
from pergola.kube.kubeconfig import ClusterConfig
from pergola.manifests import manifest
from pergola.operator.copies import Copies
from pergola.operator.extension.installations import INSTALLATION, REGISTRATION
from pergola.operator.reconcile.cleanup import patch_garden_deleted
from pergola.operator.references import protected_references
from pergola.runtime.clock import SystemClock
from pergola.runtime.metrics import Metrics
from pergola.testing.waiting import running, until, until_gone
from tests.support.extension_garden import ExtensionGarden, extension_controllers

NAME: Final = Key("", "dns")
ONE: Final = Key("", "dns-one")
PROTECTION: Final = "gardener.cloud/reference-protection"
GOOD: Final = {"Valid": "True", "Installed": "True", "Healthy": "True", "Progressing": "False"}


async def create_extension(garden: ExtensionGarden, **spec: object) -> None:
    resources = [{"kind": "DNSRecord", "type": "local"}]
    described = {"resources": resources, "deployment": spec}
    await garden.runtime.create(
        manifest(EXTENSION.api_version, EXTENSION.kind, NAME.name, spec=described)
    )


async def create_installation(garden: ExtensionGarden) -> None:
    """Register the Extension by hand, and install it in a Seed."""
    registration = manifest(REGISTRATION.api_version, REGISTRATION.kind, NAME.name, spec={})
    version = resource_version_of(await garden.virtual.create(registration))
    spec = {
        "registrationRef": {"name": NAME.name, "resourceVersion": version},
        "seedRef": {"name": "one"},
    }
    await garden.virtual.create(
        manifest(INSTALLATION.api_version, INSTALLATION.kind, ONE.name, spec=spec)
    )


async def report(garden: ExtensionGarden, **statuses: str) -> None:
    """Write the status of the installation, as gardenlet does."""
    conditions = [
        {"type": kind, "status": status, "reason": "Said", "message": f"{kind} is {status}"}
        for kind, status in statuses.items()
    ]
    status = {"status": {"conditions": conditions}}
    await garden.virtual.patch(INSTALLATION, ONE, status, subresource="status")


async def test_an_extension_is_required_and_healthy_if_its_installations_are(
    garden: ExtensionGarden, operator: ClusterConfig, tmp_path: Path
) -> None:
    async with extension_controllers(operator, tmp_path):
        await create_extension(garden)
        absent = await garden.condition("dns", "RequiredVirtual", "False")
        assert absent["reason"] == "NoRequiredControllerInstallation"
        assert absent["message"] == (
            "Extension does not have required ControllerInstallations for seed clusters"
        )
        await create_installation(garden)
        await report(garden, Required="True", **GOOD)

        required = await garden.condition("dns", "RequiredVirtual", "True")
        assert required["reason"] == "RequiredControllerInstallation"
        healthy = await garden.condition("dns", "ControllerInstallationsHealthy", "True")
        assert healthy["message"] == "All controller installations are healthy."
        await report(garden, Required="True", **GOOD | {"Healthy": "False"})
        failing = await garden.condition("dns", "ControllerInstallationsHealthy", "False", "Said")
        assert failing["message"] == "Seed: one: Healthy is False"

        await garden.virtual.delete(INSTALLATION, ONE)
        await garden.condition("dns", "RequiredVirtual", "False")
        await garden.without_condition("dns", "ControllerInstallationsHealthy")


async def test_a_threshold_delays_the_report_of_failing_installations(
    garden: ExtensionGarden, operator: ClusterConfig, tmp_path: Path
) -> None:
    threshold = {"type": "ControllerInstallationsHealthy", "duration": "1h"}
    settings = {"extensionCare": {"conditionThresholds": [threshold]}}
    async with extension_controllers(operator, tmp_path, settings=settings):
        await create_extension(garden)
        await create_installation(garden)
        await report(garden, Required="True", **GOOD)
        await garden.condition("dns", "ControllerInstallationsHealthy", "True")

        await report(garden, Required="True", **GOOD | {"Installed": "False"})

        await garden.condition("dns", "ControllerInstallationsHealthy", "Progressing", "Said")


async def test_deleting_the_virtual_cluster_ends_the_requirement(
    garden: ExtensionGarden, operator: ClusterConfig, tmp_path: Path
) -> None:
    async with extension_controllers(operator, tmp_path):
        await create_extension(garden)
        await create_installation(garden)
        await report(garden, Required="True")
        await garden.condition("dns", "RequiredVirtual", "True")

    await patch_garden_deleted(garden.runtime, SystemClock())

    found = await garden.condition("dns", "RequiredVirtual", "False", "GardenDeleted")
    assert found["message"] == "Virtual cluster has been destroyed"


async def test_a_resource_without_the_virtual_cluster_is_unknown(
    garden: ExtensionGarden, operator: ClusterConfig, tmp_path: Path
) -> None:
    helm = {"helm": {"ociRepository": {"ref": "127.0.0.1:1/charts/absent:1"}}}
    async with extension_controllers(operator, tmp_path):
        await create_extension(garden, admission={"virtualCluster": helm})

        found = await garden.condition("dns", "AdmissionHealthy", "Unknown")

        assert found["reason"] == "ConditionCheckError"
        assert "extension-admission-virtual-dns" in found["message"]
        await garden.create_garden()
        await garden.reconciled()
        failed = await garden.condition("dns", "Installed", "False", holds="does not answer")
        assert failed["reason"] == "ReconcileFailed"
        assert await garden.runtime.list(MANAGED_RESOURCE, "garden") == []


async def test_objects_that_an_extension_names_are_protected_until_it_is_deleted(
    garden: ExtensionGarden, operator: ClusterConfig, tmp_path: Path
) -> None:
    key = Key("garden", "pull")
    await garden.secret(key.name, {".dockerconfigjson": "{}"})
    source = {"ref": "127.0.0.1:1/charts/absent:1", "pullSecretRef": {"name": key.name}}
    async with Client.connect(operator) as client:
        copies = Copies(client)
        unit = protected_references(copies, metrics=Metrics())
        async with running(copies.unit, unit), extension_controllers(operator, tmp_path):
            await create_extension(garden, extension={"helm": {"ociRepository": source}})
            await until(garden.runtime, SECRET, key, lambda s: PROTECTION in finalizers_of(s))
            await until(garden.runtime, EXTENSION, NAME, lambda e: PROTECTION in finalizers_of(e))

            await garden.runtime.delete(EXTENSION, NAME)

            await until_gone(garden.runtime, EXTENSION, NAME)
            await until(garden.runtime, SECRET, key, lambda s: PROTECTION not in finalizers_of(s))
