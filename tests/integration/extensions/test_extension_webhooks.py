"""Webhooks of extensions, registered at a real API server and served by this process.

The sandbox is shared, so every test has its own component, cloud and Shoot type.
"""

import base64
import secrets
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from pergola.admission.certificates import ServingError
from pergola.admission.configurations import MUTATING, VALIDATING
from pergola.admission.review import GroupVersionResource
from pergola.admission.webhook import Webhook
from pergola.api import marks
from pergola.api.extensions_v1alpha1 import NETWORK
from pergola.api.field_errors import Cause, forbidden
from pergola.api.kinds import NAMESPACE, SECRET, SHOOT
from pergola.api.objects import GroupVersionKind, JsonObject, Key, maps_at, uid_of
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.api.schema.declare import Value
from pergola.bundle import Registry, apply, for_shoot
from pergola.extension_api.cluster import Shoot
from pergola.extension_api.errors import RequeueAfter
from pergola.extensions.webhooks.clouds import AZURE
from pergola.extensions.webhooks.mutation import from_objects
from pergola.extensions.webhooks.network_mutator import network_mutator
from pergola.extensions.webhooks.objects_mutator import ObjectMutation, shoot_objects_mutator
from pergola.extensions.webhooks.permissions import cluster_rules, namespace_rules
from pergola.extensions.webhooks.serving import ExtensionWebhooks
from pergola.extensions.webhooks.settings import WebhookSettings
from pergola.kube.client import Client
from pergola.kube.errors import ApiError, Forbidden, Invalid, KubeError, NotFound
from pergola.kube.kubeconfig import ClusterConfig, load
from pergola.pki import read_bundle, renewal_of
from pergola.providers.networking.plugin import NetworkPlugin, Plan, Rendered
from pergola.providers.networking.shoot_validator import shoot_validator
from pergola.runtime.clock import Clock, FakeClock
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.metrics import Metrics
from pergola.testing.crds import definition, install_extension_crds, serve
from pergola.testing.waiting import running, settled, until, until_gone
from pergola.testing.world import RecordingClient
from tests.support.ports import held_port
from tests.support.service_accounts import service_account_config

NOW = datetime.now(UTC).replace(microsecond=0)
CALICO = "calico.networking.extensions.gardener.cloud/v1alpha1"
PROXY = "spec.kubernetes.kubeProxy.enabled"
TEXT = (
    "Disabling kube-proxy is forbidden in conjunction with weft without running in ebpf dataplane"
)


class Config(Value):
    """The config of a plugin that routes Services with eBPF only."""

    ebpf: bool = False
    """Whether eBPF routes Services."""


class Weft(NetworkPlugin[Config]):
    """A plugin whose type differs from test to test."""

    type = "weft"
    name = "networking-weft"
    config = Config

    def check(self, config: Config, families: Sequence[str]) -> Iterator[Cause]:
        yield from ()

    def check_shoot(self, config: Config, shoot: Shoot) -> Iterator[Cause]:
        if not shoot.kube_proxy_enabled and not config.ebpf:
            yield forbidden(PROXY, TEXT)

    def render(self, plan: Plan[Config]) -> Rendered:
        return Rendered(shoot=[])


class Site:
    """A component in a namespace, with its own cloud."""

    def __init__(self, client: RecordingClient, namespace: str, port: int) -> None:
        self.client = client
        self.namespace = namespace
        self.port = port
        self.token = secrets.token_hex(3)
        self.component = f"provider-azure-{self.token}"
        self.cloud = f"azure-{self.token}"
        self.name = f"gardener-extension-{self.component}"
        self.network_mutator = network_mutator(self.component, self.cloud, AZURE)

    def webhooks(
        self,
        *webhooks: Webhook,
        disabled: frozenset[str] = frozenset(),
        owner: str = "",
        clock: Clock | None = None,
        client: Client | None = None,
    ) -> ExtensionWebhooks:
        settings = WebhookSettings(
            mode="url",
            url=f"127.0.0.1:{self.port}",
            namespace=self.namespace,
            owner_namespace=owner,
            host="127.0.0.1",
            port=self.port,
            disabled=disabled,
        )
        return ExtensionWebhooks(
            client or self.client,
            self.component,
            webhooks,
            settings,
            Metrics(),
            clock=clock,
        )

    @asynccontextmanager
    async def serving(self, found: ExtensionWebhooks) -> AsyncIterator[list[Unit]]:
        """Serve and lead with the units, and keep the registrations afterwards."""
        async with found.served():
            units = [*found.units, *found.leading()]
            async with running(*units):
                await self.settled(units)
                yield units

    async def settled(self, units: list[Unit]) -> None:
        """Wait until all queues of the units are empty."""
        for unit in units:
            await settled(unit, self.client)

    async def registered(self, gvk: GroupVersionKind = MUTATING) -> JsonObject:
        return await until(self.client, gvk, Key("", self.name), lambda _: True)

    async def control_plane(self, network: str, cloud: str = "") -> str:
        """Create a namespace with the labels that a caller sets."""
        name = f"shoot--{self.token}--{secrets.token_hex(2)}"
        labels = {
            "shoot.gardener.cloud/provider": cloud or self.cloud,
            "networking.shoot.gardener.cloud/provider": network,
        }
        metadata = {"name": name, "labels": labels}
        await self.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        return name

    async def effective(self, namespace: str) -> None:
        """Wait until the API server calls the webhook for Networks."""
        probe = network(namespace, {"backend": "bird"}, name="probe")
        while True:
            with suppress(ApiError):
                stored = await self.client.create(probe, dry_run=True)
                if stored["spec"]["providerConfig"]["backend"] == "none":
                    return

    async def clean_up(self) -> None:
        for gvk in (MUTATING, VALIDATING):
            with suppress(NotFound):
                await self.client.delete(gvk, Key("", self.name))


def network(
    namespace: str, config: JsonObject, *, kind: str = "calico", name: str = "net"
) -> JsonObject:
    return {
        "apiVersion": NETWORK.api_version,
        "kind": NETWORK.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "type": kind,
            "podCIDR": "10.0.0.0/16",
            "serviceCIDR": "10.1.0.0/16",
            "providerConfig": config,
        },
    }


@pytest.fixture
async def site(kubeconfig: Path, namespace: str) -> AsyncIterator[Site]:
    with held_port() as port:
        async with RecordingClient.connect(load(kubeconfig)) as client:
            await install_extension_crds(client)
            own = Site(client, namespace, port)
            yield own
            await own.clean_up()


# Must hold


async def test_calicos_backend_is_none_on_azure_and_cilium_is_untouched(site: Site) -> None:
    calico = await site.control_plane("calico")
    cilium = await site.control_plane("cilium")
    async with site.serving(site.webhooks(site.network_mutator)):
        await site.effective(calico)
        config = {
            "apiVersion": CALICO,
            "kind": "NetworkConfig",
            "backend": "bird",
            "mine": {"a": 1},
        }
        stored = await site.client.create(network(calico, config))
        assert stored["spec"]["providerConfig"] == config | {"backend": "none"}
        other = {"backend": "bird", "tunnel": "vxlan"}
        stored = await site.client.create(network(cilium, other, kind="cilium"))
        assert stored["spec"]["providerConfig"] == other
        elsewhere = await site.control_plane("calico", cloud="gcp-of-nobody")
        stored = await site.client.create(network(elsewhere, config))
        assert stored["spec"]["providerConfig"] == config


async def test_a_network_under_deletion_is_neither_changed_nor_refused(site: Site) -> None:
    calico = await site.control_plane("calico")
    held = network(calico, {"backend": "bird"})
    held["metadata"]["finalizers"] = ["example.org/held"]
    await site.client.create(held)  # before the webhook exists, so that bird is stored
    key = Key(calico, "net")
    confirmed = {"metadata": {"annotations": {marks.CONFIRMATION_DELETION: "true"}}}
    await site.client.patch(NETWORK, key, confirmed)
    await site.client.delete(NETWORK, key)
    async with site.serving(site.webhooks(site.network_mutator)):
        await site.effective(calico)
        patch: JsonObject = {"metadata": {"annotations": {"a": "b"}}}
        updated = await site.client.patch(NETWORK, key, patch)
        assert updated["spec"]["providerConfig"] == {"backend": "bird"}
        await site.client.patch(NETWORK, key, {"metadata": {"finalizers": []}})
    await until_gone(site.client, NETWORK, key)


async def test_a_shoot_that_disables_kube_proxy_is_refused_with_the_path(site: Site) -> None:
    await add_shoots(site.client)
    kind = f"weft-{site.token}"
    plugin = type("Own", (Weft,), {"type": kind})()
    async with site.serving(site.webhooks(shoot_validator(plugin, site.component))):
        await site.registered(VALIDATING)
        text = await refused(site, shoot(site.namespace, kind, name="probe", proxy=False))
        assert f"{PROXY}: Forbidden: {TEXT}" in text
        await site.client.create(shoot(site.namespace, kind))
        key, off = Key(site.namespace, "web"), {"kubernetes": {"kubeProxy": {"enabled": False}}}
        with pytest.raises(Invalid) as update:
            await site.client.patch(SHOOT, key, {"spec": off})
        [cause] = update.value.causes
        assert (cause["field"], cause["message"]) == (PROXY, f"Forbidden: {TEXT}")
        config = {"providerConfig": {"ebpf": True}}
        await site.client.patch(SHOOT, key, {"spec": {**off, "networking": config}})


async def test_while_the_server_is_down_networks_are_blocked_but_not_their_status(
    site: Site,
) -> None:
    calico = await site.control_plane("calico")
    async with site.serving(site.webhooks(site.network_mutator)):
        await site.effective(calico)
        await site.client.create(network(calico, {"backend": "vxlan"}))
    with pytest.raises(ApiError, match="failed calling webhook"):
        await site.client.create(network(calico, {}, name="other"))
    with pytest.raises(ApiError, match="failed calling webhook"):
        await site.client.patch(NETWORK, Key(calico, "net"), {"metadata": {"labels": {"a": "b"}}})
    status: JsonObject = {"status": {"ipFamilies": ["IPv4"]}}
    await site.client.patch(NETWORK, Key(calico, "net"), status, subresource="status")
    async with site.serving(site.webhooks(site.network_mutator)):
        await site.effective(calico)
        stored = await site.client.create(network(calico, {"backend": "bird"}, name="other"))
    assert stored["spec"]["providerConfig"] == {"backend": "none"}


# Registration and certificates


async def test_the_registration_follows_the_contract_and_is_owned_by_a_namespace(
    site: Site,
) -> None:
    found = site.webhooks(site.network_mutator, owner=site.namespace)
    async with site.serving(found) as units:
        live = await site.registered()
        assert await found.is_ready() is None
        owner = await site.client.get(NAMESPACE, Key("", site.namespace))
        assert live["metadata"]["ownerReferences"] == [
            {
                "apiVersion": "v1",
                "kind": "Namespace",
                "name": site.namespace,
                "uid": uid_of(owner),
                "blockOwnerDeletion": False,
                "controller": False,
            }
        ]
        assert live["metadata"]["labels"] == {
            "remediation.webhook.shoot.gardener.cloud/exclude": "true"
        }
        [entry] = live["webhooks"]
        short = site.component.removeprefix("provider-")
        assert entry["name"] == f"network.{short}.extensions.gardener.cloud"
        assert entry["clientConfig"]["url"] == f"https://127.0.0.1:{site.port}/network"
        assert (entry["failurePolicy"], entry["timeoutSeconds"]) == ("Fail", 10)
        site.client.taken()
        await site.settled(units)
        assert site.client.taken() == []
    await found.unregister()
    await until_gone(site.client, MUTATING, Key("", site.name))


async def test_a_missing_owner_is_reported(site: Site) -> None:
    found = site.webhooks(site.network_mutator, owner="nowhere")
    with pytest.raises(ServingError, match="Namespace nowhere does not exist"):
        async with found.served():
            pass


async def test_a_disabled_webhook_is_unregistered(site: Site) -> None:
    calico = await site.control_plane("calico")
    async with site.serving(site.webhooks(site.network_mutator)):
        await site.effective(calico)
    async with site.serving(site.webhooks(site.network_mutator, disabled=frozenset({"network"}))):
        await until_gone(site.client, MUTATING, Key("", site.name))


async def test_a_renewed_authority_and_the_old_one_are_both_trusted_for_at_least_a_day(
    site: Site,
) -> None:
    clock = FakeClock(NOW)
    found = site.webhooks(site.network_mutator, clock=clock)
    async with site.serving(found):
        first = trusted(await site.registered())
        await passes(site, found, clock, timedelta(days=25))
        both = trusted(
            await until(site.client, MUTATING, Key("", site.name), lambda o: trusted(o) != first)
        )
    new, old = read_bundle(both)
    assert read_bundle(first) == [old]
    assert old.not_valid_after_utc - renewal_of(old) >= timedelta(days=1)
    assert old.not_valid_after_utc - clock.now() >= timedelta(days=1)
    assert new.not_valid_after_utc > old.not_valid_after_utc


async def test_registration_needs_only_the_documented_permissions(
    site: Site, kubeconfig: Path
) -> None:
    calico = await site.control_plane("calico")
    async with restricted(site, load(kubeconfig)) as client:
        found = site.webhooks(site.network_mutator, owner=site.namespace, client=client)
        async with site.serving(found):
            await site.registered()
            await site.effective(calico)
        await found.unregister()
        with pytest.raises(Forbidden):
            await client.list(MUTATING)
        with pytest.raises(Forbidden):
            await client.list(SECRET, site.namespace)


# Inside Shoots


async def test_shoots_trust_a_renewed_authority_at_once(site: Site) -> None:
    clock, name = FakeClock(NOW), f"webhooks-{site.token}"
    webhook = dns_webhook(site)
    found = site.webhooks(webhook, clock=clock)
    shoot_configurations = found.in_shoots(site.component, name, [webhook])
    key = Key(site.namespace, name)
    with pytest.raises(RequeueAfter, match="has no webhook certificates yet"):
        await shoot_configurations()
    async with site.serving(found) as units:
        objects = Registry(*await shoot_configurations())
        written = await apply(
            site.client, for_shoot(*key, objects, origin="test", keep_objects=True)
        )
        site.client.taken()
        await site.settled(units)
        assert site.client.taken() == []
        await passes(site, found, clock, timedelta(days=29))
        changed = await until(
            site.client,
            MANAGED_RESOURCE,
            key,
            lambda obj: obj["spec"]["secretRefs"] != written["spec"]["secretRefs"],
        )
        again = for_shoot(*key, Registry(*await shoot_configurations()), origin="test")
    desired = again.managed_resource["spec"]["secretRefs"]
    assert changed["spec"] == written["spec"] | {"secretRefs": desired}
    assert changed["metadata"]["labels"] == written["metadata"]["labels"]
    with pytest.raises(NotFound):
        await site.client.get(MUTATING, Key("", site.name))


async def test_a_managed_resource_of_another_cloud_is_left_alone(site: Site) -> None:
    """Control planes of every cloud have a ManagedResource of one name."""
    clock, name = FakeClock(NOW), f"webhooks-{site.token}"
    webhook = dns_webhook(site)
    found = site.webhooks(webhook, clock=clock)
    namespaces = {"shoot.gardener.cloud/provider": site.cloud}
    own = found.in_shoots(site.component, name, [webhook], namespaces)
    keys = [
        Key(await site.control_plane("calico", cloud), name)
        for cloud in (f"other-{site.token}", site.cloud)
    ]
    async with site.serving(found) as units:
        objects = Registry(*await own())
        before = [await apply(site.client, for_shoot(*key, objects, origin="test")) for key in keys]
        await passes(site, found, clock, timedelta(days=29))
        await until(site.client, MANAGED_RESOURCE, keys[1], partial(differs, before[1]))
        await site.settled(units)
    left_alone = await site.client.get(MANAGED_RESOURCE, keys[0])
    assert left_alone["spec"] == before[0]["spec"]


async def test_two_types_have_separate_webhooks_in_shoots(site: Site) -> None:
    webhook = dns_webhook(site)
    registration = replace(webhook.registration, name=f"other.{site.token}.example.org", path="/b")
    groups = {"weft": webhook, "warp": replace(webhook, registration=registration)}
    clock = FakeClock(NOW)
    found = site.webhooks(*groups.values(), clock=clock)
    asked = {kind: found.in_shoots(kind, f"{kind}-{site.token}", [w]) for kind, w in groups.items()}
    async with site.serving(found) as units:
        names = [controller.name for unit in units for controller in unit.controllers]
        assert names[-2:] == ["shoot-webhooks-weft", "shoot-webhooks-warp"]
        for kind, configurations in asked.items():
            [configuration] = await configurations()
            assert configuration["metadata"]["name"] == f"gardener-extension-{kind}-shoot"
            [entry] = maps_at(configuration, "webhooks")
            assert entry["name"] == groups[kind].registration.name
            objects = Registry(configuration)
            name = f"{kind}-{site.token}"
            await apply(site.client, for_shoot(site.namespace, name, objects, origin="test"))
        keys = {kind: Key(site.namespace, f"{kind}-{site.token}") for kind in groups}
        before = {kind: await site.client.get(MANAGED_RESOURCE, keys[kind]) for kind in groups}
        await passes(site, found, clock, timedelta(days=29))
        for kind, key in keys.items():
            changed = partial(differs, before[kind])
            live = await until(site.client, MANAGED_RESOURCE, key, changed)
            desired = for_shoot(*key, Registry(*await asked[kind]()), origin="test")
            references = desired.managed_resource["spec"]["secretRefs"]
            assert live["spec"]["secretRefs"] == references


async def test_a_webhook_for_shoots_changes_objects_in_a_shoot(
    site: Site, second_sandbox_client: Client
) -> None:
    webhook = dns_webhook(site)
    found = site.webhooks(webhook)
    shoot_configurations = found.in_shoots(site.component, "unused", [webhook])
    async with site.serving(found), AsyncExitStack() as stack:
        for configuration in await shoot_configurations():
            await stack.enter_async_context(created(second_sandbox_client, configuration))
        created_there = await until_changed(second_sandbox_client, site.token)
    assert created_there["data"] == {"Corefile": "bind 0.0.0.0"}


@asynccontextmanager
async def restricted(site: Site, admin: ClusterConfig) -> AsyncIterator[Client]:
    """Yield a client with only the permissions that webhooks need."""
    name, group = site.name, "rbac.authorization.k8s.io"
    subject = {"kind": "ServiceAccount", "name": name, "namespace": site.namespace}
    for kind, namespace, rules in (
        ("ClusterRole", "", cluster_rules(site.component, site.namespace)),
        ("Role", site.namespace, namespace_rules(site.component)),
    ):
        metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
        base = {"apiVersion": f"{group}/v1", "metadata": metadata}
        reference = {"apiGroup": group, "kind": kind, "name": name}
        bound = {"roleRef": reference, "subjects": [subject]}
        await site.client.create(base | {"kind": kind, "rules": rules})
        await site.client.create(base | {"kind": f"{kind}Binding"} | bound)
    metadata = {"name": name, "namespace": site.namespace}
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
    await site.client.create(account)
    config = await service_account_config(admin, site.namespace, name)
    async with Client.connect(config) as client:
        while True:  # the authorizer learns of new Roles by watching
            try:
                await client.list(MUTATING, fields=f"metadata.name={name}")
                await client.list(SECRET, site.namespace, fields=f"metadata.name={name}-webhooks")
            except Forbidden:
                await site.client.get_raw("/version")
            else:
                break
        yield client
    for kind in ("ClusterRoleBinding", "ClusterRole"):
        await site.client.delete(GroupVersionKind(group, "v1", kind), Key("", name))


def dns_webhook(site: Site) -> Webhook:
    """Return cilium's webhook, for ConfigMaps with a label of the test."""

    def opened(obj: JsonObject) -> JsonObject:
        return obj | {"data": {"Corefile": "bind 0.0.0.0"}}

    mutation = ObjectMutation(
        resource=GroupVersionResource("", "v1", "configmaps"),
        mutate=from_objects(opened, "cilium redirects"),
        prefixes=("node-local-dns",),
    )
    return shoot_objects_mutator(
        site.component,
        "node-local-dns",
        [mutation],
        namespace_selector={},
        object_selector={"matchLabels": {"k8s-app": f"node-local-dns-{site.token}"}},
        failure_policy="Fail",
    )


def created(client: Client, obj: JsonObject) -> AbstractAsyncContextManager[None]:
    """Create an object, and delete it when the block ends."""

    @asynccontextmanager
    async def there() -> AsyncIterator[None]:
        await client.create(obj)
        try:
            yield
        finally:
            await client.delete(GroupVersionKind.of(obj), Key.of(obj))

    return there()


async def until_changed(client: Client, token: str) -> JsonObject:
    """Wait until the API server calls the webhook for a ConfigMap, and return the stored object."""
    labels = {"k8s-app": f"node-local-dns-{token}"}
    obj: JsonObject = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"node-local-dns-{token}", "namespace": "default", "labels": labels},
        "data": {"Corefile": "bind 169.254.20.10"},
    }
    while True:
        with suppress(ApiError):
            stored = await client.create(obj, dry_run=True)
            if stored["data"] != obj["data"]:
                return stored


def differs(before: JsonObject, resource: JsonObject) -> bool:
    return bool(resource["spec"]["secretRefs"] != before["spec"]["secretRefs"])


def trusted(configuration: JsonObject) -> bytes:
    """Return the authorities that the API server trusts."""
    return base64.b64decode(maps_at(configuration, "webhooks")[0]["clientConfig"]["caBundle"])


async def passes(site: Site, found: ExtensionWebhooks, clock: FakeClock, time: timedelta) -> None:
    """Advance the clock, and wait until the leader has noticed."""
    clock.set(NOW + time)
    annotations = {"example.org/looked-at": str(time)}
    await site.client.patch(SECRET, found.secret, {"metadata": {"annotations": annotations}})


def shoot(namespace: str, kind: str, *, name: str = "web", proxy: bool | None = None) -> JsonObject:
    labels = {f"networking.extensions.gardener.cloud/{kind}": "true"}
    kubernetes = {} if proxy is None else {"kubeProxy": {"enabled": proxy}}
    return {
        "apiVersion": SHOOT.api_version,
        "kind": SHOOT.kind,
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {
            "networking": {"type": kind},
            "provider": {"type": "gcp", "workers": [{"name": "w"}]},
            "kubernetes": kubernetes,
        },
    }


async def refused(site: Site, obj: JsonObject) -> str:
    """Wait until the API server calls the webhook, and return its refusal of an object."""
    while True:
        try:
            await site.client.create(obj, dry_run=True)
        except Invalid as error:
            return str(error)
        except KubeError:
            await site.client.get_raw("/version")


async def add_shoots(client: Client) -> None:
    """Wait until Shoots are served."""
    await serve(client, definition(SHOOT))


@pytest.fixture
async def second_sandbox_client(request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    """Yield an administrator's client of the Shoot's cluster."""
    shoot_cluster = request.getfixturevalue("second_sandbox")
    async with Client.connect(load(shoot_cluster.kubeconfig)) as client:
        yield client
