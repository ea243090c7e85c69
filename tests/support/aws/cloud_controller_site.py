"""AWS's real cloud controller manager beside the control plane that Pergola renders for it.

One API server is seed and Shoot. The network in a simulated AWS, the objects of the control plane,
the token and the permissions in the Shoot are made by the controllers that make them for users.
The process has the arguments, variables and files of the Deployment's container; `CloudController`
lists what differs. No kubelets run: `CloudSite.join` registers Nodes in their place.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from conformance.places.audit import AuditLog, refused
from conformance.strategies.aws_control_planes import BASE
from pergola.api.extensions_v1alpha1 import cluster_crd
from pergola.api.kinds import CONFIG_MAP, DEPLOYMENT, NAMESPACE, NODE, SECRET, SERVICE
from pergola.api.managed_resource_status import applied_problem
from pergola.api.objects import GroupVersionKind, JsonObject, Key, map_at, maps_at
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE, managed_resource_crd
from pergola.cloud.aws import AwsClient
from pergola.extension_api.cluster import TOKEN_KUBECONFIG
from pergola.extension_api.kinds import CONTROL_PLANE
from pergola.extensions.control_planes import resources
from pergola.flow import State
from pergola.garden.components.definitions import SHOOT_EXTENSIONS, load
from pergola.kube.client import Client
from pergola.kube.yaml import dump, parse
from pergola.manifests.shoot_access import KUBECONFIG_DIRECTORY, access_secret_name
from pergola.providers.aws.control_plane.actuator import AwsControlPlane
from pergola.providers.aws.control_plane.render.cloud_controller import NAME
from pergola.providers.aws.control_plane.webhooks.cloud_credentials import with_credentials_file
from pergola.providers.aws.flows.reconcile import reconcile_steps
from pergola.providers.aws.status import NODES, nodes_security_group, provider_status
from pergola.providers.aws.workload_identity import WORKLOAD_IDENTITY_CONFIG
from pergola.resource_manager.controllers.token_requestor import Settings, token_requestor
from pergola.runtime.metrics import Metrics
from pergola.sandbox import Sandbox
from pergola.sandbox.aws.answers import Call
from pergola.sandbox.process_node.volumes import referenced
from pergola.testing.crds import serve
from pergola.testing.extension_site import ExtensionSite
from pergola.testing.network_site import renamed, shoot_manager
from pergola.testing.waiting import running, until, until_gone
from tests.support.aws.authorization import AskingAws
from tests.support.aws.cloud_balancers import ingress
from tests.support.aws.cloud_controller_process import IN_SHOOT, CloudController
from tests.support.aws.steps import StepsOf
from tests.support.objects import secret
from tests.support.service_accounts import until_granted
from tests.support.shipped import shipped_objects

UNINITIALIZED: Final = "node.cloudprovider.kubernetes.io/uninitialized"
MACHINE_TYPE: Final = "m5.large"
_KINDS: Final = {"Secret": SECRET, "ConfigMap": CONFIG_MAP}
_VERSION: Final = "1.36.0"
_CREDENTIALS: Final = "cloudprovider"
_ROLE: Final[JsonObject] = {
    "apiVersion": WORKLOAD_IDENTITY_CONFIG.api_version,
    "kind": WORKLOAD_IDENTITY_CONFIG.kind,
    "roleARN": "arn:aws:iam::123456789012:role/shoots",
}
_AMI: Final = "ami-0123456789abcdef0"


@dataclass
class CloudSite:
    """A Shoot with its network, and the cloud controller manager that runs for it.

    Attributes:
        client: the administrator's, of seed and Shoot.
        aws: the account.
        cluster: its infrastructure.
        controller: the cloud controller manager.
        log: of the requests of all ServiceAccounts.
    """

    client: Client
    aws: AskingAws
    cluster: StepsOf
    controller: CloudController
    log: AuditLog

    @property
    def account(self) -> AwsClient:
        """The client of AWS."""
        return self.cluster.client

    @property
    def technical_id(self) -> str:
        """The name of the cluster in AWS."""
        return self.cluster.desired.technical_id

    @property
    def status(self) -> JsonObject:
        """The status of its infrastructure."""
        return provider_status(self.cluster.desired, State(self.cluster.saved))

    def subnets(self, purpose: str) -> dict[str, str]:
        """Return the subnets for a purpose by their zones."""
        return subnets_of(self.cluster, purpose)

    def refused(self) -> list[str]:
        """Return a sentence for each request of the controllers that was forbidden."""
        events = [*self.log.requests()]
        user = f"system:serviceaccount:{IN_SHOOT.namespace}:{IN_SHOOT.name}"
        assert user in {map_at(event, "user").get("username") for event in events}
        return [*refused(events)]

    async def until(
        self, kind: GroupVersionKind, obj: JsonObject, holds: Callable[[JsonObject], bool]
    ) -> JsonObject:
        """Wait until `holds` accepts an object."""
        waiting = until(self.client, kind, Key.of(obj), holds)
        return await self.controller.survive(waiting)

    async def until_gone(self, kind: GroupVersionKind, obj: JsonObject) -> None:
        """Wait until an object is gone."""
        await self.controller.survive(until_gone(self.client, kind, Key.of(obj)))

    async def create_service(self, *ports: int, **annotations: str) -> JsonObject:
        """Create a Service of type LoadBalancer.

        Args:
            annotations: of AWS, such as `internal="true"`; `_` stands for a hyphen.
        """
        prefix = "service.beta.kubernetes.io/aws-load-balancer-"
        return await self.client.create(
            {
                "apiVersion": "v1",
                "kind": SERVICE.kind,
                "metadata": {
                    "generateName": "web-",
                    "namespace": "default",
                    "annotations": {
                        f"{prefix}{key.replace('_', '-')}": value
                        for key, value in annotations.items()
                    },
                },
                "spec": {"type": "LoadBalancer", "ports": service_ports(*ports)},
            }
        )

    async def hostname(self, service: JsonObject) -> str:
        """Wait until a Service has an address, and return it."""
        live = await self.until(SERVICE, service, lambda obj: bool(ingress(obj)))
        [address] = ingress(live)
        return str(address["hostname"])

    async def delete(self, service: JsonObject) -> None:
        """Delete a Service, and wait until its load balancer is gone with it."""
        await self.client.delete(SERVICE, Key.of(service))
        await self.until_gone(SERVICE, service)

    async def group(self, name: str) -> JsonObject:
        """Return a security group."""
        answer = await self.account.call("ec2", "DescribeSecurityGroups", GroupIds=[name])
        found: JsonObject = answer["SecurityGroups"][0]
        return found

    @asynccontextmanager
    async def carried_out(self, operation: str) -> AsyncGenerator[None]:
        """Wait at the end of the block until AWS has carried out a call of an operation."""
        happened = asyncio.Event()

        async def note(call: Call) -> None:
            del call
            happened.set()

        self.aws.after(operation, note)
        yield
        await self.controller.survive(happened.wait())

    async def join(self, zone: str) -> tuple[JsonObject, JsonObject]:
        """Start an instance for nodes, and register its Node as a kubelet does; return both."""
        taint = {"key": UNINITIALIZED, "value": "true", "effect": "NoSchedule"}
        return await join_node(self.client, self.cluster, zone, taints=[taint])

    async def terminate(self, instance: JsonObject, node: JsonObject) -> None:
        """Terminate an instance, so that its Node is not ready any more."""
        await self.account.call("ec2", "TerminateInstances", InstanceIds=[instance["InstanceId"]])
        await self.report(node, ready="Unknown")

    async def report(self, node: JsonObject, *, ready: str) -> None:
        """Write whether a Node is ready, as its kubelet or kube-controller-manager does."""
        await report(self.client, node, ready=ready)


def subnets_of(cluster: StepsOf, purpose: str) -> dict[str, str]:
    """Return the subnets of a cluster for a purpose by their zones."""
    status = provider_status(cluster.desired, State(cluster.saved))
    found = maps_at(status, "vpc", "subnets")
    return {each["zone"]: each["id"] for each in found if each["purpose"] == purpose}


async def join_node(
    client: Client,
    cluster: StepsOf,
    zone: str,
    *,
    taints: Sequence[JsonObject] = (),
) -> tuple[JsonObject, JsonObject]:
    """Start an instance for nodes, and register its Node as a kubelet does; return both.

    Args:
        client: of the Shoot.
    """
    desired = cluster.desired
    tags = {desired.cluster_tag: "1", "kubernetes.io/role/node": "1"}
    pairs = [{"Key": key, "Value": value} for key, value in tags.items()]
    group = nodes_security_group(desired, State(cluster.saved))
    addresses = {"Ipv6AddressCount": 1} if desired.ipv6 else {}
    answer = await cluster.client.call(
        "ec2",
        "RunInstances",
        ImageId=_AMI,
        InstanceType=MACHINE_TYPE,
        MinCount=1,
        MaxCount=1,
        SubnetId=subnets_of(cluster, NODES)[zone],
        SecurityGroupIds=[group],
        **addresses,
        TagSpecifications=[{"ResourceType": "instance", "Tags": pairs}],
    )
    [instance] = answer["Instances"]
    node = await client.create(
        {
            "apiVersion": "v1",
            "kind": NODE.kind,
            "metadata": {"name": instance["PrivateDnsName"]},
            "spec": {"taints": list(taints)},
        }
    )
    await report(client, node, ready="True")
    return instance, node


async def report(client: Client, node: JsonObject, *, ready: str) -> None:
    """Write whether a Node is ready, as its kubelet or kube-controller-manager does."""
    condition = {"type": "Ready", "status": ready, "reason": "Reported", "message": ""}
    patch = {"status": {"conditions": [condition]}}
    await client.patch(NODE, Key.of(node), patch, subresource="status")


@asynccontextmanager
async def cloud_site(
    sandbox: Sandbox,
    log: AuditLog,
    client: Client,
    aws: AskingAws,
    cluster: StepsOf,
    folder: Path,
    *,
    role: bool = False,
) -> AsyncGenerator[CloudSite]:
    """Create the infrastructure and the control plane of a cluster, and run its cloud controller.

    Args:
        sandbox: seed and Shoot.
        folder: for the files of the process.
        role: whether the user's credentials are a role, by a workload identity, instead of keys.
    """
    async with control_plane(sandbox, client, cluster, NAME, role=role) as namespace:
        pod, found = await deployed(client, namespace, NAME)
        controller = CloudController(pod, found, folder, aws.url)
        await asyncio.to_thread(controller.write_files)
        async with controller.running(client):
            yield CloudSite(client, aws, cluster, controller, log)


@asynccontextmanager
async def control_plane(
    sandbox: Sandbox, client: Client, cluster: StepsOf, *accounts: str, role: bool = False
) -> AsyncGenerator[str]:
    """Create the infrastructure and the control plane of a cluster; yield its namespace.

    Args:
        sandbox: seed and Shoot.
        accounts: of controllers, which have a token and permissions in the Shoot afterwards.
        role: whether the user's credentials are a role, by a workload identity, instead of keys.
    """
    await cluster.ensure(reconcile_steps)
    credentials = (_role if role else _keys)(cluster.desired.technical_id)
    site = await _seed(client, cluster, credentials)
    await _write_kubeconfig(client, site.namespace, sandbox.kubeconfig)
    actuator = renamed(AwsControlPlane(), site.type)
    tokens = token_requestor(
        client,
        client,
        Settings(resource_class="shoot", source_namespaces=(site.namespace,), audiences=()),
        metrics=Metrics(),
    )
    async with running(site.unit(actuator), tokens), shoot_manager(client, site.namespace, client):
        await site.until_operation("Create")
        for part in (resources.SHOOT, resources.STORAGE_CLASSES):
            key = Key(site.namespace, part)
            await until(client, MANAGED_RESOURCE, key, lambda obj: applied_problem(obj) is None)
        for account in accounts:
            access = Key(site.namespace, access_secret_name(account))
            await until(client, SECRET, access, lambda obj: "token" in map_at(obj, "data"))
    for account in accounts:
        await until_granted(client, Key("kube-system", account))
    yield site.namespace
    await site.clean_up()


async def _seed(client: Client, cluster: StepsOf, credentials: JsonObject) -> ExtensionSite:
    """Write what gardenlet writes before it asks for a control plane, and ask for it."""
    desired = cluster.desired
    control_planes = [
        each
        for each in load(SHOOT_EXTENSIONS)
        if each["spec"]["names"]["kind"] == CONTROL_PLANE.kind
    ]
    await serve(client, managed_resource_crd(), cluster_crd(), *control_planes)
    metadata = {"name": desired.technical_id}
    await client.create({"apiVersion": "v1", "kind": NAMESPACE.kind, "metadata": metadata})
    site = ExtensionSite(client, desired.technical_id, CONTROL_PLANE)
    shoot: JsonObject = deepcopy(BASE["cluster"]["spec"]["shoot"])
    shoot["status"]["technicalID"] = site.namespace
    shoot["spec"]["kubernetes"]["version"] = _VERSION
    shoot["spec"]["networking"]["ipFamilies"] = [*desired.families]
    await site.put_cluster(shoot)
    await client.create(with_credentials_file(credentials, desired.region))
    spec = {
        "region": desired.region,
        "secretRef": {"name": _CREDENTIALS, "namespace": site.namespace},
        "infrastructureProviderStatus": provider_status(desired, State(cluster.saved)),
    }
    await site.create("reconcile", spec=spec)
    return site


def _keys(namespace: str) -> JsonObject:
    keys = {"accessKeyID": "AKIA0000000000000000", "secretAccessKey": "0" * 40}
    return secret(namespace, _CREDENTIALS, **keys)


def _role(namespace: str) -> JsonObject:
    found = secret(namespace, _CREDENTIALS, config=dump(_ROLE), token="of the garden")
    found["metadata"]["labels"] = {
        "security.gardener.cloud/purpose": "workload-identity-token-requestor",
        "workloadidentity.security.gardener.cloud/provider": "aws",
    }
    return found


async def _write_kubeconfig(client: Client, namespace: str, admin: Path) -> None:
    """Write the kubeconfig that all controllers of a control plane share, as gardenlet does."""
    config = parse(await asyncio.to_thread(admin.read_bytes))
    assert isinstance(config, dict)
    for user in maps_at(config, "users"):
        user["user"] = {"tokenFile": f"{KUBECONFIG_DIRECTORY}/token"}
    await client.create(secret(namespace, TOKEN_KUBECONFIG, kubeconfig=dump(config)))


async def deployed(
    client: Client, namespace: str, name: str
) -> tuple[JsonObject, dict[tuple[str, Key], JsonObject]]:
    """Return the pod of a Deployment on the seed, and the objects that it refers to, with others.

    Args:
        namespace: of the control plane.
    """
    shipped = [
        obj
        for part in (resources.CONFIGURATION, resources.SEED)
        for obj in await shipped_objects(client, Key(namespace, part))
    ]
    found = {(each["kind"], Key.of(each)): each for each in shipped}
    deployment = found[DEPLOYMENT.kind, Key(namespace, name)]
    pod = {**deployment["spec"]["template"], "metadata": {"namespace": namespace}}
    for kind, key in referenced(pod):
        if (kind, key) not in found:
            found[kind, key] = await client.get(_KINDS[kind], key)
    return pod, found


def service_ports(*numbers: int) -> list[JsonObject]:
    """Return the ports of a Service."""
    return [{"name": f"port-{each}", "port": each, "protocol": "TCP"} for each in numbers]
