"""Our own charts, installed from a real registry into the runtime cluster and by gardenlets."""

import asyncio
from pathlib import Path
from typing import Final

import pytest

from pergola.api.kinds import CONFIG_MAP, NAMESPACE
from pergola.api.kinds import DEPLOYMENT as WORKLOAD
from pergola.api.objects import GroupVersionKind, Key, labels_of, map_at
from pergola.api.operator_v1alpha1 import EXTENSION
from pergola.charts import Blobs, ChartReference, Helm, Puller, Release
from pergola.kube.kubeconfig import ClusterConfig
from pergola.operator.reconcile.extension_resources.installed import wait_for_extensions
from pergola.sandbox import binaries
from pergola.sandbox.module import kubernetes_version
from pergola.sandbox.on_demand import HELM
from pergola.sandbox.registry import Registry
from pergola.testing.waiting import until, until_gone
from tests.support.aws.gardens import IN_AWS
from tests.support.care_site import template
from tests.support.charts import with_image
from tests.support.extension_garden import (
    DEPLOYMENT,
    ExtensionGarden,
    bare_garden,
    extension_controllers,
)
from tests.support.own_extensions import own_extension

ROOT: Final = Path(__file__).parents[4]
ROLE: Final = GroupVersionKind("rbac.authorization.k8s.io", "v1", "Role")


async def test_the_aws_extension_serves_the_garden_before_its_resources_are_created(
    garden: ExtensionGarden, operator: ClusterConfig, charts: Registry, tmp_path: Path
) -> None:
    chart = await charts.push(ROOT / "charts" / "extension-aws")
    name = Key("", "pergola-aws")
    space = Key("", "runtime-extension-pergola-aws")
    async with extension_controllers(operator, tmp_path / "cache"):
        await garden.create_garden(IN_AWS)
        # No node runs the pods of the extension.
        await garden.runtime.create(own_extension("pergola-aws", chart, {"replicas": 0}))

        found = template(bare_garden(IN_AWS))
        await wait_for_extensions(garden.runtime, found, 60)

        required = await garden.condition("pergola-aws", "RequiredRuntime", "True")
        assert required["message"] == (
            "Extension required for kinds [BackupBucket BackupEntry DNSRecord]"
        )
        workload = await garden.runtime.get(WORKLOAD, Key(space.name, "provider-aws"))
        [container] = map_at(workload, "spec", "template", "spec")["containers"]
        assert "--extension-classes=garden" in container["args"]
        role = await garden.runtime.get(ROLE, Key("garden", "extension-provider-aws-garden"))
        assert role["rules"][0]["resources"] == ["secrets"]
        labels = labels_of(await garden.runtime.get(NAMESPACE, space))
        assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
        await garden.condition("pergola-aws", "RuntimeHealthy", "True")

        await garden.delete_garden()
        await garden.condition("pergola-aws", "Installed", "False", "DeleteSuccessful")
        assert (
            await garden.runtime.find(ROLE, Key("garden", "extension-provider-aws-garden")) is None
        )
        assert await garden.runtime.find(NAMESPACE, space) is None
        await garden.runtime.delete(EXTENSION, name)
        await until_gone(garden.runtime, EXTENSION, name)


async def test_the_admission_of_an_extension_is_installed_in_both_clusters(
    garden: ExtensionGarden, operator: ClusterConfig, charts: Registry, tmp_path: Path
) -> None:
    own = await charts.push(ROOT / "charts" / "networking-calico")
    extension = own_extension("networking-calico", own, {})
    parts = {}
    for part, chart in (("runtimeCluster", "runtime"), ("virtualCluster", "virtual")):
        pushed = await charts.push(ROOT / "charts" / f"extension-admission-{chart}")
        parts[part] = {"helm": {"ociRepository": {"ref": str(pushed)}}}
    values = with_image(
        {"extension": "calico", "replicas": 0, "prometheusRule": {"enabled": False}}
    )
    extension["spec"]["deployment"]["admission"] = {**parts, "values": values}
    async with extension_controllers(operator, tmp_path / "cache"):
        await garden.create_garden()
        await garden.reconciled()
        await garden.runtime.create(extension)
        await garden.condition("networking-calico", "Installed", "True", "ReconcileSuccessful")
        await garden.condition("networking-calico", "AdmissionHealthy", "True")

    workload = await garden.runtime.get(WORKLOAD, Key("garden", "admission-calico"))
    [container] = map_at(workload, "spec", "template", "spec")["containers"]
    [variable] = container["env"]
    assert variable["name"] == "GARDEN_KUBECONFIG"
    owner = "extension-networking-calico"
    options = await garden.runtime.get(CONFIG_MAP, Key("garden", "admission-calico-options"))
    assert options["data"]["options.yaml"] == f"webhookConfigOwnerNamespace: {owner}\n"
    assert await garden.virtual.find(NAMESPACE, Key("", owner)) is not None
    role = await garden.virtual.get(ROLE, Key("garden", "extension-admission-calico"))
    assert role["rules"][0]["resources"] == ["leases"]


@pytest.mark.parametrize("name", ["networking-calico", "networking-cilium"])
async def test_a_network_extension_is_registered_with_a_chart_that_gardenlets_can_install(
    garden: ExtensionGarden,
    operator: ClusterConfig,
    charts: Registry,
    tmp_path: Path,
    name: str,
) -> None:
    chart = await charts.push(ROOT / "charts" / name)
    async with extension_controllers(operator, tmp_path / "cache"):
        await garden.create_garden()
        await garden.reconciled()
        await garden.runtime.create(own_extension(name, chart, {}))
        await garden.condition(name, "Installed", "True", "ReconcileSuccessful")
        await garden.condition(name, "RequiredRuntime", "False", "ExtensionNotRequired")
        described = await until(garden.virtual, DEPLOYMENT, Key("", name), lambda _: True)

    reference = ChartReference.of(map_at(described, "helm", "ociRepository"))
    pulled = await Puller(Blobs(tmp_path / "gardenlet")).pull(reference)
    release = Release(
        name=name,
        namespace=f"extension-{name}-abcde",
        values=map_at(described, "helm", "values"),
        kube_version=kubernetes_version(),
    )
    helm = await asyncio.to_thread(lambda: binaries.find((HELM,))[HELM])
    objects = await Helm(str(helm)).render(pulled, release)
    [workload] = [obj for obj in objects if obj["kind"] == "Deployment"]
    assert workload["metadata"]["namespace"] == release.namespace
