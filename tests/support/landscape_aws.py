"""A landscape in AWS: an account, credentials, and Shoots by Pergola's extensions."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from pergola.api.kinds import SHOOT
from pergola.api.marks import OPERATION
from pergola.api.objects import JsonObject, Key, annotations_of, map_at
from pergola.manifests import manifest
from pergola.sandbox.aws.corrections import CorrectedAws
from pergola.sandbox.aws.moto import moto
from pergola.sandbox.landscape import Reconciliation, create_shoot, is_reconciled
from pergola.testing.waiting import until
from tests.support.landscape import PATIENCE, SeedCluster, World

REGION: Final = "eu-west-1"
BACKUP: Final[JsonObject] = {
    "provider": "aws",
    "region": REGION,
    "credentialsRef": {
        "apiVersion": "v1",
        "kind": "Secret",
        "namespace": "garden",
        "name": "backup-aws",
    },
}
"""The backups of a Seed or Garden."""
BACKED_UP: Final[JsonObject] = {"spec": {"config": {"seedConfig": {"spec": {"backup": BACKUP}}}}}
"""A merge patch of a Gardenlet."""
_WITHOUT_NODES: Final = {"shoot.gardener.cloud/skip-readiness": ""}
_KEYS: Final = {"accessKeyID": "AKIAIOSFODNN7EXAMPLE", "secretAccessKey": "example"}


@asynccontextmanager
async def account_in_aws() -> AsyncGenerator[CorrectedAws]:
    """Run an AWS with the hosted zone of the Shoots' domain."""
    with moto() as server:
        async with CorrectedAws(server) as double:
            async with double.client(REGION) as client:
                await client.call(
                    "route53", "CreateHostedZone", Name="example.org", CallerReference="once"
                )
            yield double


def backup_secret() -> JsonObject:
    """Return the Secret with the credentials for backups."""
    name = BACKUP["credentialsRef"]["name"]
    return manifest("v1", "Secret", name, namespace="garden", stringData=_KEYS)


async def create_shoot_on_aws(landscape: World, seed: str, name: str) -> Key:
    """Create a Shoot on AWS, and wait until it is reconciled; its nodes are not waited for."""
    spec: JsonObject = {"seedName": seed, "dns": {"domain": f"{name}.example.org"}}
    patch: JsonObject = {"metadata": {"name": name}, "spec": spec}
    key = await create_shoot(landscape.garden, patch, example="shoot-on-aws.yaml")
    await landscape.reconciled(SHOOT, key)
    return key


async def reconcile(landscape: World, key: Key) -> None:
    """Reconcile a Shoot on AWS, and wait until that is done."""
    annotations = {**_WITHOUT_NODES, OPERATION: "reconcile"}
    await landscape.garden.patch(SHOOT, key, {"metadata": {"annotations": annotations}})

    def is_done(obj: JsonObject) -> bool:
        return OPERATION not in annotations_of(obj) and is_reconciled(Reconciliation(obj))

    await until(landscape.garden, SHOOT, key, is_done, patience=PATIENCE)


async def move(landscape: World, key: Key, target: SeedCluster) -> None:
    """Move the control plane of a Shoot to another Seed, and wait until it is restored there."""
    await landscape.garden.patch(SHOOT, key, {"metadata": {"annotations": _WITHOUT_NODES}})
    binding = {"spec": {"seedName": target.name}}
    await landscape.garden.patch(SHOOT, key, binding, subresource="binding")

    def is_there(obj: JsonObject) -> bool:
        is_restored = map_at(obj, "status", "lastOperation").get("type") == "Restore"
        return is_restored and is_reconciled(Reconciliation(obj))

    await until(landscape.garden, SHOOT, key, is_there, patience=PATIENCE)
