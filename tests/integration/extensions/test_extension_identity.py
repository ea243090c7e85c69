"""The process of an extension with exactly the permissions of its installation (spec 40 §8)."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from pergola.admission.configurations import MUTATING
from pergola.admission.webhook import Webhook
from pergola.api.kinds import LEASE, SECRET
from pergola.api.objects import GroupVersionKind, JsonObject, Key, maps_at, name_of
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.extension_api.heartbeat import NAME as HEARTBEAT
from pergola.extensions.installation import Installation, installation_documents, installation_of
from pergola.extensions.lifecycle import Settings
from pergola.extensions.process import Options, serve
from pergola.extensions.seed import Seed
from pergola.extensions.webhooks.clouds import AZURE
from pergola.extensions.webhooks.network_mutator import network_mutator
from pergola.extensions.webhooks.settings import WebhookSettings
from pergola.kube.client import Client
from pergola.kube.errors import ApiError, Forbidden, NotFound
from pergola.kube.kubeconfig import load
from pergola.providers.networking.cilium import Cilium
from pergola.testing.extension_site import ExtensionSite, extension_site
from pergola.testing.network_site import give_shoot_access
from pergola.testing.waiting import until
from tests.support.ports import held_port
from tests.support.service_accounts import service_account_config, until_granted

CLUSTER_SCOPED = ("ClusterRole", "ClusterRoleBinding")
RBAC_KINDS = ("ServiceAccount", "Role", "RoleBinding", *CLUSTER_SCOPED)
SHOOT: JsonObject = {
    "spec": {
        "dns": {"domain": "web.example.org"},
        "kubernetes": {"version": "1.33.0", "kubeProxy": {"enabled": True}},
        "networking": {"pods": "100.64.0.0/11", "nodes": "10.250.0.0/16"},
        "provider": {"type": "local", "workers": [{"name": "w"}]},
    }
}


@dataclass
class Installed:
    """Cilium with its own type, an extra webhook at the seed, and its identity."""

    site: ExtensionSite
    actuator: Cilium
    installation: Installation


@pytest.fixture
async def installed(cluster_client: Client, namespace: str) -> AsyncIterator[Installed]:
    site = await extension_site(cluster_client, namespace, f"own-{namespace[-6:]}")
    await site.put_cluster(SHOOT)
    component = f"networking-{site.type}"

    class Own(Cilium):
        type = site.type
        name = component

        def webhooks(self, seed: Seed) -> Sequence[Webhook]:
            changed = network_mutator(component, site.type, {site.type: AZURE["calico"]})
            return [*super().webhooks(seed), changed]

    actuator = Own()
    found = installation_of([actuator], ["own.py:Own"], "registry.example/x:1")
    installation = replace(found, namespace=namespace)
    documents = installation_documents(installation)
    for document in documents:
        await cluster_client.create(document, dry_run=document["kind"] not in RBAC_KINDS)
    yield Installed(site, actuator, installation)
    for document in documents:
        if document["kind"] in CLUSTER_SCOPED:
            gvk = GroupVersionKind.of(document)
            await cluster_client.delete(gvk, Key("", name_of(document)))
    with suppress(NotFound):
        await cluster_client.delete(MUTATING, Key("", f"gardener-extension-{component}"))
    await site.clean_up()


async def test_a_process_with_webhooks_needs_no_other_permissions_than_its_roles(
    installed: Installed, kubeconfig: Path
) -> None:
    site, name = installed.site, installed.installation.name
    account = await service_account_config(load(kubeconfig), site.namespace, name)
    async with Client.connect(account) as restricted:
        await until_granted(site.client, Key(site.namespace, name))
        with pytest.raises(Forbidden):
            await restricted.list(MUTATING)
        with pytest.raises(Forbidden):
            await restricted.list(SECRET, site.namespace)
    await give_shoot_access(site.client, site.namespace, kubeconfig)
    with held_port() as port:
        running = asyncio.create_task(serve(account, [installed.actuator], options(site, port)))
        try:
            await works(site, name)
            assert not running.done()
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running


async def works(site: ExtensionSite, name: str) -> None:
    """Check that the extension is alive and registered, and reconciles and deletes a Network."""
    registered = Key("", f"gardener-extension-{name}")
    configuration = await until(site.client, MUTATING, registered, lambda _: True)
    [entry] = maps_at(configuration, "webhooks")
    assert entry["clientConfig"]["url"].endswith("/network")
    lease = await until(site.client, LEASE, Key(site.namespace, HEARTBEAT), lambda _: True)
    assert lease["spec"]["holderIdentity"] == name
    await site.create("reconcile")
    await site.until_operation("Create")
    resources = await site.client.list(MANAGED_RESOURCE, site.namespace)
    assert len(resources) == 2  # for the Network, and for the webhooks in the Shoot
    await site.delete()
    while resources:  # as a resource manager would for a Shoot that does not exist
        for resource in resources:
            patch: JsonObject = {"metadata": {"finalizers": []}}
            with suppress(NotFound, ApiError):
                await site.client.patch(MANAGED_RESOURCE, Key.of(resource), patch)
        resources = await site.client.list(MANAGED_RESOURCE, site.namespace)
    await site.until_gone()


def options(site: ExtensionSite, port: int) -> Options:
    return Options(
        lifecycle=Settings(),
        webhooks=WebhookSettings(
            mode="url",
            url=f"127.0.0.1:{port}",
            namespace=site.namespace,
            owner_namespace=site.namespace,
            host="127.0.0.1",
            port=port,
        ),
        leader_election_namespace=site.namespace,
        heartbeat_namespace=site.namespace,
        metrics_bind_address="0",
        health_bind_address="0",
    )
