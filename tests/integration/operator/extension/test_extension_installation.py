"""Extensions of a Garden on real API servers, with charts from a real registry (spec 21 §13)."""

import base64
import re
from pathlib import Path
from typing import Any, Final

import orjson

from pergola.admission.configurations import VALIDATING
from pergola.api.kinds import CONFIG_MAP, NAMESPACE, SECRET
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    annotations_of,
    finalizers_of,
    labels_of,
    map_at,
)
from pergola.api.operator_v1alpha1 import EXTENSION
from pergola.api.operator_v1alpha1.extension import REQUIRED_RUNTIME
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.charts import ChartReference
from pergola.extension_api.kinds import BACKUP_BUCKET, DNS_RECORD
from pergola.extension_api.kinds import EXTENSION as USED
from pergola.kube.client import Client
from pergola.kube.kubeconfig import ClusterConfig
from pergola.manifests import manifest
from pergola.operator.conditions import Conditions
from pergola.operator.extension.installations import INSTALLATION, REGISTRATION
from pergola.operator.extension.required_runtime import KINDS, RequiredRuntime, type_of
from pergola.runtime.caching.cache import Cache
from pergola.runtime.clock import SystemClock
from pergola.sandbox.registry import PASSWORD, USER, Registry, registry
from pergola.testing.waiting import until, until_gone
from tests.support.care_site import template
from tests.support.chart_files import write_chart
from tests.support.documented.symptoms import symptom
from tests.support.extension_garden import (
    DEPLOYMENT,
    GENERIC,
    ExtensionGarden,
    extension_controllers,
)

WORKLOAD: Final = GroupVersionKind("apps", "v1", "Deployment")
NAME: Final = Key("", "dns")
WITH_BACKUP: Final[dict[str, Any]] = {
    "spec.runtimeCluster.provider.region": "one",
    "spec.virtualCluster.etcd.main.backup": {
        "provider": "local",
        "secretRef": {"name": "backup"},
    },
}
ADMISSION: Final = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: admission, namespace: garden}
spec:
  replicas: 0
  selector: {matchLabels: {app: admission}}
  template:
    metadata: {labels: {app: admission}}
    spec:
      priorityClassName: {{ .Values.gardener.runtimeCluster.priorityClassName }}
      containers: [{name: admission, image: "registry.example/admission:1"}]
"""


def extension(chart: ChartReference, **deployment: Any) -> JsonObject:
    """Return an Extension for backups, as users write it."""
    described = {"extension": {"helm": helm(chart)}, **deployment}
    spec = {
        "resources": [
            {"kind": "BackupBucket", "type": "local", "clusterCompatibility": ["garden"]},
            {"kind": "DNSRecord", "type": "local", "autoEnable": []},
        ],
        "deployment": described,
    }
    return manifest(EXTENSION.api_version, EXTENSION.kind, NAME.name, spec=spec)


def helm(chart: ChartReference, **fields: Any) -> JsonObject:
    return {"ociRepository": {"ref": str(chart), **fields}}


async def values_in(garden: ExtensionGarden, key: Key) -> JsonObject:
    """Return the values that were used to render a chart in the runtime cluster."""
    found = await until(garden.runtime, CONFIG_MAP, key, lambda _: True)
    values: JsonObject = orjson.loads(found["data"]["values"])
    return values


async def bucket(garden: ExtensionGarden) -> None:
    spec = {"class": "garden", "type": "local", "region": "one"}
    spec["secretRef"] = {"name": "backup", "namespace": "garden"}  # type: ignore[assignment]
    await garden.runtime.create(
        manifest(BACKUP_BUCKET.gvk.api_version, "BackupBucket", "bucket", spec=spec)
    )


async def test_extensions_are_installed_once_a_garden_exists(
    garden: ExtensionGarden, operator: ClusterConfig, charts: Registry, tmp_path: Path
) -> None:
    chart = await charts.push(write_chart(tmp_path))
    virtual = {"virtualCluster": {"helm": helm(chart)}, "values": {"a": 1}}
    async with extension_controllers(operator, tmp_path / "cache"):
        await garden.runtime.create(extension(chart, admission=virtual))
        found = await garden.condition("dns", "Installed", "False", "NoGardenFound")
        assert found["message"] == "No garden found"
        live = await garden.runtime.get(EXTENSION, NAME)
        assert finalizers_of(live) == []
        namespace = Key("", "runtime-extension-dns")
        assert await garden.runtime.find(NAMESPACE, namespace) is None

        await garden.create_garden()
        failed = await garden.condition("dns", "Installed", "False", "ReconcileFailed")
        assert re.fullmatch(symptom("An Extension waits for the Garden"), failed["message"])
        await garden.reconciled()

        installed = await garden.condition("dns", "Installed", "True", "ReconcileSuccessful")
        assert installed["message"] == "Extension has been reconciled successfully"
        registered = await until(garden.virtual, REGISTRATION, NAME, lambda _: True)
        resources = registered["spec"]["resources"]
        assert resources == [
            {"kind": "BackupBucket", "type": "local"},
            {"kind": "DNSRecord", "type": "local"},
        ]
        assert registered["spec"]["deployment"] == {"deploymentRefs": [{"name": "dns"}]}
        described = await until(garden.virtual, DEPLOYMENT, NAME, lambda _: True)
        assert described["helm"] == helm(chart)
        admitted = await garden.virtual.get(CONFIG_MAP, Key("extension-dns", "dns"))
        account = {"name": "extension-admission-dns", "namespace": "kube-system"}
        assert orjson.loads(admitted["data"]["values"]) == {
            "a": 1,
            "gardener": {"virtualCluster": {"enabled": True, "serviceAccount": account}},
        }
        name_of_extension = "extensions.operator.gardener.cloud/name"
        space = await garden.virtual.get(NAMESPACE, Key("", "extension-dns"))
        assert annotations_of(space)[name_of_extension] == "dns"
        live = await garden.runtime.get(EXTENSION, NAME)
        assert finalizers_of(live) == ["gardener.cloud/operator"]
        assert live["status"]["observedGeneration"] == 1
        required = await garden.condition("dns", "RequiredRuntime", "False", "ExtensionNotRequired")
        assert required["message"] == "Extension not required for any kind"
        assert await garden.runtime.find(NAMESPACE, namespace) is None


async def test_a_required_extension_runs_in_the_runtime_cluster_until_its_last_object_is_deleted(
    garden: ExtensionGarden, operator: ClusterConfig, charts: Registry, tmp_path: Path
) -> None:
    chart = await charts.push(write_chart(tmp_path))
    resource = Key("garden", "extension-dns-garden")
    async with extension_controllers(operator, tmp_path / "cache"):
        await garden.create_garden(WITH_BACKUP)
        await garden.runtime.create(extension(chart))

        required = await garden.condition("dns", "RequiredRuntime", "True", "ExtensionRequired")
        assert required["message"] == "Extension required for kinds [BackupBucket]"
        await garden.condition("dns", "RuntimeHealthy", "True", "ExtensionComponentsRunning")
        installed = await garden.runtime.get(MANAGED_RESOURCE, resource)
        assert installed["spec"]["class"] == "seed"
        space = await garden.runtime.get(NAMESPACE, Key("", "runtime-extension-dns"))
        labels = labels_of(space)
        assert labels["gardener.cloud/role"] == "extension"
        assert labels["high-availability-config.resources.gardener.cloud/consider"] == "true"
        assert labels["networking.gardener.cloud/access-target-apiserver"] == "allowed"
        values = await values_in(garden, Key("runtime-extension-dns", "dns"))
        runtime = {"enabled": "true", "priorityClassName": "gardener-garden-system-200"}
        assert values == {"gardener": {"runtimeCluster": runtime}}

        await garden.reconciled()
        await garden.condition("dns", "Installed", "True", "ReconcileSuccessful")
        await bucket(garden)
        await garden.delete_garden()

        still = await garden.condition("dns", "Installed", "True", "InstalledInRuntime")
        assert still["message"] == "Extension is still required in runtime cluster"
        assert await garden.virtual.find(REGISTRATION, NAME) is None
        assert await garden.runtime.find(MANAGED_RESOURCE, resource) is not None

        for name, place in (("own", "runtime-extension-dns"), ("other", "runtime-extension-x")):
            await garden.runtime.create(webhook_of(name, place))
        await garden.runtime.delete(BACKUP_BUCKET.gvk, Key("", "bucket"))
        gone = await garden.condition("dns", "Installed", "False", "DeleteSuccessful")
        assert await garden.runtime.find(VALIDATING, Key("", "own")) is None
        await garden.runtime.delete(VALIDATING, Key("", "other"))
        assert gone["message"] == "Extension has been deleted successfully"
        assert await garden.runtime.find(MANAGED_RESOURCE, resource) is None
        assert await garden.runtime.find(NAMESPACE, Key("", "runtime-extension-dns")) is None
        assert await garden.runtime.find(EXTENSION, NAME) is not None
        await garden.without_condition("dns", "RuntimeHealthy")

        await garden.garden_is_gone()
        await garden.runtime.delete(EXTENSION, NAME)
        await until_gone(garden.runtime, EXTENSION, NAME)


def webhook_of(name: str, namespace: str) -> JsonObject:
    """Return the registration of a webhook whose server is in a namespace."""
    rule = {
        "apiGroups": ["example.org"],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["any"],
    }
    entry = {
        "name": "any.example.org",
        "rules": [rule],
        "clientConfig": {"service": {"name": "any", "namespace": namespace}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    return manifest(VALIDATING.api_version, VALIDATING.kind, name, webhooks=[entry])


class Behind(Cache[str]):
    """A cache that has not delivered any existing object."""

    @property
    def is_synced(self) -> bool:
        """Claim to be synchronized, as after an empty first list."""
        return True


async def test_an_object_that_no_watch_has_delivered_keeps_its_extension(
    garden: ExtensionGarden, operator: ClusterConfig
) -> None:
    """Without the extension, nothing would delete the object."""
    async with Client.connect(operator) as client:
        types = {
            kind.kind: Behind(
                client,
                kind.gvk,
                type_of,
                namespace="garden" if kind in (DNS_RECORD, USED) else None,
            )
            for kind in KINDS
        }
        conditions = Conditions(client, EXTENSION, SystemClock())
        required = RequiredRuntime(client, types, template, conditions)
        await garden.runtime.create(extension(ChartReference.parse("registry.example/dns:1")))
        await conditions.patch(NAME, REQUIRED_RUNTIME, "True", "ExtensionRequired", "Before.")
        await bucket(garden)

        await required.reconcile(NAME)
        found = await garden.condition("dns", REQUIRED_RUNTIME, "True")
        assert found["message"] == "Extension required for kinds [BackupBucket]"

        await garden.runtime.delete(BACKUP_BUCKET.gvk, Key("", "bucket"))
        await required.reconcile(NAME)
        await garden.condition("dns", REQUIRED_RUNTIME, "False", "ExtensionNotRequired")


async def test_a_changed_pull_secret_reaches_both_the_registration_and_the_runtime_chart(
    garden: ExtensionGarden, operator: ClusterConfig, tmp_path: Path
) -> None:
    (tmp_path / "private").mkdir()
    async with (
        registry(tmp_path / "private", requires_password=True) as private,
        extension_controllers(operator, tmp_path / "cache"),
    ):
        chart = await private.push(write_chart(tmp_path))
        await pull_secret(garden, chart, "wrong")
        described = {"extension": {"helm": helm(chart, pullSecretRef={"name": "pull"})}}
        await garden.create_garden(WITH_BACKUP)
        await garden.reconciled()
        await garden.runtime.create(extension(chart, **described))
        await garden.condition(
            "dns",
            "Installed",
            "False",
            "ReconcileFailed",
            holds="the registry refuses the credentials",
        )

        await pull_secret(garden, chart, PASSWORD)

        await garden.condition("dns", "Installed", "True", "ReconcileSuccessful")
        await values_in(garden, Key("runtime-extension-dns", "dns"))
        source = await garden.runtime.get(SECRET, Key("garden", "pull"))
        copy = await until(garden.virtual, SECRET, Key("garden", "dns-pull"), lambda _: True)
        assert copy["data"] == source["data"]
        assert copy["type"] == "kubernetes.io/dockerconfigjson"
        assert labels_of(copy)["gardener.cloud/role"] == "helm-pull-secret"
        registered = await until(garden.virtual, DEPLOYMENT, NAME, lambda _: True)
        assert registered["helm"]["ociRepository"]["pullSecretRef"] == {"name": "dns-pull"}

        await pull_secret(garden, chart, PASSWORD, other="more")
        source = await garden.runtime.get(SECRET, Key("garden", "pull"))
        await until(
            garden.virtual, SECRET, Key("garden", "dns-pull"), lambda s: s["data"] == source["data"]
        )


async def pull_secret(
    garden: ExtensionGarden, chart: ChartReference, password: str, other: str = ""
) -> None:
    entry = {"username": USER, "password": password}
    config = orjson.dumps({"auths": {chart.registry: entry, "other.example": {"auth": other}}})
    await garden.secret(
        "pull",
        {".dockerconfigjson": config.decode()},
        role="helm-pull-secret",
        kind="kubernetes.io/dockerconfigjson",
    )


async def test_values_contain_only_the_data_of_released_objects(
    garden: ExtensionGarden, operator: ClusterConfig, charts: Registry, tmp_path: Path
) -> None:
    chart = await charts.push(write_chart(tmp_path))
    expression = "user {{ .resources.login.data.password }}"
    described = {
        "extension": {
            "helm": helm(chart),
            "runtimeClusterValues": {"login": expression},
            "values": {"login": expression},
        },
        "resources": [
            {
                "name": "login",
                "resourceRef": {"apiVersion": "v1", "kind": "Secret", "name": "login"},
            }
        ],
    }
    async with extension_controllers(operator, tmp_path / "cache"):
        await garden.create_garden(WITH_BACKUP)
        await garden.reconciled()
        await garden.runtime.create(extension(chart, **described))
        await garden.condition(
            "dns", "Installed", "False", "ReconcileFailed", holds="Secret garden/login"
        )
        await garden.secret("login", {"password": "s3cr3t"})
        await garden.condition(
            "dns",
            "Installed",
            "False",
            holds="lacks the label gardener.cloud/role=resource-reference",
        )
        await garden.secret("login", {"other": "s3cr3t"}, role="resource-reference")
        await garden.condition("dns", "Installed", "False", holds='has no key "password"')
        for key in ("extension-dns-garden", "extension-registration-dns"):
            assert await garden.runtime.find(MANAGED_RESOURCE, Key("garden", key)) is None
        assert await garden.runtime.find(NAMESPACE, Key("", "runtime-extension-dns")) is None

        await garden.secret("login", {"password": "s3cr3t"}, role="resource-reference")

        await garden.condition("dns", "Installed", "True", "ReconcileSuccessful")
        values = await values_in(garden, Key("runtime-extension-dns", "dns"))
        assert values["login"] == "user s3cr3t"
        copy = await until(garden.virtual, SECRET, Key("garden", "dns-login"), lambda _: True)
        assert base64.b64decode(copy["data"]["password"]) == b"s3cr3t"
        registered = await until(garden.virtual, DEPLOYMENT, NAME, lambda _: True)
        assert registered["helm"]["values"] == {"login": expression}
        reference = {"apiVersion": "v1", "kind": "Secret", "name": "dns-login"}
        assert registered["resources"] == [{"name": "login", "resourceRef": reference}]


async def test_an_admission_with_one_part_is_healthy_and_is_removed_with_it_from_the_spec(
    garden: ExtensionGarden, operator: ClusterConfig, charts: Registry, tmp_path: Path
) -> None:
    chart = await charts.push(write_chart(tmp_path))
    admission = await charts.push(write_chart(tmp_path, "admission", {"a.yaml": ADMISSION}))
    installation = manifest(
        INSTALLATION.api_version,
        INSTALLATION.kind,
        "dns-one",
        spec={"registrationRef": {"name": "dns"}, "seedRef": {"name": "one"}},
    )
    await garden.virtual.create(installation)
    before = await garden.virtual.get(INSTALLATION, Key("", "dns-one"))
    async with extension_controllers(operator, tmp_path / "cache"):
        await garden.create_garden()
        await garden.reconciled()
        part = {"runtimeCluster": {"helm": helm(admission)}}
        await garden.runtime.create(extension(chart, admission=part))

        healthy = await garden.condition("dns", "AdmissionHealthy", "True")
        assert healthy["reason"] == "ExtensionAdmissionComponentsRunning"
        workload = await garden.runtime.get(WORKLOAD, Key("garden", "admission"))
        pod = map_at(workload, "spec", "template", "spec")
        [container] = pod["containers"]
        path = "/var/run/secrets/gardener.cloud/shoot/generic-kubeconfig"
        assert container["env"] == [{"name": "GARDEN_KUBECONFIG", "value": f"{path}/kubeconfig"}]
        assert container["volumeMounts"][0]["mountPath"] == path
        [generic, token] = pod["volumes"][0]["projected"]["sources"]
        assert generic["secret"]["name"] == GENERIC
        access = Key("garden", "shoot-access-extension-admission-dns")
        assert token["secret"]["name"] == access.name
        assert pod["priorityClassName"] == "gardener-garden-system-400"
        assert (
            labels_of(await garden.runtime.get(SECRET, access))["resources.gardener.cloud/purpose"]
            == "token-requestor"
        )
        resource = Key("garden", "extension-admission-runtime-dns")
        described = await garden.runtime.get(MANAGED_RESOURCE, resource)
        assert labels_of(described)["origin"] == "gardener-operator"
        await garden.condition("dns", "Installed", "True")

        without = {"spec": {"deployment": {"admission": None}}}
        await garden.runtime.patch(EXTENSION, NAME, without)

        await garden.without_condition("dns", "AdmissionHealthy")
        await until_gone(garden.runtime, MANAGED_RESOURCE, resource)
        await until_gone(garden.runtime, SECRET, access)
        assert await garden.virtual.get(INSTALLATION, Key("", "dns-one")) == before


async def test_a_restarted_operator_writes_nothing(
    garden: ExtensionGarden, operator: ClusterConfig, charts: Registry, tmp_path: Path
) -> None:
    chart = await charts.push(write_chart(tmp_path))
    part = {"virtualCluster": {"helm": helm(chart)}, "runtimeCluster": {"helm": helm(chart)}}
    async with extension_controllers(operator, tmp_path / "cache"):
        await garden.create_garden(WITH_BACKUP)
        await garden.reconciled()
        await garden.runtime.create(extension(chart, admission=part))
        await garden.condition("dns", "Installed", "True")
        await garden.condition("dns", "AdmissionHealthy", "True")
        await garden.condition("dns", "RuntimeHealthy", "True")
        await garden.condition("dns", "RequiredVirtual", "False")
    async with extension_controllers(operator, tmp_path / "cache") as client:
        marker = Key("", "other")
        other = {**extension(chart), "metadata": {"name": marker.name}}
        await garden.runtime.create(other)
        await garden.condition(marker.name, "Installed", "True")
        writes = [each for each in client.taken() if "Event" not in each]
        assert [each for each in writes if "other" not in each] == []


async def test_a_deleted_managed_resource_is_restored(
    garden: ExtensionGarden, operator: ClusterConfig, charts: Registry, tmp_path: Path
) -> None:
    chart = await charts.push(write_chart(tmp_path))
    resource = Key("garden", "extension-registration-dns")
    async with extension_controllers(operator, tmp_path / "cache"):
        await garden.create_garden()
        await garden.reconciled()
        await garden.runtime.create(extension(chart))
        await garden.condition("dns", "Installed", "True")
        before = await garden.runtime.get(MANAGED_RESOURCE, resource)

        await garden.runtime.delete(MANAGED_RESOURCE, resource)

        uid = before["metadata"]["uid"]
        await until(
            garden.runtime, MANAGED_RESOURCE, resource, lambda obj: obj["metadata"]["uid"] != uid
        )
