"""The DHCP options of a VPC that is created: names of instances end as Kubernetes expects them."""

from pergola.api.objects import JsonObject
from pergola.flow.picture import Note
from pergola.providers.aws import state as keys
from pergola.providers.aws import tags
from pergola.providers.aws.step import Step, Work
from pergola.providers.aws.steps import names
from pergola.providers.aws.steps.finding import (
    DHCP_OPTIONS,
    everything,
    find,
    foreseen,
    remember,
)
from pergola.providers.aws.wanted import Wanted


def steps(wanted: Wanted) -> list[Step]:
    """The step that makes the DHCP options; an existing VPC has its own."""
    given = "the VPC exists already" if wanted.config.brings_vpc else None
    return [Step(name=names.DHCP_OPTIONS, plan=_plan, ensure=_ensure, skip=given)]


def wanted_options(wanted: Wanted) -> dict[str, str]:
    """What the DHCP options of the VPC have to say."""
    return {"domain-name": wanted.dhcp_domain, "domain-name-servers": "AmazonProvidedDNS"}


def options_of(thing: JsonObject) -> dict[str, str]:
    """What DHCP options say; several values are separated by commas."""
    return {
        option["Key"]: ",".join(value["Value"] for value in option.get("Values") or [])
        for option in thing.get("DhcpConfigurations") or []
    }


def _plan(work: Work) -> Note:
    new = f"domain-name {work.wanted.dhcp_domain}"
    return foreseen(work, DHCP_OPTIONS, keys.DHCP_OPTIONS, everything, new=new)


async def _ensure(work: Work) -> None:
    if await find(work, DHCP_OPTIONS, keys.DHCP_OPTIONS, everything):
        return
    options = wanted_options(work.wanted)
    answer = await work.aws.call(
        "ec2",
        "CreateDhcpOptions",
        DhcpConfigurations=[{"Key": key, "Values": [value]} for key, value in options.items()],
        TagSpecifications=tags.specification(DHCP_OPTIONS.resource, work.wanted.tags()),
    )
    remember(work, DHCP_OPTIONS, keys.DHCP_OPTIONS, answer["DhcpOptions"])
