"""ControlPlanes in AWS on a real API server, which is seed and Shoot at once."""

from collections.abc import AsyncIterator
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest

from conformance.strategies.aws_control_planes import BASE, KEYS, ROLE
from pergola.api.kinds import CONFIG_MAP, CORE_EVENT, EVENT, NODE, SECRET
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    annotations_of,
    maps_at,
    name_of,
)
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.extension_api.cluster import CLUSTER, Cluster
from pergola.extension_api.errors import Code
from pergola.extension_api.kinds import CONTROL_PLANE
from pergola.extensions.control_planes import resources
from pergola.extensions.health_checks import CheckContext, HealthCheck, Verdict
from pergola.garden.components.definitions import SHOOT_EXTENSIONS, load
from pergola.kube.client import Client
from pergola.manifests import manifest
from pergola.providers.aws.control_plane.actuator import AwsControlPlane
from pergola.providers.aws.control_plane.calico_conditions import DONE
from pergola.providers.aws.control_plane.webhooks.catalog import NGINX
from pergola.testing.crds import serve
from pergola.testing.extension_site import ExtensionSite, extension_site
from pergola.testing.network_site import give_shoot_access, renamed
from pergola.testing.waiting import running, until
from tests.support.shipped import shipped_objects

NETWORK: Final = "NetworkUnavailable"
DEPLOYMENT: Final = GroupVersionKind("apps", "v1", "Deployment")


@pytest.fixture
async def site(
    cluster_client: Client, namespace: str, kubeconfig: Path
) -> AsyncIterator[ExtensionSite]:
    await serve(cluster_client, *load(SHOOT_EXTENSIONS))
    await give_shoot_access(cluster_client, namespace, kubeconfig)
    found = await extension_site(cluster_client, namespace)
    found.gvk = CONTROL_PLANE
    await found.put_cluster(shoot())
    yield found
    await found.clean_up()


def shoot(**networking: object) -> JsonObject:
    found: JsonObject = deepcopy(BASE["cluster"]["spec"]["shoot"])
    found["spec"]["networking"] |= networking
    return found


async def create(site: ExtensionSite, secret: JsonObject = KEYS, **spec: object) -> AwsControlPlane:
    """Create a ControlPlane with credentials, and return its actuator."""
    metadata = {**secret["metadata"], "namespace": site.namespace}
    await site.client.apply({**secret, "metadata": metadata}, manager="test", force=True)
    desired = {k: v for k, v in BASE["controlPlane"]["spec"].items() if k != "type"}
    reference = {"name": "cloudprovider", "namespace": site.namespace}
    await site.create("reconcile", spec={**desired, "secretRef": reference, **spec})
    return renamed(AwsControlPlane(), site.type)


async def test_a_control_plane_ships_everything(site: ExtensionSite) -> None:
    actuator = await create(site)
    async with running(site.unit(actuator)):
        await site.until_operation("Create")

    listed = await site.client.list(MANAGED_RESOURCE, site.namespace)
    assert {name_of(each) for each in listed} == set(resources.REMOVAL) - {resources.WEBHOOKS}
    objects = await shipped_objects(site.client, Key(site.namespace, resources.SEED))
    assert len(objects) == 30
    access = await site.client.list(
        SECRET, site.namespace, labels="resources.gardener.cloud/purpose=token-requestor"
    )
    assert len(access) == 10


@pytest.mark.parametrize(
    ("secret", "spec", "path"),
    [
        (KEYS, {"region": ""}, "spec.region"),
        (KEYS, {"infrastructureProviderStatus": {}}, "spec.infrastructureProviderStatus.vpc.id"),
        (
            KEYS,
            {"infrastructureProviderStatus": {"vpc": {"id": "vpc-1"}}},
            "spec.infrastructureProviderStatus.vpc.subnets",
        ),
        ({**KEYS, "data": {}}, {}, "lacks accessKeyID, secretAccessKey, credentialsFile"),
        ({**ROLE, "data": {}}, {}, "lacks roleARN, token, workloadIdentityTokenFile"),
    ],
)
async def test_a_problem_is_named_with_its_path(
    site: ExtensionSite, secret: JsonObject, spec: JsonObject, path: str
) -> None:
    actuator = await create(site, secret, **spec)
    async with running(site.unit(actuator)):
        obj = await site.until_operation("Create", "Error")

    error = obj["status"]["lastError"]
    assert path in error["description"]
    assert error["codes"] == ["ERR_CONFIGURATION_PROBLEM"]
    assert await site.client.list(MANAGED_RESOURCE, site.namespace) == []


async def test_an_event_says_why_services_wait_for_subnets(site: ExtensionSite) -> None:
    status = deepcopy(BASE["controlPlane"]["spec"]["infrastructureProviderStatus"])
    status["vpc"]["subnets"] = [
        each for each in status["vpc"]["subnets"] if each["purpose"] == "nodes"
    ]
    actuator = await create(site, infrastructureProviderStatus=status)
    async with running(site.unit(actuator)):
        await site.until_operation("Create")

    events = await site.client.list(EVENT, site.namespace)
    notes = [each["note"] for each in events if each["regarding"]["kind"] == "ControlPlane"]
    assert [note for note in notes if "no subnet for load balancers" in note]


async def test_conditions_of_calico_are_removed_once_there_is_no_overlay(
    site: ExtensionSite,
) -> None:
    nodes = [
        await node(site, "a", "CalicoIsUp"),
        await node(site, "b", "RouteCreated"),
        await node(site, "c", ""),
    ]
    await site.put_cluster(shoot(providerConfig={"overlay": {"enabled": False}}))
    actuator = await create(site)
    async with running(site.unit(actuator)):
        await site.until_operation("Create")
        left = [await reasons(site, each) for each in nodes]
        assert left == [[], ["RouteCreated"], []]
        assert annotations_of(await site.read())[DONE] == "true"

        late = await node(site, "d", "CalicoIsDown")
        await site.annotate("reconcile")
        await site.until_operation("Reconcile")
        assert await reasons(site, late) == ["CalicoIsDown"]

        await site.put_cluster(shoot())
        await site.annotate("reconcile")
        await site.until(lambda obj: DONE not in annotations_of(obj))
    for each in (*nodes, late):
        await site.client.delete(NODE, each)


@pytest.mark.parametrize("is_enabled", [True, False])
async def test_nginx_learns_the_proxy_protocol_even_if_the_webhook_missed_it(
    site: ExtensionSite, is_enabled: bool
) -> None:
    missed = manifest(
        "v1",
        "ConfigMap",
        "addons-nginx-ingress-controller",
        namespace="kube-system",
        labels={**NGINX["matchLabels"]},
        data={"server-name-hash-bucket-size": "256"},
    )
    await site.client.create(missed)
    with_addon = shoot()
    with_addon["spec"]["addons"] = {"nginxIngress": {"enabled": is_enabled}}
    await site.put_cluster(with_addon)
    actuator = await create(site)
    try:
        async with running(site.unit(actuator)):
            await site.until_operation("Create")
            corrected = await site.client.get(CONFIG_MAP, Key.of(missed))
            await site.annotate("reconcile")
            await site.until_operation("Reconcile")
            assert await site.client.get(CONFIG_MAP, Key.of(missed)) == corrected
    finally:
        await site.client.delete(CONFIG_MAP, Key.of(missed))
    assert corrected["data"] == {
        "server-name-hash-bucket-size": "256",
        **({"use-proxy-protocol": "true"} if is_enabled else {}),
    }


async def test_an_immutable_config_map_does_not_fail_the_control_plane(
    site: ExtensionSite,
) -> None:
    fixed = manifest(
        "v1",
        "ConfigMap",
        "addons-nginx-ingress-controller",
        namespace="kube-system",
        labels={**NGINX["matchLabels"]},
        immutable=True,
    )
    await site.client.create(fixed)
    with_addon = shoot()
    with_addon["spec"]["addons"] = {"nginxIngress": {"enabled": True}}
    await site.put_cluster(with_addon)
    actuator = await create(site)
    try:
        async with running(site.unit(actuator)):
            await site.until_operation("Create")
    finally:
        await site.client.delete(CONFIG_MAP, Key.of(fixed))


@pytest.mark.parametrize(
    ("kind", "minutes", "message", "expected"),
    [
        ("Warning", 1, "RouteLimitExceeded: 50 routes", Code.QUOTA_EXCEEDED),
        ("Warning", 1, "UnauthorizedOperation: not allowed", Code.RETRYABLE_DEPENDENCIES),
        ("Warning", 9, "RouteLimitExceeded: long ago", None),
        ("Normal", 1, "all routes are there", None),
    ],
)
async def test_health_names_what_the_route_controller_reports(
    site: ExtensionSite, kind: str, minutes: int, message: str, expected: Code | None
) -> None:
    await site.client.create(route_controller(site.namespace))
    now = datetime.now(UTC)
    event = await site.client.create(
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": "routes-", "namespace": "kube-system"},
            "involvedObject": {
                "kind": "ServiceAccount",
                "name": "aws-custom-route-controller",
                "namespace": "kube-system",
            },
            "type": kind,
            "reason": "Routes",
            "message": message,
            "lastTimestamp": (now - timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
    )
    [check] = [each for each in AwsControlPlane().health_checks() if "Events" in each.name]

    found = await verdict(check, site, now)

    await site.client.delete(CORE_EVENT, Key.of(event))
    if expected is None:
        assert found.status == "True"
    else:
        assert (found.status, found.codes) == ("False", (expected,))
        assert message in found.detail


async def verdict(check: HealthCheck, site: ExtensionSite, now: datetime) -> Verdict:
    async def cluster() -> Cluster:
        live = await site.client.get(CLUSTER, Key("", site.namespace))
        return Cluster.from_object(live)

    context = CheckContext(
        client=site.client,
        read=site.client.find,
        cluster=cluster,
        namespace=site.namespace,
        now=now,
    )
    return await check.run(context, {})


async def node(site: ExtensionSite, name: str, reason: str) -> Key:
    """Create a node that is ready, and has the condition of a reporter if one is given."""
    key = Key("", f"{site.namespace[-20:]}-{name}")
    await site.client.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": key.name}})
    live = await until(site.client, NODE, key, is_ready_node)
    kept = [each for each in maps_at(live, "status", "conditions") if each["type"] != NETWORK]
    condition = {"type": NETWORK, "status": "False", "reason": reason}
    patch = {"status": {"conditions": [*kept, *([condition] if reason else [])]}}
    await site.client.patch(NODE, key, patch, subresource="status")
    return key


def is_ready_node(obj: JsonObject) -> bool:
    conditions = maps_at(obj, "status", "conditions")
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


async def reasons(site: ExtensionSite, key: Key) -> list[str]:
    """Return who said last whether the network is available; a kubelet reports the rest."""
    live = await site.client.get(NODE, key)
    conditions = maps_at(live, "status", "conditions")
    return [str(each["reason"]) for each in conditions if each["type"] == NETWORK]


def route_controller(namespace: str) -> JsonObject:
    labels = {"role": "aws-custom-route-controller"}
    container = {"name": "controller", "image": "registry.example.org/controller"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "aws-custom-route-controller", "namespace": namespace},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    }
