"""The authorization table of spec 12 §16, as a function of a request and lookups."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, Protocol

from pergola.api.objects import Key

USER_PREFIX: Final = "gardener.cloud:node-agent:machine:"
GROUP: Final = "gardener.cloud:node-agents"
SYSTEM: Final = "kube-system"
SECRET_NAME_LABEL: Final = "worker.gardener.cloud/gardener-node-agent-secret-name"  # noqa: S105
HOST_NAME_LABEL: Final = "kubernetes.io/hostname"
_SHARED_SECRETS: Final = frozenset(
    {
        "gardener-valitail",
        "gardener-opentelemetry-collector",
        "shoot-access-kube-controller-manager",
        "shoot-access-kube-scheduler",
        "shoot-access-cluster-admin",
    }
)


class Selection(NamedTuple):
    """One requirement of the field selector of a list or watch."""

    field: str
    operator: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributes:
    """The request to authorize. Every string may be empty."""

    user: str
    groups: tuple[str, ...] = ()
    is_resource: bool = True
    verb: str = ""
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    fields: tuple[Selection, ...] = ()


class Decision(NamedTuple):
    """The answer; only `deny` has a reason."""

    answer: Literal["allow", "deny", "no opinion"]
    reason: str = ""


ALLOW: Final = Decision("allow")
NO_OPINION: Final = Decision("no opinion")


class Agent(NamedTuple):
    """The node agent that sends a request.

    Attributes:
        name: the Machine's name, or in node mode the Node's.
        node: the Node's name; empty if the Node does not exist (yet).
        node_labels: empty without a Node.
        secret: the Secret that the Machine names as the agent's configuration; empty in node mode.
    """

    name: str
    node: str = ""
    node_labels: Mapping[str, str] = MappingProxyType({})
    secret: str = ""


class Lookups(Protocol):
    """Reads from the clusters. If one of them raises, the request is never allowed."""

    async def agent(self, name: str) -> Agent:
        """Return the agent of a Machine, or in node mode of a Node."""
        ...

    async def requester(self, signing_request: str) -> str | None:
        """Return the creator of a CertificateSigningRequest, or None if it does not exist."""
        ...

    async def node_of_pod(self, pod: Key) -> str | None:
        """Return the name of a pod's node, or None if the pod does not exist."""
        ...

    async def own_secrets(self, agent: Agent) -> frozenset[str]:
        """Return the names of the Secrets with the agent's configuration, or named by it."""
        ...


def deny(reason: str) -> Decision:
    """Return a denial."""
    return Decision("deny", reason)


async def decide(request: Attributes, lookups: Lookups, *, by_selectors: bool = False) -> Decision:
    """Decide on one request.

    Args:
        by_selectors: allow listing pods only with a field selector for the agent's own node.

    Raises:
        Exception: A lookup failed; the caller must not allow the request.
    """
    if not request.user.startswith(USER_PREFIX) or GROUP not in request.groups:
        return NO_OPINION
    name = request.user.removeprefix(USER_PREFIX)
    if not name:
        return deny("the user name does not name a machine")
    if not request.is_resource:
        return deny("node agents may only access resources")
    rule = _RULES.get((request.group, request.resource))
    if rule is None:
        return deny(f'node agents may not access resource "{request.resource}"')
    if request.subresource and (request.resource, request.subresource) != ("nodes", "status"):
        return deny(f'node agents may not access subresource "{request.subresource}"')
    if request.verb not in rule.verbs:
        verbs = " ".join(rule.verbs)
        return deny(f"only the following verbs are allowed for this resource type: [{verbs}]")
    return await rule.judge(_Case(request, name, lookups, by_selectors))


@dataclass(frozen=True, slots=True)
class _Case:
    """A request whose verb is in the table."""

    request: Attributes
    name: str
    lookups: Lookups
    by_selectors: bool

    async def agent_with_node(self) -> Agent | Decision:
        agent = await self.lookups.agent(self.name)
        return agent if agent.node else deny(f'no node for "{self.name}" found')


async def _signing_requests(case: _Case) -> Decision:
    request = case.request
    if request.verb == "create":
        return ALLOW
    requester = await case.lookups.requester(request.name) if request.name else None
    if requester == request.user:
        return ALLOW
    return deny(f'certificate signing request "{request.name}" was not created by "{request.user}"')


async def _anything(_: _Case) -> Decision:
    return ALLOW


async def _leases(case: _Case) -> Decision:
    request = case.request
    if request.namespace != SYSTEM:
        return deny(f'node agents may only access leases in namespace "{SYSTEM}"')
    agent = await case.agent_with_node()
    if isinstance(agent, Decision):
        return agent
    if request.verb == "create":
        return ALLOW
    own = {f"gardener-node-agent-{agent.node}", agent.node_labels.get(SECRET_NAME_LABEL)}
    if request.name and request.name in own:
        return ALLOW
    return deny(f'lease "{request.name}" does not belong to node "{agent.node}"')


async def _nodes(case: _Case) -> Decision:
    request = case.request
    if request.verb in ("list", "watch"):
        return ALLOW
    agent = await case.agent_with_node()
    if isinstance(agent, Decision):
        return agent
    if request.name == agent.node:
        return ALLOW
    return deny(f'node "{request.name}" is not this agent\'s node, which is "{agent.node}"')


async def _pods(case: _Case) -> Decision:
    request = case.request
    listing = request.verb in ("list", "watch")
    agent = await case.agent_with_node()
    if isinstance(agent, Decision):
        return agent
    if listing and not case.by_selectors:
        return ALLOW
    if listing and Selection("spec.nodeName", "In", (agent.node,)) in request.fields:
        return ALLOW
    if listing and not request.name:
        return deny(f"pods may only be listed with field selector spec.nodeName={agent.node}")
    pod = Key(request.namespace, request.name)
    node = await case.lookups.node_of_pod(pod) if request.name else None
    if node == agent.node:
        return ALLOW
    return deny(f'pod "{pod}" does not run on node "{agent.node}"')


async def _secrets(case: _Case) -> Decision:
    request = case.request
    if request.namespace != SYSTEM or not request.name:
        return deny(f'node agents may only read secrets by name, in namespace "{SYSTEM}"')
    # Even what all agents may read is for those whose Machine exists: certificates outlive it.
    agent = await case.lookups.agent(case.name)
    if request.name in _SHARED_SECRETS or request.name in await case.lookups.own_secrets(agent):
        return ALLOW
    return deny(f'secret "{request.name}" does not belong to the agent of "{case.name}"')


class _Rule(NamedTuple):
    verbs: tuple[str, ...]
    judge: Callable[[_Case], Awaitable[Decision]]


_RULES: Final[dict[tuple[str, str], _Rule]] = {
    ("certificates.k8s.io", "certificatesigningrequests"): _Rule(
        ("get", "create"), _signing_requests
    ),
    ("", "events"): _Rule(("create", "patch"), _anything),
    ("events.k8s.io", "events"): _Rule(("create", "patch"), _anything),
    ("coordination.k8s.io", "leases"): _Rule(("get", "list", "watch", "create", "update"), _leases),
    ("", "nodes"): _Rule(("get", "list", "watch", "patch", "update"), _nodes),
    ("", "pods"): _Rule(("get", "list", "watch", "delete"), _pods),
    ("", "secrets"): _Rule(("get", "list", "watch"), _secrets),
}
