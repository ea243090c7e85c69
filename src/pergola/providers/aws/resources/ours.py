"""Resources that are created for a cluster, and how to recognize them (spec 30 §3.1, §3.2)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pergola.api.objects import JsonObject
from pergola.providers.aws.resources.kinds import Kind
from pergola.providers.aws.resources.step import Work
from pergola.providers.aws.resources.zone_suffixes import zone_suffix
from pergola.providers.aws.status import vpc_id

Accept = Callable[[Work, JsonObject], bool]


def vpc_of(work: Work) -> str:
    """Return the cluster's VPC, by config, state or tags; empty if there is none."""
    found = work.snapshot.vpc or {}
    return vpc_id(work.desired, work.state) or str(found.get("VpcId", ""))


def in_vpc(work: Work, thing: JsonObject) -> bool:
    """Accept resources in the cluster's VPC; nothing while there is none."""
    vpc = vpc_of(work)
    return bool(vpc) and thing.get("VpcId") == vpc


def attached_to_vpc(work: Work, gateway: JsonObject) -> bool:
    """Accept a gateway that is attached to the cluster's VPC, or to nothing yet."""
    return set(attached_vpcs(gateway)) <= {vpc_of(work)}


def attached_vpcs(gateway: JsonObject) -> list[str]:
    """Return the VPCs that a gateway is attached to: one at most."""
    return [str(each.get("VpcId", "")) for each in gateway.get("Attachments") or ()]


def anything(work: Work, thing: JsonObject) -> bool:
    """Accept any resource, for kinds without a VPC."""
    del work, thing
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Ours:
    """A resource that is created for a cluster.

    Attributes:
        key: Of its id in the state.
        suffix: Of its name.
        zone: The zone whose `zN` ends its name; empty for none.
        more: Tags in addition to those of every resource of the cluster.
        accept: Returns whether a resource with its tags is acceptable.
    """

    kind: Kind
    key: str
    suffix: str = ""
    zone: str = ""
    more: Mapping[str, str] = field(default_factory=dict)
    accept: Accept = in_vpc

    def tags(self, work: Work) -> dict[str, str]:
        """Return all of its tags, including `Name`."""
        parts = (self.suffix, zone_suffix(work, self.zone) if self.zone else "")
        return work.desired.tags("-".join(filter(None, parts)), **self.more)

    def name(self, work: Work) -> str:
        """Return its name."""
        return self.tags(work)["Name"]

    def all(self, work: Work) -> dict[str, JsonObject]:
        """Return all described resources of its kind, by id."""
        return self.kind.in_snapshot(work.snapshot)
