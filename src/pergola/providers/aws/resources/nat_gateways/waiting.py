"""Wait until the NAT gateways of all zones are available, with one request (spec 30 §13)."""

from functools import partial

from pergola.api.objects import JsonObject
from pergola.cloud.errors import NotFound
from pergola.extension_api.errors import ExtensionError
from pergola.providers.aws import state as keys
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources import step_names as names
from pergola.providers.aws.resources.decision import Decision
from pergola.providers.aws.resources.nat_gateways.facts import (
    AVAILABLE,
    USABLE,
    public_ips_of,
    state_of,
)
from pergola.providers.aws.resources.step import LONG_TIMEOUT, Step, Work
from pergola.providers.aws.resources.waiting import wait_until


def steps(desired: Desired) -> list[Step]:
    """Return the step that waits until all NAT gateways are available."""
    zones = [zone for zone in desired.config.networks.zones if zone.public]
    return [
        Step(
            name=names.NAT_GATEWAYS,
            decide=_decide,
            after=tuple(names.nat(zone.name) for zone in zones),
            skip=None if zones else "no zone has a public subnet",
            timeout=LONG_TIMEOUT,
        )
    ]


def _ids(work: Work) -> dict[str, str]:
    """Return the keys in the state of the zones' NAT gateways, by their ids."""
    zones = (zone.name for zone in work.desired.config.networks.zones if zone.public)
    found = (keys.zone_key(zone, keys.NAT_GATEWAY) for zone in zones)
    return {name: key for key in found if (name := work.state.get(key))}


def _waiting(work: Work) -> list[str]:
    known = work.snapshot.nat_gateways
    return [name for name in _ids(work) if not _is_available(known.get(name, {}))]


def _is_available(gateway: JsonObject) -> bool:
    return state_of(gateway) == AVAILABLE and bool(public_ips_of(gateway))


def _decide(work: Work) -> Decision:
    public = [zone for zone in work.desired.config.networks.zones if zone.public]
    waiting = _waiting(work)
    if len(_ids(work)) == len(public) and not waiting:
        return Decision.keep("all are available")
    return Decision.change(
        "until all are available, one to two minutes", partial(_wait, work, waiting)
    )


async def _wait(work: Work, waiting: list[str]) -> None:
    await wait_until(work, lambda: _all_available(work, waiting))


async def _all_available(work: Work, ids: list[str]) -> bool | None:
    try:
        answer = await work.aws.call("ec2", "DescribeNatGateways", NatGatewayIds=ids)
    except NotFound:
        return None
    for gateway in answer.get("NatGateways") or []:
        work.snapshot.nat_gateways[gateway["NatGatewayId"]] = gateway
    for name in ids:
        _check(work, work.snapshot.nat_gateways[name])
    return not _waiting(work) or None


def _check(work: Work, gateway: JsonObject) -> None:
    """Check that a gateway has not failed: such a gateway never becomes available.

    Raises:
        ExtensionError: it failed, or was deleted.
    """
    name = gateway["NatGatewayId"]
    if state_of(gateway) in USABLE:
        return
    work.state.forget(_ids(work)[name])
    why = f"{gateway.get('FailureCode', '')}: {gateway.get('FailureMessage', '')}".strip(": ")
    raise ExtensionError(
        f"NAT gateway {name} is {state_of(gateway)}{f' ({why})' if why else ''}; another one "
        "will be created at the next attempt"
    )
