"""The DHCP options of a managed VPC: instance names end as Kubernetes expects them."""

from collections.abc import Mapping
from functools import partial
from typing import Final

from pergola.api.objects import JsonObject
from pergola.providers.aws import state as keys
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources import step_names as names
from pergola.providers.aws.resources.adoption import create_or_keep, refresh
from pergola.providers.aws.resources.decision import Decision
from pergola.providers.aws.resources.kinds import DHCP_OPTIONS
from pergola.providers.aws.resources.ours import Ours, anything
from pergola.providers.aws.resources.removal import deletion_step_of
from pergola.providers.aws.resources.step import Step, Work

NO_OPTIONS: Final = "default"
"""The id of the options of a VPC without any."""
DELETE: Final = "delete DHCP options"
_OURS: Final = Ours(kind=DHCP_OPTIONS, key=keys.DHCP_OPTIONS, accept=anything)


def steps(desired: Desired) -> list[Step]:
    """Return the step that creates the DHCP options; skipped for a user-provided VPC."""
    given = "the VPC is user-provided" if desired.config.byo_vpc else None
    observe = partial(refresh, ours=_OURS)
    return [Step(name=names.DHCP_OPTIONS, observe=observe, decide=_decide, skip=given)]


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


def _decide(work: Work) -> Decision:
    desired = desired_options(work.desired)
    options = [{"Key": key, "Values": [value]} for key, value in desired.items()]
    new, operation = f"domain-name {work.desired.dhcp_domain}", "CreateDhcpOptions"
    return create_or_keep(work, _OURS, new, operation, DhcpConfigurations=options)


def delete_step(after: tuple[str, ...], skip: str | None) -> Step:
    """Return the step that deletes the DHCP options."""
    return deletion_step_of(DELETE, _OURS, after=after, skip=skip)
