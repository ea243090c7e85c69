"""The permissions of care, as the operator's chart grants them, and its behaviour without them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Final

import pytest

from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.api.operator_v1alpha1.garden import CARE_CONDITIONS
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.kube.kubeconfig import ClusterConfig, load
from pergola.operator.care import Probing, Settings, garden_care
from pergola.operator.care.servers import PROMETHEUS, Query, query_prometheus
from pergola.operator.conditions import condition_of
from pergola.operator.copies import Copies
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.metrics import Metrics
from pergola.sandbox import Sandbox
from pergola.testing.crds import delete_definition, install_definitions
from pergola.testing.waiting import PATIENCE, running, until
from tests.support.care_site import (
    CareSite,
    SwitchedCluster,
    manifest,
    statuses_of,
    template,
    with_copies,
)
from tests.support.garden_states import is_healthy
from tests.support.service_accounts import service_account_config, until_granted

PROMETHEUSES: Final = "prometheuses.monitoring.coreos.com"
OBSERVABILITY: Final = CARE_CONDITIONS[3]
ACCOUNT: Final = Key("garden", "care-without-managed-resources")
_RBAC: Final = "rbac.authorization.k8s.io"


def unit(
    client: Client,
    settings: Settings,
    probe: Probing,
    metrics: Metrics,
    query: Query = query_prometheus,
) -> Unit:
    copies = Copies(client)
    care = garden_care(copies, probe, template, settings, metrics=metrics, query=query)
    return with_copies(copies, care)


@pytest.fixture
async def restricted(runtime: Client, garden_sandbox: Sandbox) -> AsyncIterator[ClusterConfig]:
    """Yield a client with the permissions of care except for that to read ManagedResources."""
    objects = [*_grants()]
    for obj in objects:
        await runtime.apply(obj, manager="test", force=True)
    admin = load(garden_sandbox.kubeconfig)
    await until_granted(runtime, ACCOUNT)
    yield await service_account_config(admin, ACCOUNT.namespace, ACCOUNT.name)
    for obj in objects:
        await runtime.delete(GroupVersionKind.of(obj), Key.of(obj))


async def test_if_managed_resources_cannot_be_listed_everything_is_unknown(
    care_site: CareSite, restricted: ClusterConfig
) -> None:
    await care_site.heal()
    await care_site.create_garden()
    metrics, virtual = Metrics(), SwitchedCluster()
    settings = Settings(sync_period=timedelta(seconds=3))  # plus the time limit of a run
    async with (
        Client.connect(restricted) as client,
        running(unit(client, settings, virtual.probe, metrics)),
    ):
        garden = await until(
            care_site.client,
            GARDEN,
            care_site.garden,
            lambda obj: {statuses_of(obj).get(kind) for kind in CARE_CONDITIONS} == {"Unknown"},
        )
        async with asyncio.timeout(PATIENCE):
            while virtual.probes < 3:
                await care_site.client.get_raw("/version")
    for kind in CARE_CONDITIONS:
        found = condition_of(garden, kind)
        assert found["reason"] == "ConditionCheckError"
        assert "failed listing ManagedResources in namespace garden: " in found["message"]
        assert "failed listing ManagedResources in namespace istio-system: " in found["message"]
        assert "forbidden" in found["message"]
    text = metrics.render().decode()
    assert 'controller_runtime_reconcile_total{controller="garden-care",result="error"} 0.0' in text


async def test_the_permissions_of_the_chart_are_enough(
    care_site: CareSite, granted: ClusterConfig
) -> None:
    await install_definitions(care_site.client, PROMETHEUSES)
    await care_site.heal()
    await care_site.create_garden()
    labels = {"health-check-by": "gardener-operator"}
    prometheus = {**manifest(PROMETHEUS, Key("garden", "garden"), labels), "spec": {}}
    await care_site.client.apply(prometheus, manager="test", force=True)
    value = "1"

    async def query(address: str, _: str) -> JsonObject:
        assert address.startswith("http://prometheus-garden-0.prometheus-operated.garden.svc")
        result = [{"metric": {"task": "scrape"}, "value": [0, value]}]
        return {"status": "success", "data": {"resultType": "vector", "result": result}}

    settings = Settings(sync_period=timedelta(seconds=1), queries_prometheus=True)
    try:
        async with (
            Client.connect(granted) as client,
            running(unit(client, settings, SwitchedCluster().probe, Metrics(), query)),
        ):
            assert is_healthy(await care_site.until_healthy())
            value = "0"
            found = await care_site.until(OBSERVABILITY, "False", "PrometheusHealthCheckDown")
    finally:
        await care_site.delete(PROMETHEUS, "garden")
    assert found["message"].endswith(': {task="scrape"}')


async def test_without_the_kind_there_is_no_prometheus_to_query(
    care_site: CareSite, granted: ClusterConfig
) -> None:
    key = Key("", PROMETHEUSES)
    with contextlib.suppress(NotFound):
        await delete_definition(care_site.client, key)
    await care_site.heal()
    await care_site.create_garden()
    settings = Settings(sync_period=timedelta(hours=1), queries_prometheus=True)
    async with (
        Client.connect(granted) as client,
        running(unit(client, settings, SwitchedCluster().probe, Metrics())),
    ):
        await care_site.until_healthy()


def _grants() -> list[JsonObject]:
    rules = [
        {"apiGroups": ["operator.gardener.cloud"], "resources": ["gardens"]},
        {"apiGroups": ["druid.gardener.cloud"], "resources": ["etcds"]},
        {"apiGroups": ["apps"], "resources": ["deployments"]},
    ]
    status = {"apiGroups": ["operator.gardener.cloud"], "resources": ["gardens/status"]}
    role = {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": ACCOUNT.name}}
    account = {"kind": "ServiceAccount", "name": ACCOUNT.name, "namespace": ACCOUNT.namespace}
    return [
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": ACCOUNT.name, "namespace": ACCOUNT.namespace},
        },
        {
            **role,
            "rules": [
                *({**rule, "verbs": ["get", "list", "watch"]} for rule in rules),
                {**status, "verbs": ["patch"]},
            ],
        },
        {
            **role,
            "kind": "ClusterRoleBinding",
            "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": ACCOUNT.name},
            "subjects": [account],
        },
    ]
