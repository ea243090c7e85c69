"""A landscape in AWS: credentials, and Shoots by Pergola's extensions."""

from typing import Final

from pergola.api.kinds import SHOOT
from pergola.api.objects import JsonObject, Key, map_at
from pergola.cloud.aws import AwsClient
from pergola.manifests import manifest
from pergola.sandbox.aws.world import everything
from pergola.sandbox.landscape import Reconciliation, create_shoot, succeeded
from pergola.sandbox.landscape.aws import REGION
from pergola.testing.waiting import until
from tests.support.landscape import PATIENCE, SeedCluster, World

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
_KEYS: Final = {"accessKeyID": "AKIAIOSFODNN7EXAMPLE", "secretAccessKey": "example"}


def backup_secret() -> JsonObject:
    """Return the Secret with the credentials for backups."""
    name = BACKUP["credentialsRef"]["name"]
    return manifest("v1", "Secret", name, namespace="garden", stringData=_KEYS)


async def create_shoot_on_aws(landscape: World, seed: str, name: str) -> Key:
    """Create a Shoot on AWS, and wait until it is healthy."""
    spec: JsonObject = {"seedName": seed, "dns": {"domain": f"{name}.example.org"}}
    patch: JsonObject = {"metadata": {"name": name}, "spec": spec}
    key = await create_shoot(landscape.garden, patch, example="shoot-on-aws.yaml")
    await landscape.healthy(SHOOT, key)
    return key


async def move(landscape: World, key: Key, target: SeedCluster) -> None:
    """Move the control plane of a Shoot to another Seed, and wait until it is healthy there."""
    binding = {"spec": {"seedName": target.name}}
    await landscape.garden.patch(SHOOT, key, binding, subresource="binding")

    def is_there(obj: JsonObject) -> bool:
        is_restored = map_at(obj, "status", "lastOperation").get("type") == "Restore"
        return is_restored and succeeded(Reconciliation(obj))

    await until(landscape.garden, SHOOT, key, is_there, patience=PATIENCE)


async def settled(account: AwsClient) -> dict[str, JsonObject]:
    """Return everything in an account once nothing of it is being created.

    Without the numbers of free addresses: moto does not free those of terminated instances.
    """
    found = await everything(account)
    while any(each.get("State") == "pending" for each in found.values()):
        found = await everything(account)
    for each in found.values():
        each.pop("AvailableIpAddressCount", None)
    return found
