"""The webhooks of control planes on AWS, called by real API servers (spec 31 §8)."""

import secrets
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from conformance.strategies.aws_control_planes import BASE, KEYS
from conformance.strategies.aws_webhooks import deployment
from pergola.admission.configurations import MUTATING
from pergola.admission.webhook import Webhook
from pergola.api.kinds import POD
from pergola.api.objects import GroupVersionKind, JsonObject, Key, map_at
from pergola.extension_api.cluster import Cluster
from pergola.extensions.seed import Seed
from pergola.extensions.webhooks.declare import selects
from pergola.extensions.webhooks.serving import ExtensionWebhooks
from pergola.extensions.webhooks.settings import WebhookSettings
from pergola.kube.client import Client
from pergola.kube.errors import ApiError, NotFound
from pergola.kube.kubeconfig import load
from pergola.providers.aws.control_plane.actuator import AwsControlPlane
from pergola.runtime.metrics import Metrics
from pergola.testing.crds import install_extension_crds
from pergola.testing.waiting import running, settled
from tests.support.ports import held_port

TEST = "example.org/test"
CLOUD = "shoot.gardener.cloud/provider"
MANAGER = "kube-controller-manager"
POD_LABELS = {"app": "kubernetes", "role": "apiserver"}
DNS: JsonObject = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "kube-dns", "namespace": "kube-system"},
    "spec": {
        "clusterIP": "None",
        "ipFamilies": ["IPv4", "IPv6"],
        "ipFamilyPolicy": "RequireDualStack",
        "ports": [{"port": 53}],
    },
}


@dataclass
class Served:
    """The webhooks, registered for the namespaces of one test."""

    client: Client
    webhooks: ExtensionWebhooks
    declared: list[Webhook]
    token: str

    @property
    def component(self) -> str:
        return f"provider-aws-{self.token}"

    async def namespace(self, cloud: str) -> str:
        """Create the namespace of a Shoot."""
        name = f"shoot--{self.token}--{secrets.token_hex(2)}"
        labels = {CLOUD: cloud, TEST: self.token}
        metadata = {"name": name, "labels": labels}
        await self.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        cluster: JsonObject = {**BASE["cluster"], "metadata": {"name": name}}
        await self.client.create(cluster)
        return name


def isolated(webhook: Webhook, token: str) -> Webhook:
    """Return the webhook for namespaces of one test, which shares the API server with others."""
    registration = webhook.registration
    own = registration.namespace_selector
    expressions = [*own.get("matchExpressions", []), selects(TEST, [token])]
    selector = {**own, "matchExpressions": expressions}
    return replace(webhook, registration=replace(registration, namespace_selector=selector))


@pytest.fixture
async def served(kubeconfig: Path, namespace: str, shoot: Client) -> AsyncIterator[Served]:
    token = secrets.token_hex(3)

    @asynccontextmanager
    async def access(_: Client, __: Cluster) -> AsyncGenerator[Client | None]:
        yield shoot

    with held_port() as port:
        async with Client.connect(load(kubeconfig)) as client:
            await install_extension_crds(client)
            declared = [
                isolated(each, token) for each in AwsControlPlane().webhooks(Seed(client, access))
            ]
            settings = WebhookSettings(
                mode="url",
                url=f"127.0.0.1:{port}",
                namespace=namespace,
                port=port,
            )
            name = f"provider-aws-{token}"
            webhooks = ExtensionWebhooks(client, name, declared, settings, Metrics())
            found = Served(client, webhooks, declared, token)
            async with webhooks.served():
                units = [*webhooks.units, *webhooks.leading()]
                async with running(*units):
                    for unit in units:
                        await settled(unit, client)
                    yield found
            with suppress(NotFound):
                await client.delete(MUTATING, Key("", f"gardener-extension-{name}"))


def controller_manager(namespace: str) -> JsonObject:
    """Return the Deployment that gardenlet writes."""
    found = deployment(MANAGER)
    label = "provider.extensions.gardener.cloud/mutated-by-controlplane-webhook"
    found["metadata"] |= {"namespace": namespace, "labels": {label: "true"}}
    return found


def command_of(stored: JsonObject) -> list[str]:
    [container] = map_at(stored, "spec", "template", "spec")["containers"]
    command: list[str] = container["command"]
    return command


@asynccontextmanager
async def created(client: Client, obj: JsonObject) -> AsyncGenerator[None]:
    """Create an object, and delete it when the block ends."""
    await client.create(obj)
    try:
        yield
    finally:
        await client.delete(GroupVersionKind.of(obj), Key.of(obj))


async def until_changed(client: Client, obj: JsonObject, mark: str) -> JsonObject:
    """Return what would be stored, once the API server knows the webhooks.

    Args:
        mark: part of the change.
    """
    while True:  # it learns of registrations by watching
        with suppress(ApiError):
            stored = await client.create(obj, dry_run=True)
            if mark in str(stored):
                return stored


async def test_a_controller_manager_learns_that_its_cloud_is_external(served: Served) -> None:
    own, foreign = await served.namespace("aws"), await served.namespace("gcp")

    stored = await until_changed(served.client, controller_manager(own), "external")
    elsewhere = await served.client.create(controller_manager(foreign), dry_run=True)

    assert command_of(stored) == [
        "/bin/it",
        "--v=2",
        "--cloud-provider=external",
        "--allocate-node-cidrs=true",
    ]
    assert command_of(elsewhere) == ["/bin/it", "--v=2"]


async def test_a_secret_gets_a_credentials_file_or_is_refused(served: Served) -> None:
    namespace = await served.namespace("aws")
    labels = {"gardener.cloud/purpose": "cloudprovider"}
    data = {key: KEYS["data"][key] for key in ("accessKeyID", "secretAccessKey")}
    secret = {
        **KEYS,
        "metadata": {"name": "cloudprovider", "namespace": namespace, "labels": labels},
        "data": data,
    }

    stored = await until_changed(served.client, secret, "credentialsFile")
    with pytest.raises(ApiError, match="has no key accessKeyID, which access to AWS needs"):
        await served.client.create({**secret, "data": {}})

    assert stored["data"].keys() == {*data, "credentialsFile"}


async def test_a_service_in_a_shoot_gets_a_load_balancer_with_both_families(
    served: Served, shoot: Client
) -> None:
    await _api_server(served, await served.namespace("aws"))
    found = served.webhooks.in_shoots(served.component, "unused", served.declared)
    namespace: JsonObject = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": f"shoot-{served.token}", "labels": {TEST: served.token}},
    }
    service: JsonObject = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": f"shoot-{served.token}"},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
    }
    async with AsyncExitStack() as stack:
        for obj in (DNS, namespace, *await found()):
            await stack.enter_async_context(created(shoot, obj))
        stored = await until_changed(shoot, service, "dualstack")
        plain = {**service, "spec": {"ports": [{"port": 80}]}}
        unchanged = await shoot.create(plain, dry_run=True)

    prefix = "service.beta.kubernetes.io/aws-load-balancer-"
    assert stored["metadata"]["annotations"] == {
        f"{prefix}ip-address-type": "dualstack",
        f"{prefix}nlb-target-type": "instance",
        f"{prefix}scheme": "internet-facing",
        f"{prefix}type": "external",
    }
    assert "annotations" not in unchanged["metadata"]


async def _api_server(served: Served, namespace: str) -> None:
    """Create the pod of the Shoot's API server, at the address from which it calls webhooks."""
    pod: JsonObject = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "kube-apiserver", "namespace": namespace, "labels": POD_LABELS},
        "spec": {"containers": [{"name": "it", "image": "registry.example/it"}]},
    }
    created = await served.client.create(pod)
    status = {"status": {"podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]}}
    await served.client.patch(POD, Key.of(created), status, subresource="status")
