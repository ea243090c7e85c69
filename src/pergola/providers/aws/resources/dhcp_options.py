"""The DHCP options of a managed VPC: instance names end as Kubernetes expects them."""

from collections.abc import Mapping
from typing import Final

from pergola.api.objects import JsonObject
from pergola.flow.picture import Note
from pergola.providers.aws import state as keys
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources import step_names as names
from pergola.providers.aws.resources import tags
from pergola.providers.aws.resources.adoption import everything, find, foreseen, remember
from pergola.providers.aws.resources.kinds import DHCP_OPTIONS
from pergola.providers.aws.resources.removal import forget, note, remove, to_delete
from pergola.providers.aws.resources.step import Step, Work

NO_OPTIONS: Final = "default"
"""The id of the options of a VPC without any."""
DELETE: Final = "delete DHCP options"


def steps(desired: Desired) -> list[Step]:
    """Return the step that creates the DHCP options; skipped for a user-provided VPC."""
    given = "the VPC is user-provided" if desired.config.byo_vpc else None
    return [Step(name=names.DHCP_OPTIONS, plan=_plan, ensure=_ensure, skip=given)]


def desired_options(desired: Desired) -> dict[str, str]:
    """Return the desired content of the VPC's DHCP options."""
    return {"domain-name": desired.dhcp_domain, "domain-name-servers": "AmazonProvidedDNS"}


def options_of(thing: JsonObject) -> dict[str, str]:
    """Return the content of DHCP options; several values are separated by commas."""
    return {
        option["Key"]: ",".join(value["Value"] for value in option.get("Values") or [])
        for option in thing.get("DhcpConfigurations") or []
    }


def are_hidden(vpc: JsonObject, described: Mapping[str, JsonObject]) -> bool:
    """Return whether a VPC has options that cannot be read, because of another account's VPC."""
    name = str(vpc.get("DhcpOptionsId") or "")
    return name not in ("", NO_OPTIONS) and name not in described


def _plan(work: Work) -> Note:
    new = f"domain-name {work.desired.dhcp_domain}"
    return foreseen(work, DHCP_OPTIONS, keys.DHCP_OPTIONS, everything, new=new)


async def _ensure(work: Work) -> None:
    if await find(work, DHCP_OPTIONS, keys.DHCP_OPTIONS, everything):
        return
    options = desired_options(work.desired)
    answer = await work.aws.call(
        "ec2",
        "CreateDhcpOptions",
        DhcpConfigurations=[{"Key": key, "Values": [value]} for key, value in options.items()],
        TagSpecifications=tags.specification(DHCP_OPTIONS.type, work.desired.tags()),
    )
    remember(work, DHCP_OPTIONS, keys.DHCP_OPTIONS, answer["DhcpOptions"])


def delete_step(after: tuple[str, ...], skip: str | None) -> Step:
    """Return the step that deletes the DHCP options."""
    return Step(
        name=DELETE,
        plan=lambda work: note(_to_delete(work)),
        ensure=_delete,
        after=after,
        skip=skip,
    )


async def _delete(work: Work) -> None:
    for name in _to_delete(work):
        await remove(work, "DeleteDhcpOptions", DhcpOptionsId=name)
        work.snapshot.dhcp_options.pop(name, None)
    forget(work, keys.DHCP_OPTIONS)


def _to_delete(work: Work) -> list[str]:
    known = work.state.get(keys.DHCP_OPTIONS)
    return to_delete(work, work.snapshot.dhcp_options, (known,), (work.desired.name(),))
