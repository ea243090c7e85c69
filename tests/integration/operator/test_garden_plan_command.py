"""`pergola garden plan` against a real API server that has no Garden yet."""

import asyncio
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest

from pergola.api.kinds import CONFIG_MAP, CRD, DEPLOYMENT, SECRET
from pergola.api.objects import GroupVersionKind, JsonObject, Key, finalizers_of, name_of
from pergola.api.operator_config import API_VERSION, KIND
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.cli.garden.operator_settings import settings_in
from pergola.kube.client import Client
from pergola.kube.yaml import dump
from pergola.operator.run.build import IDENTITY
from pergola.sandbox import Sandbox
from pergola.secrets_manager import CertificateAuthority
from pergola.secrets_manager.configs import canonical
from pergola.secrets_manager.managed import checksum, object_name
from tests.support.garden_world import example
from tests.support.gardens import SERVER, VIRTUAL, with_values
from tests.support.operator_chart import OperatorChart

PERGOLA = Path(sys.executable).parent / "pergola"
CHART = Path(__file__).parents[3] / "charts" / "operator"
KINDS = (CONFIG_MAP, CRD, DEPLOYMENT, SECRET)


@dataclass
class Answer:
    """The output and the exit code of the command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return orjson.loads(self.out)


class Planning:
    """The command, and a folder for manifests."""

    def __init__(self, folder: Path, sandbox: Sandbox) -> None:
        self._file = folder / "garden.yaml"
        self._kubeconfig = sandbox.kubeconfig

    async def of(self, garden: JsonObject, *arguments: str) -> Answer:
        """Return the answer about a manifest."""
        self._file.write_text(dump(garden))
        return await self.answer("-f", str(self._file), *arguments)

    async def answer(self, *arguments: str) -> Answer:
        process = await asyncio.create_subprocess_exec(
            PERGOLA,
            *("garden", "plan", "--kubeconfig", str(self._kubeconfig), *arguments),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate()
        return Answer(process.returncode or 0, out.decode(), err.decode())


@pytest.fixture
def planning(tmp_path: Path, garden_sandbox: Sandbox) -> Planning:
    return Planning(tmp_path, garden_sandbox)


async def objects(client: Client) -> set[str]:
    return {f"{kind.kind} {name_of(obj)}" for kind in KINDS for obj in await client.list(kind)}


async def test_a_new_garden_is_planned_from_its_manifest_without_creating_anything(
    planning: Planning, runtime: Client
) -> None:
    before = await objects(runtime)
    answer = await planning.of(example(), "-o", "json")
    assert answer.code == 2
    assert await objects(runtime) == before

    plan = answer.json
    assert (plan["garden"], plan["changed"], plan["problem"]) == ("local", True, "")
    tasks = {task["name"]: task for task in plan["tasks"]}
    server = tasks["Deploying Kubernetes API Server"]
    assert "Waiting until main and event ETCDs report readiness" in server["after"]
    assert {(each["verb"], each["kind"], each["name"]) for each in server["changes"]} >= {
        ("create", "Deployment", "virtual-garden-kube-apiserver")
    }
    roles = tasks["Deploying virtual system resources"]["changes"]
    assert {"virtual"} == {each["cluster"] for each in roles if each["managedResource"]}
    assert tasks["Deploying pvc-autoscaler"]["fate"] == "is skipped"
    connection = tasks["Initializing connection to virtual garden cluster"]
    assert connection["fate"] == "cannot be foreseen"
    credentials = [each["name"] for each in tasks["Generating credentials"]["changes"]]
    assert {"ca-*", "kube-apiserver-etcd-encryption-key-*"} <= {*credentials}
    assert "kube-apiserver-*" in [each["name"] for each in server["changes"]]


async def test_the_live_garden_is_planned_by_default_and_not_changed(
    planning: Planning, runtime: Client
) -> None:
    await runtime.create(example())
    answer = await planning.answer()
    assert answer.code == 2
    assert "  Preparing the Garden" in answer.out.splitlines()
    assert answer.out.splitlines()[-1].endswith("cannot be foreseen")
    assert finalizers_of(await runtime.get(GARDEN, Key("", "local"))) == []


@pytest.mark.soak("commands")
async def test_missing_references_are_listed_with_their_fields(
    planning: Planning, tmp_path: Path
) -> None:
    config = tmp_path / "operator.yaml"
    config.write_text(dump({"apiVersion": API_VERSION, "kind": KIND}))
    field = f"{SERVER}.auditWebhook.kubeconfigSecretName"
    given = {field: "audit", f"{SERVER}.auditConfig.auditPolicy.configMapRef.name": "policy"}
    policy: JsonObject = {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "rules": [{"level": "Metadata"}],
    }
    config_map: JsonObject = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "policy", "namespace": "garden"},
        "data": {"policy": dump(policy)},
    }
    items = [with_values(example(), given), config_map]
    listed: JsonObject = {"apiVersion": "v1", "kind": "List", "items": items}
    answer = await planning.of(listed, "-o", "json", "--config", str(config))
    assert answer.code == 2
    assert answer.json["configuration"] == f"file {config}"
    missing = {(each["kind"], each["name"], each["field"]) for each in answer.json["missing"]}
    assert ("Secret", "audit", field) in missing


@pytest.mark.soak("commands")
async def test_a_manifest_that_admission_would_refuse_is_not_planned(planning: Planning) -> None:
    answer = await planning.of(with_values(example(), {f"{VIRTUAL}.kubernetes.version": "1.1.0"}))
    assert (answer.code, answer.out) == (1, "")
    assert f"Garden local: {VIRTUAL}.kubernetes.version" in answer.err


@pytest.fixture
async def installed(runtime: Client) -> AsyncIterator[OperatorChart]:
    """Create the Deployment and files of an operator without Vali and with another registry."""
    vector = "images: [{name: gardener-scheduler, repository: registry.test/scheduler, tag: v1}]"
    config = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "featureGates": {"RemoveVali": True, "VictoriaLogsBackend": True},
    }
    values: JsonObject = {
        "config": config,
        "image": {"repository": "a.example/own", "tag": "2"},
        "imageRegistry": "copies.example",
        "imageVectorOverwrite": vector,
    }
    chart = await asyncio.to_thread(OperatorChart.rendered, CHART, values)
    applied = [*chart.of("ConfigMap"), chart.one("Deployment")]
    for obj in applied:
        await runtime.apply(obj, manager="test", force=True)
    yield chart
    for obj in applied:
        await runtime.delete(GroupVersionKind.of(obj), Key.of(obj))


@pytest.mark.soak("commands")
async def test_a_plan_uses_the_settings_of_the_running_operator(
    planning: Planning, installed: OperatorChart
) -> None:
    plan = (await planning.of(example(), "-o", "json")).json
    file = name_of(installed.named("gardener-operator-configmap-"))
    deployment = "Deployment garden/gardener-operator"
    assert plan["configuration"] == f"ConfigMap garden/{file}, used by {deployment}"
    tasks = {task["name"]: task for task in plan["tasks"]}
    why = "the feature gates RemoveVali and VictoriaLogsBackend are on"
    assert tasks["Deploying Vali"]["why"] == why


async def test_a_plan_has_the_images_of_the_running_operator(
    runtime: Client, installed: OperatorChart
) -> None:
    images = (await settings_in(runtime)).images

    own = images.find("gardener-resource-manager", version="v1.150.0")
    assert own == installed.container["image"] == "copies.example/a.example/own:2"
    assert images.find("gardener-scheduler") == "registry.test/scheduler:v1"
    assert images.find("gardener-apiserver", version="v1.150.0").startswith("copies.example/")


@pytest.mark.soak("commands")
async def test_an_unknown_configuration_of_the_operator_is_reported(
    planning: Planning, runtime: Client, installed: OperatorChart
) -> None:
    key = Key.of(installed.named("gardener-operator-configmap-"))
    newer: JsonObject = {"apiVersion": API_VERSION, "kind": KIND, "featureGates": {"Newer": True}}
    await runtime.delete(CONFIG_MAP, key)
    metadata = {"namespace": key.namespace, "name": key.name}
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    await runtime.create({**kind, "metadata": metadata, "data": {"config.yaml": dump(newer)}})
    answer = await planning.of(example())
    assert answer.code == 1
    assert "featureGates" in answer.err
    assert answer.err.rstrip().endswith("give --config")


@pytest.mark.soak("commands")
async def test_both_graphs_are_drawn(planning: Planning) -> None:
    answer = await planning.of(example(), "--mermaid")
    assert answer.code == 2
    assert answer.err.splitlines()[-1] == (
        "configuration of the operator: the defaults, because "
        'deployments.apps "gardener-operator" not found'
    )
    assert answer.out.count("flowchart LR") == 2
    assert "would create" in answer.out


@pytest.mark.soak("commands")
async def test_a_cluster_without_a_garden_is_reported_in_one_sentence(planning: Planning) -> None:
    answer = await planning.answer()
    assert answer.code == 1
    assert answer.err.startswith("pergola: there is not one Garden in the cluster; it has none")


async def test_a_credential_that_cannot_be_read_ends_the_plan_with_one_sentence(
    planning: Planning, runtime: Client
) -> None:
    labels = {"name": "ca", "managed-by": "secrets-manager", "manager-identity": IDENTITY}
    name = object_name("ca", checksum(canonical(CertificateAuthority("ca").fingerprint())), "", "")
    secret: JsonObject = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": "garden", "labels": labels},
        "stringData": {"ca.crt": "garbage", "ca.key": "garbage"},
    }
    await runtime.create(secret)
    try:
        answer = await planning.of(example())
    finally:
        await runtime.delete(SECRET, Key("garden", name))
    assert (answer.code, answer.out) == (1, "")
    assert "Traceback" not in answer.err
    *_, line = answer.err.splitlines()
    assert line.startswith(f"pergola: Secret garden/{name} holds no usable certificate")
    assert line.endswith("delete it to generate a new one")
