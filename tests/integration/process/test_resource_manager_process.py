"""The process as its users run it: spec 10 §13."""

import asyncio
import json
import re
from pathlib import Path

import pytest

from pergola.api import marks
from pergola.api.kinds import CONFIG_MAP, LEASE
from pergola.api.objects import GroupVersionKind, JsonObject, Key, annotations_of, labels_of
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.kube.yaml import parse
from pergola.sandbox import Sandbox
from pergola.testing.waiting import PATIENCE
from pergola.testing.world import World
from tests.support.admission_site import write_pair
from tests.support.proxy import CuttableProxy
from tests.support.resource_manager_process import (
    Running,
    configuration,
    end,
    eventually,
    get,
    only,
    running,
)
from tests.support.traces import trace_collector

RECORDED = Path(__file__).parents[2] / "unit/api/recorded/resource_manager/workerless.config.yaml"
"""A file of a resource manager of a Shoot without workers; its ports and paths are the pod's."""


# Bad input: the process ends with one sentence


async def test_a_missing_configuration_is_reported(tmp_path: Path) -> None:
    code, said = await end("", tmp_path, "--config", str(tmp_path / "nowhere.yaml"))
    assert code != 0
    assert "nowhere.yaml" in said
    assert "Traceback" not in said
    code, said = await end("", tmp_path, "--log-level=info")
    assert code != 0
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("kind: [unclosed", ["not valid YAML"]),
        ("just a text", ["must be a map"]),
        (
            json.dumps(
                configuration(
                    Path("/k"),
                    controllers={"health": {"syncPeriod": "1s"}, "resourceClass": ""},
                    leaderElection={"leaderElect": True},
                )
            ),
            [
                "controllers.health.syncPeriod",
                "controllers.resourceClass",
                "leaderElection.resourceNamespace",
            ],
        ),
    ],
)
async def test_every_invalid_field_is_named(tmp_path: Path, text: str, named: list[str]) -> None:
    code, said = await end(text, tmp_path)
    assert code != 0
    assert all(name in said for name in named)
    assert "Traceback" not in said


@pytest.mark.soak("commands")
async def test_an_unusable_kubeconfig_is_named(tmp_path: Path) -> None:
    code, said = await end(configuration(tmp_path / "missing.kubeconfig"), tmp_path)
    assert code != 0
    assert "missing.kubeconfig" in said
    assert "Traceback" not in said


async def test_an_unreachable_cluster_is_named(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
                "users": [{"name": "u", "user": {"token": "secret-token"}}],
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                "current-context": "c",
            }
        )
    )
    code, said = await end(configuration(kubeconfig), tmp_path)
    assert code != 0
    assert "https://127.0.0.1:1" in said
    assert "Traceback" not in said
    assert "secret-token" not in said


@pytest.mark.soak("commands")
async def test_a_rejected_token_is_reported_in_one_sentence(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    config = load(sandbox.kubeconfig)
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [
                    {
                        "name": "c",
                        "cluster": {"server": config.server, "insecure-skip-tls-verify": True},
                    }
                ],
                "users": [{"name": "u", "user": {"token": "expired"}}],
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                "current-context": "c",
            }
        )
    )
    code, said = await end(configuration(kubeconfig), tmp_path)
    assert code != 0
    assert f'{config.server} does not accept the credentials of user "u", context "c"' in said
    assert "Traceback" not in said


async def test_a_missing_definition_is_reported_with_the_command_that_installs_it(
    private_sandbox: Sandbox, tmp_path: Path
) -> None:
    code, said = await end(configuration(private_sandbox.kubeconfig), tmp_path)
    assert code != 0
    assert "pergola crds --apply" in said


@pytest.mark.soak("commands")
async def test_a_required_identity_has_to_exist(
    world: World, sandbox: Sandbox, tmp_path: Path
) -> None:
    config = only(world, sandbox.kubeconfig, controllers={"clusterID": "<cluster>"})
    code, said = await end(config, tmp_path)
    assert code != 0
    assert "kube-system/cluster-identity" in said


@pytest.mark.soak("commands")
async def test_an_occupied_port_is_named(world: World, sandbox: Sandbox, tmp_path: Path) -> None:
    async with running(only(world, sandbox.kubeconfig), tmp_path) as first:
        port = int(first.health.rpartition(":")[2])
        server = {"healthProbes": {"bindAddress": "127.0.0.1", "port": port}}
        code, said = await end(only(world, sandbox.kubeconfig, server=server), tmp_path)
    assert code != 0
    assert str(port) in said
    assert "Traceback" not in said


# Serving


async def test_endpoints_give_the_same_answers_as_the_originals(
    world: World, sandbox: Sandbox, tmp_path: Path
) -> None:
    async with running(only(world, sandbox.kubeconfig), tmp_path) as served:
        await world.create("demo", world.config_map("a"))
        await world.healthy("demo")
        for path in (
            "/healthz",
            "/healthz/ping",
            "/healthz/apiserver-healthz",
            "/healthz/source-informer-sync",
            "/healthz/target-informer-sync",
            "/readyz",
            "/readyz/source-informer-sync",
            "/readyz/target-informer-sync",
        ):
            await eventually(served.health + path, 200)
        # A run is counted after it has ended, a moment after its last write.
        text = await eventually(
            served.metrics + "/metrics",
            200,
            'controller_runtime_reconcile_total{controller="managedresource",result="requeue_after"}',
            'controller_runtime_reconcile_time_seconds_bucket{controller="health"',
            'controller_runtime_max_concurrent_reconciles{controller="managedresource"} 5.0',
            "workqueue_adds_total{",
            "workqueue_depth{",
            "workqueue_queue_duration_seconds_bucket{",
            "workqueue_unfinished_work_seconds{",
            "workqueue_longest_running_processor_seconds{",
        )
    assert re.search(r'rest_client_requests_total\{code="201",host="[^"]+",method="POST"\} ', text)


async def test_a_configuration_file_that_gardener_writes_makes_a_ready_process(
    world: World, sandbox: Sandbox, tmp_path: Path
) -> None:
    """Its namespace does not exist, so the process serves, but never leads."""
    recorded = parse(RECORDED.read_bytes())
    assert isinstance(recorded, dict)
    config: JsonObject = recorded
    for connection in ("sourceClientConnection", "targetClientConnection"):
        config[connection]["kubeconfig"] = str(sandbox.kubeconfig)
    for server in ("healthProbes", "metrics"):
        config["server"][server] = {"bindAddress": "127.0.0.1", "port": 0}

    async with running(config, tmp_path) as served:
        await eventually(served.health + "/readyz", 200)


async def test_an_outage_of_the_api_server_makes_the_process_unready_but_not_unhealthy(
    world: World, sandbox: Sandbox, tmp_path: Path
) -> None:
    async with CuttableProxy(load(sandbox.kubeconfig)) as proxy:
        kubeconfig = tmp_path / "kubeconfig"
        text = sandbox.kubeconfig.read_text()
        kubeconfig.write_text(text.replace(load(sandbox.kubeconfig).server, proxy.config.server))
        async with running(only(world, kubeconfig), tmp_path) as served:
            await eventually(served.health + "/readyz", 200)
            proxy.refuse()
            proxy.cut()
            await eventually(served.health + "/readyz", 500)
            status, text = await get(served.health + "/healthz?verbose")
            assert status == 200, text
            await eventually(served.health + "/healthz/apiserver-healthz", 500)


@pytest.mark.soak("commands")
async def test_the_configured_label_value_is_put_on_objects(
    world: World, sandbox: Sandbox, tmp_path: Path
) -> None:
    controllers = {"managedResource": {"managedByLabelValue": "foo"}}
    async with running(only(world, sandbox.kubeconfig, controllers=controllers), tmp_path):
        await world.create("demo", world.config_map("a"))
        await world.applied("demo")
    live = await world.client.get(CONFIG_MAP, world.key("a"))
    assert labels_of(live)[marks.MANAGED_BY] == "foo"


@pytest.mark.soak("commands")
async def test_the_namespace_of_the_source_restricts_all_controllers(
    world: World, sandbox: Sandbox, tmp_path: Path
) -> None:
    async with running(only(world, sandbox.kubeconfig), tmp_path):
        other = World(world.client, world.recorder, "default")
        name = world.namespace
        before = await other.create(name, other.config_map(name))
        await world.create("demo", world.config_map("a"))
        await world.healthy("demo")
        assert await other.resource(name) == before
        await other.delete(name)


@pytest.mark.soak("commands")
async def test_kubeconfigs_in_the_environment_override_the_file(
    world: World, sandbox: Sandbox, second_sandbox: Sandbox, tmp_path: Path
) -> None:
    config = only(world, tmp_path / "nowhere")
    config["targetClientConnection"] = {"kubeconfig": str(tmp_path / "nowhere")}
    environment = {
        "KUBECONFIG": str(sandbox.kubeconfig),
        "TARGET_KUBECONFIG": str(second_sandbox.kubeconfig),
    }
    async with (
        running(config, tmp_path, **environment),
        Client.connect(load(second_sandbox.kubeconfig)) as second,
    ):
        obj = world.config_map("a")
        obj["metadata"]["namespace"] = "default"
        obj["metadata"]["name"] = world.namespace
        await world.create("demo", obj)
        await world.healthy("demo")
        live = await second.get(CONFIG_MAP, Key("default", world.namespace))
        assert annotations_of(live)[marks.ORIGIN] == f"{world.namespace}/demo"
        await world.delete("demo")
        await world.until_gone(
            GroupVersionKind(marks.GROUP, "v1alpha1", "ManagedResource"), world.key("demo")
        )


async def has_reconciled(served: Running) -> bool:
    """Return whether a process has completed a run of the ManagedResource."""
    _, text = await get(served.metrics + "/metrics")
    return 'controller="managedresource",result="requeue_after"' in text


async def test_only_one_of_two_replicas_reconciles(
    world: World, sandbox: Sandbox, tmp_path: Path
) -> None:
    # No lease expires, even on a busy machine; it is released at the end.
    election = {"leaseDuration": "10m", "renewDeadline": "5m"}
    election |= {"resourceNamespace": world.namespace}
    config = only(world, sandbox.kubeconfig, leaderElection=election)
    folders = tmp_path / "a", tmp_path / "b"
    for folder in folders:
        folder.mkdir()
    async with running(config, folders[0]) as one, running(config, folders[1]) as other:
        await world.create("demo", world.config_map("a"))
        await world.healthy("demo")
        async with asyncio.timeout(PATIENCE):
            while not any(counted := [await has_reconciled(served) for served in (one, other)]):
                pass
        for served in (one, other):
            await eventually(served.health + "/readyz", 200)
    assert sorted(counted) == [False, True]
    lease = await world.client.get(LEASE, world.key("gardener-resource-manager"))
    assert not lease["spec"].get("holderIdentity")


# Traces


async def test_a_collector_receives_a_span_per_reconciliation_and_request(
    world: World, sandbox: Sandbox, tmp_path: Path
) -> None:
    async with trace_collector() as collector:
        config = only(world, sandbox.kubeconfig)
        endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint}
        async with running(config, tmp_path, **endpoint):
            await world.create("traced", world.config_map("one"))
            await world.applied("traced")
    run = next(
        span
        for span in collector.named("reconcile managedresource")
        if span.attributes["pergola.object"] == f"{world.namespace}/traced"
        and any(child.name == "POST configmaps" for child in collector.children(span))
    )
    assert run.service == "pergola-resource-manager"
    assert not run.is_request
    requests = collector.children(run)
    assert all(request.is_request for request in requests)
    create = next(request for request in requests if request.name == "POST configmaps")
    assert create.attributes["http.response.status_code"] == 201
    assert create.attributes["url.path"] == f"/api/v1/namespaces/{world.namespace}/configmaps"


@pytest.mark.soak("commands")
async def test_an_unknown_protocol_of_traces_is_reported_in_one_sentence(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    environment = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4317",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
    }
    code, said = await end(configuration(sandbox.kubeconfig), tmp_path, **environment)
    assert code != 0
    assert "OTEL_EXPORTER_OTLP_PROTOCOL is grpc" in said
    assert "Traceback" not in said


@pytest.mark.soak("commands")
async def test_several_processes_serve_webhooks_with_one_page_of_metrics(
    world: World, sandbox: Sandbox, tmp_path: Path
) -> None:
    write_pair(tmp_path)
    config = only(world, sandbox.kubeconfig, webhooks={"seccompProfile": {"enabled": True}})
    config["server"]["webhooks"] = {
        "bindAddress": "127.0.0.1",
        "port": 0,
        "workers": 3,
        "tls": {"serverCertDir": str(tmp_path)},
    }
    async with running(config, tmp_path) as served:
        # Each of them has loaded the certificate.
        await eventually(served.metrics + "/metrics", 200, "certwatcher_read_certificate_total 3.0")
        await eventually(served.health + "/readyz/webhook-server", 200)
