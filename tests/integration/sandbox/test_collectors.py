"""The stand-in for opentelemetry-operator: a collector gets a Deployment, a Service and a scale."""

from pergola.api.kinds import DEPLOYMENT, SERVICE
from pergola.api.objects import JsonObject, Key, labels_of, map_at, maps_at, owner_references_of
from pergola.garden.components.observability.opentelemetry_collector import (
    OPENTELEMETRY_COLLECTOR,
    PORT,
)
from pergola.garden.components.observability.opentelemetry_collector import (
    SERVICE as SERVICE_NAME,
)
from pergola.kube.client import Client
from pergola.kube.selectors import matches, parse_selector
from pergola.manifests import manifest
from pergola.sandbox.collectors.controller import COLLECTOR, collectors_unit
from pergola.testing.crds import install_garden_crds
from pergola.testing.waiting import running, settled, until
from tests.support.garden import landscape

NAMESPACE = "garden"


def collector() -> JsonObject:
    """Return the collector of a Garden."""
    [managed] = OPENTELEMETRY_COLLECTOR.objects(landscape()).managed
    [found] = [obj for obj in managed.objects if obj["kind"] == COLLECTOR.kind]
    return found


async def test_the_collector_of_a_garden_runs_and_can_be_scaled(lone_client: Client) -> None:
    client, obj = lone_client, collector()
    key = Key.of(obj)
    await install_garden_crds(client, "opentelemetry")
    await client.apply(
        manifest("v1", "Namespace", NAMESPACE), manager="pergola-testing", force=True
    )
    async with running(collectors_unit(client)):
        created = await client.create(obj)
        live = await until(
            client, COLLECTOR, key, lambda it: "selector" in map_at(it, "status", "scale")
        )

    name = Key(NAMESPACE, SERVICE_NAME)
    deployment = await client.get(DEPLOYMENT, name)
    service = await client.get(SERVICE, name)
    assert [port["port"] for port in maps_at(service, "spec", "ports")] == [PORT]
    template = map_at(deployment, "spec", "template")
    selector = parse_selector(live["status"]["scale"]["selector"])
    assert matches(selector, labels_of(template))
    assert labels_of(obj).items() <= labels_of(template).items()
    [container] = maps_at(template, "spec", "containers")
    assert container["image"] == obj["spec"]["image"]
    assert template["spec"]["serviceAccountName"] == obj["spec"]["serviceAccount"]
    for owned in (deployment, service):
        [owner] = owner_references_of(owned)
        assert owner["uid"] == created["metadata"]["uid"]


async def test_a_collector_with_another_mode_is_left_alone(lone_client: Client) -> None:
    client, obj = lone_client, collector()
    obj = {**obj, "metadata": {**obj["metadata"], "name": "daemon"}}
    obj["spec"] = {**obj["spec"], "mode": "daemonset"}
    await install_garden_crds(client, "opentelemetry")
    await client.apply(
        manifest("v1", "Namespace", NAMESPACE), manager="pergola-testing", force=True
    )
    unit = collectors_unit(client)
    async with running(unit):
        await client.create(obj)
        await settled(unit, client)
    assert await client.find(DEPLOYMENT, Key(NAMESPACE, "daemon-collector")) is None
