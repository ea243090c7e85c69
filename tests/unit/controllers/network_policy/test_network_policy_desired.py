"""The NetworkPolicies of Services: names, labels, contents and wording of spec 11 §4.3-4.13."""

import hashlib
import json

import pytest

from pergola.api.objects import JsonObject, Key, map_at
from pergola.controllers.network_policy.desired import desired, render
from pergola.controllers.network_policy.intents import (
    Backend,
    Environment,
    GatewayBackend,
    IngressController,
    Intent,
    intents,
)
from pergola.controllers.network_policy.service import ServiceView, read_service

L = "networking.resources.gardener.cloud/"
GRM = "gardener-resource-manager"
X = f"{GRM}-tcp-10250"
NAMESPACE_NAME = "kubernetes.io/metadata.name"
WEB = IngressController("default", {"matchLabels": {"foo": "bar"}})
ISTIO = (("istio", "ingressgateway"),)


def service(
    namespace: str = "a",
    name: str = GRM,
    ports: list[JsonObject] | None = None,
    **annotations: object,
) -> ServiceView:
    """Return a Service as stored; annotations without prefix, with `_` for `-`."""
    return read_service(
        {
            "metadata": {
                "name": name,
                "namespace": namespace,
                "uid": "u",
                "annotations": {
                    L + key.replace("_", "-"): v if isinstance(v, str) else json.dumps(v)
                    for key, v in annotations.items()
                },
            },
            "spec": {
                "selector": {"app": name},
                "ports": [port(443, 10250)] if ports is None else ports,
            },
        }
    )


def port(number: int, target: int | str, protocol: str = "TCP", name: str = "") -> JsonObject:
    return {"name": name, "port": number, "targetPort": target, "protocol": protocol}


def policies(
    view: ServiceView, *peers: str, environment: Environment | None = None
) -> dict[str, JsonObject]:
    """Return the specs of a Service's policies, by `namespace/name`."""
    intended = intents(view, peers or [view.key.namespace], environment or Environment())
    return {str(key): policy["spec"] for key, policy in desired(view, intended).items()}


def callers(key: str) -> JsonObject:
    return {"matchLabels": {L + key: "allowed"}}


def app(name: str = GRM) -> JsonObject:
    return {"matchLabels": {"app": name}}


def within(namespace: str) -> JsonObject:
    return {"matchLabels": {NAMESPACE_NAME: namespace}}


def ingress(peer: JsonObject, to: int | str = 10250, protocol: str = "TCP") -> JsonObject:
    rule = {"from": [peer], "ports": [{"protocol": protocol, "port": to}]}
    return {"podSelector": app(), "policyTypes": ["Ingress"], "ingress": [rule]}


def egress(who: JsonObject, peer: JsonObject, to: int = 10250) -> JsonObject:
    rule = {"to": [peer], "ports": [{"protocol": "TCP", "port": to}]}
    return {"podSelector": who, "policyTypes": ["Egress"], "egress": [rule]}


# The test vectors of §4.12


V1 = {
    f"a/ingress-to-{X}": ingress({"podSelector": callers(f"to-{X}")}),
    f"a/egress-to-{X}": egress(callers(f"to-{X}"), {"podSelector": app()}),
}


def test_v1_without_annotations_a_label_allows_each_port_within_the_namespace() -> None:
    assert policies(service()) == V1


def test_v2_a_peer_namespace_gets_a_separate_pair() -> None:
    assert policies(service(), "a", "b") == V1 | {
        f"a/ingress-to-{X}-from-b": ingress(
            {"podSelector": callers(f"to-a-{X}"), "namespaceSelector": within("b")}
        ),
        f"b/egress-to-a-{X}": egress(
            callers(f"to-a-{X}"), {"podSelector": app(), "namespaceSelector": within("a")}
        ),
    }


def test_v3_a_namespace_alias_shares_labels_but_not_names() -> None:
    def in_bar(**annotations: object) -> dict[str, list[str]]:
        found = {}
        for namespace in ("foo-1", "foo-2"):
            view = service(namespace, "example", [port(8080, 8080)], **annotations)
            for name, spec in policies(view, namespace, "bar").items():
                if name.startswith("bar/"):
                    found[name] = list(map_at(spec, "podSelector", "matchLabels"))
        return found

    assert in_bar() == {
        "bar/egress-to-foo-1-example-tcp-8080": [L + "to-foo-1-example-tcp-8080"],
        "bar/egress-to-foo-2-example-tcp-8080": [L + "to-foo-2-example-tcp-8080"],
    }
    assert in_bar(pod_label_selector_namespace_alias="all-foos") == {
        "bar/egress-to-foo-1-example-tcp-8080": [L + "to-all-foos-example-tcp-8080"],
        "bar/egress-to-foo-2-example-tcp-8080": [L + "to-all-foos-example-tcp-8080"],
    }


def test_v4_an_alias_is_one_label_for_many_services() -> None:
    for number in range(10):
        view = service(
            "a",
            f"bar{number}",
            [],
            from_all_bars_allowed_ports=[{"port": 8080 + number, "protocol": "TCP"}],
        )
        base = f"bar{number}-tcp-{8080 + number}-via-all-bars"
        found = policies(view)
        assert list(found) == [f"a/ingress-to-{base}", f"a/egress-to-{base}"]
        assert found[f"a/egress-to-{base}"]["podSelector"] == callers("to-all-bars")


def test_v5_from_world_needs_no_label_and_quoted_numbers_are_numbers() -> None:
    view = service(ports=[], from_world_to_ports=[{"port": "10250", "protocol": "TCP"}])
    assert policies(view) == {
        f"a/ingress-to-{GRM}-from-world": {
            "podSelector": app(),
            "policyTypes": ["Ingress"],
            "ingress": [{"ports": [{"protocol": "TCP", "port": 10250}]}],
        }
    }


def test_v6_the_ingress_controller_reaches_exposed_services() -> None:
    around = Environment(ingress_controller=WEB, ingress_backends=[Backend(443, "Ingress i")])
    who = {"matchLabels": {"foo": "bar"}}
    assert policies(service(), environment=around) == V1 | {
        f"a/ingress-to-{X}-from-ingress-controller": ingress(
            {"podSelector": who, "namespaceSelector": within("default")}
        ),
        f"default/egress-to-a-{X}-from-ingress-controller": egress(
            who, {"podSelector": app(), "namespaceSelector": within("a")}
        ),
    }


# The remaining names of §4.3


def test_policies_of_an_alias_are_named_after_port_alias_and_namespace() -> None:
    view = service(ports=[], from_all_bars_allowed_ports=[{"port": "metrics"}])
    base = f"{GRM}-tcp-metrics-via-all-bars"
    found = policies(view, "a", "b")
    assert list(found) == [
        f"a/ingress-to-{base}",
        f"a/egress-to-{base}",
        f"a/ingress-to-{base}-from-b",
        f"b/egress-to-a-{base}",
    ]
    assert found[f"b/egress-to-a-{base}"]["podSelector"] == callers("to-a-all-bars")


def test_a_namespace_alias_is_part_of_an_aliass_label_for_peers_only() -> None:
    view = service(
        ports=[],
        pod_label_selector_namespace_alias="all-shoots",
        from_x_allowed_ports=[{"port": 1}],
    )
    found = policies(view, "a", "b")
    assert found[f"a/egress-to-{GRM}-tcp-1-via-x"]["podSelector"] == callers("to-x")
    assert found[f"b/egress-to-a-{GRM}-tcp-1-via-x"]["podSelector"] == callers("to-all-shoots-x")


def test_an_ingress_controller_in_the_same_namespace_needs_no_namespace_selector() -> None:
    around = Environment(
        ingress_controller=WEB._replace(namespace="a"), ingress_backends=[Backend(443, "Ingress i")]
    )
    who = {"matchLabels": {"foo": "bar"}}
    assert policies(service(), environment=around) == V1 | {
        f"a/ingress-to-{X}-from-ingress-controller": ingress({"podSelector": who}),
        f"a/egress-to-{X}-from-ingress-controller": egress(who, {"podSelector": app()}),
    }


def test_policies_of_a_gateway_are_named_after_its_namespace_or_istio() -> None:
    def named(namespace: str) -> list[str]:
        backend = GatewayBackend(443, "VirtualService v", namespace, ISTIO)
        found = policies(service(), environment=Environment(gateway_backends=[backend]))
        return [name for name in found if name not in V1]

    assert named("istio-ingress") == [
        f"a/ingress-to-{X}-from-istio-ingress",
        f"istio-ingress/egress-to-a-{X}-from-istio",
    ]
    assert named("a") == [f"a/ingress-to-{X}-from-istio", f"a/egress-to-{X}-from-istio"]


@pytest.mark.parametrize(
    ("backend", "targets"),
    [
        ("web", [8080]),
        (80, [8080]),
        ("metrics", ["prom"]),
        (9090, ["prom"]),
        (8080, []),  # of the container, not of the Service
        ("", []),
        ("other", []),
        (None, []),  # ambiguous
    ],
)
def test_policies_of_a_backend_are_named_after_the_service_port(
    backend: int | str | None, targets: list[int | str]
) -> None:
    ports = [port(80, 8080, name="web"), port(9090, "prom", name="metrics")]
    around = Environment(ingress_controller=WEB, ingress_backends=[Backend(backend, "Ingress i")])
    found = intents(service(ports=ports), ["a"], around)
    assert [intent.port for intent in found if intent.kind == "ingress"] == targets


def test_an_empty_port_name_does_not_match_an_unnamed_port() -> None:
    around = Environment(ingress_controller=WEB, ingress_backends=[Backend("", "Ingress i")])
    assert policies(service(), environment=around) == V1


def test_a_destination_without_a_port_means_the_only_port() -> None:
    backend = GatewayBackend(None, "VirtualService v", "istio-ingress", ISTIO)
    found = intents(service(), ["a"], Environment(gateway_backends=[backend]))
    assert [intent.port for intent in found if intent.kind == "istio"] == [10250]


# Labels


def test_a_label_key_over_63_characters_is_cut_and_hashed() -> None:
    name = "this-is-a-very-long-svc-name-which-will-exceed-max-length"
    (intent,) = intents(service(name=name, ports=[port(80, 5678)]), ["a"])
    short = "to-this-is-a-very-long-svc-name-which-will-exceed-max-len-7c268"
    assert (intent.label, intent.full_label) == (L + short, f"{L}to-{name}-tcp-5678")
    assert intent.callers == {"matchLabels": {L + short: "allowed"}}


@pytest.mark.parametrize(("length", "is_cut"), [(63, False), (64, True)])
def test_a_label_key_of_63_characters_is_not_cut(length: int, is_cut: bool) -> None:
    name = "n" * (length - len("to--tcp-80"))
    (intent,) = intents(service(name=name, ports=[port(80, 80)]), ["a"])
    assert (intent.label != intent.full_label) == is_cut
    assert len(intent.label.removeprefix(L)) == 63


def test_long_label_keys_of_peers_differ_between_namespaces() -> None:
    def label(namespace: str) -> str:
        view = service(namespace, "n" * 60, [port(80, 80)])
        return intents(view, [namespace, "peer"])[1].label

    first, second = label("first-namespace"), label("second-namespace")
    full = f"to-first-namespace-{'n' * 60}-tcp-80"
    assert first == f"{L}{full[:57]}-{hashlib.sha256(full.encode()).hexdigest()[:5]}"
    assert first != second


# Metadata


def test_every_policy_names_its_service() -> None:
    view = service(from_world_to_ports=[])
    for key, policy in desired(view, intents(view, ["a", "b"])).items():
        assert Key.of(policy) == key
        assert policy["apiVersion"] == "networking.k8s.io/v1"
        assert policy["kind"] == "NetworkPolicy"
        assert policy["metadata"]["labels"] == {
            L + "service-name": GRM,
            L + "service-namespace": "a",
        }


TARGET = f"pods selected by the a/{GRM} service selector"


def description(intent_kind: str, number: int) -> str:
    view = service(
        ports=[port(443, 10250), port(1, "testport", "UDP")],
        from_world_to_ports=[{"port": 5678}, {"port": "testport", "protocol": "UDP"}],
        from_x_allowed_ports=[{"port": 1}],
    )
    found = intents(
        view,
        ["a", "b"],
        Environment(
            ingress_controller=IngressController(
                "garden", {"matchLabels": {"component": "controller", "app": "nginx-ingress"}}
            ),
            ingress_backends=[Backend(443, "Ingress i")],
            gateway_backends=[GatewayBackend(443, "VirtualService v", "istio-ingress", ISTIO)],
        ),
    )
    chosen = [policy for i in found if i.kind == intent_kind for policy in render(view, i)]
    text: str = chosen[number]["metadata"]["annotations"]["gardener.cloud/description"]
    return text


def labelled(key: str) -> str:
    return f"labeled with map[{L}{key}:allowed]"


INTO = f"Allows ingress TCP traffic to port 10250 for {TARGET} from"
OUT = "Allows egress TCP traffic to port 10250 from"
NGINX = "labeled with map[app:nginx-ingress component:controller]"
IN_A, IN_B = "pods running in namespace a", "pods running in namespace b"
SENTENCES = [
    ("port", 0, f"{INTO} {IN_A} {labelled(f'to-{X}')}."),
    ("port", 1, f"{OUT} {IN_A} {labelled(f'to-{X}')} to {TARGET}."),
    ("port", 2, f"{INTO} {IN_B} {labelled(f'to-a-{X}')}."),
    ("port", 3, f"{OUT} {IN_B} {labelled(f'to-a-{X}')} to {TARGET}."),
    (
        "port",
        7,
        (
            f"Allows egress UDP traffic to port testport from {IN_B} "
            f"{labelled(f'to-a-{GRM}-udp-testport')} to {TARGET}."
        ),
    ),
    (
        "alias",
        2,
        f"Allows ingress TCP traffic to port 1 for {TARGET} from {IN_B} {labelled('to-a-x')}.",
    ),
    (
        "world",
        0,
        f"Allows ingress traffic from everywhere to ports [TCP/5678 UDP/testport] for {TARGET}.",
    ),
    (
        "ingress",
        0,
        f"{INTO} ingress controller pods running in the garden namespace {NGINX}.",
    ),
    ("ingress", 1, f"{OUT} pods running in the garden namespace {NGINX} to {TARGET}."),
    (
        "istio",
        0,
        f"{INTO} pods running in namespace istio-ingress labeled with map[istio:ingressgateway].",
    ),
]


@pytest.mark.parametrize(("kind", "number", "text"), SENTENCES)
def test_a_policy_has_a_description(kind: str, number: int, text: str) -> None:
    assert description(kind, number) == text


def test_an_intent_names_its_origin() -> None:
    view = service(
        ports=[port(443, 10250, name="web")],
        from_world_to_ports=[],
        from_x_allowed_ports=[{"port": 1}],
    )
    around = Environment(
        ingress_controller=WEB,
        ingress_backends=[Backend(443, "Ingress i"), Backend("web", "Ingress j")],
        gateway_backends=[GatewayBackend(443, "VirtualService v", "istio-ingress", ISTIO)],
    )
    assert [(i.kind, i.peer, i.because) for i in intents(view, ["a", "b"], around)] == [
        ("port", "a", "spec.ports"),
        ("port", "b", L + "namespace-selectors"),
        ("alias", "a", L + "from-x-allowed-ports"),
        ("alias", "b", L + "from-x-allowed-ports"),
        ("world", "", L + "from-world-to-ports"),
        ("ingress", "default", "Ingress i"),
        ("istio", "istio-ingress", "VirtualService v"),
    ]


# Special Services, and special cases


def test_an_empty_list_allows_the_world_on_all_ports() -> None:
    found = policies(service(ports=[], from_world_to_ports=[]))
    assert found[f"a/ingress-to-{GRM}-from-world"]["ingress"] == [{}]


def test_a_port_range_is_passed_on_and_named_after_its_start() -> None:
    view = service(
        ports=[], from_x_allowed_ports=[{"port": 30000, "endPort": 32767, "protocol": "UDP"}]
    )
    found = policies(view)
    rendered = {"protocol": "UDP", "port": 30000, "endPort": 32767}
    base = f"{GRM}-udp-30000-via-x"
    assert found[f"a/ingress-to-{base}"]["ingress"][0]["ports"] == [rendered]
    assert found[f"a/egress-to-{base}"]["egress"][0]["ports"] == [rendered]


def test_from_world_can_allow_all_ports_of_a_protocol() -> None:
    found = policies(service(ports=[], from_world_to_ports=[{"protocol": "UDP"}]))
    assert found[f"a/ingress-to-{GRM}-from-world"]["ingress"] == [{"ports": [{"protocol": "UDP"}]}]


def test_equal_ports_share_one_pair() -> None:
    assert policies(service(ports=[port(443, 10250), port(8443, 10250)])) == V1


def test_one_number_with_two_protocols_gets_two_pairs() -> None:
    found = policies(service(ports=[port(53, 53), port(53, 53, "UDP")]))
    assert list(found) == [
        f"a/{direction}-to-{GRM}-{protocol}-53"
        for protocol in ("tcp", "udp")
        for direction in ("ingress", "egress")
    ]


def test_selecting_the_namespace_of_the_service_adds_no_peer() -> None:
    view = service(namespace_selectors=[{}])
    assert policies(view, "a") == V1


@pytest.mark.parametrize(
    "change",
    [
        {"spec": {"ports": [port(443, 1)]}},
        {"spec": {"ports": [port(443, 1)], "selector": {}}},
        {"spec": {"ports": [port(443, 1)], "selector": {"a": "b"}, "type": "ExternalName"}},
        {
            "metadata": {"name": "s", "namespace": "a", "deletionTimestamp": "now"},
            "spec": {"ports": [port(443, 1)], "selector": {"a": "b"}},
        },
    ],
    ids=["no selector", "empty selector", "external name", "deleting"],
)
def test_a_service_without_a_selector_gets_no_policies(change: JsonObject) -> None:
    view = read_service({"metadata": {"name": "s", "namespace": "a"}} | change)
    assert intents(view, ["a"]) == []


def test_without_peers_there_are_no_policies() -> None:
    view = service(from_world_to_ports=[])
    around = Environment(ingress_controller=WEB, ingress_backends=[Backend(443, "Ingress i")])
    assert intents(view, [], around) == []


def test_only_labelled_policies_depend_on_matching_pods() -> None:
    view = service(from_world_to_ports=[], from_x_allowed_ports=[{"port": 1}])
    pods = {("b", f"{L}to-a-{X}"), ("a", f"{L}to-x"), ("a", f"{L}to-a-{X}")}
    around = Environment(
        has_caller=lambda namespace, label: (namespace, label) in pods,
        ingress_controller=WEB,
        ingress_backends=[Backend(443, "Ingress i")],
        gateway_backends=[GatewayBackend(443, "VirtualService v", "istio-ingress", ISTIO)],
    )
    assert [(i.kind, i.peer) for i in intents(view, ["a", "b"], around)] == [
        ("port", "b"),
        ("alias", "a"),
        ("world", ""),
        ("ingress", "default"),
        ("istio", "istio-ingress"),
    ]


def test_matching_pods_are_found_by_the_shortened_label() -> None:
    view = service(name="n" * 60, ports=[port(80, 80)])
    (intent,) = intents(view, ["a"])
    assert intents(view, ["a"], Environment(has_caller=lambda _, key: key == intent.label))
    assert not intents(view, ["a"], Environment(has_caller=lambda _, key: key == intent.full_label))


def test_a_custom_pod_selector_is_used_in_all_policies() -> None:
    chosen = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["x", "y"]}]}
    view = service(networkpolicy_pod_selector=chosen, from_world_to_ports=[])
    found = policies(view)
    assert found[f"a/ingress-to-{X}"]["podSelector"] == chosen
    assert found[f"a/egress-to-{X}"]["egress"][0]["to"] == [{"podSelector": chosen}]
    assert found[f"a/ingress-to-{GRM}-from-world"]["podSelector"] == chosen


# Names that two intents share


def test_a_peer_and_a_gateway_of_one_namespace_share_the_ingress_policy() -> None:
    backend = GatewayBackend(443, "VirtualService v", "b", ISTIO)
    found = policies(service(), "a", "b", environment=Environment(gateway_backends=[backend]))
    rules = found[f"a/ingress-to-{X}-from-b"]["ingress"]
    assert [rule["from"][0]["podSelector"] for rule in rules] == [
        callers(f"to-a-{X}"),
        {"matchLabels": dict(ISTIO)},
    ]
    assert found[f"b/egress-to-a-{X}"]["podSelector"] == callers(f"to-a-{X}")
    assert found[f"b/egress-to-a-{X}-from-istio"]["podSelector"] == {"matchLabels": dict(ISTIO)}


def test_two_gateways_of_one_namespace_both_have_egress() -> None:
    other = (("istio", "other"),)
    around = Environment(
        gateway_backends=[
            GatewayBackend(443, "VirtualService v", "istio-ingress", labels)
            for labels in (ISTIO, other)
        ]
    )
    found = policies(service(), environment=around)
    name = f"istio-ingress/egress-to-a-{X}-from-istio"
    digest = hashlib.sha256(b'{"matchLabels":{"istio":"other"}}').hexdigest()[:5]
    assert found[name]["podSelector"] == {"matchLabels": dict(ISTIO)}
    assert found[f"{name}-{digest}"]["podSelector"] == {"matchLabels": dict(other)}
    assert len(found[f"a/ingress-to-{X}-from-istio-ingress"]["ingress"]) == 2


def test_an_intent_is_a_pair_of_policies_or_a_single_one_for_the_world() -> None:
    view = service(from_world_to_ports=[])
    found = {i.kind: len(render(view, i)) for i in intents(view, ["a"])}
    assert found == {"port": 2, "world": 1}
    assert Intent("world", "", (), "x").port is None
