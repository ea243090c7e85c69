"""The `providerSpec`, which machine-controller-manager's driver for AWS reads (spec 31 §4.1).

The JSON names and the values that are left out are those of the driver. Go's encoder leaves an
empty value out, but not the empty value behind a pointer.
"""

from collections.abc import Mapping
from typing import Final

from pergola.api.field_errors import required
from pergola.api.objects import JsonObject, map_at, maps_at
from pergola.extensions.workers import Pool, WorkerPlan
from pergola.providers.aws.status import NODES
from pergola.providers.aws.worker_config import WorkerConfig
from pergola.providers.aws.workers.block_devices import block_devices
from pergola.providers.aws.workers.interfaces import network_interfaces
from pergola.providers.aws.workers.problems import Problem, unusable

STATUS: Final = "spec.infrastructureProviderStatus"
_ROLE: Final = "kubernetes.io/role/node"
_CLUSTER: Final = "kubernetes.io/cluster/"
_IPV6: Final = "IPv6"
_HOPS: Final = 2


def provider_spec(plan: WorkerPlan[WorkerConfig], pool: Pool[WorkerConfig], ami: str) -> JsonObject:
    """Return what the machines of a pool have in common in all zones.

    Raises:
        Problem: the WorkerConfig or the volumes cannot be rendered.
    """
    config = pool.config
    key = map_at(plan.infrastructure, "ec2").get("keyName")
    return {
        **_without_empty({"ami": ami, "region": plan.region, "machineType": pool.machine_type}),
        **({"keyName": str(key)} if key else {}),
        "srcAndDstChecksEnabled": False,
        "iam": _iam(plan, config),
        "tags": {f"{_CLUSTER}{plan.technical_id}": "1", _ROLE: "1", **pool.labels},
        "blockDevices": block_devices(pool),
        "instanceMetadataOptions": _metadata_options(config, plan.shoot.ip_families),
        **_cpu_options(config),
        **_reservation(config),
        **_market_options(config),
        **_placement(config),
    }


def in_zone(
    plan: WorkerPlan[WorkerConfig], pool: Pool[WorkerConfig], index: int, group: str
) -> JsonObject:
    """Return what differs between the zones of a pool.

    Args:
        index: of the zone.
        group: the security group of nodes.

    Raises:
        Problem: the zone has no subnet for nodes, or the interfaces cannot be rendered.
    """
    zone = pool.zones[index]
    for subnet in maps_at(plan.infrastructure, "vpc", "subnets"):
        if (subnet.get("purpose"), subnet.get("zone")) == (NODES, zone) and subnet.get("id"):
            families = plan.shoot.ip_families
            found = network_interfaces(pool, str(subnet["id"]), group, families)
            return {"networkInterfaces": found} if found else {}
    detail = f'no subnet with purpose "{NODES}" in zone: {STATUS}.vpc.subnets has none'
    raise unusable(f"zones[{index}]", zone, detail)


def security_group(plan: WorkerPlan[WorkerConfig]) -> str:
    """Return the first security group of nodes.

    Raises:
        Problem: there is none; its path starts at the Worker.
    """
    for group in maps_at(plan.infrastructure, "vpc", "securityGroups"):
        if group.get("purpose") == NODES and group.get("id"):
            return str(group["id"])
    detail = f'no security group with purpose "{NODES}" found; reconcile the Infrastructure first'
    raise Problem(required(f"{STATUS}.vpc.securityGroups", detail))


def _iam(plan: WorkerPlan[WorkerConfig], config: WorkerConfig) -> JsonObject:
    if (own := config.iam_instance_profile) is not None:
        if own.name is not None:
            return _without_empty({"name": own.name})
        if own.arn is not None:
            return _without_empty({"arn": own.arn})
        raise Problem(required("providerConfig.iamInstanceProfile", "needs a name or an arn"))
    for profile in maps_at(plan.infrastructure, "iam", "instanceProfiles"):
        if profile.get("purpose") == NODES and profile.get("name"):
            return {"name": str(profile["name"])}
    detail = (
        f'no instance profile with purpose "{NODES}" found in {STATUS}.iam.instanceProfiles; '
        "reconcile the Infrastructure first"
    )
    raise Problem(required("providerConfig.iamInstanceProfile", detail))


def _metadata_options(config: WorkerConfig, families: list[str]) -> JsonObject:
    found: JsonObject = {"httpProtocolIpv6": "enabled"} if families == [_IPV6] else {}
    given = config.instance_metadata_options
    if given is None:
        return found | {"httpTokens": "required", "httpPutResponseHopLimit": _HOPS}
    return (
        found
        | _without_empty({"httpTokens": given.http_tokens})
        | _without_absent({"httpPutResponseHopLimit": given.http_put_response_hop_limit})
    )


def _cpu_options(config: WorkerConfig) -> JsonObject:
    if (given := config.cpu_options) is None:
        return {}
    cores, threads = given.core_count, given.threads_per_core
    if cores is None or threads is None:
        cores = threads = None
    counts = {"coreCount": cores, "threadsPerCore": threads}
    return {"cpuOptions": counts | _without_absent({"amdSevSnp": given.amd_sev_snp})}


def _reservation(config: WorkerConfig) -> JsonObject:
    if (given := config.capacity_reservation) is None:
        return {}
    preference = {"capacityReservationPreference": given.capacity_reservation_preference}
    arn = given.capacity_reservation_resource_group_arn
    target = {
        "capacityReservationId": given.capacity_reservation_id,
        "capacityReservationResourceGroupArn": arn,
    }
    return {"capacityReservation": _without_empty(preference) | _without_absent(target)}


def _market_options(config: WorkerConfig) -> JsonObject:
    if (given := config.instance_market_options) is None:
        return {}
    return {"instanceMarketOptions": _without_empty({"marketType": given.market_type})}


def _placement(config: WorkerConfig) -> JsonObject:
    if (given := config.placement) is None:
        return {}
    values = {
        "groupId": given.group_id,
        "tenancy": given.tenancy,
        "hostId": given.host_id,
        "partitionNumber": given.partition_number,
        "affinity": given.affinity,
    }
    return {"placement": _without_absent(values)}


def _without_empty(values: Mapping[str, str | None]) -> JsonObject:
    return {name: value for name, value in values.items() if value}


def _without_absent(values: Mapping[str, str | int | None]) -> JsonObject:
    return {name: value for name, value in values.items() if value is not None}
