"""A Seed that is also the runtime cluster of its Garden."""

from typing import NamedTuple

import orjson
import pytest

from pergola.api.kinds import NAMESPACE, SEED, SHOOT
from pergola.api.objects import JsonObject, Key, generation_of, map_at, uid_of
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.operator.gardenlet.names import GARDENLET
from pergola.sandbox.aws.corrections import CorrectedAws
from pergola.sandbox.landscape import create_shoot
from pergola.sandbox.simulated import Site
from pergola.testing.waiting import until
from tests.support.garden_states import has_succeeded
from tests.support.landscape import PATIENCE, World, uids
from tests.support.landscape_aws import BACKUP, backup_secret, create_shoot_on_aws

pytestmark = [
    pytest.mark.soak("landscape"),
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(1800),
]

_NAME = "runtime"
_GARDEN = Key("", "local")


async def test_garden_and_seed_share_a_cluster_and_keep_what_is_the_other_ones(
    landscape: World,
) -> None:
    runtime = landscape.clusters.garden.client
    garden = uid_of(await runtime.get(GARDEN, _GARDEN))
    before = await uids(runtime)
    await landscape.join_here(_NAME)
    key = await create_shoot(
        landscape.garden, {"metadata": {"name": "inside"}, "spec": {"seedName": _NAME}}
    )
    await landscape.healthy(SHOOT, key)
    namespace = map_at(await landscape.garden.get(SHOOT, key), "status")["technicalID"]
    assert await runtime.list(MANAGED_RESOURCE, namespace)
    await landscape.delete(SHOOT, key)
    assert await runtime.find(NAMESPACE, Key("", namespace)) is None
    await landscape.garden.delete(GARDENLET, Key("garden", _NAME))
    await landscape.delete(SEED, Key("", _NAME))
    found = await until(runtime, GARDEN, _GARDEN, has_succeeded, patience=PATIENCE)
    assert uid_of(found) == garden
    after = await uids(runtime)
    assert {each: after.get(each) for each in before} == before


async def test_two_instances_of_an_extension_keep_to_their_own_resources(
    landscape: World, aws: CorrectedAws
) -> None:
    """The Garden's own and that of a Seed run in one cluster."""
    site = landscape.clusters.garden
    await landscape.install("pergola-aws", {"AWS_ENDPOINT_URL": aws.url})
    await landscape.install("networking-calico")
    await back_up_garden(landscape)
    await landscape.join_here(_NAME)
    key = await create_shoot_on_aws(landscape, _NAME, "backed")
    of_garden = handled(site, "runtime-extension-pergola-aws")
    of_seed = handled(site, "extension-pergola-aws")
    assert {each.kind for each in of_garden} == {"BackupBucket", "BackupEntry"}
    assert {each.kind for each in of_seed} == {
        "ControlPlane",
        "DNSRecord",
        "Infrastructure",
        "Worker",
    }
    await landscape.delete(SHOOT, key)
    await landscape.garden.delete(GARDENLET, Key("garden", _NAME))
    await landscape.delete(SEED, Key("", _NAME))


async def back_up_garden(landscape: World) -> None:
    """Let the Garden keep its backups in AWS, and wait until it does."""
    runtime = landscape.clusters.garden.client
    await runtime.create(backup_secret())
    backup = {
        "provider": BACKUP["provider"],
        "region": BACKUP["region"],
        "secretRef": {"name": BACKUP["credentialsRef"]["name"]},
    }
    patch: JsonObject = {"spec": {"virtualCluster": {"etcd": {"main": {"backup": backup}}}}}
    generation = generation_of(await runtime.patch(GARDEN, _GARDEN, patch))

    def is_backed_up(obj: JsonObject) -> bool:
        return map_at(obj, "status").get("observedGeneration") == generation and has_succeeded(obj)

    await until(runtime, GARDEN, _GARDEN, is_backed_up, patience=PATIENCE)


class Handled(NamedTuple):
    """An object that an extension reconciled."""

    kind: str
    name: str


def handled(site: Site, prefix: str) -> set[Handled]:
    """Return what extensions reconciled, by their logs.

    Args:
        prefix: of the namespaces in which the extensions run.
    """
    lines = (
        orjson.loads(line)
        for log in site.directory.glob(f"{prefix}*/*/*.log")
        for line in log.read_bytes().splitlines()
        if line.startswith(b"{")
    )
    return {Handled(*line["object"].split(" ", 1)) for line in lines if line["msg"] == "done"}
