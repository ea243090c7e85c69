"""Rules of certificate approval (spec 11 §3), from facts to a verdict.

Pure functions. The messages are part of the API: tests and users match them.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeAlias

from pergola.api.ip_ranges import Address, parse_address
from pergola.resource_manager.controllers.csr_approver.request import Request

NODE_USER: Final = "system:node:"
NODE_GROUP: Final = "system:nodes"
BOOTSTRAP_USER: Final = "system:bootstrap:"
NODE_AGENT: Final = "gardener.cloud:node-agent:machine:"
NODE_AGENT_GROUP: Final = "gardener.cloud:node-agents"
GARDENADM: Final = "gardener.cloud:gardenadm:shoot:"
GARDENADM_GROUP: Final = "gardener.cloud:system:shoots"

_DNS_TYPES: Final = frozenset({"Hostname", "InternalDNS", "ExternalDNS"})
_IP_TYPES: Final = frozenset({"InternalIP", "ExternalIP"})


@dataclass(frozen=True, slots=True)
class Approved:
    """The certificate may be signed."""


@dataclass(frozen=True, slots=True)
class Denied:
    """The certificate must not be signed.

    Attributes:
        reason: The rule that is violated, and how.
        may_pass: Whether a pending change of the Node or its Machines may satisfy the rule.
    """

    reason: str
    may_pass: bool = False


Verdict: TypeAlias = Approved | Denied
APPROVED: Final = Approved()


@dataclass(frozen=True, slots=True)
class Node:
    """The facts about a Node: its addresses, each with its type."""

    uid: str
    addresses: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Machine:
    """The facts about a Machine.

    Attributes:
        node: the name of its Node, empty until it has one.
        addresses: in its status, in the form of `as_claim`; the cloud reports them, not the node.
        is_deleting: whether it is being deleted.
    """

    node: str
    addresses: frozenset[str] = frozenset()
    is_deleting: bool = False


def as_claim(text: str) -> str:
    """Return a name or address in the form in which two of them are compared."""
    try:
        return str(parse_address(text))
    except ValueError:
        return text.lower()


def claims_of(name: str, node: Node) -> set[str]:
    """Return the names and addresses that a Node has."""
    return {as_claim(name), *(as_claim(address) for _, address in node.addresses)}


def claims_in(request: Request) -> list[str]:
    """Return the names and addresses in a request, in order."""
    return sorted({*map(as_claim, request.dns_names), *map(str, request.ip_addresses)})


def claimed_by_others(
    request: Request, name: str, nodes: Mapping[str, Node], machines: Mapping[str, Machine]
) -> dict[str, str]:
    """Return the names and addresses in a request that another node has, each with that node."""
    claims, found = frozenset(claims_in(request)), dict[str, str]()
    for other, machine in machines.items():
        if machine.node != name:
            found |= dict.fromkeys(claims & machine.addresses, f'machine "{other}"')
    for other, node in nodes.items():
        if other != name:
            found |= dict.fromkeys(claims & claims_of(other, node), f'node "{other}"')
    return found


# Serving certificates of kubelets


def node_name(username: str) -> str:
    """Return the name of the Node that a kubelet's user name contains; empty for other users."""
    return username.removeprefix(NODE_USER) if username.startswith(NODE_USER) else ""


def kubelet_request(request: Request) -> Denied | None:
    """Apply rules 1 to 4, which depend on the request alone."""
    if not request.username.startswith(NODE_USER):
        return Denied(f'username "{request.username}" is not prefixed with "{NODE_USER}"')
    if not request.dns_names and not request.ip_addresses:
        return Denied("no DNS names or IP addresses in the SANs found")
    if request.common_name != request.username:
        return Denied("common name in CSR does not match username")
    if request.organizations != (NODE_GROUP,):
        return Denied("organization in CSR does not match nodes group")
    return None


def kubelet_node(
    request: Request,
    node: Node | None,
    machines: Collection[Machine],
    namespace: str | None,
    others: Mapping[str, str] = MappingProxyType({}),
) -> Verdict:
    """Apply rules 5 to 8, which depend on the Node and the number of its Machines.

    A kubelet writes the addresses of its own Node, so it could claim those of another node and
    pose as that node to the API server. An address that another node has, too, is permitted only
    if the cloud reports it for the Node's Machine. A Machine that is being deleted does not count
    beside the one that replaces it under the same name.

    Args:
        machines: Of the Node.
        namespace: Of the Machines; None if Nodes have no Machines.
        others: The names and addresses of other nodes, each with one that has it.
    """
    name = node_name(request.common_name)
    if node is None:
        return Denied(f'could not find node object with name "{name}"', may_pass=True)
    machines = [each for each in machines if not each.is_deleting] or machines
    if namespace is not None and len(machines) != 1:
        return Denied(
            f'Expected exactly one machine in namespace "{namespace}" for node "{name}"'
            f" but found {len(machines)}",
            may_pass=True,
        )
    if denied := _wrong_addresses(request, node):
        return denied
    attested = {address for machine in machines for address in machine.addresses}
    for claim in claims_in(request):
        if claim in others and claim not in attested:
            reason = f'"{claim}" in CSR is also a name or address of {others[claim]}'
            return Denied(reason, may_pass=True)
    return APPROVED


def _wrong_addresses(request: Request, node: Node) -> Denied | None:
    if request.dns_names != set(_of_types(node, _DNS_TYPES)):
        return Denied(
            "DNS names in CSR do not match addresses of type"
            " 'Hostname' or 'InternalDNS' or 'ExternalDNS' in node object",
            may_pass=True,
        )
    addresses: set[Address] = set()
    for text in _of_types(node, _IP_TYPES):
        try:
            addresses.add(parse_address(text))
        except ValueError as error:
            return Denied(
                f'IP address "{text}" in node.Status.Addresses is invalid: {error}', may_pass=True
            )
    if request.ip_addresses != addresses:
        return Denied(
            "IP addresses in CSR do not match addresses of type"
            " 'InternalIP' or 'ExternalIP' in node object",
            may_pass=True,
        )
    return None


def _of_types(node: Node, types: Collection[str]) -> list[str]:
    return [address for kind, address in node.addresses if kind in types]


# Client certificates of gardener-node-agent and gardenadm


def machine_name(common_name: str) -> str | None:
    """Return the machine in a gardener-node-agent's common name; None for other names."""
    if not common_name.startswith(NODE_AGENT):
        return None
    return common_name.removeprefix(NODE_AGENT)


def node_agent(request: Request, machine: Machine | None, node: Node | None) -> Verdict:
    """Judge the request of a gardener-node-agent.

    The organizations of a client certificate are the groups of its holder, and some groups are
    administrators of every Shoot, so only the group that the agent requests is permitted.

    Args:
        machine: The Machine in the common name; if Nodes have no Machines, one with the same name
            as its Node.
        node: The Node of the machine.
    """
    username, common_name = request.username, request.common_name
    name = machine_name(common_name)
    if request.organizations != (NODE_AGENT_GROUP,):
        return Denied("organization in CSR does not match node agents group")
    if not name or machine is None:
        return Denied(f'machine "{name}" does not exist')
    if username.startswith(BOOTSTRAP_USER):
        if node is None:
            return APPROVED
        return Denied(
            f'Cannot use bootstrap token since gardener-node-agent for machine "{name}"'
            " is already bootstrapped"
        )
    if not username.startswith(NODE_AGENT):
        return Denied(
            f'username "{username}" is not allowed to create CSRs for a gardener-node-agent'
        )
    if username != common_name:
        return Denied(f'username "{username}" and commonName "{common_name}" do not match')
    return APPROVED


def gardenadm(request: Request) -> Verdict:
    """Judge the request of gardenadm, which joins a machine to a cluster."""
    if not request.username.startswith(BOOTSTRAP_USER):
        return Denied(
            f'username "{request.username}" is not allowed to create CSRs for a gardenadm client'
        )
    if request.organizations != (GARDENADM_GROUP,):
        # The original's message says nodes, but the rule checks the group of shoots.
        return Denied("organization in CSR does not match nodes group")
    return APPROVED
