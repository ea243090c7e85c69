"""Gateway endpoints: S3 and the like, reached from private subnets without NAT (spec 30 §3.3)."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.extension_api.errors import ExtensionError
from pergola.flow.picture import Fate, Note
from pergola.providers.aws import state as keys
from pergola.providers.aws import tags
from pergola.providers.aws.snapshot import tags_of
from pergola.providers.aws.step import Step, Work
from pergola.providers.aws.steps import names
from pergola.providers.aws.steps.finding import (
    ENDPOINT,
    find,
    in_vpc,
    known,
    remember,
)
from pergola.providers.aws.steps.waiting import all_done, once_visible
from pergola.providers.aws.wanted import Wanted

BYO: Final = "the subnets are brought: create the endpoints yourself, and associate your tables"
_GONE: Final = frozenset({"deleting", "deleted"})
_IPV4: Final = "ipv4"
_IPV6: Final = "ipv6"
_DUAL: Final = "dualstack"


def steps(wanted: Wanted) -> list[Step]:
    """The step that makes the endpoints that are wanted and deletes ours that are not."""
    return [
        Step(
            name=names.GATEWAY_ENDPOINTS,
            plan=_plan,
            ensure=_ensure,
            after=(names.VPC,),
            skip=BYO if wanted.config.brings_subnets else None,
        )
    ]


def association_steps(wanted: Wanted) -> list[Step]:
    """The step that gives the zones' route tables to the endpoints; one call for each endpoint."""
    zones = wanted.config.networks.zones
    return [
        Step(
            name=names.ENDPOINT_ASSOCIATIONS,
            plan=_plan_associations,
            ensure=_ensure_associations,
            after=(
                names.GATEWAY_ENDPOINTS,
                *(names.route_table(zone.name) for zone in zones if zone.workers_subnet_id is None),
            ),
            skip=_no_associations(wanted),
        )
    ]


def _no_associations(wanted: Wanted) -> str | None:
    if wanted.config.brings_subnets:
        return BYO
    return None if wanted.config.networks.vpc.gateway_endpoints else "no gateway endpoints"


def _suffix(service: str) -> str:
    return f"gw-{service}"


def _accept(work: Work, endpoint: JsonObject) -> bool:
    return in_vpc(work)(endpoint) and str(endpoint.get("State", "")).lower() not in _GONE


def _known(work: Work, service: str) -> str | None:
    key = keys.endpoint_key(service)
    return known(work, ENDPOINT, key, lambda each: _accept(work, each), _suffix(service))


def _unwanted(work: Work) -> dict[str, str]:
    """Endpoints of ours that nobody wants any more: their services by their ids."""
    wanted = set(work.wanted.config.networks.vpc.gateway_endpoints)
    start = work.wanted.name(_suffix(""))
    found: dict[str, str] = {}
    for name, endpoint in work.snapshot.endpoints.items():
        given = tags_of(endpoint)
        if work.wanted.owns(given) and given.get("Name", "").startswith(start):
            found[name] = given["Name"].removeprefix(start)
    recorded = {name: service for service, name in work.state.under(keys.ENDPOINTS).items()}
    return {
        name: service
        for name, service in (recorded | found).items()
        if service not in wanted and _is_there(work, name)
    }


def _is_there(work: Work, name: str) -> bool:
    endpoint = work.snapshot.endpoints.get(name)
    return endpoint is None or _accept(work, endpoint)


def _plan(work: Work) -> Note:
    services = work.wanted.config.networks.vpc.gateway_endpoints
    missing = [service for service in services if not _known(work, service)]
    removed = _unwanted(work)
    if removed:
        gone = ", ".join(f"{name} ({service})" for name, service in removed.items())
        return Note(
            Fate.CHANGE, f"{gone} deleted" + f", {', '.join(missing)} created" * bool(missing)
        )
    if missing:
        return Note(Fate.CREATE, ", ".join(missing))
    return _plan_kept(work, [name for each in services if (name := _known(work, each))])


def _plan_kept(work: Work, kept: list[str]) -> Note:
    changed = [name for name in kept if _new_address_type(work, work.snapshot.endpoints[name])]
    if changed:
        return Note(Fate.CHANGE, f"address type of {', '.join(changed)}")
    return Note(Fate.KEEP, ", ".join(kept) or "none is wanted")


async def _ensure(work: Work) -> None:
    for name, service in _unwanted(work).items():
        await _delete(work, name, service)
    services = work.wanted.config.networks.vpc.gateway_endpoints
    await all_done(*(_ensure_one(work, service) for service in services))


async def _delete(work: Work, name: str, service: str) -> None:
    answer = await work.aws.call("ec2", "DeleteVpcEndpoints", VpcEndpointIds=[name])
    _check_deleted(name, answer)
    work.snapshot.endpoints.pop(name, None)
    work.state.forget(keys.endpoint_key(service))


async def _ensure_one(work: Work, service: str) -> None:
    key = keys.endpoint_key(service)
    found = await find(work, ENDPOINT, key, lambda each: _accept(work, each), _suffix(service))
    if found is None:
        await _create(work, service)
    elif new := _new_address_type(work, found):
        name = found["VpcEndpointId"]
        await work.aws.call("ec2", "ModifyVpcEndpoint", VpcEndpointId=name, IpAddressType=new)
        found["IpAddressType"] = new


async def _create(work: Work, service: str) -> None:
    wanted = _address_type(work.wanted)
    answer = await once_visible(
        work,
        "CreateVpcEndpoint",
        VpcId=work.state.get(keys.VPC),
        ServiceName=f"com.amazonaws.{work.wanted.region}.{service}",
        TagSpecifications=tags.specification(ENDPOINT.resource, work.wanted.tags(_suffix(service))),
        **({} if wanted == _IPV4 else {"IpAddressType": wanted}),
    )
    remember(work, ENDPOINT, keys.endpoint_key(service), answer["VpcEndpoint"])


def _address_type(wanted: Wanted) -> str:
    if not wanted.ipv6:
        return _IPV4
    return _DUAL if wanted.ipv4 else _IPV6


def _new_address_type(work: Work, endpoint: JsonObject) -> str | None:
    """The address type to be written; AWS changes none to or from IPv6 alone."""
    wanted, present = _address_type(work.wanted), endpoint.get("IpAddressType")
    if present is None or present == wanted or _IPV6 in (wanted, present):
        return None
    return wanted


def _check_deleted(name: str, answer: JsonObject) -> None:
    """AWS answers this call with success even if it deleted nothing."""
    for failure in answer.get("Unsuccessful") or []:
        error = failure.get("Error") or {}
        code = error.get("Code", "unknown")
        if not code.endswith("NotFound"):
            said = error.get("Message", "")
            raise ExtensionError(f"gateway endpoint {name} cannot be deleted ({code}: {said})")


def _plan_associations(work: Work) -> Note:
    missing = {
        service: tables
        for service in work.wanted.config.networks.vpc.gateway_endpoints
        if (tables := _missing_tables(work, _known(work, service)))
    }
    if not missing:
        return Note(Fate.KEEP, "all tables are associated")
    return Note(Fate.CHANGE, "; ".join(f"{each}: {', '.join(t)}" for each, t in missing.items()))


async def _ensure_associations(work: Work) -> None:
    for service in work.wanted.config.networks.vpc.gateway_endpoints:
        name = _known(work, service)
        missing = _missing_tables(work, name)
        if name is None or not missing:
            continue
        await once_visible(work, "ModifyVpcEndpoint", VpcEndpointId=name, AddRouteTableIds=missing)
        endpoint = work.snapshot.endpoints[name]
        endpoint["RouteTableIds"] = [*(endpoint.get("RouteTableIds") or []), *missing]


def _missing_tables(work: Work, name: str | None) -> list[str]:
    """Zones' tables that an endpoint does not know, as it says itself; routes do not tell all."""
    endpoint = ENDPOINT.named(work, name) or {}
    present = endpoint.get("RouteTableIds") or []
    zones = (zone.name for zone in work.wanted.config.networks.zones)
    tables = (work.state.get(keys.zone_key(zone, keys.ROUTE_TABLE)) for zone in zones)
    return [table for table in tables if table and table not in present]
