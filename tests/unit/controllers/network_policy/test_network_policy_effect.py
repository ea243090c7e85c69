"""The effect of the generated NetworkPolicies, compared with the requests of the Services.

Every namespace denies everything by default. Who may reach whom is worked out twice: from the
annotations of the Services, in `intended`, which shares no code with the product, and by evaluating
the policies that the product generates. Both must agree on every connection.
"""

import hashlib
import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from pergola.api.objects import JsonObject, Key
from pergola.controllers.network_policy.desired import desired
from pergola.controllers.network_policy.intents import Environment, intents
from pergola.controllers.network_policy.peers import peers_of
from pergola.controllers.network_policy.seen import SeenNamespace
from pergola.controllers.network_policy.service import read_service
from tests.support.network_policies import Endpoint, NamedPort, Network, Outside, Pod, Protocol

MARK = "networking.resources.gardener.cloud/"
PROTOCOLS: tuple[Protocol, ...] = ("TCP", "UDP")
NUMBERS = (80, 8080, 8085, 9090)
LONG = "a-service-whose-name-is-so-long-that-its-labels-must-be-cut"
TERMINATING = "going"
FREE = {"ingress": "Ingress", "egress": "Egress"}
"""Labels of pods that are not restricted in a direction."""


@dataclass(frozen=True)
class World:
    """A cluster: labels of namespaces, Services, pods. The namespace `going` is terminating."""

    namespaces: dict[str, dict[str, str]]
    services: list[JsonObject]
    pods: list[Pod]


# The intent of Services, from their annotations alone (spec 11 §4.2, §4.3)


def intended(world: World, source: Endpoint, target: Pod, protocol: Protocol, number: int) -> bool:
    """Return whether `source` may open this connection.

    Pods with the label `egress` may open connections to any pod that admits them, and pods with the
    label `ingress` admit any pod that may connect. This reveals policies that are too permissive.
    """
    services = [service for service in world.services if is_behind(service, target)]
    calls = isinstance(source, Outside) or "egress" in source.labels
    listens = "ingress" in target.labels or any(
        fits(port, target, protocol, number)
        for service in services
        for port in open_to_world(service)
    )
    return (calls and listens) or any(
        fits(port, target, protocol, number)
        for service in services
        for port in open_to(service, source, world.namespaces)
    )


def is_behind(service: JsonObject, pod: Pod) -> bool:
    """Return whether a pod belongs to a Service that gets policies."""
    namespace, intended = service["metadata"]["namespace"], service["spec"].get("selector")
    return (
        bool(intended)
        and namespace == pod.namespace != TERMINATING
        and intended.items() <= dict(pod.labels).items()
    )


def open_to_world(service: JsonObject) -> list[JsonObject]:
    """Return the ports of a Service that are open to everybody."""
    ports = parsed(annotations(service).get("from-world-to-ports"))
    return [{}, {"protocol": "UDP"}] if ports == [] else ports or []


def open_to(
    service: JsonObject, source: Endpoint, namespaces: dict[str, dict[str, str]]
) -> Iterator[JsonObject]:
    """Return the ports of a Service that a caller may use because of its labels."""
    if isinstance(source, Outside):
        return
    prefix = prefix_for(service, source, namespaces)
    if prefix is None:
        return
    for rest, port in labelled_ports(service):
        if source.labels.get(label(f"{prefix}{rest}")) == "allowed":
            yield port


def prefix_for(
    service: JsonObject, source: Pod, namespaces: dict[str, dict[str, str]]
) -> str | None:
    """Return the prefix of a caller's label; None if the namespace is not allowed to call."""
    home, marks = service["metadata"]["namespace"], annotations(service)
    if source.namespace == home:
        return ""
    labels = {**namespaces[source.namespace], "kubernetes.io/metadata.name": source.namespace}
    selectors = parsed(marks.get("namespace-selectors")) or []
    if source.namespace == TERMINATING or not any(selects(one, labels) for one in selectors):
        return None
    return f"{marks.get('pod-label-selector-namespace-alias', home)}-"


def labelled_ports(service: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    """Yield each port with the suffix of the label that opens it."""
    name, marks = service["metadata"]["name"], annotations(service)
    for port in service["spec"]["ports"]:
        protocol, target = port["protocol"], port["targetPort"]
        yield f"{name}-{protocol.lower()}-{target}", {"protocol": protocol, "port": target}
    for mark, text in marks.items():
        if mark.startswith("from-") and mark.endswith("-allowed-ports"):
            aliases = {mark.removeprefix("from-").removesuffix("-allowed-ports")}
            if aliases == {"policy"}:
                aliases.add(marks.get("from-policy-pod-label-selector", "policy"))
            yield from ((alias, port) for alias in aliases for port in parsed(text) or [])


def fits(port: JsonObject, target: Pod, protocol: Protocol, number: int) -> bool:
    """Return whether a user's port refers to this port of this pod."""
    if port.get("protocol", "TCP") != protocol:
        return False
    first = port.get("port", number)
    if isinstance(first, str) and not first.isdigit():
        return target.ports.get(NamedPort(first, protocol)) == number
    last: int = port.get("endPort", int(first))
    return int(first) <= number <= last


def label(rest: str) -> str:
    """Return the label that a caller needs; long ones are shortened."""
    key = f"to-{rest}"
    if len(key) > 63:
        key = f"{key[:57]}-{hashlib.sha256(key.encode()).hexdigest()[:5]}"
    return MARK + key


def selects(selector: JsonObject, labels: dict[str, str]) -> bool:
    """Evaluate a selector; supports only the operators that are generated below."""
    intended = selector.get("matchLabels", {})
    present = {one["key"] for one in selector.get("matchExpressions", [])}
    return intended.items() <= labels.items() and present <= labels.keys()


def annotations(service: JsonObject) -> dict[str, str]:
    """Return our annotations, without their prefix."""
    found = service["metadata"].get("annotations", {})
    return {key.removeprefix(MARK): text for key, text in found.items()}


def parsed(text: str | None) -> list[JsonObject] | None:
    """Return the list in an annotation; None if it is absent or broken."""
    try:
        items: list[JsonObject] = json.loads(text or "")
    except ValueError:
        return None
    return items


def test_the_example_label_of_the_specification_is_shortened_as_specified() -> None:
    rest = "this-is-a-very-long-svc-name-which-will-exceed-max-length-tcp-5678"
    cut = "to-this-is-a-very-long-svc-name-which-will-exceed-max-len-7c268"
    assert label(rest) == f"{MARK}{cut}"


# Clusters

SELECTORS = st.sampled_from(
    [
        {"matchLabels": {"team": "a"}},
        {"matchLabels": {"kubernetes.io/metadata.name": "beta"}},
        {"matchExpressions": [{"key": "team", "operator": "Exists"}]},
        {},
    ]
)
PORTS = st.sampled_from(
    [
        {"port": 80, "protocol": "TCP"},
        {"port": 8080},
        {"port": "9090", "protocol": "UDP"},
        {"port": "http", "protocol": "TCP"},
        {"port": "http", "protocol": "UDP"},
        {"port": 8080, "endPort": 8085, "protocol": "TCP"},
    ]
)
BROKEN = st.sampled_from(["[{", "not json"])


def texts(items: st.SearchStrategy[object]) -> st.SearchStrategy[str]:
    """Draw annotations, most of which hold a list."""
    return st.one_of(
        *[st.lists(items, min_size=1, max_size=2).map(json.dumps)] * 5,
        st.just("[]"),
        BROKEN,
    )


ANNOTATIONS = st.fixed_dictionaries(
    {f"{MARK}namespace-selectors": texts(SELECTORS)},
    optional={
        f"{MARK}pod-label-selector-namespace-alias": st.sampled_from(["all-shops", "beta"]),
        f"{MARK}from-scrapers-allowed-ports": texts(PORTS),
        f"{MARK}from-all-webhook-targets-allowed-ports": texts(PORTS),
        f"{MARK}from-policy-allowed-ports": texts(PORTS),
        f"{MARK}from-policy-pod-label-selector": st.sampled_from(["scrapers", "old"]),
        f"{MARK}from-world-to-ports": texts(PORTS),
    },
)
SERVICE_PORT = st.builds(
    lambda protocol, target: {"protocol": protocol, "port": 1, "targetPort": target},
    st.sampled_from(PROTOCOLS),
    st.sampled_from([80, 8080, "http"]),
)
SERVICE_PORTS = st.one_of(
    *[st.lists(SERVICE_PORT, min_size=1, max_size=2)] * 3, st.just(list[JsonObject]())
)
SERVICES = st.builds(
    lambda namespace, name, marks, selector, ports: {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"{namespace}-{name}",
            "annotations": marks,
        },
        "spec": {"selector": selector, "ports": ports},
    },
    st.sampled_from(["alpha", "alpha", "alpha", "beta", "beta", TERMINATING]),
    st.sampled_from(["web", "db", LONG]),
    ANNOTATIONS,
    st.sampled_from([{"app": "web"}] * 4 + [{"app": "db"}, {}, None]),
    SERVICE_PORTS,
)
NAMESPACES = st.fixed_dictionaries(
    {
        name: st.sampled_from([{"team": "a"}, {"team": "a"}, {"team": "a"}, {"team": "b"}, {}])
        for name in ("alpha", "beta", "gamma", TERMINATING)
    }
)


def useful_labels(services: Sequence[JsonObject]) -> set[str]:
    """Return the labels that allow some traffic, in the right or in the wrong namespace."""
    return {
        label(f"{prefix}{rest}")
        for service in services
        for rest, _ in labelled_ports(service)
        for prefix in (
            "",
            f"{service['metadata']['namespace']}-",
            f"{annotations(service).get('pod-label-selector-namespace-alias', 'x')}-",
        )
    }


def free() -> st.SearchStrategy[dict[str, str]]:
    """Draw labels that exempt a pod from restrictions: usually none, otherwise one or two."""
    some = st.fixed_dictionaries({}, optional={name: st.just("any") for name in FREE})
    return st.one_of(*[st.just(dict[str, str]())] * 3, some)


def pods_behind(services: Sequence[JsonObject]) -> st.SearchStrategy[Pod]:
    """Draw pods of one of the Services, and pods that could be mistaken for them."""
    return st.builds(
        lambda service, labels, http: Pod(
            service["metadata"]["namespace"],
            {**(service["spec"]["selector"] or {}), **labels},
            {NamedPort("http", protocol): number for protocol, number in http.items()},
        ),
        st.sampled_from(services),
        st.one_of(free(), free(), free(), st.just({"app": "other"})),
        st.fixed_dictionaries({}, optional={p: st.sampled_from(NUMBERS) for p in PROTOCOLS}),
    )


def callers_of(services: Sequence[JsonObject]) -> st.SearchStrategy[Pod]:
    """Draw pods with labels that could allow connections."""
    marks = sorted(useful_labels(services))
    some = dict.fromkeys(marks, st.sampled_from(["allowed", "allowed", "denied"]))
    return st.builds(
        lambda namespace, wishes, free: Pod(namespace, {**wishes, **free}),
        st.sampled_from(["alpha", "beta", "beta", "gamma", "gamma", TERMINATING]),
        st.one_of(
            st.just(dict.fromkeys(marks, "allowed")),
            *[st.fixed_dictionaries({}, optional=some)] * 2,
        ),
        free(),
    )


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Draw a small cluster in which most requests can take effect."""
    services = draw(st.lists(SERVICES, min_size=1, max_size=3, unique_by=Key.of))
    targets, callers = pods_behind(services), callers_of(services)
    pods = draw(st.tuples(targets, targets, callers, callers, callers))
    return World(draw(NAMESPACES), services, list(pods))


# The policies of the product


def generated(world: World, *, only_for_matching_pods: bool = False) -> list[JsonObject]:
    """Return the policies of all Services."""
    environment = Environment(
        has_caller=(
            (
                lambda namespace, key: any(
                    pod.namespace == namespace and pod.labels.get(key) == "allowed"
                    for pod in world.pods
                )
            )
            if only_for_matching_pods
            else None
        )
    )
    namespaces = {
        name: SeenNamespace(
            {"kubernetes.io/metadata.name": name, **labels}, terminating=name == TERMINATING
        )
        for name, labels in world.namespaces.items()
    }
    policies: list[JsonObject] = []
    for manifest in world.services:
        service = read_service(manifest)
        intended = intents(service, peers_of(service, namespaces), environment)
        policies += desired(service, intended).values()
    return policies


def closed(world: World, policies: Sequence[JsonObject]) -> Network:
    """Return the cluster, which allows only the traffic of `policies` and of unrestricted pods."""
    closing = [policy(name, {}, policyTypes=["Ingress", "Egress"]) for name in world.namespaces]
    opening = [
        policy(name, {"matchLabels": {free: "any"}}, policyTypes=[direction], **{free: [{}]})
        for name in world.namespaces
        for free, direction in FREE.items()
    ]
    return Network(world.namespaces, [*closing, *opening, *policies])


def policy(namespace: str, pods: JsonObject, **spec: object) -> JsonObject:
    """Return a policy that is not ours."""
    return {
        "metadata": {"name": "ours", "namespace": namespace},
        "spec": {"podSelector": pods, **spec},
    }


class Connection(NamedTuple):
    """A possible connection, and whether it is requested."""

    source: Endpoint
    target: Pod
    protocol: Protocol
    number: int
    asked: bool


def connections(world: World) -> list[Connection]:
    """Return all possible connections, including those from outside."""
    callers: list[Endpoint] = [Outside(), *world.pods]
    tries = itertools.product(callers, world.pods, PROTOCOLS, NUMBERS)
    return [Connection(*one, intended(world, *one)) for one in tries if one[0] is not one[1]]


def wrong(tries: Iterable[Connection], network: Network) -> Iterator[Connection]:
    """Yield the connections on which policies and Services disagree."""
    return (
        one
        for one in tries
        if one.asked != network.may_reach(one.source, one.target, one.protocol, one.number)
    )


@given(worlds())
@settings(max_examples=150, deadline=None)
def test_policies_allow_exactly_the_requested_connections(world: World) -> None:
    tries = connections(world)
    for only_for_matching_pods in (False, True):
        policies = generated(world, only_for_matching_pods=only_for_matching_pods)
        assert list(wrong(tries, closed(world, policies))) == []


@given(worlds())
@settings(max_examples=50, deadline=None)
def test_policies_for_matching_pods_are_a_subset(world: World) -> None:
    every = generated(world)
    assert all(one in every for one in generated(world, only_for_matching_pods=True))


# Does the comparison detect a wrong policy?

RICH = World(
    {"alpha": {}, "beta": {"team": "a"}, "gamma": {}, TERMINATING: {"team": "a"}},
    [
        {
            "metadata": {
                "name": "web",
                "namespace": "alpha",
                "annotations": {
                    f"{MARK}namespace-selectors": '[{"matchLabels": {"team": "a"}}]',
                    f"{MARK}pod-label-selector-namespace-alias": "all-shops",
                    f"{MARK}from-scrapers-allowed-ports": '[{"port": "9090"}]',
                    f"{MARK}from-world-to-ports": '[{"port": 8085, "protocol": "UDP"}]',
                },
            },
            "spec": {
                "selector": {"app": "web"},
                "ports": [{"protocol": "TCP", "port": 80, "targetPort": "http"}],
            },
        }
    ],
    [
        *(
            Pod(namespace, labels, {NamedPort("http", "TCP"): 8080})
            for namespace in ("alpha", "gamma")
            for labels in ({"app": "web"}, {"app": "web", "ingress": "any"}, {"ingress": "any"}, {})
        ),
        *(
            Pod(namespace, {label(prefix + rest): "allowed", **free})
            for free in ({}, {"egress": "any"})
            for rest in ("web-tcp-http", "scrapers")
            for prefix in ("", "all-shops-")
            for namespace in ("alpha", "beta", "gamma")
        ),
        *(Pod(namespace, {"egress": "any"}) for namespace in ("alpha", "beta", "gamma")),
    ],
)


def changed(policy: JsonObject, path: Sequence[str | int], value: object) -> JsonObject:
    """Return a copy with another value at a path."""
    copy: JsonObject = json.loads(json.dumps(policy))
    *parents, last = path
    here = copy
    for step in parents:
        here = here[step]  # type: ignore[index] # steps into lists are numbers
    if value is None:
        del here[last]  # type: ignore[arg-type]
    else:
        here[last] = value  # type: ignore[index]
    return copy


def mutants(policy: JsonObject) -> Iterator[tuple[str, list[JsonObject]]]:
    """Yield copies of the policy, each with one error and its description; finally no policy."""
    direction = policy["spec"]["policyTypes"][0].lower()
    peers = "from" if direction == "ingress" else "to"
    rule = ("spec", direction, 0)
    yield "another namespace", [changed(policy, ("metadata", "namespace"), "gamma")]
    yield "all pods", [changed(policy, ("spec", "podSelector"), {})]
    yield "other pods", [changed(policy, ("spec", "podSelector"), {"matchLabels": {"app": "x"}})]
    yield "all ports", [changed(policy, (*rule, "ports"), None)]
    yield "another port", [changed(policy, (*rule, "ports", 0, "port"), 1)]
    yield "another protocol", [changed(policy, (*rule, "ports", 0, "protocol"), "SCTP")]
    yield "no rule", [changed(policy, ("spec", direction), [])]
    if peers in policy["spec"][direction][0]:
        yield "all peers", [changed(policy, (*rule, peers), None)]
        at = (*rule, peers, 0)
        yield "all pods as peers", [changed(policy, (*at, "podSelector"), {})]
        yield "all namespaces", [changed(policy, (*at, "namespaceSelector"), {})]
        other = {"matchLabels": {"kubernetes.io/metadata.name": "gamma"}}
        yield "another peer namespace", [changed(policy, (*at, "namespaceSelector"), other)]
    yield "no policy", []


def test_each_mutant_of_each_policy_is_detected() -> None:
    policies = generated(RICH)
    callers = [one for one in connections(RICH) if one.target in RICH.pods[:8]]
    assert not any(wrong(callers, closed(RICH, policies)))
    unnoticed = [
        f"{one['metadata']['name']}: {mutation}"
        for position, one in enumerate(policies)
        for mutation, instead in mutants(one)
        if not any(
            wrong(
                callers,
                closed(RICH, [*policies[:position], *instead, *policies[position + 1 :]]),
            )
        )
    ]
    assert unnoticed == []
