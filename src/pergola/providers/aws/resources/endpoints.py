"""Gateway endpoints: S3 and the like, reached from private subnets without NAT (spec 30 §3.3)."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from pergola.api.objects import JsonObject
from pergola.extension_api.errors import Code, ExtensionError
from pergola.flow import State
from pergola.flow.picture import Fate, Note
from pergola.providers.aws import state as keys
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources import step_names as names
from pergola.providers.aws.resources.adoption import create, known, refresh, tag_changes
from pergola.providers.aws.resources.decision import Call, Decision, all_done, together
from pergola.providers.aws.resources.kinds import ENDPOINT
from pergola.providers.aws.resources.ours import Ours, in_vpc, vpc_of
from pergola.providers.aws.resources.removal import deletion_step, is_ours, to_delete
from pergola.providers.aws.resources.step import Step, Work

BYO: Final = (
    "the subnets are user-provided: create the endpoints yourself, and associate your tables"
)
_GOING: Final = frozenset({"deleting", "deleted"})
_IPV4: Final = "ipv4"
_IPV6: Final = "ipv6"
_DUAL: Final = "dualstack"
DELETE: Final = "delete gateway endpoints"


def steps(desired: Desired) -> list[Step]:
    """Return the step that creates configured endpoints, and deletes our other ones."""
    return [
        Step(
            name=names.GATEWAY_ENDPOINTS,
            observe=_observe,
            decide=_decide,
            after=(names.VPC,),
            skip=BYO if desired.config.byo_subnets else None,
        )
    ]


def _accept(work: Work, endpoint: JsonObject) -> bool:
    return in_vpc(work, endpoint) and str(endpoint.get("State", "")).lower() not in _GOING


def _of(service: str) -> Ours:
    key = keys.endpoint_key(service)
    return Ours(kind=ENDPOINT, key=key, suffix=f"gw-{service}", accept=_accept)


def known_endpoint(work: Work, service: str) -> str | None:
    """Return the id of the endpoint of a service; None if there is none."""
    return known(work, _of(service))


def _unwanted(work: Work) -> dict[str, str]:
    """Return our endpoints that the config no longer has: their services by their ids."""
    desired = set(work.desired.config.networks.vpc.gateway_endpoints)
    found = {
        name: _service(work, endpoint)
        for name, endpoint in work.snapshot.endpoints.items()
        if _is_ours(work, endpoint)
    }
    recorded = {name: service for service, name in work.state.under(keys.ENDPOINTS).items()}
    return {
        name: service
        for name, service in (recorded | found).items()
        if service not in desired and _is_there(work, name)
    }


def _service(work: Work, endpoint: JsonObject) -> str:
    """Return the service of an endpoint as the config calls it, such as `s3`."""
    return str(endpoint.get("ServiceName", "")).removeprefix(
        f"com.amazonaws.{work.desired.region}."
    )


def _is_ours(work: Work, endpoint: JsonObject) -> bool:
    return is_ours(work, endpoint, (_of(_service(work, endpoint)).name(work),))


def _is_there(work: Work, name: str) -> bool:
    endpoint = work.snapshot.endpoints.get(name)
    return endpoint is None or _accept(work, endpoint)


async def _observe(work: Work) -> None:
    services = work.desired.config.networks.vpc.gateway_endpoints
    await all_done(*(refresh(work, _of(service)) for service in services))


def _decide(work: Work) -> Decision:
    services = work.desired.config.networks.vpc.gateway_endpoints
    names, removed = {each: known_endpoint(work, each) for each in services}, _unwanted(work)
    missing = [service for service, name in names.items() if name is None]
    kept = {name: service for service, name in names.items() if name}
    changes = {"address type": _type_changes(work, kept), "tags": _retags(work, kept)}
    calls: list[Call] = [partial(_create, work, service) for service in missing]
    calls += [call for each in changes.values() for call in each.values()]
    return Decision(
        _note(removed, missing, changes, kept),
        (*(partial(_delete_one, work, *each) for each in removed.items()), together(*calls)),
        {_of(service).key: name or "" for service, name in names.items()},
    )


def _note(
    removed: Mapping[str, str],
    missing: list[str],
    changes: Mapping[str, Mapping[str, Call]],
    kept: Iterable[str],
) -> Note:
    if removed:
        gone = ", ".join(f"{name} ({service})" for name, service in removed.items())
        return Note(
            Fate.CHANGE, f"{gone} deleted" + f", {', '.join(missing)} created" * bool(missing)
        )
    if missing:
        return Note(Fate.CREATE, ", ".join(missing))
    said = "; ".join(f"{what} of {', '.join(each)}" for what, each in changes.items() if each)
    if said:
        return Note(Fate.CHANGE, said)
    return Note(Fate.KEEP, ", ".join(kept) or "none is configured")


def _type_changes(work: Work, kept: Mapping[str, str]) -> dict[str, Call]:
    return {
        name: partial(_set_address_type, work, name, new)
        for name in kept
        if (new := _new_address_type(work, work.snapshot.endpoints[name]))
    }


def _retags(work: Work, kept: Mapping[str, str]) -> dict[str, Call]:
    return {
        name: call
        for name, service in kept.items()
        for call in tag_changes(work, _of(service), name).values()
    }


async def _set_address_type(work: Work, name: str, new: str) -> None:
    await work.aws.call("ec2", "ModifyVpcEndpoint", VpcEndpointId=name, IpAddressType=new)
    work.snapshot.endpoints[name]["IpAddressType"] = new


async def _delete_one(work: Work, name: str, service: str) -> None:
    answer = await work.aws.call("ec2", ENDPOINT.delete, VpcEndpointIds=[name])
    _check_deleted(name, answer)
    ENDPOINT.drop(work.snapshot, name)
    work.state.forget(keys.endpoint_key(service))


async def _create(work: Work, service: str) -> None:
    desired = _address_type(work.desired)
    await create(
        work,
        _of(service),
        "CreateVpcEndpoint",
        VpcId=vpc_of(work),
        ServiceName=f"com.amazonaws.{work.desired.region}.{service}",
        **({} if desired == _IPV4 else {"IpAddressType": desired}),
    )


def _address_type(desired: Desired) -> str:
    if not desired.ipv6:
        return _IPV4
    return _DUAL if desired.ipv4 else _IPV6


def _new_address_type(work: Work, endpoint: JsonObject) -> str | None:
    """Return the address type to write; AWS cannot change to or from IPv6 alone."""
    desired, present = _address_type(work.desired), endpoint.get("IpAddressType")
    if present is None or present == desired or _IPV6 in (desired, present):
        return None
    return desired


def _check_deleted(name: str, answer: JsonObject) -> None:
    """Check the answer of a deletion, which reports success even if nothing was deleted."""
    for failure in answer.get("Unsuccessful") or []:
        error = failure.get("Error") or {}
        code = error.get("Code", "unknown")
        if not code.endswith("NotFound"):
            said = error.get("Message", "")
            raise ExtensionError(f"gateway endpoint {name} cannot be deleted ({code}: {said})")


def delete_step(state: State) -> Step:
    """Return the step that deletes all gateway endpoints, with one request."""
    known = tuple(keys.endpoint_key(service) for service in state.under(keys.ENDPOINTS))
    return deletion_step(DELETE, _to_delete, _delete, keys=known)


async def _delete(work: Work, names: list[str]) -> None:
    answer = await work.aws.call("ec2", ENDPOINT.delete, VpcEndpointIds=names)
    _check_all_deleted(answer.get("Unsuccessful") or [])
    for name in names:
        ENDPOINT.drop(work.snapshot, name)


def _check_all_deleted(refused: list[JsonObject]) -> None:
    """Check the answer of a deletion, which reports success even if an endpoint was not deleted."""
    reasons = [
        f"{each.get('ResourceId')}: {(each.get('Error') or {}).get('Message')}"
        for each in refused
        if not str((each.get("Error") or {}).get("Code", "")).endswith("NotFound")
    ]
    if reasons:
        raise ExtensionError(
            f"gateway endpoints could not be deleted: {'; '.join(reasons)}", Code.DEPENDENCIES
        )


def _to_delete(work: Work) -> list[str]:
    present = {_service(work, endpoint) for endpoint in work.snapshot.endpoints.values()}
    services = present | work.state.under(keys.ENDPOINTS).keys()
    several = (replace(_of(service), accept=in_vpc) for service in sorted(services))
    return [name for name in to_delete(work, *several) if not _is_going(work, name)]


def _is_going(work: Work, name: str) -> bool:
    endpoint = work.snapshot.endpoints.get(name, {})
    return str(endpoint.get("State", "")).lower() in _GOING
