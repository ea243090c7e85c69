"""The network that an AWSCluster requests with its annotations (spec 50 §5, step 3)."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pergola.api.cluster_api import (
    AWS_ACCOUNT,
    AWS_LOAD_BALANCER,
    AWS_SECURITY_GROUPS,
    AWS_SUBNET_TAGS,
    AWS_VPC,
    AWS_VPC_TAGS,
    AWS_ZONES,
)
from pergola.api.objects import annotations_of, map_at
from pergola.externally_managed.mapping import owner_cluster
from pergola.externally_managed.sources import INVALID, SourceProblem

ROLES: Final = ("bastion", "node", "controlplane", "apiserver-lb", "lb")
"""The roles of security groups, in the AWS provider's terms."""
_VPC: Final = re.compile(r"vpc-[0-9a-f]+")
_GROUP: Final = re.compile(r"sg-[0-9a-f]+")
_ACCOUNT: Final = re.compile(r"\d{12}")
_ARN: Final = re.compile(
    r"arn:[a-z-]+:elasticloadbalancing:(?P<region>[a-z0-9-]+):(?P<account>\d{12}):"
    r"loadbalancer/(?:(?P<kind>app|net|gwy)/)?(?P<name>[A-Za-z0-9-]+)(?:/[0-9a-f]+)?"
)


@dataclass(frozen=True, slots=True)
class LoadBalancer:
    """The load balancer of the API server.

    Attributes:
        arn: empty for one given by name, and for a classic one, which is looked up by name.
        region: the region in the ARN; empty without one.
        account: the account in the ARN; empty without one.
    """

    name: str
    arn: str = ""
    region: str = ""
    account: str = ""


@dataclass(frozen=True, slots=True)
class Desired:
    """The network that an AWSCluster requests.

    Attributes:
        cluster: the name of its Cluster; empty if it has none.
        vpc_id: empty if the VPC is found by its tags.
        zones: the zones to use; empty for all zones with subnets.
        groups: ids of security groups by role.
        account: the required account; empty for any.
        ipv6: whether machines use the IPv6 of the VPC: if `spec.network.vpc.ipv6` is set.
    """

    region: str
    cluster: str = ""
    vpc_id: str = ""
    vpc_tags: Mapping[str, str] = field(default_factory=dict)
    subnet_tags: Mapping[str, str] = field(default_factory=dict)
    zones: tuple[str, ...] = ()
    groups: Mapping[str, str] = field(default_factory=dict)
    load_balancer: LoadBalancer | None = None
    account: str = ""
    ipv6: bool = False


def desired_of(obj: Mapping[str, Any]) -> Desired:
    """Return the network that an AWSCluster requests.

    Raises:
        SourceProblem: the request is not valid; the text lists all findings with their annotation
            or field.
    """
    findings: list[str] = []
    said = annotations_of(obj)
    region = map_at(obj, "spec").get("region")
    owner = owner_cluster(obj)
    if not isinstance(region, str) or not region:
        findings.append("spec.region is empty; set it to the region of the VPC")
    desired = Desired(
        region=str(region or ""),
        cluster=owner.name if owner else "",
        vpc_id=_matching(said, AWS_VPC, _VPC, "vpc-0123456789abcdef0", findings),
        vpc_tags=_pairs(said, AWS_VPC_TAGS, findings),
        subnet_tags=_pairs(said, AWS_SUBNET_TAGS, findings),
        zones=tuple(_items(said.get(AWS_ZONES, ""))),
        groups=_groups(said, findings),
        load_balancer=_load_balancer(said, findings),
        account=_matching(said, AWS_ACCOUNT, _ACCOUNT, "123456789012", findings),
        ipv6=map_at(obj, "spec", "network", "vpc").get("ipv6") is not None,
    )
    if AWS_VPC in said and AWS_VPC_TAGS in said:
        findings.append(f"annotations {AWS_VPC} and {AWS_VPC_TAGS} are both set; keep one")
    elif not said.get(AWS_VPC) and not said.get(AWS_VPC_TAGS):
        findings.append(f"no annotation names the VPC; set {AWS_VPC} or {AWS_VPC_TAGS}")
    if findings:
        raise SourceProblem(INVALID, *findings)
    return desired


def _items(text: str) -> list[str]:
    return [item for part in text.split(",") if (item := part.strip())]


def _matching(
    said: Mapping[str, str], name: str, form: re.Pattern[str], such: str, findings: list[str]
) -> str:
    value = said.get(name, "").strip()
    if value and not form.fullmatch(value):
        findings.append(f'annotation {name} is "{value}"; it must be of the form {such}')
    return value


def _pairs(said: Mapping[str, str], name: str, findings: list[str]) -> dict[str, str]:
    """Parse `key=value,key=value`; a value may contain `=`, and be empty."""
    pairs: dict[str, str] = {}
    for item in _items(said.get(name, "")):
        key, separator, value = item.partition("=")
        if not key.strip() or not separator:
            findings.append(f'annotation {name}: "{item}" is not of the form key=value')
        elif key.strip() in pairs:
            findings.append(f"annotation {name}: {key.strip()} is set more than once")
        else:
            pairs[key.strip()] = value.strip()
    return pairs


def _groups(said: Mapping[str, str], findings: list[str]) -> dict[str, str]:
    pairs = _pairs(said, AWS_SECURITY_GROUPS, findings)
    checks: dict[str, Callable[[str, str], bool]] = {
        f"the role must be one of {', '.join(ROLES)}": lambda role, _: role in ROLES,
        "the id must be of the form sg-0123456789abcdef0": lambda _, group: bool(
            _GROUP.fullmatch(group)
        ),
    }
    for role, group in pairs.items():
        findings += [
            f'annotation {AWS_SECURITY_GROUPS}: "{role}={group}": {rule}'
            for rule, holds in checks.items()
            if not holds(role, group)
        ]
    return pairs


def _load_balancer(said: Mapping[str, str], findings: list[str]) -> LoadBalancer | None:
    value = said.get(AWS_LOAD_BALANCER, "").strip()
    if not value.startswith("arn:"):
        return LoadBalancer(value) if value else None
    found = _ARN.fullmatch(value)
    if found is None:
        problem = f'annotation {AWS_LOAD_BALANCER} is "{value}", which is not a load balancer'
        findings.append(problem)
        return None
    if found["kind"] == "gwy":
        findings.append(
            f"annotation {AWS_LOAD_BALANCER} names a gateway load balancer, which cannot serve "
            "the API server"
        )
    arn = value if found["kind"] else ""
    return LoadBalancer(found["name"], arn, found["region"], found["account"])
