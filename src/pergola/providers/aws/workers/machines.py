"""The machines of all pools of a Worker in AWS (spec 31 §4)."""

from collections.abc import Iterator
from typing import Final

from pergola.api.field_errors import Cause, required
from pergola.extensions.workers import Machines, Pool, PoolMachines, WorkerPlan, ZoneMachines
from pergola.providers.aws.worker_config import WorkerConfig
from pergola.providers.aws.workers.hash_inputs import hash_inputs
from pergola.providers.aws.workers.images import Image, Images
from pergola.providers.aws.workers.node_template import node_template
from pergola.providers.aws.workers.problems import Problem
from pergola.providers.aws.workers.provider_spec import in_zone, provider_spec, security_group

_ZONE_OF_NODE: Final = "topology.kubernetes.io/zone"
_ZONE_OF_VOLUMES: Final = "topology.ebs.csi.aws.com/zone"


def machines(plan: WorkerPlan[WorkerConfig]) -> Machines:
    """Return the machines of all pools, and the status with their images.

    Raises:
        ExtensionError: something that the machines need is missing or malformed.
    """
    group, images = security_group(plan), Images.of(plan)
    found: list[PoolMachines] = []
    used: list[Image] = []
    for index, pool in enumerate(plan.pools):
        try:
            of_pool, image = _of_pool(plan, pool, images, group)
        except Problem as problem:
            raise problem.under(f"spec.pools[{index}]") from None
        found.append(of_pool)
        used.append(image)
    return Machines(pools=found, status=images.status(used))


def problems(plan: WorkerPlan[WorkerConfig]) -> Iterator[Cause]:
    """Yield the first problem of each pool, or that of the infrastructure.

    Raises:
        ExtensionError: the CloudProfile's config or the Worker's status is malformed.
    """
    try:
        group = security_group(plan)
    except Problem as problem:
        yield problem.cause
        return
    images = Images.of(plan)
    for index, pool in enumerate(plan.pools):
        try:
            _of_pool(plan, pool, images, group)
        except Problem as problem:
            yield problem.cause.under(f"spec.pools[{index}]")


def _of_pool(
    plan: WorkerPlan[WorkerConfig], pool: Pool[WorkerConfig], images: Images, group: str
) -> tuple[PoolMachines, Image]:
    if not pool.name:
        raise Problem(required("name", "names the machines"))
    if not pool.volume:
        raise Problem(required("volume", "machines in AWS need a root volume"))
    inputs, image = hash_inputs(pool), images.of_pool(pool)
    common = provider_spec(plan, pool, image.ami)
    zones = [
        ZoneMachines(
            zone=zone,
            provider_spec=common | in_zone(plan, pool, index, group),
            node_template=node_template(pool, plan.region, zone),
            class_labels=_operating_system(pool),
            node_labels={_ZONE_OF_VOLUMES: zone, _ZONE_OF_NODE: zone},
        )
        for index, zone in enumerate(pool.zones)
    ]
    return PoolMachines(hash_inputs=inputs, zones=zones), image


def _operating_system(pool: Pool[WorkerConfig]) -> dict[str, str]:
    name, version = pool.image
    if not name or not version:
        return {}
    return {
        "operatingSystemName": name,
        "operatingSystemVersion": version.replace("+", "_"),
    }
