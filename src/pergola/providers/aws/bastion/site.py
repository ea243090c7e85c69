"""The placement and names of a bastion (spec 30 §10.1). Pure."""

from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from pergola.api.ip_ranges import parse_network
from pergola.api.objects import JsonObject, Key, map_at, maps_at, name_of, namespace_of, uid_of
from pergola.extension_api.errors import ExtensionError, configuration_problem
from pergola.providers.aws.desired import OWNED
from pergola.providers.aws.status import NODES, PUBLIC

NO_SUBNET: Final = (
    "there is no public subnet for a bastion: reach nodes with AWS Systems Manager Session Manager "
    "or through a host of your own, or name a publicSubnetID in the InfrastructureConfig"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The desired bastion.

    Attributes:
        technical_id: of the cluster.
        name: the name of the Bastion.
        uid: of the Bastion, which makes repeated requests to AWS return the same instance.
        subnet: a public subnet; empty if there is none.
        nodes_group: the security group of the nodes; empty if unknown.
        is_users_group: whether that is user-provided, so that its rules are never written.
        sources: CIDRs from which it may be reached.
        ipv6: whether it gets an IPv6 address.
    """

    technical_id: str
    name: str
    uid: str
    vpc: str
    subnet: str
    nodes_group: str
    is_users_group: bool
    sources: tuple[str, ...] = ()
    user_data: bytes = b""
    ipv6: bool = False

    @property
    def group_name(self) -> str:
        """The name of its security group."""
        return f"{self.technical_id}-{self.name}-bsg"

    @property
    def instance_name(self) -> str:
        """The name of its instance."""
        return f"{self.technical_id}-{self.name}-bastion"

    def tags(self, name: str) -> dict[str, str]:
        """Return the tags of one of its resources."""
        return {f"kubernetes.io/cluster/{self.technical_id}": OWNED, "Name": name}


def site_of(bastion: JsonObject, infrastructure: JsonObject, families: Iterable[str]) -> Site:
    """Return the site of a Bastion, as far as the Infrastructure has it; enough to delete it."""
    status = map_at(infrastructure, "status", "providerStatus")
    networks = map_at(infrastructure, "spec", "providerConfig", "networks")
    return Site(
        technical_id=namespace_of(bastion),
        name=name_of(bastion),
        uid=uid_of(bastion),
        vpc=str(map_at(status, "vpc").get("id") or ""),
        subnet=_first(status, "subnets", PUBLIC),
        nodes_group=_first(status, "securityGroups", NODES),
        is_users_group=bool(networks.get("nodesSecurityGroupID")),
        ipv6="IPv6" in families,
    )


def usable(site: Site, bastion: JsonObject) -> tuple[tuple[str, ...], bytes]:
    """Return the allowed CIDRs and the user data, if there is a place for the bastion.

    Raises:
        ExtensionError: there is no subnet, or the Bastion is invalid.
    """
    if not site.vpc or not site.nodes_group:
        raise ExtensionError(
            "the Infrastructure's status has no VPC or no security group of nodes yet: wait until "
            "it is reconciled"
        )
    if not site.subnet:
        raise configuration_problem(NO_SUBNET)
    return _sources(bastion), _user_data(bastion)


def _first(status: JsonObject, things: str, purpose: str) -> str:
    for each in maps_at(status, "vpc", things):
        if each.get("purpose") == purpose and each.get("id"):
            return str(each["id"])
    return ""


def _sources(bastion: JsonObject) -> tuple[str, ...]:
    found: list[str] = []
    for index, each in enumerate(maps_at(bastion, "spec", "ingress")):
        block, where = map_at(each, "ipBlock"), f"spec.ingress[{index}].ipBlock"
        cidr = str(block.get("cidr") or "")
        try:
            found.append(str(parse_network(cidr)))
        except ValueError:
            raise configuration_problem(
                f'Bastion {Key.of(bastion)}: {where}.cidr: "{cidr}" is not a valid CIDR'
            ) from None
        if block.get("except"):  # ignoring it would admit the addresses that it excludes
            raise configuration_problem(
                f"Bastion {Key.of(bastion)}: {where}.except: security groups cannot exclude "
                "ranges: name the CIDRs that remain"
            )
    if not found:
        raise configuration_problem(
            f"Bastion {Key.of(bastion)}: spec.ingress is empty: name the CIDRs that may reach it"
        )
    return tuple(dict.fromkeys(found))


def _user_data(bastion: JsonObject) -> bytes:
    try:
        return b64decode(str(map_at(bastion, "spec").get("userData") or ""), validate=True)
    except (NotBase64, ValueError):
        raise configuration_problem(
            f"Bastion {Key.of(bastion)}: spec.userData is not valid base64"
        ) from None
