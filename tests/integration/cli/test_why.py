"""`pergola why` explains objects with the functions that decide about them, and writes nothing."""

import asyncio
import re
import shlex
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from pergola.api import marks
from pergola.api.cluster_api import MANAGED_BY
from pergola.api.extensions_v1alpha1 import NETWORK
from pergola.api.infrastructure_v1alpha1 import INFRASTRUCTURE
from pergola.api.kinds import CONFIG_MAP, NAMESPACE, SECRET
from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.cli import app
from pergola.cli.cluster_options import ScopeOptions
from pergola.cli.why.command import WhyError, why
from pergola.controllers.network_policy import Settings, network_policy
from pergola.kube.client import Client
from pergola.kube.kind_words import UnknownWord
from pergola.kube.kubeconfig import load
from pergola.kube.yaml import dump, parse
from pergola.resource_manager.controllers.csr_approver.judge import KUBELET_SERVING
from pergola.resource_manager.controllers.managed_resource.fights import BURST
from pergola.resource_manager.controllers.token_requestor import names
from pergola.runtime.logging import configure
from pergola.runtime.metrics import Metrics
from pergola.sandbox import Sandbox
from pergola.testing.crds import install_crds, install_extension_crds
from pergola.testing.waiting import running, settled
from pergola.testing.world import RecordingClient, World, has, message
from pergola.why import NothingToExplain
from tests.support.certificate_requests import new_key, request_pem, signing_request
from tests.support.charts import RESOURCE_MANAGER
from tests.support.cluster_api import (
    NEW,
    cluster_crd,
    infra_cluster,
    infra_cluster_crd,
    install,
)
from tests.support.documented import PAGES, commands
from tests.support.service_accounts import request_token, until_allowed

MUTATING = GroupVersionKind("admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration")


class Asker:
    """A user at a terminal.

    Attributes:
        kubeconfig: Of the cluster.
    """

    def __init__(
        self, kubeconfig: Path, namespace: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.kubeconfig = kubeconfig
        self.namespace = namespace
        self._capsys = capsys

    async def text(self, *words: str, **options: Any) -> str:
        """Return the output for people."""
        namespace = options.pop("namespace", self.namespace)
        cluster = options.pop("cluster", ScopeOptions(kubeconfig=self.kubeconfig))
        options["cluster"] = replace(cluster, namespace=namespace)
        configure("error", "text")  # the controllers of the test share the standard output
        self._capsys.readouterr()
        await asyncio.to_thread(why, *words, **options)
        return self._capsys.readouterr().out

    async def line(self, line: str) -> str:
        """Return the output of a `pergola` command line."""
        configure("error", "text")
        self._capsys.readouterr()
        words = shlex.split(line)[1:]
        await asyncio.to_thread(app, words, result_action="return_value")
        return self._capsys.readouterr().out

    async def data(self, *words: str, **options: Any) -> JsonObject:
        """Return the output for programs."""
        found: JsonObject = orjson.loads(await self.text(*words, output="json", **options))
        return found


@pytest.fixture
def asker(kubeconfig: Path, namespace: str, capsys: pytest.CaptureFixture[str]) -> Asker:
    """Yield a user with all rights in the test's namespace."""
    return Asker(kubeconfig, namespace, capsys)


@pytest.fixture
async def world(kubeconfig: Path, cluster_client: Client, namespace: str) -> AsyncIterator[World]:
    """Yield a namespace in which a test starts a resource manager."""
    await install_crds(cluster_client)
    async with RecordingClient.connect(load(kubeconfig)) as recorder:
        found = World(cluster_client, recorder, namespace)
        yield found
        await found.stop()


async def test_a_fight_with_another_writer_is_explained_on_both_sides(
    world: World, asker: Asker
) -> None:
    await world.start(sync_period=3600.0)
    await world.create("demo", world.config_map("greeting", text="hello"))
    await world.healthy("demo")
    for number in range(BURST + 1):
        edited = world.config_map("greeting", text=f"bye {number}")
        await world.client.apply(edited, manager="their-operator", force=True)
        await world.settled()
    await world.until("demo", lambda r: "their-operator" in message(r, "ResourcesApplied"))

    text = "has been changed repeatedly by their-operator since"
    found = await asker.data("cm/greeting")
    assert [each["problem"][: len(text) + 3] for each in found["findings"]] == [f"it {text}"]
    assert text in (await asker.text("managedresources/demo"))


async def test_a_managed_object_and_its_managed_resource_name_each_other(
    world: World, asker: Asker
) -> None:
    await world.start(sync_period=3600.0)
    await world.create(
        "demo", world.config_map("first"), world.config_map("greeting", text="hello")
    )
    await world.healthy("demo")

    found = await asker.data("cm/greeting")
    (owner,) = found["wantedBy"]
    assert owner["object"] == f"ManagedResource {world.namespace}/demo"
    source = f"Secret {world.namespace}/demo, key 001.yaml, document 0"
    assert owner["evidence"] == [{"kind": "source", "text": source}]
    assert found["state"] == "ok"
    assert (
        found["decisions"][0]["text"] == "it matches its manifest, so the next run writes nothing"
    )

    text = await asker.text("managedresources", "demo")
    head, *lines = text.splitlines()
    assert head == f"ManagedResource {world.namespace}/demo is applied, healthy and rolled out."
    assert "├── decision: 1 Secret describes 2 objects" in lines
    (finalizer,) = (line for line in lines if "finalizer" in line)
    assert finalizer == (
        f"├── finalizer {marks.FINALIZER} of the resource manager, which removes it once the "
        "objects of the ManagedResource are gone"
    )

    secret = await asker.text("secrets/demo")
    assert "hello" not in secret + text
    assert "of the resource manager, which removes it once no ManagedResource names" in secret


async def test_an_edited_object_names_the_fields_to_be_written_and_what_delays_the_write(
    world: World, asker: Asker
) -> None:
    await world.start(sync_period=3600.0)
    await world.create("demo", world.config_map("greeting", text="hello"))
    await world.healthy("demo")
    await world.edit("demo", {"metadata": {"annotations": {marks.IGNORE: "true"}}})
    await world.until("demo", has("ResourcesHealthy", "True", "ManagedResourceIgnored"))
    await world.client.patch(CONFIG_MAP, world.key("greeting"), {"data": {"text": "bye"}})

    found = await asker.data("configmap/greeting")
    (wait,) = found["waitsFor"]
    assert wait["evidence"] == [{"kind": "field", "text": "data.text"}]
    assert marks.IGNORE in wait["because"]
    assert found["writers"][0]["object"] != ""
    ignored = await asker.data("managedresource/demo")
    assert ignored["answer"].endswith("is ignored")


async def test_a_change_that_a_webhook_made_to_a_write_of_the_resource_manager_is_not_pending(
    world: World, asker: Asker
) -> None:
    await world.start(sync_period=3600.0)
    await world.create("demo", world.config_map("greeting", text="hello"))
    await world.healthy("demo")
    await world.stop()
    # The API server attributes changes of a webhook to the writer, the resource manager.
    await world.client.patch(CONFIG_MAP, world.key("greeting"), {"data": {"injected": "yes"}})

    found = await asker.data("configmap/greeting")
    assert found["state"] == "ok"
    (decision,) = [each for each in found["decisions"] if each["evidence"]]
    assert decision["evidence"] == [{"kind": "field", "text": "data.injected"}]
    assert decision["text"].startswith("it is as the API server stored it")

    live = await world.client.get(CONFIG_MAP, world.key("greeting"))
    edit = {name: live[name] for name in ("apiVersion", "kind")}
    edit |= {"metadata": {"name": "greeting", "namespace": world.namespace}}
    await world.client.apply({**edit, "data": {"text": "bye"}}, manager="editor", force=True)
    found = await asker.data("configmap/greeting")
    assert found["waitsFor"][0]["text"].startswith("the next run of the resource manager")


@pytest.fixture
async def elsewhere(second_sandbox: Sandbox, namespace: str) -> AsyncIterator[Client]:
    """Yield another cluster with a namespace of the same name."""
    async with Client.connect(load(second_sandbox.kubeconfig)) as client:
        metadata = {"name": namespace}
        await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        yield client
        await client.delete(NAMESPACE, Key("", namespace))


async def test_an_object_and_its_managed_resource_in_another_cluster_name_each_other(
    world: World, asker: Asker, elsewhere: Client, second_sandbox: Sandbox
) -> None:
    greeting: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap"}
    greeting |= {"metadata": {"name": "greeting", "namespace": world.namespace}}
    await world.put_data("demo", {"a.yaml": dump(greeting).encode()})
    await world.create_resource("demo", ["demo"])
    origin = {marks.ORIGIN: f"source:{world.namespace}/demo"}
    await elsewhere.create(
        {**greeting, "metadata": {**greeting["metadata"], "annotations": origin}}
    )

    there = {"cluster": ScopeOptions(kubeconfig=second_sandbox.kubeconfig)}
    found = await asker.data("configmap/greeting", **there)
    assert "in cluster source" in found["wantedBy"][0]["text"]
    assert any("--source-kubeconfig" in step for step in found["nextSteps"])
    found = await asker.data("cm/greeting", **there, source_kubeconfig=asker.kubeconfig)
    source = f"Secret {world.namespace}/demo, key a.yaml, document 0"
    assert found["wantedBy"][0]["evidence"] == [{"kind": "source", "text": source}]

    found = await asker.data("managedresource/demo", target_kubeconfig=second_sandbox.kubeconfig)
    assert any(each["text"] == "1 Secret describes 1 object" for each in found["decisions"])

    await world.client.delete(MANAGED_RESOURCE, world.key("demo"))
    found = await asker.data("cm/greeting", **there, source_kubeconfig=asker.kubeconfig)
    assert found["answer"].endswith("is no longer managed")
    assert found["decisions"][0]["text"].endswith("nothing manages the object")


async def test_an_object_that_stayed_says_that_its_managed_resource_is_not_there(
    world: World, asker: Asker
) -> None:
    await world.start()
    kept = world.config_map("greeting", text="hello")
    kept["metadata"]["annotations"] = {marks.KEEP_OBJECT: "true"}
    await world.create("demo", kept)
    await world.healthy("demo")
    await world.delete("demo")
    await world.until_gone(MANAGED_RESOURCE, world.key("demo"))

    (step,) = (await asker.data("configmap/greeting"))["nextSteps"]
    assert step.startswith(f"find ManagedResource {world.key('demo')}, which is not in this")


async def test_the_documented_example_prints_what_the_page_shows(
    world: World, asker: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.start(sync_period=3600.0)
    await world.create("hello", world.config_map("greeting", text="hello"))
    await world.healthy("hello")
    await world.edit("hello", {"metadata": {"annotations": {marks.IGNORE: "true"}}})
    await world.until("hello", has("ResourcesHealthy", "True", "ManagedResourceIgnored"))
    await world.client.patch(CONFIG_MAP, world.key("greeting"), {"data": {"text": "bye"}})

    monkeypatch.setenv("KUBECONFIG", str(asker.kubeconfig))
    lines = [
        line.replace("demo", world.namespace) for line in commands("reference/why.md", "Example")
    ]
    printed = "".join([await asker.line(line) for line in lines])
    page = (PAGES / "reference/why.md").read_text()
    assert _timeless(printed.replace(world.namespace, "demo")) in _timeless(page)


def _timeless(text: str) -> str:
    return re.sub(r"\(\d+ \w+ ago\)", "(some time ago)", text)


async def test_a_managed_resource_names_what_it_waits_for_and_the_next_steps(
    world: World, asker: Asker
) -> None:
    # No resource manager runs.
    await world.put_data("broken", {"a.yaml": b"kind: ["})
    await world.create_resource("demo", ["broken", "lost"])

    found = await asker.data("managedresource/demo")
    texts = [wait["text"] for wait in found["waitsFor"]]
    assert "a resource manager of class resources: none has picked it up yet" in texts
    problems = [f"{each['object']} {each['problem']}" for each in found["findings"]]
    assert any(f"Secret {world.namespace}/lost does not exist" in each for each in problems)
    assert any("Secret broken, key a.yaml, document 0: " in each for each in problems)
    assert any("create Secret" in step for step in found["nextSteps"])


async def test_a_deletion_names_the_owner_of_each_finalizer(world: World, asker: Asker) -> None:
    metadata: JsonObject = {"finalizers": [f"{marks.FINALIZER}-seed", "example.org/keep"]}
    await world.create_resource("demo", [], metadata)
    await world.delete("demo")

    found = await asker.data("managedresource/demo")
    assert found["state"] == "deleting"
    blocked = {each["object"]: each["text"] for each in found["deletionBlockedBy"]}
    assert "resource manager of class seed" in blocked[f"finalizer {marks.FINALIZER}-seed"]
    assert "does not know" in blocked["finalizer example.org/keep"]
    assert any("example.org/keep" in step for step in found["nextSteps"])
    await world.edit("demo", {"metadata": {"finalizers": None}})


async def test_a_deletion_names_the_objects_it_waits_for(world: World, asker: Asker) -> None:
    await world.start(sync_period=3600.0)
    stuck = {**world.config_map("stuck")}
    stuck["metadata"]["finalizers"] = ["example.org/keep"]
    await world.create("demo", stuck)
    await world.healthy("demo")
    await world.delete("demo")
    await world.until("demo", lambda r: "example.org/keep" in message(r, "ResourcesApplied"))

    found = await asker.data("managedresource/demo")
    texts = [each["text"] for each in found["deletionBlockedBy"]]
    named = f'"v1/ConfigMap/{world.namespace}/stuck": waits for its finalizers example.org/keep'
    assert any(text.startswith(named) for text in texts)
    free = {"metadata": {"finalizers": None}}
    await world.client.patch(CONFIG_MAP, world.key("stuck"), free)


async def test_cluster_scoped_objects_are_shown_without_a_namespace(
    world: World, asker: Asker
) -> None:
    # No resource manager runs.
    name = f"{world.namespace}-role"
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}
    await world.create("demo", {**role, "metadata": {"name": name}})

    found = await asker.data("managedresource/demo")
    (plan,) = [each for each in found["decisions"] if "1 object" in each["text"]]
    assert [each["object"] for each in plan["causes"]] == [f"ClusterRole {name}"]


async def test_missing_permissions_are_named_and_secrets_are_never_shown(
    world: World, asker: Asker, tmp_path: Path
) -> None:
    await world.start(sync_period=3600.0)
    await world.create("demo", world.config_map("greeting", text="hello"))
    await world.healthy("demo")
    reader = ScopeOptions(kubeconfig=await _reader(world, asker.kubeconfig, tmp_path))

    found = await asker.data("managedresource/demo", cluster=reader)
    assert found["notRead"] == [f"you may not read Secret objects in namespace {world.namespace}"]
    with pytest.raises(NothingToExplain, match="you may not read Secret "):
        await asker.text("secret/demo", cluster=reader)


async def test_a_mistake_is_reported_in_one_sentence(asker: Asker, world: World) -> None:
    with pytest.raises(NothingToExplain, match="ConfigMap lost does not exist in namespace"):
        await asker.text("configmap/lost")
    with pytest.raises(UnknownWord, match='the API server has no kind "nonsense"'):
        await asker.text("nonsense/lost")
    with pytest.raises(WhyError, match="name one object"):
        await asker.text("configmap")
    resource = await world.create_resource("demo", [])
    status = {"resources": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "lost"}]}
    status["resources"][0]["namespace"] = world.namespace
    await world.client.patch(
        MANAGED_RESOURCE, Key.of(resource), {"status": status}, subresource="status"
    )
    with pytest.raises(NothingToExplain, match="pergola why managedresource/demo -n"):
        await asker.text("configmap/lost")


# Kinds whose objects only wait, because nothing else runs


async def test_a_requested_token_is_explained_by_the_rules_of_the_requestor(
    cluster_client: Client, namespace: str, asker: Asker
) -> None:
    wishes = {names.NAME: "robot", names.NAMESPACE: "demo"}
    labels = {names.PURPOSE: names.PURPOSE_TOKEN_REQUESTOR, names.CLASS: "nowhere"}
    metadata: JsonObject = {"name": "access", "namespace": namespace}
    secret: JsonObject = {"apiVersion": "v1", "kind": "Secret", "stringData": {"token": "s3cret"}}
    secret["metadata"] = {**metadata, "annotations": wishes, "labels": labels}
    await cluster_client.create(secret)

    text = await asker.text("secret", "access")
    assert "needs a new token.\n" in text
    assert "a token of ServiceAccount demo/robot" in text
    assert "because the renew timestamp is absent" in text
    assert "Next: check that a token requestor of class nowhere runs" in text
    assert "s3cret" not in text

    wrong = {"metadata": {"annotations": {names.EXPIRATION: "1d"}}}
    await cluster_client.patch(SECRET, Key(namespace, "access"), wrong)
    found = await asker.data("secret", "access")
    assert any(names.EXPIRATION in each["object"] for each in found["findings"])


async def test_a_network_waits_for_its_extension_and_then_reports_its_error(
    cluster_client: Client, namespace: str, asker: Asker
) -> None:
    await install_extension_crds(cluster_client)
    metadata: JsonObject = {"name": "demo", "namespace": namespace}
    metadata["annotations"] = {marks.OPERATION: marks.OPERATION_RECONCILE}
    spec = {"type": namespace, "podCIDR": "10.0.0.0/16", "serviceCIDR": "10.1.0.0/16"}
    network: JsonObject = {"apiVersion": NETWORK.api_version, "kind": NETWORK.kind}
    await cluster_client.create({**network, "metadata": metadata, "spec": spec})

    found = await asker.data("network.extensions.gardener.cloud/demo")
    assert found["answer"].endswith("is not ready")
    (wait,) = found["waitsFor"]
    assert wait["text"] == "an extension that picks up the requested operation"
    assert f"Cluster {namespace} does not exist" in wait["because"]
    assert wait["advice"] == f"check that an extension for type {namespace} is installed and runs"

    error = {"description": "no such zone", "codes": ["ERR_CONFIGURATION_PROBLEM"]}
    now = "2026-01-01T00:00:00Z"
    operation = {"type": "Create", "state": "Error", "progress": 50, "lastUpdateTime": now}
    status = {"lastError": error, "lastOperation": {**operation, "description": "tried"}}
    key = Key(namespace, "demo")
    await cluster_client.patch(NETWORK, key, {"status": status}, subresource="status")
    found = await asker.data("networks.extensions.gardener.cloud", "demo")
    (finding,) = found["findings"]
    assert "no such zone (ERR_CONFIGURATION_PROBLEM)" in finding["problem"]
    assert found["next"] == "correct the field that the message names"


async def test_a_failed_infrastructure_names_the_reason_and_the_next_steps(
    cluster_client: Client, namespace: str, asker: Asker
) -> None:
    await install_extension_crds(cluster_client)
    infrastructure: JsonObject = {
        "apiVersion": INFRASTRUCTURE.api_version,
        "kind": INFRASTRUCTURE.kind,
        "metadata": {"name": "demo", "namespace": namespace},
        "spec": {"type": namespace, "region": "eu-west-1", "secretRef": {"name": "account"}},
    }
    await cluster_client.create(infrastructure)
    error = {"description": "may not create a VPC", "codes": ["ERR_INFRA_UNAUTHORIZED"]}
    now = "2026-01-01T00:00:00Z"
    operation = {"type": "Create", "state": "Error", "progress": 50, "lastUpdateTime": now}
    status = {"lastError": error, "lastOperation": {**operation, "description": "tried"}}
    key = Key(namespace, "demo")
    await cluster_client.patch(INFRASTRUCTURE, key, {"status": status}, subresource="status")

    text = await asker.text("infrastructures.extensions.gardener.cloud", "demo")
    head, *lines = text.splitlines()
    assert head.startswith(f"Infrastructure {namespace}/demo is")
    assert any("may not create a VPC (ERR_INFRA_UNAUTHORIZED)" in line for line in lines)
    assert any(line.startswith("Next: ") for line in lines)


async def test_a_pod_manifest_shows_the_changes_that_registered_webhooks_would_make(
    cluster_client: Client, namespace: str, asker: Asker, tmp_path: Path
) -> None:
    manifest = tmp_path / "pod.yaml"
    pod: JsonObject = {"apiVersion": "v1", "kind": "Pod"}
    pod |= {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
    manifest.write_text(dump(pod))
    assert (await asker.data(file=manifest))["decisions"] == []

    async with registered(cluster_client, namespace, "seccomp-profile.resources.gardener.cloud"):
        found = await asker.data(file=manifest)
    (change,) = found["decisions"]
    assert change["object"] == "webhook seccomp-profile"
    (edit,) = change["causes"]
    assert "/spec/securityContext" in edit["text"]
    assert edit["because"] != ""


async def test_webhooks_are_asked_with_the_configuration_of_the_running_resource_manager(
    cluster_client: Client, namespace: str, asker: Asker, tmp_path: Path
) -> None:
    manifest = tmp_path / "pod.yaml"
    pod: JsonObject = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}}
    pod |= {"spec": {"containers": [{"name": "a", "image": "a"}]}}
    manifest.write_text(dump(pod))
    host = {"kubernetesServiceHost": {"enabled": True, "host": "api.example.org"}}
    for obj in running_manager(namespace, {"webhooks": host}):
        await cluster_client.create(obj)

    service = {"service": {"name": "gardener-resource-manager", "namespace": namespace}}
    webhook = "kubernetes-service-host.resources.gardener.cloud"
    async with registered(cluster_client, namespace, webhook, service):
        found = await asker.data(file=manifest)

    (change,) = found["decisions"]
    assert any("api.example.org" in edit["text"] for edit in change["causes"])


async def test_a_certificate_request_is_judged_by_the_rules_of_the_approver(
    asker: Asker, tmp_path: Path
) -> None:
    user = "system:node:lost"
    pem = request_pem(new_key(), user, ["system:nodes"], ["lost"])
    request = signing_request("lost", KUBELET_SERVING, pem)
    request["spec"]["username"] = user
    manifest = tmp_path / "csr.yaml"
    manifest.write_text(dump(request))

    found = await asker.data(file=manifest)
    assert found["answer"].endswith("is undecided")
    (wait,) = found["waitsFor"]
    assert wait["because"] == 'could not find node object with name "lost"'
    denied: JsonObject = {
        "type": "Denied",
        "message": "no",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    manifest.write_text(dump({**request, "status": {"conditions": [denied]}}))
    assert (await asker.data(file=manifest))["answer"].endswith("is denied")


async def test_a_network_policy_names_its_service_its_callers_and_the_reason(
    cluster_client: Client, namespace: str, asker: Asker
) -> None:
    metadata: JsonObject = {"name": "web", "namespace": namespace}
    spec = {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]}
    service: JsonObject = {"apiVersion": "v1", "kind": "Service", "metadata": metadata}
    await cluster_client.create({**service, "spec": spec})
    label = "networking.resources.gardener.cloud/to-web-tcp-8080"
    labelled = {"name": "caller", "namespace": namespace, "labels": {label: "allowed"}}
    containers = [{"name": "app", "image": "registry.example/app:1"}]
    caller: JsonObject = {"apiVersion": "v1", "kind": "Pod", "metadata": labelled}
    await cluster_client.create({**caller, "spec": {"containers": containers}})
    unit = network_policy(cluster_client, Settings(namespaces=(namespace,)), metrics=Metrics())
    async with running(unit):
        await settled(unit, cluster_client)

    found = await asker.data("netpol/ingress-to-web-tcp-8080")
    assert found["answer"].endswith("is needed by its Service")
    (owner,) = found["wantedBy"]
    assert owner["object"] == f"Service {namespace}/web"
    (caller,) = owner["causes"]
    assert caller["text"].endswith(f"in namespace {namespace} connect to TCP 8080")


@pytest.mark.parametrize("only_for_matching_pods", [True, False])
async def test_a_network_policy_without_callers_is_explained_as_the_running_manager_is_configured(
    cluster_client: Client, namespace: str, asker: Asker, *, only_for_matching_pods: bool
) -> None:
    own: JsonObject = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    configured: JsonObject = {
        "enabled": True,
        "onlyForMatchingPods": only_for_matching_pods,
        "namespaceSelectors": [own],
    }
    config: JsonObject = {"controllers": {"networkPolicy": configured}}
    for obj in running_manager(namespace, config):
        await cluster_client.create(obj)
    metadata: JsonObject = {"name": "web", "namespace": namespace}
    spec = {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]}
    service: JsonObject = {"apiVersion": "v1", "kind": "Service", "metadata": metadata}
    await cluster_client.create({**service, "spec": spec})
    settings = Settings(namespace_selectors=(own,), only_for_matching_pods=False)
    async with running(unit := network_policy(cluster_client, settings, metrics=Metrics())):
        await settled(unit, cluster_client)

    found = await asker.data("netpol/ingress-to-web-tcp-8080")
    assert found["answer"].endswith("is needed by its Service") is not only_for_matching_pods


async def test_an_infra_cluster_names_its_manager_and_missing_fields(
    cluster_client: Client, namespace: str, asker: Asker
) -> None:
    await install(cluster_client, cluster_crd(), infra_cluster_crd(NEW))
    await cluster_client.create(infra_cluster(NEW, "demo", namespace, {MANAGED_BY: "platform"}))

    found = await asker.data("newcluster/demo")
    assert found["answer"].endswith("is not provisioned yet")
    assert any('manager "platform" manages it' in each["text"] for each in found["decisions"])
    problems = [each["problem"] for each in found["findings"]]
    assert any(f"Cluster {namespace}/demo, to which it belongs" in each for each in problems)
    assert f"pergola infra check newcluster/demo -n {namespace}" in found["next"]


def running_manager(namespace: str, config: JsonObject) -> list[JsonObject]:
    """Return the objects of the chart that `why` reads: the Deployment and its configuration."""
    values: JsonObject = {"replicas": 0, "config": config}
    kinds = {"ConfigMap", "Deployment"}
    found = [each for each in RESOURCE_MANAGER.rendered(values) if each["kind"] in kinds]
    return [{**each, "metadata": {**each["metadata"], "namespace": namespace}} for each in found]


@asynccontextmanager
async def registered(
    client: Client,
    namespace: str,
    webhook: str,
    client_config: JsonObject = {"url": "https://127.0.0.1:1/"},  # noqa: B006 - it is not changed
) -> AsyncGenerator[None]:
    """Register a webhook, without a server, for the pods of a namespace."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
    configuration: JsonObject = {
        "apiVersion": MUTATING.api_version,
        "kind": MUTATING.kind,
        "metadata": {"name": namespace},
        "webhooks": [
            {
                "name": webhook,
                "rules": [{**rule, "operations": ["CREATE"]}],
                "clientConfig": client_config,
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "failurePolicy": "Ignore",
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
            }
        ],
    }
    await client.create(configuration)
    yield
    await client.delete(MUTATING, Key("", namespace))


async def _reader(world: World, admin: Path, folder: Path) -> Path:
    """Write the kubeconfig of a ServiceAccount that may read only ManagedResources."""
    rbac: JsonObject = {"apiVersion": "rbac.authorization.k8s.io/v1"}
    metadata: JsonObject = {"name": "reader", "namespace": world.namespace}
    rule = {"apiGroups": [marks.GROUP], "resources": ["*"], "verbs": ["get", "list"]}
    subject = {"kind": "ServiceAccount", "name": "default", "namespace": world.namespace}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}
    await world.client.create({**rbac, "kind": "Role", "metadata": metadata, "rules": [rule]})
    await world.client.create(
        {
            **rbac,
            "kind": "RoleBinding",
            "metadata": metadata,
            "subjects": [subject],
            "roleRef": role,
        }
    )
    token = await request_token(load(admin), world.namespace, "default")
    kubeconfig = _with_token(admin, token, folder)
    async with Client.connect(load(kubeconfig)) as client:
        await until_allowed(client, MANAGED_RESOURCE, world.namespace)
    return kubeconfig


def _with_token(admin: Path, token: str, folder: Path) -> Path:
    found: Any = parse(admin.read_bytes())
    for user in found["users"]:
        user["user"] = {"token": token}
    kubeconfig = folder / "reader.yaml"
    kubeconfig.write_text(dump(found))
    return kubeconfig
