"""AWS's real cloud controller manager with what Pergola renders for it, in several networks."""

import re
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from http import HTTPStatus
from typing import Final

import pytest
import pytest_asyncio

from conformance.places.audit import AuditLog
from pergola.api.kinds import NODE, SERVICE
from pergola.api.objects import JsonObject, Key, labels_of, map_at, maps_at, name_of
from pergola.cloud.aws import AwsClient
from pergola.cloud.aws.network import tags_of
from pergola.extensions.control_planes import resources
from pergola.flow import State
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.providers.aws.control_plane.render.cloud_controller import NAME
from pergola.providers.aws.iam_policy import Mode, iam_policy
from pergola.providers.aws.load_balancer_roles import Role
from pergola.providers.aws.observe import observe
from pergola.providers.aws.status import nodes_security_group
from pergola.sandbox import API_ONLY, Sandbox
from pergola.sandbox.aws.corrections import QUICK
from pergola.sandbox.aws.world import Network, managed_config
from pergola.testing.shared import private
from tests.support.aws.authorization import AskingAws
from tests.support.aws.cloud_balancers import Balancer, classic, contents, network
from tests.support.aws.cloud_controller import chosen_subnets
from tests.support.aws.cloud_controller_site import (
    MACHINE_TYPE,
    UNINITIALIZED,
    CloudSite,
    cloud_site,
    service_ports,
)
from tests.support.aws.fixtures import REGION
from tests.support.aws.recorded_permissions import CLOUD_CONTROLLER, check_recorded
from tests.support.aws.steps import StepsOf
from tests.support.shipped import shipped_objects

pytestmark = [
    pytest.mark.soak("originals"),  # most of its build is a package that nothing else needs
    pytest.mark.asyncio(loop_scope="module"),
]

OWN: Final = "own"
USER: Final = "user-provided"
NODES_ONLY: Final = "nodes-only"
"""A user-provided network with both IP families, and without subnets for load balancers.

Its owner has given a role instead of keys.
"""
ZONES: Final = ("a", "b")
ACCOUNTS: Final = "system:serviceaccounts"
SHUT_DOWN: Final = "node.cloudprovider.kubernetes.io/shutdown"
FRAGMENTATION: Final = 3
"""The type of ICMP messages that say that a packet is too large."""
NETWORK: Final = {"type": "nlb"}
SCHEMES: Final = {Role.PUBLIC: "internet-facing", Role.INTERNAL: "internal"}

in_each_network = pytest.mark.parametrize("site", [OWN, USER], indirect=True)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> AuditLog:
    return AuditLog(tmp_path_factory.mktemp("audit"), "shoot", groups=(ACCOUNTS,))


@pytest.fixture(scope="module")
def audited_sandbox(log: AuditLog) -> Iterator[Sandbox]:
    with private(API_ONLY, apiserver_flags=log.flags()) as own:
        yield own


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(
    request: pytest.FixtureRequest,
    moto_server: str,
    audited_sandbox: Sandbox,
    log: AuditLog,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[CloudSite]:
    """Yield a cluster in one of the networks; several tests share its cloud controller."""
    async with (
        AskingAws(moto_server) as aws,
        aws.client(REGION, retry=QUICK) as account,
        Client.connect(load(audited_sandbox.kubeconfig)) as client,
    ):
        cluster = await cluster_in(account, request.param)
        folder = tmp_path_factory.mktemp(request.param)
        role = request.param == NODES_ONLY
        async with cloud_site(
            audited_sandbox, log, client, aws, cluster, folder, role=role
        ) as found:
            yield found


@pytest.fixture(autouse=True)
def nothing_is_forbidden(site: CloudSite) -> Iterator[None]:
    """Check its permissions in the Shoot, and those that the printed policy gives it in AWS."""
    yield
    assert site.refused() == []
    policy = iam_policy(Mode.CONTROL_PLANE, names=site.technical_id)
    assert [each for each in site.aws.asked if not each.is_allowed(policy)] == []
    check_recorded(CLOUD_CONTROLLER, site.aws.asked, site.technical_id)


async def cluster_in(account: AwsClient, kind: str) -> StepsOf:
    """Return a cluster without resources in one of the networks."""
    if kind == OWN:
        cluster = StepsOf.created(account, managed_config(REGION, zones=ZONES))
    elif kind == USER:
        there = await Network.complete(account, zones=ZONES)
        await add_subnets_of_others(there)
        cluster = StepsOf.byo(account, there, group=await there.security_group())
    else:
        there = await Network.create(account, zones=ZONES, ipv6=True)
        cluster = StepsOf.byo(account, there, group=await there.security_group())
        cluster.want(families=("IPv4", "IPv6"))
    cluster.want(technical_id=f"shoot--garden--{kind}")
    return cluster


async def add_subnets_of_others(there: Network) -> None:
    """Create subnets in the user's VPC in which the cluster's load balancers must not be."""
    other = {"kubernetes.io/cluster/other": "shared", "kubernetes.io/role/elb": "1"}
    for number, tags in enumerate(({}, other)):
        answer = await there.client.call(
            "ec2",
            "CreateSubnet",
            VpcId=there.id,
            CidrBlock=f"{there.prefix}.{50 + number}.0/24",
            AvailabilityZone=f"{REGION}a",
        )
        subnet = answer["Subnet"]["SubnetId"]
        await there.add_table(subnet)
        await there.route(subnet, GatewayId=there.gateway)
        await there.tag(subnet, Name="of others", **tags)


@in_each_network
@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize(
    ("kind", "describe"), [({}, classic), (NETWORK, network)], ids=["classic", "network"]
)
async def test_a_load_balancer_is_in_the_subnets_for_its_role(
    site: CloudSite,
    role: Role,
    kind: dict[str, str],
    describe: Callable[[AwsClient, JsonObject], Awaitable[Balancer]],
) -> None:
    before = await contents(site.account)
    internal = {"internal": "true"} if role is Role.INTERNAL else {}

    service = await site.create_service(80, **kind, **internal)
    hostname = await site.hostname(service)

    found = await describe(site.account, service)
    assert (found.hostname, found.scheme) == (hostname, SCHEMES[role])
    assert found.subnets == set(site.subnets(role).values())
    assert found.tags[f"kubernetes.io/cluster/{site.technical_id}"] == "owned"
    for name in found.groups:
        tags = tags_of(await site.group(name))
        assert tags[f"kubernetes.io/cluster/{site.technical_id}"] == "owned"
    assert len(found.groups) == (0 if kind == NETWORK else 1)

    await site.delete(service)
    assert await contents(site.account) == before


@in_each_network
async def test_a_changed_service_changes_its_load_balancer(site: CloudSite) -> None:
    before = await contents(site.account)
    service = await site.create_service(80)
    await site.hostname(service)

    spec = {"ports": service_ports(80, 443), "loadBalancerSourceRanges": ["192.0.2.0/24"]}
    async with site.carried_out("CreateLoadBalancerListeners"):
        await site.client.patch(SERVICE, Key.of(service), {"spec": spec})

    found = await classic(site.account, service)
    assert found.ports == {80, 443}
    [group] = found.groups
    rules = maps_at(await site.group(group), "IpPermissions")
    allowed = {
        (rule["IpProtocol"], rule["FromPort"]): [each["CidrIp"] for each in rule["IpRanges"]]
        for rule in rules
    }
    expected = (("tcp", 80), ("tcp", 443), ("icmp", FRAGMENTATION))
    assert allowed == {each: ["192.0.2.0/24"] for each in expected}

    await site.delete(service)
    assert await contents(site.account) == before


@in_each_network
async def test_nodes_are_initialized_and_served_until_their_instances_are_gone(
    site: CloudSite,
) -> None:
    group = nodes_security_group(site.cluster.desired, State(site.cluster.saved))
    rules = (await site.group(group))["IpPermissions"]
    service = await site.create_service(80)
    await site.hostname(service)

    async with site.carried_out("RegisterInstancesWithLoadBalancer"):
        instance, node = await site.join(f"{REGION}b")
        live = await site.until(NODE, node, is_initialized)

    check_node(live, instance)
    assert (await classic(site.account, service)).targets == {instance["InstanceId"]}
    assert (await site.group(group))["IpPermissions"] == rules

    async with site.carried_out("DeregisterInstancesFromLoadBalancer"):
        await site.terminate(instance, node)
        await site.until_gone(NODE, node)
    assert (await classic(site.account, service)).targets == set()
    await site.delete(service)


def check_node(node: JsonObject, instance: JsonObject) -> None:
    zone = instance["Placement"]["AvailabilityZone"]
    assert node["spec"]["providerID"] == f"aws:///{zone}/{instance['InstanceId']}"
    labels = labels_of(node)
    for name, value in {
        "topology.kubernetes.io/zone": zone,
        "topology.kubernetes.io/region": REGION,
        "node.kubernetes.io/instance-type": MACHINE_TYPE,
    }.items():
        assert labels[name] == value
    found: dict[str, list[str]] = defaultdict(list)
    for each in maps_at(node, "status", "addresses"):
        found[each["type"]].append(each["address"])
    ipv6 = [
        address["Ipv6Address"]
        for interface in instance["NetworkInterfaces"]
        for address in interface["Ipv6Addresses"]
    ]
    assert found["InternalIP"] == [instance["PrivateIpAddress"], *ipv6]
    assert found["InternalDNS"] == found["Hostname"] == [instance["PrivateDnsName"]]


@pytest.mark.parametrize("site", [USER], indirect=True)
@pytest.mark.parametrize("role", list(Role))
async def test_checks_predict_the_subnets_that_it_chooses(site: CloudSite, role: Role) -> None:
    desired, saved = site.cluster.desired, State(site.cluster.saved)
    predicted = chosen_subnets(desired, role, await observe(site.account, desired, saved))
    internal = {"internal": "true"} if role is Role.INTERNAL else {}
    service = await site.create_service(80, **internal)
    await site.hostname(service)

    assert (await classic(site.account, service)).subnets == set(predicted.values())
    await site.delete(service)


@pytest.mark.parametrize("site", [USER], indirect=True)
async def test_a_node_whose_instance_is_stopped_is_tainted(site: CloudSite) -> None:
    instance, node = await site.join(f"{REGION}a")
    await site.until(NODE, node, is_initialized)

    await site.account.call("ec2", "StopInstances", InstanceIds=[instance["InstanceId"]])
    await site.report(node, ready="Unknown")

    await site.until(NODE, node, lambda obj: SHUT_DOWN in taints_of(obj))
    await site.terminate(instance, node)
    await site.until_gone(NODE, node)


@pytest.mark.parametrize("site", [NODES_ONLY], indirect=True)
async def test_without_subnets_for_load_balancers_only_nodes_are_served(site: CloudSite) -> None:
    service = await site.create_service(80)
    instance, node = await site.join(f"{REGION}a")

    live = await site.until(NODE, node, is_initialized)
    check_node(live, instance)
    assert "AssumeRoleWithWebIdentity" in {call.operation for call in site.aws.requests}
    addresses = [each["address"] for each in maps_at(live, "status", "addresses")]
    assert [each for each in addresses if ":" in each] != []

    waiting = await site.client.get(SERVICE, Key.of(service))
    assert map_at(waiting, "status", "loadBalancer") == {}
    assert '"service-lb-controller" is disabled' in site.controller.output.read_text()
    await site.delete(service)
    await site.terminate(instance, node)
    await site.until_gone(NODE, node)


@pytest.mark.parametrize("site", [OWN], indirect=True)
async def test_it_answers_probes_and_has_the_metrics_that_are_kept(site: CloudSite) -> None:
    probe = map_at(site.controller.container, "livenessProbe", "httpGet")
    shipped = await shipped_objects(site.client, Key(site.technical_id, resources.SEED))
    [monitor] = [each for each in shipped if each["kind"] == "ServiceMonitor" and is_own(each)]
    [endpoint] = maps_at(monitor, "spec", "endpoints")
    [rule] = endpoint["metricRelabelings"]

    assert await site.controller.get(probe["path"]) == (HTTPStatus.OK, "ok")
    assert (await site.controller.get("/metrics"))[0] == HTTPStatus.FORBIDDEN
    _, metrics = await site.controller.get("/metrics", known=True)

    kept = {
        name for name in re.findall(r"^\w+", metrics, re.MULTILINE) if re.match(rule["regex"], name)
    }
    assert kept == set(rule["regex"].strip("^()$").split("|"))


def is_own(monitor: JsonObject) -> bool:
    return name_of(monitor) == f"shoot-{NAME}"


def is_initialized(node: JsonObject) -> bool:
    """Return whether a Node has all that it gets; the addresses come last."""
    return UNINITIALIZED not in taints_of(node) and bool(maps_at(node, "status", "addresses"))


def taints_of(node: JsonObject) -> list[str]:
    return [taint["key"] for taint in maps_at(node, "spec", "taints")]
