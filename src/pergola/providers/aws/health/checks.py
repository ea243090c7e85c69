"""The health checks of an Infrastructure: they read little of AWS, and not on every run."""

import zlib
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal

from pergola.api.conditions import FALSE, TRUE, get_condition
from pergola.api.objects import JsonObject, map_at, maps_at, uid_of
from pergola.cloud.aws import AwsClient
from pergola.cloud.aws.network import filters_by
from pergola.cloud.errors import CloudError, NotFound
from pergola.extension_api.errors import Code
from pergola.extensions.health_checks.checks import CheckContext, HealthCheck, Verdict
from pergola.providers.aws.health.condition import CHECK_FAILED, ConditionUpdate
from pergola.providers.aws.health.load_balancer_subnets import (
    LOAD_BALANCER_SUBNETS_AVAILABLE,
    load_balancer_subnets_available,
)
from pergola.providers.aws.health.security_group import (
    NODES_SECURITY_GROUP_VALID,
    nodes_security_group_valid,
)
from pergola.providers.aws.request import desired_of
from pergola.providers.aws.resources.security_group.desired import zone_ranges
from pergola.providers.aws.snapshot import Snapshot
from pergola.providers.aws.state import read_state

PERIOD: Final = 600.0
"""Seconds between two evaluations, unless a reconciliation happens in between."""
_KEPT_PERIODS: Final = 3
"""The periods after which a verdict is forgotten: its Infrastructure was not checked any more."""
Access = Callable[[CheckContext, JsonObject], AbstractAsyncContextManager[AwsClient]]
"""Opens a client with the credentials of an Infrastructure."""
Evaluate = Callable[[CheckContext, JsonObject], Awaitable[ConditionUpdate]]


def health_checks(access: Access, *, period: float = PERIOD) -> list[HealthCheck]:
    """Return the checks of an Infrastructure.

    Args:
        period: how many seconds a verdict is kept, unless a reconciliation happens.
    """
    return [
        HealthCheck(
            name="rules of the nodes' security group",
            condition=NODES_SECURITY_GROUP_VALID,
            run=_Remembered(NODES_SECURITY_GROUP_VALID, _Groups(access).run, period).run,
            applies=_byo_group,
        ),
        HealthCheck(
            name="subnets for load balancers",
            condition=LOAD_BALANCER_SUBNETS_AVAILABLE,
            run=_Remembered(LOAD_BALANCER_SUBNETS_AVAILABLE, _Subnets(access).run, period).run,
            applies=_byo_subnets,
        ),
    ]


@dataclass(slots=True)
class _Result:
    at: datetime
    operation: JsonObject
    said: ConditionUpdate


class _Remembered:
    """A check that is evaluated once per period, and after every reconciliation.

    After its start, a process repeats the recorded conditions until their time in the period comes,
    so that it never reads everything at once.
    """

    def __init__(self, condition: str, observe: Evaluate, period: float) -> None:
        self._condition = condition
        self._observe = observe
        self._period = period
        self._results: dict[str, _Result] = {}

    async def run(self, context: CheckContext, obj: JsonObject) -> Verdict:
        """Return the last verdict, or a new one if it is due; Unknown if AWS refuses."""
        operation, known = map_at(obj, "status", "lastOperation"), self._results.get(uid_of(obj))
        if known is None:
            known = self._on_record(context.now, obj, operation)
        if known is None or not self._is_good(known, context.now, operation):
            try:
                said = await self._observe(context, obj)
            except CloudError as error:
                return verdict(ConditionUpdate("Unknown", CHECK_FAILED, str(error)))
            known = self._remember(uid_of(obj), context.now, _Result(context.now, operation, said))
        return verdict(known.said)

    def _on_record(self, now: datetime, obj: JsonObject, operation: JsonObject) -> _Result | None:
        """Return the condition of an earlier process, as if evaluated at its time in the period."""
        found = get_condition(maps_at(obj, "status", "conditions"), self._condition)
        if found is None or found.get("status") not in (TRUE, FALSE):
            return None
        age = timedelta(seconds=_phase(uid_of(obj)) * self._period)
        status: Literal["True", "False"] = "True" if found["status"] == TRUE else "False"
        said = ConditionUpdate(status, str(found.get("reason")), str(found.get("message")))
        return self._remember(uid_of(obj), now, _Result(now - age, operation, said))

    def _remember(self, uid: str, now: datetime, result: _Result) -> _Result:
        """Keep a verdict, and forget those of Infrastructures that are gone."""
        oldest = now - timedelta(seconds=_KEPT_PERIODS * self._period)
        self._results = {key: each for key, each in self._results.items() if each.at > oldest}
        self._results[uid] = result
        return result

    def _is_good(self, known: _Result, now: datetime, operation: JsonObject) -> bool:
        age = (now - known.at).total_seconds()
        return age < self._period and known.operation == operation


def _phase(uid: str) -> float:
    """Return the time of an object within any period, between 0 and 1."""
    return zlib.crc32(uid.encode()) / 2**32


def verdict(said: ConditionUpdate) -> Verdict:
    """Return a condition update as the verdict of the only check for its condition."""
    codes = (Code.CONFIGURATION_PROBLEM,) if said.status == "False" else ()
    return Verdict(said.status, said.message, codes, reason=said.reason)


@dataclass(frozen=True, slots=True)
class _Groups:
    access: Access

    async def run(self, context: CheckContext, obj: JsonObject) -> ConditionUpdate:
        desired = desired_of(obj, await context.cluster())
        state = read_state(map_at(obj, "status").get("state"))
        name = desired.config.networks.nodes_security_group_id
        async with self.access(context, obj) as aws:
            try:
                answer = await aws.call("ec2", "DescribeSecurityGroups", GroupIds=[name])
            except NotFound:
                answer = {"SecurityGroups": []}
        group = next(iter(answer["SecurityGroups"]), None)
        return nodes_security_group_valid(desired, group, zone_ranges(desired, state, Snapshot()))


@dataclass(frozen=True, slots=True)
class _Subnets:
    access: Access

    async def run(self, context: CheckContext, obj: JsonObject) -> ConditionUpdate:
        desired = desired_of(obj, await context.cluster())
        vpc = desired.config.networks.vpc.id or ""
        async with self.access(context, obj) as aws:
            found = await aws.pages(
                "ec2", "DescribeSubnets", "Subnets", Filters=filters_by({"vpc-id": vpc})
            )
        snapshot = Snapshot(subnets={subnet["SubnetId"]: subnet for subnet in found})
        return load_balancer_subnets_available(desired, snapshot)


def _byo_group(obj: JsonObject) -> bool:
    networks = map_at(obj, "spec", "providerConfig", "networks")
    return bool(networks.get("nodesSecurityGroupID"))


def _byo_subnets(obj: JsonObject) -> bool:
    zones = map_at(obj, "spec", "providerConfig", "networks").get("zones")
    several = zones if isinstance(zones, list) else []
    return any(isinstance(zone, dict) and zone.get("workersSubnetID") for zone in several)
