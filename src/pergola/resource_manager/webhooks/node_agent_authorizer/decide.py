"""Who may do what: the table of spec 12 §16, over look-ups that are handed in."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
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
    """A request that somebody wants to make. All texts may be empty."""

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
    """The answer; a reason goes with `deny`."""

    answer: Literal["allow", "deny", "no opinion"]
    reason: str = ""


ALLOW: Final = Decision("allow")
NO_OPINION: Final = Decision("no opinion")


class Agent(NamedTuple):
    """Whom a request is judged for.

    Attributes:
        name: of the Machine, or of the node where there are no Machines.
        node: empty if there is none yet.
        node_labels: None if the Node is not there.
    """

    name: str
    node: str
    node_labels: dict[str, str] | None


class Lookups(Protocol):
    """What has to be asked of the clusters. An error that is raised is never an allowance."""

    async def agent(self, name: str) -> Agent:
        """The agent of a Machine, or of a node."""
        ...

    async def requester(self, signing_request: str) -> str | None:
        """Who made a CertificateSigningRequest; None if there is none."""
        ...

    async def node_of_pod(self, pod: Key) -> str | None:
        """On which node a pod is; None if there is no such pod."""
        ...

    async def own_secrets(self, agent: Agent) -> frozenset[str]:
        """The Secrets with the agent's configuration, and those that it names."""
        ...


def deny(reason: str) -> Decision:
    """The request may not pass."""
    return Decision("deny", reason)


async def decide(request: Attributes, lookups: Lookups, *, by_selectors: bool = False) -> Decision:
    """Whether a request may pass.

    Args:
        by_selectors: whether pods may be listed only with a selector for the agent's own node.

    Raises:
        Exception: a look-up failed; the request must not pass then.
    """
    if not request.user.startswith(USER_PREFIX) or GROUP not in request.groups:
        return NO_OPINION
    name = request.user.removeprefix(USER_PREFIX)
    if not name:
        return deny("the user name names no machine")
    if not request.is_resource:
        return deny("node agents may only ask for resources")
    rule = _RULES.get((request.group, request.resource))
    if rule is None:
        return deny(f'node agents have nothing to do with resource "{request.resource}"')
    if request.subresource and (request.resource, request.subresource) != ("nodes", "status"):
        return deny(f'node agents may not use subresource "{request.subresource}"')
    if request.verb not in rule.verbs:
        verbs = " ".join(rule.verbs)
        return deny(f"only the following verbs are allowed for this resource type: [{verbs}]")
    return await rule.judge(_Case(request, name, lookups, by_selectors))


@dataclass(frozen=True, slots=True)
class _Case:
    """A request of an agent for something of which it may have a part."""

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
    return deny(f'certificate signing request "{request.name}" was not made by "{request.user}"')


async def _anything(_: _Case) -> Decision:
    return ALLOW


async def _leases(case: _Case) -> Decision:
    request = case.request
    if request.namespace != SYSTEM:
        return deny(f'leases of node agents are in namespace "{SYSTEM}"')
    if request.verb == "create":
        return ALLOW
    agent = await case.agent_with_node()
    if isinstance(agent, Decision):
        return agent
    own = {f"gardener-node-agent-{agent.node}", (agent.node_labels or {}).get(SECRET_NAME_LABEL)}
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
    return deny(f'node "{request.name}" is not the node of this agent, which is "{agent.node}"')


async def _pods(case: _Case) -> Decision:
    request = case.request
    listing = request.verb in ("list", "watch")
    if listing and not case.by_selectors:
        return ALLOW
    agent = await case.agent_with_node()
    if isinstance(agent, Decision):
        return agent
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
        return deny(f'node agents may only read single secrets of namespace "{SYSTEM}"')
    if request.name in _SHARED_SECRETS:
        return ALLOW
    own = await case.lookups.own_secrets(await case.lookups.agent(case.name))
    if request.name in own:
        return ALLOW
    return deny(f'secret "{request.name}" is not for the agent of "{case.name}"')


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
