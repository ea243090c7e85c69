"""Removes the gateway endpoints that were created (spec 30 §9.1)."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.extension_api.errors import Code, ExtensionError
from pergola.flow.picture import Note
from pergola.providers.aws import state as keys
from pergola.providers.aws.deletion.removing import condemned, forget, in_vpc, note
from pergola.providers.aws.snapshot import tags_of
from pergola.providers.aws.step import Step, Work

GATEWAY_ENDPOINTS: Final = "delete gateway endpoints"
_GONE: Final = ("deleted", "deleting")


def step(skip: str | None) -> Step:
    """The step of all gateway endpoints."""
    return Step(name=GATEWAY_ENDPOINTS, plan=_plan, ensure=_ensure, skip=skip)


def _plan(work: Work) -> Note:
    return note(_endpoints(work))


async def _ensure(work: Work) -> None:
    names = _endpoints(work)
    if names:
        answer = await work.aws.call("ec2", "DeleteVpcEndpoints", VpcEndpointIds=names)
        _complain(answer.get("Unsuccessful") or [])
    for name in names:
        work.snapshot.endpoints.pop(name, None)
    forget(work, *(keys.endpoint_key(service) for service in work.state.under(keys.ENDPOINTS)))


def _complain(refused: list[JsonObject]) -> None:
    """The request succeeds even if an endpoint could not be deleted."""
    reasons = [
        f"{each.get('ResourceId')}: {(each.get('Error') or {}).get('Message')}"
        for each in refused
        if not str((each.get("Error") or {}).get("Code", "")).endswith("NotFound")
    ]
    if reasons:
        raise ExtensionError(
            f"gateway endpoints could not be deleted: {'; '.join(reasons)}", Code.DEPENDENCIES
        )


def _endpoints(work: Work) -> list[str]:
    is_inside, prefix = in_vpc(work), work.wanted.name("gw-")

    def is_it(endpoint: JsonObject) -> bool:
        return is_inside(endpoint) and tags_of(endpoint).get("Name", "").startswith(prefix)

    known = work.state.under(keys.ENDPOINTS).values()
    found = condemned(work, work.snapshot.endpoints, known, is_it)
    return [
        name for name in found if work.snapshot.endpoints.get(name, {}).get("State") not in _GONE
    ]
