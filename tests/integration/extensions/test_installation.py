"""Installations of extensions on a real API server: valid, with minimal permissions (§8)."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from pergola.api.kinds import LEASE, SECRET
from pergola.api.objects import GroupVersionKind, JsonObject, Key, name_of
from pergola.extension_api.caller import NETWORK, deploy, destroy, wait_deleted, wait_ready
from pergola.extensions.heartbeat import Heartbeat
from pergola.extensions.installation import (
    Installation,
    installation_documents,
    installation_of,
)
from pergola.kube.client import Client
from pergola.kube.errors import Forbidden
from pergola.kube.kubeconfig import load
from pergola.runtime.clock import SystemClock
from pergola.testing.extension_site import ExtensionSite, extension_site, recording_actuator
from pergola.testing.waiting import running, settled
from pergola.testing.world import config_map
from tests.support.service_accounts import service_account_config, until_granted

CLOCK = SystemClock()
CLUSTER_SCOPED = ("ClusterRole", "ClusterRoleBinding")
RBAC_KINDS = ("ServiceAccount", "Role", "RoleBinding", *CLUSTER_SCOPED)


class Installed:
    """A site with an installed extension."""

    def __init__(self, site: ExtensionSite) -> None:
        self.site = site
        self.actuator = recording_actuator(site.type)
        of_all = installation_of(
            [self.actuator], ["recording.py:Recording"], "registry.example/x:1"
        )
        # All tests share the names of ClusterRoles; the end of the type is random.
        self.installation: Installation = replace(
            of_all, name=f"networking-{site.type[-20:]}", namespace=site.namespace
        )

    async def client(self, kubeconfig: Path) -> Client:
        admin, name = load(kubeconfig), self.installation.name
        return Client.connect(await service_account_config(admin, self.site.namespace, name))


@pytest.fixture
async def installed(cluster_client: Client, namespace: str) -> AsyncIterator[Installed]:
    installed = Installed(await extension_site(cluster_client, namespace))
    documents = installation_documents(installed.installation)
    for document in documents:
        await cluster_client.create(document, dry_run=document["kind"] not in RBAC_KINDS)
    yield installed
    for document in documents:
        if document["kind"] in CLUSTER_SCOPED:
            gvk = GroupVersionKind.of(document)
            await cluster_client.delete(gvk, Key("", name_of(document)))
    await installed.site.clean_up()


async def test_an_extension_needs_no_other_permissions_than_its_role(
    installed: Installed, kubeconfig: Path
) -> None:
    site = installed.site
    network: JsonObject = {
        "metadata": {"name": site.key.name, "namespace": site.namespace},
        "spec": {"type": site.type, "podCIDR": "10.1.0.0/16", "serviceCIDR": "10.2.0.0/16"},
    }
    async with await installed.client(kubeconfig) as restricted:
        await until_granted(site.client, Key(site.namespace, installed.installation.name))
        unit = site.unit(installed.actuator, client=restricted)
        async with running(unit):
            request = await deploy(site.client, NETWORK, network, CLOCK)
            await wait_ready(site.client, NETWORK, site.key, expected=request.timestamp)
            await destroy(site.client, NETWORK, site.key, CLOCK)
            await wait_deleted(site.client, NETWORK, site.key)
            await settled(unit, site.client)
        await Heartbeat(restricted, installed.installation.name, site.namespace).beat()
    assert installed.actuator.calls == ["reconcile", "delete"]
    lease = await site.client.get(LEASE, Key(site.namespace, "gardener-extension-heartbeat"))
    assert lease["spec"]["holderIdentity"] == installed.installation.name


async def test_an_extension_may_read_secrets_but_not_list_them(
    installed: Installed, kubeconfig: Path
) -> None:
    namespace = installed.site.namespace
    async with await installed.client(kubeconfig) as restricted:
        await until_granted(installed.site.client, Key(namespace, installed.installation.name))
        await restricted.create(config_map("own", namespace, a="b"))
        with pytest.raises(Forbidden):
            await restricted.list(SECRET, namespace)
        with pytest.raises(Forbidden):
            await restricted.delete(NETWORK.gvk, installed.site.key)
