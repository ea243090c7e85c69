"""The first gardenlets of Seeds, with charts from a real registry (spec 21 §14).

The virtual cluster is also the second cluster for gardenlets.
"""

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest

from pergola.api.kinds import CLUSTER_ROLE, CONFIG_MAP, DEPLOYMENT, SECRET, SEED
from pergola.api.objects import GroupVersionKind, JsonObject, Key, annotations_of, map_at
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.charts import ChartReference
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.kube.kubeconfig import ClusterConfig, load, parse_cluster
from pergola.kube.yaml import parse
from pergola.manifests import manifest
from pergola.operator.gardenlet.bootstrap import token_id
from pergola.operator.gardenlet.names import GARDENLET, TARGET
from pergola.operator.gardenlet.unit import NAME
from pergola.sandbox import binaries
from pergola.sandbox.on_demand import GARDENLET_CHART
from pergola.sandbox.registry import Registry
from pergola.testing.waiting import noticed, until, until_gone
from tests.support.chart_files import write_chart
from tests.support.extension_garden import ExtensionGarden
from tests.support.failing_conditions import failing_conditions
from tests.support.gardenlets import (
    VERSION,
    Writers,
    gardenlet,
    gardenlet_controllers,
    publish_address,
    registered,
    seed,
)

DEPLOYED: Final = Key("garden", "gardenlet")
BOOTSTRAP: Final = Key("garden", "gardenlet-kubeconfig-bootstrap")
ACCESS: Final = Key("garden", "seed-access")
WAITING: Final = "Waiting for seed registration"
OPERATION: Final = "gardener.cloud/operation"
# The objects that the operator reads from the chart of gardenlet.
TEMPLATE: Final = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: gardenlet-config}
data:
  config.yaml: {{ .Values.config | toYaml | quote }}
---
{{- with .Values.config.gardenClientConnection.bootstrapKubeconfig }}
apiVersion: v1
kind: Secret
metadata: {name: {{ .name }}, namespace: {{ .namespace }}}
data: {kubeconfig: {{ .kubeconfig | b64enc }}}
{{- end }}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: gardenlet, namespace: {{ .Release.Namespace }}}
spec:
  replicas: 0
  selector: {matchLabels: {app: gardenlet}}
  template:
    metadata:
      labels: {{ merge (dict "app" "gardenlet") (.Values.podLabels | default dict) | toJson }}
      annotations: {{ .Values.podAnnotations | default dict | toJson }}
    spec:
      containers:
      - {name: gardenlet, image: "{{ .Values.image.repository }}:{{ .Values.image.tag }}"}
      volumes: [{name: gardenlet-config, configMap: {name: gardenlet-config}}]
"""
LEFT: Final = (
    (DEPLOYMENT, DEPLOYED),
    (CONFIG_MAP, Key("garden", "gardenlet-config")),
    (SECRET, BOOTSTRAP),
)


@pytest.fixture
async def chart(charts: Registry, tmp_path: Path) -> ChartReference:
    """Push a small chart to a registry, and return its reference."""
    templates = {"all.yaml": TEMPLATE}
    return await charts.push(write_chart(tmp_path, "gardenlet", templates))


@pytest.fixture
def virtual(sandboxes: Any) -> ClusterConfig:
    """Return the administrator's access to the virtual cluster."""
    return load(sandboxes.virtual.kubeconfig)


@pytest.fixture
def kubeconfig(sandboxes: Any) -> str:
    """Return the kubeconfig of the virtual cluster."""
    path: Path = sandboxes.virtual.kubeconfig
    return path.read_text()


@pytest.fixture
async def writers(
    garden: ExtensionGarden,
    operator: ClusterConfig,
    virtual: ClusterConfig,
    kubeconfig: str,
    tmp_path: Path,
) -> AsyncIterator[Writers]:
    """Yield the recorded writes of the controllers, which have the permissions of the chart."""
    await publish_address(garden, kubeconfig)
    async with gardenlet_controllers(operator, virtual, tmp_path / "cache") as found:
        yield found
    for client in (garden.runtime, garden.virtual):
        for gvk, key in LEFT:
            await remove(client, gvk, key)


async def remove(client: Client, gvk: GroupVersionKind, key: Key) -> None:
    with suppress(NotFound):
        await client.delete(gvk, key)
        await until_gone(client, gvk, key)


async def create_access(garden: ExtensionGarden, kubeconfig: str) -> None:
    """Write the Secret that `spec.kubeconfigSecretRef` of a Gardenlet names."""
    data = {"kubeconfig": base64.b64encode(kubeconfig.encode()).decode()}
    obj = manifest("v1", "Secret", ACCESS.name, namespace=ACCESS.namespace, data=data)
    await garden.virtual.apply(obj, manager="test", force=True)


async def config(client: Client) -> JsonObject:
    """Return the configuration of the gardenlet in a cluster."""
    found = await client.get(CONFIG_MAP, Key("garden", "gardenlet-config"))
    value = parse(found["data"]["config.yaml"])
    assert isinstance(value, dict)
    return value


async def annotate(client: Client, key: Key, operation: str) -> None:
    patch = {"metadata": {"annotations": {OPERATION: operation}}}
    await client.patch(GARDENLET, key, patch)


# Must hold


async def test_a_gardenlet_without_a_seed_is_deployed_until_the_seed_is_registered(
    garden: ExtensionGarden, kubeconfig: str, writers: Writers, chart: ChartReference
) -> None:
    """After that, the condition is True, and the Secret with the kubeconfig does not exist."""
    await create_access(garden, kubeconfig)
    reference = {"name": ACCESS.name}
    await garden.virtual.create(gardenlet("one", chart, kubeconfigSecretRef=reference))

    waiting = await registered(garden.virtual, "one", "Progressing", holds=WAITING)
    assert waiting["status"]["observedGeneration"] == waiting["metadata"]["generation"]
    await noticed()
    assert failing_conditions(writers.metrics) == {("Gardenlet", "one", "SeedRegistered")}
    found = await config(garden.virtual)
    assert found["seedConfig"]["metadata"]["name"] == "one"
    bootstrap = await garden.virtual.get(SECRET, BOOTSTRAP)
    token = await garden.virtual.get(
        SECRET, Key("kube-system", f"bootstrap-token-{token_id(Key('garden', 'one'))}")
    )
    secret = base64.b64decode(token["data"]["token-secret"])
    assert secret in base64.b64decode(bootstrap["data"]["kubeconfig"])
    assert await garden.runtime.find(DEPLOYMENT, DEPLOYED) is None

    await garden.virtual.create(seed("one"))
    done = await registered(garden.virtual, "one", "True")
    (condition,) = done["status"]["conditions"]
    assert condition["message"] == 'Gardenlet deployed and Seed "one" registered'
    await noticed()
    assert failing_conditions(writers.metrics) == set()
    assert "kubeconfigSecretRef" not in done["spec"]
    assert await garden.virtual.find(SECRET, ACCESS) is None


async def test_the_gardenlets_of_a_virtual_cluster_have_no_series_after_it(
    garden: ExtensionGarden,
    operator: ClusterConfig,
    virtual: ClusterConfig,
    kubeconfig: str,
    tmp_path: Path,
) -> None:
    await publish_address(garden, kubeconfig)
    async with gardenlet_controllers(operator, virtual, tmp_path / "cache") as writers:
        await garden.virtual.create(gardenlet("one", "registry.invalid/no/chart:v1"))
        await registered(garden.virtual, "one", "False")
        await noticed()
        assert failing_conditions(writers.metrics) == {("Gardenlet", "one", "SeedRegistered")}
    assert failing_conditions(writers.metrics) == set()


async def test_a_gardenlet_with_a_seed_is_only_deployed_if_forced(
    garden: ExtensionGarden, writers: Writers, chart: ChartReference
) -> None:
    """A forced deployment happens once, and removes its annotation."""
    key = Key("garden", "one")
    await garden.virtual.create(seed("one"))
    await garden.virtual.create(gardenlet("one", chart))
    await registered(garden.virtual, "one", "True")
    await garden.virtual.patch(GARDENLET, key, {"spec": {"deployment": {"replicaCount": 3}}})
    # The other Gardenlet is reconciled after the change of the first one.
    await garden.virtual.create(seed("two"))
    await garden.virtual.create(gardenlet("two", chart))
    await registered(garden.virtual, "two", "True")
    assert writers.runtime.writes == []

    await annotate(garden.virtual, key, "force-redeploy")
    await until(garden.virtual, GARDENLET, key, lambda it: OPERATION not in annotations_of(it))
    await registered(garden.virtual, "one", "True")
    assert await garden.runtime.find(DEPLOYMENT, DEPLOYED) is not None
    assert writers.runtime.writes.count(f"apply Deployment {DEPLOYED}") == 1


async def test_the_gardenlet_of_another_seed_is_left_alone(
    garden: ExtensionGarden, writers: Writers, chart: ChartReference
) -> None:
    await garden.virtual.create(gardenlet("one", chart))
    await registered(garden.virtual, "one", "Progressing", holds=WAITING)
    before = list(writers.runtime.writes)
    await garden.virtual.create(gardenlet("two", chart))
    refused = await registered(garden.virtual, "two", "False", holds='the gardenlet of Seed "one"')
    (condition,) = refused["status"]["conditions"]
    assert '"two" cannot be deployed there' in condition["message"]
    assert writers.runtime.writes == before

    await garden.virtual.delete(GARDENLET, Key("garden", "one"))
    await until_gone(garden.virtual, GARDENLET, Key("garden", "one"))
    # The operator must not remove it: the other one is still refused.
    await annotate(garden.virtual, Key("garden", "two"), "force-redeploy")
    await registered(garden.virtual, "two", "False", holds='the gardenlet of Seed "one"')
    assert (await config(garden.runtime))["seedConfig"]["metadata"]["name"] == "one"
    assert writers.runtime.writes == before


# Beyond


async def test_a_removed_reference_never_leads_to_another_cluster(
    garden: ExtensionGarden, kubeconfig: str, writers: Writers, chart: ChartReference
) -> None:
    key = Key("garden", "one")
    await create_access(garden, kubeconfig)
    reference = {"name": ACCESS.name}
    await garden.virtual.create(gardenlet("one", chart, kubeconfigSecretRef=reference))
    await registered(garden.virtual, "one", "Progressing", holds=WAITING)

    await garden.virtual.patch(GARDENLET, key, {"spec": {"kubeconfigSecretRef": None}})
    refused = await registered(
        garden.virtual, "one", "False", holds="was deployed into the cluster"
    )
    assert "now leads to the runtime cluster" in refused["status"]["conditions"][0]["message"]
    assert writers.runtime.writes == []
    assert failures(writers) == 0, "nothing is gained by trying again"

    # A user can confirm the change of clusters.
    await garden.virtual.patch(GARDENLET, key, {"metadata": {"annotations": {TARGET: None}}})
    await registered(garden.virtual, "one", "Progressing", holds=WAITING)
    assert await garden.runtime.find(DEPLOYMENT, DEPLOYED) is not None


async def test_redeploying_an_unchanged_gardenlet_writes_nothing_to_its_cluster(
    garden: ExtensionGarden, writers: Writers, chart: ChartReference
) -> None:
    await garden.virtual.create(gardenlet("one", chart))
    await registered(garden.virtual, "one", "Progressing", holds=WAITING)
    first = list(writers.runtime.writes)
    key = Key("garden", "one")
    await annotate(garden.virtual, key, "force-redeploy")
    await until(garden.virtual, GARDENLET, key, lambda it: OPERATION not in annotations_of(it))
    assert writers.runtime.writes == first


async def test_a_bootstrap_token_replaces_an_expired_kubeconfig(
    garden: ExtensionGarden, writers: Writers, chart: ChartReference
) -> None:
    key, own = Key("garden", "one"), Key("garden", "gardenlet-kubeconfig")
    await garden.runtime.create(manifest("v1", "Secret", own.name, namespace=own.namespace))
    await garden.virtual.create(gardenlet("one", chart))
    await registered(garden.virtual, "one", "Progressing", holds=WAITING)
    assert await garden.runtime.find(SECRET, BOOTSTRAP) is None
    assert await garden.runtime.find(SECRET, own) is not None

    expired = {"clientCertificateExpirationTimestamp": "2020-01-01T00:00:00Z"}
    await garden.virtual.create(seed("one"))
    await garden.virtual.patch(SEED, Key("", "one"), {"status": expired}, subresource="status")
    await registered(garden.virtual, "one", "True")
    await annotate(garden.virtual, key, "force-redeploy")
    await until_gone(garden.runtime, SECRET, own)
    await until(garden.runtime, SECRET, BOOTSTRAP, lambda it: "kubeconfig" in it["data"])
    await registered(garden.virtual, "one", "True")


async def test_labelled_gardenlets_get_the_chart_of_the_version_that_reconciled_the_garden(
    garden: ExtensionGarden, writers: Writers, chart: ChartReference
) -> None:
    label = {"operator.gardener.cloud/auto-update-gardenlet-helm-chart-ref": "true"}
    for name, labels in (("one", label), ("two", {})):
        await garden.virtual.create(seed(name))
        obj = gardenlet(name, chart)
        obj["metadata"]["labels"] = labels
        await garden.virtual.create(obj)
        await registered(garden.virtual, name, "True")
    await garden.create_garden()
    version = {"id": "a", "name": "a", "version": VERSION}
    await garden.runtime.patch(
        GARDEN, Key("", "minimal"), {"status": {"gardener": version}}, subresource="status"
    )
    await garden.reconciled("Processing")
    assert chart_in(await garden.virtual.get(GARDENLET, Key("garden", "one"))) == str(chart)
    await garden.reconciled()
    reference = f"gardener-project/releases/charts/gardener/gardenlet:{VERSION}"
    await until(
        garden.virtual,
        GARDENLET,
        Key("garden", "one"),
        lambda it: chart_in(it).endswith(reference),
    )
    assert chart_in(await garden.virtual.get(GARDENLET, Key("garden", "two"))) == str(chart)
    assert writers.runtime.writes == []


def chart_in(obj: JsonObject) -> str:
    return str(map_at(obj, "spec", "deployment", "helm", "ociRepository")["ref"])


# Faults: one sentence each, and the gardenlet is deployed once they are fixed


async def test_every_fault_is_named_until_it_is_fixed(
    garden: ExtensionGarden,
    kubeconfig: str,
    writers: Writers,
    charts: Registry,
    chart: ChartReference,
    tmp_path: Path,
) -> None:
    virtual, key = garden.virtual, Key("garden", "one")
    broken = await charts.push(
        write_chart(tmp_path / "broken", "gardenlet", {"a.yaml": '{{ fail "no zones" }}'}), "2.0.0"
    )
    reference = {"name": ACCESS.name}
    missing = str(chart).partition("@")[0].replace("1.0.0", "9.9.9")
    await virtual.create(gardenlet("one", missing, kubeconfigSecretRef=reference))
    await registered(virtual, "one", "False", holds="Secret garden/seed-access, which spec.kube")
    await create_access(garden, "no kubeconfig")
    await registered(virtual, "one", "False", holds="Secret garden/seed-access")
    server = parse_cluster(kubeconfig.encode(), "kubeconfig").server
    await create_access(garden, kubeconfig.replace(server, "https://127.0.0.1:1"))
    await registered(virtual, "one", "False", holds="make the cluster reachable")
    await create_access(garden, kubeconfig)
    await registered(virtual, "one", "False", holds="9.9.9")
    await set_chart(virtual, key, "127.0.0.1:1/charts/gardenlet:1.0.0")
    await registered(virtual, "one", "False", holds="127.0.0.1:1/charts/gardenlet")
    await set_chart(virtual, key, str(broken))
    await registered(virtual, "one", "False", holds="no zones")
    assert await virtual.find(DEPLOYMENT, DEPLOYED) is None
    assert annotations_of(await virtual.get(GARDENLET, key)).get(TARGET) is None
    await set_chart(virtual, key, str(chart))
    await registered(virtual, "one", "Progressing", holds=WAITING)
    assert await virtual.find(DEPLOYMENT, DEPLOYED) is not None
    assert writers.runtime.writes == []


def failures(writers: Writers) -> float | None:
    labels = {"controller": NAME}
    return writers.metrics.registry.get_sample_value(
        "controller_runtime_reconcile_errors_total", labels
    )


async def set_chart(client: Client, key: Key, reference: str) -> None:
    helm = {"ociRepository": {"ref": reference}}
    await client.patch(GARDENLET, key, {"spec": {"deployment": {"helm": helm}}})


# The chart of the original


async def test_the_operator_may_deploy_the_chart_of_gardenlet_into_the_runtime_cluster(
    garden: ExtensionGarden, writers: Writers, charts: Registry
) -> None:
    folder = await asyncio.to_thread(lambda: binaries.find((GARDENLET_CHART,))[GARDENLET_CHART])
    original = await charts.push(folder, "1.150.0")
    reference = {"apiVersion": "v1", "kind": "Secret", "namespace": "garden", "name": "b"}
    settings = {"seedConfig": {"spec": {"backup": {"credentialsRef": reference}}}}
    await garden.virtual.create(gardenlet("one", original, config=settings))
    await registered(garden.virtual, "one", "False", holds="Secret garden/b, which spec.config")
    await garden.virtual.create(manifest("v1", "Secret", "b", namespace="garden"))
    await registered(garden.virtual, "one", "Progressing", holds=WAITING)

    deployment = await garden.runtime.get(DEPLOYMENT, DEPLOYED)
    pod = map_at(deployment, "spec", "template", "metadata")
    label = "networking.resources.gardener.cloud/to-virtual-garden-kube-apiserver-tcp-443"
    assert pod["labels"][label] == "allowed"
    assert pod["annotations"]["checksum/seed-backup-secret"].startswith("b-")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"].endswith("/gardenlet:v1.150.0")
    role = Key("", "gardener.cloud:system:gardenlet")
    assert await garden.runtime.find(CLUSTER_ROLE, role) is not None
    # The next run finds the Seed of this gardenlet in the configuration rendered by the chart.
    await garden.virtual.create(gardenlet("two", original))
    await registered(garden.virtual, "two", "False", holds='the gardenlet of Seed "one"')
    await garden.virtual.create(seed("one"))
    await registered(garden.virtual, "one", "True")
