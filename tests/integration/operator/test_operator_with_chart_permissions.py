"""The operator works with exactly the permissions of its chart."""

from collections.abc import AsyncIterator
from typing import Final

import pytest

from pergola.admission.configurations import configuration_keys
from pergola.api.kinds import LEASE, SECRET
from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.garden.components.catalog import CATALOG
from pergola.garden.components.component import Managed, Removable, Rendered
from pergola.garden.components.etcds.etcds import ETCDS
from pergola.garden.landscape import Landscape
from pergola.kube.client import Client
from pergola.kube.errors import Forbidden
from pergola.kube.kubeconfig import ClusterConfig
from pergola.operator.run.build import build
from pergola.operator.run.deploy import Deployer
from pergola.operator.webhooks.catalog import CONFIGURATION_NAME
from pergola.runtime.clock import SystemClock
from pergola.runtime.process.leader_election import LeaderElection
from pergola.testing.waiting import until
from tests.support.garden import GARDEN, HIGHLY_AVAILABLE, landscape
from tests.support.operator_site import OperatorSite
from tests.support.strict_client import StrictClient

BUILT_IN: Final = {
    "",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apps",
    "autoscaling",
    "policy",
    "rbac.authorization.k8s.io",
}
LOCK: Final = Key("garden", "gardener-operator-leader-election")
GENERATED: Final = "managed-by=secrets-manager"


@pytest.fixture
async def operator(granted: ClusterConfig) -> AsyncIterator[Client]:
    async with Client.connect(granted) as client:
        yield client


def config_map(name: str, namespace: str, text: str) -> JsonObject:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": text}}


def given(garden: object) -> Landscape:
    del garden
    return landscape()


async def test_the_operator_may_apply_roles_with_the_permissions_that_it_grants(
    granted: ClusterConfig,
) -> None:
    built = landscape(HIGHLY_AVAILABLE)
    objects = [
        obj
        for component in CATALOG
        if component.absent(built) is None
        for obj in component.objects(built).direct
        if GroupVersionKind.of(obj).group in BUILT_IN
    ]
    kinds = {obj["kind"] for obj in objects}
    assert kinds > {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "Deployment"}

    async with StrictClient.connect(granted) as client:
        for obj in objects:
            await client.apply(obj, manager="test", force=True)


async def test_the_operator_must_not_grant_everything_under_another_name(
    granted: ClusterConfig,
) -> None:
    everything = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
    role: JsonObject = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "other"},
        "rules": [everything],
    }

    async with StrictClient.connect(granted) as client:
        with pytest.raises(Forbidden):
            await client.apply(role, manager="test", force=True)


async def test_the_operator_generates_and_cleans_up_credentials(
    runtime: Client, operator: Client
) -> None:
    clock = SystemClock()
    built = await build(operator, GARDEN, given, clock)
    await built.generate_authorities()
    await built.generate(ETCDS.credentials(built.landscape))
    first = await runtime.list(SECRET, LOCK.namespace, labels=GENERATED)

    again = await build(operator, GARDEN, given, clock)
    await again.generate_authorities()
    await again.secrets.cleanup()

    left = await runtime.list(SECRET, LOCK.namespace, labels=GENERATED)
    assert 0 < len(left) < len(first)
    for secret in left:
        await runtime.delete(SECRET, Key.of(secret))


async def test_the_operator_maintains_managed_resources_in_the_namespace_of_a_component(
    runtime: Client, operator: Client
) -> None:
    namespace = "component"
    metadata = {"name": namespace}
    deployer, key = Deployer(operator), Key(namespace, "demo")
    await deployer.apply(
        Rendered(direct=({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata},))
    )

    for text in ("1", "2"):
        objects = (config_map("a", namespace, text),)
        managed = Managed(name=key.name, namespace=namespace, objects=objects)
        await deployer.apply(Rendered(managed=(managed,)))

    assert await runtime.get(MANAGED_RESOURCE, key)
    removable = Removable(managed=(key,))
    await deployer.remove(removable)
    await deployer.wait_removed(removable, 30)


async def test_the_operator_serves_and_registers_its_webhooks(
    runtime: Client, operator: Client
) -> None:
    site = OperatorSite(runtime, operator)

    async with site.serving():
        for gvk, key in configuration_keys(CONFIGURATION_NAME):
            await until(runtime, gvk, key, lambda obj: bool(obj["webhooks"]))


async def test_the_operator_acquires_and_releases_its_lease(
    runtime: Client, operator: Client
) -> None:
    election = LeaderElection(operator, LOCK.namespace, LOCK.name, "me")

    async def lead() -> str:
        lease = await runtime.get(LEASE, LOCK)
        return str(lease["spec"]["holderIdentity"])

    assert await election.run(lead) == "me"
    assert (await runtime.get(LEASE, LOCK))["spec"]["holderIdentity"] == ""
