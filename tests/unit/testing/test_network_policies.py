"""The evaluator of NetworkPolicies follows the documentation of the API."""

import pytest

from pergola.api.objects import JsonObject, Key
from tests.support.network_policies import Endpoint, NamedPort, Network, Outside, Pod

NAMESPACES = {"shop": {"team": "a"}, "pay": {"team": "b"}, "lab": {}}
WEB = Pod("shop", {"app": "web"}, {NamedPort("http", "TCP"): 8080, NamedPort("http", "UDP"): 90})
TILL = Pod("shop", {"app": "till"})
PAY = Pod("pay", {"app": "till"})
LAB = Pod("lab", {"app": "lab"})


def policy(name: str, **spec: object) -> JsonObject:
    return {"metadata": {"name": name, "namespace": "shop"}, "spec": {"podSelector": {}, **spec}}


def ingress(*rules: JsonObject, **spec: object) -> JsonObject:
    return policy("in", policyTypes=["Ingress"], ingress=list(rules), **spec)


def egress(*rules: JsonObject, **spec: object) -> JsonObject:
    return policy("out", policyTypes=["Egress"], egress=list(rules), **spec)


def labels(**desired: str) -> JsonObject:
    return {"matchLabels": desired}


DENY_ALL = policy("deny-all", policyTypes=["Ingress", "Egress"])


def reaches(*policies: JsonObject, source: Endpoint = TILL, port: int = 8080) -> bool:
    return Network(NAMESPACES, policies).may_reach(source, WEB, "TCP", port)


@pytest.mark.parametrize("source", [WEB, TILL, PAY, Outside()])
def test_without_policies_everyone_reaches_everyone(source: Endpoint) -> None:
    assert reaches(source=source)


def test_a_selected_pod_accepts_and_opens_only_what_a_policy_allows() -> None:
    network = Network(NAMESPACES, [DENY_ALL])
    assert not network.may_reach(TILL, WEB, "TCP", 8080)
    assert not network.may_reach(PAY, WEB, "TCP", 8080)
    assert not network.may_reach(WEB, PAY, "TCP", 8080)
    assert not network.may_reach(WEB, Outside(), "TCP", 8080)
    assert not network.may_reach(Outside(), WEB, "TCP", 8080)
    assert network.may_reach(PAY, LAB, "TCP", 8080), "the policy is in another namespace"


def test_a_pod_always_reaches_itself_but_not_its_replica() -> None:
    replica = Pod(WEB.namespace, WEB.labels, WEB.ports)
    assert reaches(DENY_ALL, source=WEB)
    assert not reaches(DENY_ALL, source=replica)


def test_both_ends_must_allow_a_connection() -> None:
    opens, accepts = egress({}), ingress({})
    assert not reaches(DENY_ALL, opens)
    assert not reaches(DENY_ALL, accepts)
    assert reaches(DENY_ALL, opens, accepts)


def test_a_policy_isolates_only_the_pods_it_selects_and_in_its_directions() -> None:
    only_web = ingress(podSelector=labels(app="web"))
    network = Network(NAMESPACES, [only_web])
    assert not network.may_reach(TILL, WEB, "TCP", 8080)
    assert network.may_reach(WEB, TILL, "TCP", 8080), "egress of web is not restricted"


def test_policies_are_additive() -> None:
    first = ingress({"from": [{"podSelector": labels(app="till")}]})
    second = ingress({"from": [{"namespaceSelector": labels(team="b")}]})
    assert reaches(first, second, source=TILL)
    assert reaches(first, second, source=PAY)
    assert not reaches(first, second, source=LAB)


@pytest.mark.parametrize(
    ("spec", "isolates"),
    [
        ({}, (True, False)),
        ({"ingress": [{}]}, (False, False)),
        ({"egress": []}, (True, False)),
        ({"egress": [{"to": [{"podSelector": labels(app="none")}]}]}, (True, True)),
        ({"policyTypes": ["Egress"]}, (False, True)),
        ({"policyTypes": ["Egress"], "ingress": []}, (False, True)),
    ],
)
def test_without_policy_types_egress_counts_only_with_egress_rules(
    spec: JsonObject, isolates: tuple[bool, bool]
) -> None:
    network = Network(NAMESPACES, [policy("any", **spec)])
    into = not network.may_reach(PAY, WEB, "TCP", 8080)
    out = not network.may_reach(WEB, PAY, "TCP", 8080)
    assert (into, out) == isolates


@pytest.mark.parametrize(
    ("peer", "allowed"),
    [
        ({"podSelector": {}}, {"till"}),
        ({"podSelector": labels(app="till")}, {"till"}),
        ({"namespaceSelector": {}}, {"till", "pay", "lab"}),
        ({"namespaceSelector": labels(team="b")}, {"pay"}),
        ({"namespaceSelector": {}, "podSelector": labels(app="till")}, {"till", "pay"}),
        ({"namespaceSelector": labels(team="b"), "podSelector": labels(app="lab")}, set()),
        ({"namespaceSelector": labels(**{"kubernetes.io/metadata.name": "lab"})}, {"lab"}),
        (
            {
                "namespaceSelector": {
                    "matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]
                }
            },
            {"lab"},
        ),
        ({"ipBlock": {"cidr": "0.0.0.0/0"}}, {"outside"}),
        ({"ipBlock": {"cidr": "0.0.0.0/0", "except": ["203.0.113.0/24"]}}, set()),
        ({"ipBlock": {"cidr": "::/0"}}, set()),
    ],
)
def test_a_peer_must_match_all_its_selectors(peer: JsonObject, allowed: set[str]) -> None:
    sources: dict[str, Endpoint] = {"till": TILL, "pay": PAY, "lab": LAB, "outside": Outside()}
    rule = ingress({"from": [peer]})
    assert {name for name, pod in sources.items() if reaches(rule, source=pod)} == allowed


@pytest.mark.parametrize("rule", [{}, {"from": []}, {"from": [], "ports": []}])
def test_a_rule_without_peers_also_admits_connections_from_outside(rule: JsonObject) -> None:
    assert reaches(ingress(rule), source=PAY)
    assert reaches(ingress(rule), source=Outside())


def test_no_rules_differ_from_an_empty_rule() -> None:
    assert not reaches(ingress())


@pytest.mark.parametrize(
    ("port", "allowed"),
    [
        ({}, {("TCP", 80), ("TCP", 8080), ("TCP", 8090)}),
        ({"protocol": "UDP"}, {("UDP", 90)}),
        ({"port": 8080}, {("TCP", 8080)}),
        ({"protocol": "TCP", "port": 8080, "endPort": 8090}, {("TCP", 8080), ("TCP", 8090)}),
        ({"protocol": "TCP", "port": 8081, "endPort": 8090}, {("TCP", 8090)}),
        ({"protocol": "TCP", "port": "http"}, {("TCP", 8080)}),
        ({"protocol": "UDP", "port": "http"}, {("UDP", 90)}),
        ({"protocol": "TCP", "port": "other"}, set()),
    ],
)
def test_a_port_is_a_number_a_range_or_the_name_of_a_container_port(
    port: JsonObject, allowed: set[tuple[str, int]]
) -> None:
    network = Network(NAMESPACES, [ingress({"ports": [port]})])
    udp = {("UDP", 90)} if network.may_reach(TILL, WEB, "UDP", 90) else set()
    tcp = {("TCP", n) for n in (80, 8080, 8090) if network.may_reach(TILL, WEB, "TCP", n)}
    assert tcp | udp == allowed


def test_a_named_port_of_an_egress_rule_is_resolved_on_the_called_pod() -> None:
    named = egress({"ports": [{"port": "http"}]})
    assert reaches(named)
    assert not reaches(named, port=80)
    assert not Network(NAMESPACES, [named]).may_reach(TILL, PAY, "TCP", 8080)
    assert not Network(NAMESPACES, [named]).may_reach(TILL, Outside(), "TCP", 8080)


def test_a_rule_applies_only_to_its_peers_and_ports() -> None:
    rules = ingress(
        {"from": [{"podSelector": labels(app="till")}], "ports": [{"port": 80}]},
        {"from": [{"namespaceSelector": labels(team="b")}], "ports": [{"port": 8080}]},
    )
    assert (reaches(rules, port=80), reaches(rules)) == (True, False)
    assert (reaches(rules, port=80, source=PAY), reaches(rules, source=PAY)) == (False, True)


def test_a_verdict_names_the_policies_behind_it() -> None:
    network = Network(NAMESPACES, [DENY_ALL, ingress({"ports": [{"port": 80}]})])
    verdict = network.verdict("Ingress", TILL, WEB, "TCP", 80)
    assert verdict == ((Key("shop", "deny-all"), Key("shop", "in")), (Key("shop", "in"),))
    assert not network.verdict("Ingress", TILL, WEB, "TCP", 81).is_allowed
    assert network.verdict("Ingress", TILL, PAY, "TCP", 81) == ((), ())


def test_named_ports_are_read_from_all_containers_of_a_manifest() -> None:
    manifest: JsonObject = {
        "metadata": {"name": "web-1", "namespace": "shop", "labels": {"app": "web"}},
        "spec": {
            "initContainers": [{"ports": [{"name": "proxy", "containerPort": 15001}]}],
            "containers": [
                {"ports": [{"name": "http", "containerPort": 8080}, {"containerPort": 1}]},
                {"ports": [{"name": "http", "containerPort": 90, "protocol": "UDP"}]},
            ],
        },
    }
    proxy = {NamedPort("proxy", "TCP"): 15001}
    assert Pod.of(manifest) == Pod("shop", {"app": "web"}, {**WEB.ports, **proxy})
