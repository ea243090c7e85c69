"""Shoots with Pergola's extensions, which the operator installs from a registry."""

from collections.abc import AsyncIterator, Iterable
from typing import Final

import pytest
import pytest_asyncio

from pergola.api.extensions_v1alpha1 import NETWORK
from pergola.api.kinds import SEED, SHOOT
from pergola.api.marks import OPERATION
from pergola.api.objects import JsonObject, Key, annotations_of, map_at
from pergola.extension_api import kinds as extension_kinds
from pergola.manifests import manifest
from pergola.operator.gardenlet.names import GARDENLET
from pergola.sandbox.aws.corrections import CorrectedAws
from pergola.sandbox.aws.moto import moto
from pergola.sandbox.aws.world import everything
from pergola.sandbox.landscape import Reconciliation, create_shoot, is_reconciled, succeeded
from pergola.testing.waiting import until
from tests.support.landscape import PATIENCE, SeedCluster, World

pytestmark = [
    pytest.mark.soak("landscape"),
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(1800),
]

_MADE: Final = {"KeyPairs", "NatGateways", "Roles", "SecurityGroups", "Subnets", "Vpcs"}
_WITHOUT_NODES: Final = {"shoot.gardener.cloud/skip-readiness": ""}
_REGION: Final = "eu-west-1"
_KEYS: Final = {"accessKeyID": "AKIAIOSFODNN7EXAMPLE", "secretAccessKey": "example"}
_BACKUP: Final[JsonObject] = {
    "backup": {
        "provider": "aws",
        "region": _REGION,
        "credentialsRef": {
            "apiVersion": "v1",
            "kind": "Secret",
            "namespace": "garden",
            "name": "backup-aws",
        },
    }
}


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def aws() -> AsyncIterator[CorrectedAws]:
    """Yield an AWS with the hosted zone of the Shoot's domain."""
    with moto() as server:
        async with CorrectedAws(server) as double:
            async with double.client(_REGION) as client:
                await client.call(
                    "route53", "CreateHostedZone", Name="example.org", CallerReference="once"
                )
            yield double


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def seed_with_extensions(landscape: World, aws: CorrectedAws) -> SeedCluster:
    """Return a Seed on which Pergola's extensions run once a Shoot requires them."""
    await landscape.install("pergola-aws", {"AWS_ENDPOINT_URL": aws.url})
    await landscape.install("networking-calico")
    return await landscape.seed("aws")


async def test_the_aws_resources_of_a_shoot_are_made_once_and_removed(
    landscape: World, aws: CorrectedAws, seed_with_extensions: SeedCluster
) -> None:
    seed = seed_with_extensions
    async with aws.client(_REGION) as account:
        before = await everything(account)
        patch = {"spec": {"seedName": seed.name}}
        key = await create_shoot(landscape.garden, patch, example="shoot-on-aws.yaml")
        await landscape.reconciled(SHOOT, key)
        made = await everything(account)
        assert kinds(made.keys() - before.keys()) >= _MADE
        # gardenlet reconciles all Shoots when it starts with the new settings.
        await landscape.garden.patch(SHOOT, key, {"metadata": {"annotations": _WITHOUT_NODES}})
        await back_up(landscape, seed)
        await reconcile(landscape, key)
        entries = await seed.site.client.list(extension_kinds.BACKUP_ENTRY.gvk)
        assert [map_at(each, "status", "lastOperation")["state"] for each in entries] == [
            "Succeeded"
        ]
        assert await everything(account) == made
        await landscape.delete(SHOOT, key)
        assert await everything(account) == before
    assert seed.refused() == []


async def test_cilium_makes_the_network_of_a_shoot(landscape: World, seed: SeedCluster) -> None:
    await landscape.install("networking-cilium")
    patch = {
        "metadata": {"name": "cilium"},
        "spec": {"seedName": seed.name, "networking": {"type": "cilium"}},
    }
    key = await create_shoot(landscape.garden, patch, example="shoot-with-workers.yaml")
    await landscape.reconciled(SHOOT, key)
    namespace = map_at(await landscape.garden.get(SHOOT, key), "status")["technicalID"]
    [network] = await seed.site.client.list(NETWORK, namespace)
    assert map_at(network, "status", "lastOperation")["state"] == "Succeeded"
    await landscape.delete(SHOOT, key)
    assert seed.refused() == []


async def reconcile(landscape: World, key: Key) -> None:
    """Reconcile a Shoot whose nodes are not waited for, and wait until that is done."""
    annotations = {**_WITHOUT_NODES, OPERATION: "reconcile"}
    await landscape.garden.patch(SHOOT, key, {"metadata": {"annotations": annotations}})

    def is_done(obj: JsonObject) -> bool:
        return OPERATION not in annotations_of(obj) and is_reconciled(Reconciliation(obj))

    await until(landscape.garden, SHOOT, key, is_done, patience=PATIENCE)


async def back_up(landscape: World, seed: SeedCluster) -> None:
    """Let the Seed keep its backups in AWS, and wait until it does.

    Not from the start: gardenlet would ask for a snapshot of a new etcd, and looks up its name in
    the DNS of the machine.
    """
    secret = manifest("v1", "Secret", "backup-aws", namespace="garden", stringData=_KEYS)
    await landscape.garden.create(secret)
    settings: JsonObject = {"spec": {"config": {"seedConfig": {"spec": _BACKUP}}}}
    await landscape.garden.patch(GARDENLET, Key("garden", seed.name), settings)

    def has_backup(obj: JsonObject) -> bool:
        return "backup" in map_at(obj, "spec") and succeeded(Reconciliation(obj))

    await until(landscape.garden, SEED, Key("", seed.name), has_backup, patience=PATIENCE)


def kinds(things: Iterable[str]) -> set[str]:
    """Return the kinds of things in an account."""
    return {each.partition("/")[0] for each in things}
