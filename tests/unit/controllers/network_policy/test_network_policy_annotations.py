"""Annotations of Services, their errors, and the policies that stay in effect: spec 11 §4.9."""

import json

import pytest

from pergola.api.objects import JsonObject, Key
from pergola.controllers.network_policy.annotations import PolicyPort
from pergola.controllers.network_policy.intents import intents
from pergola.controllers.network_policy.kept import is_kept
from pergola.controllers.network_policy.service import ServiceView, read_service

L = "networking.resources.gardener.cloud/"
ALIAS = "from-x-allowed-ports"
WORLD = "from-world-to-ports"
SELECTORS = "namespace-selectors"
NAMESPACE_ALIAS = "pod-label-selector-namespace-alias"
POD_SELECTOR = "networkpolicy-pod-selector"
GOOD = '[{"port": 1}]'


def view(annotations: dict[str, str], **spec: object) -> ServiceView:
    ports = [{"port": 443, "targetPort": 8443, "protocol": "TCP"}]
    return read_service(
        {
            "metadata": {
                "name": "web",
                "namespace": "a",
                "uid": "u",
                "annotations": {L + key: text for key, text in annotations.items()},
            },
            "spec": {"selector": {"app": "web"}, "ports": ports, **spec},
        }
    )


def ports_of(text: str) -> list[PolicyPort]:
    """Return the ports that an alias opens; the annotation must be valid."""
    found = view({ALIAS: text})
    assert found.problems == ()
    return [port for alias in found.aliases for port in alias.ports]


# Valid annotations


@pytest.mark.parametrize(
    ("text", "ports"),
    [
        ('[{"port": 10250, "protocol": "TCP"}]', [("TCP", 10250, None)]),
        ('[{"port": "10250", "protocol": "TCP"}]', [("TCP", 10250, None)]),
        ('[{"port": 53, "protocol": "UDP"}]', [("UDP", 53, None)]),
        ('[{"port": 53, "protocol": "SCTP"}]', [("SCTP", 53, None)]),
        ('[{"port": 53}]', [("TCP", 53, None)]),
        ('[{"port": "metrics"}]', [("TCP", "metrics", None)]),
        ('[{"port": 1, "endPort": 9}]', [("TCP", 1, 9)]),
        ('[{"Port": 53, "PROTOCOL": "UDP", "endport": 54}]', [("UDP", 53, 54)]),
        ('[{"port": 1}, {"port": "1"}, {"port": 1, "protocol": "TCP"}]', [("TCP", 1, None)]),
        ('[{"port": 1, "endPort": 9}, {"port": 1}, {"port": 1, "endPort": 5}]', [("TCP", 1, 9)]),
        ("[]", []),
    ],
)
def test_ports_are_numbers_or_names_and_default_to_tcp(
    text: str, ports: list[tuple[str, int | str, int | None]]
) -> None:
    assert ports_of(text) == ports


def test_the_alias_is_the_text_between_from_and_allowed_ports() -> None:
    texts = {
        "from-all-scrape-targets-allowed-ports": '[{"port": 1}]',
        "from-b-allowed-ports": '[{"port": 2}]',
        "from-allowed-ports": "no annotation of ours",
        "from-world-to-ports": "[]",
    }
    assert [(alias.name, alias.ports[0].port) for alias in view(texts).aliases] == [
        ("all-scrape-targets", 1),
        ("b", 2),
    ]


def test_the_legacy_annotations_define_an_alias_and_its_ports() -> None:
    texts = {
        "from-policy-pod-label-selector": "all-scrape-targets",
        "from-policy-allowed-ports": GOOD,
    }
    found = view(texts)
    assert [(alias.name, alias.ports) for alias in found.aliases] == [
        ("policy", (PolicyPort("TCP", 1),)),
        ("all-scrape-targets", (PolicyPort("TCP", 1),)),
    ]
    assert {alias.annotation for alias in found.aliases} == {L + "from-policy-allowed-ports"}


def test_the_legacy_alias_is_merged_with_an_alias_of_the_same_name() -> None:
    texts = {
        "from-policy-pod-label-selector": "x",
        "from-policy-allowed-ports": '[{"port": 1}, {"port": 2}]',
        "from-x-allowed-ports": '[{"port": 2}, {"port": 3}]',
    }
    (ports,) = (alias.ports for alias in view(texts).aliases if alias.name == "x")
    assert [port.port for port in ports] == [1, 2, 3]


def test_selectors_of_namespaces_are_read_as_the_api_server_stores_them() -> None:
    text = json.dumps(
        [
            {"matchLabels": {"a": "b"}, "matchExpressions": []},
            {"matchExpressions": [{"key": "c", "operator": "Exists", "values": []}]},
            {},
        ]
    )
    assert view({SELECTORS: text}).namespace_selectors == (
        {"matchLabels": {"a": "b"}},
        {"matchExpressions": [{"key": "c", "operator": "Exists"}]},
        {},
    )


def test_absent_and_empty_annotations_differ() -> None:
    assert view({}).from_world is None
    assert view({WORLD: "[]"}).from_world == ()
    assert view({}).namespace_alias is None
    assert view({}).caller_namespace == "a"
    assert view({NAMESPACE_ALIAS: "all-shoots"}).caller_namespace == "all-shoots"


def test_irrelevant_annotations_are_ignored() -> None:
    changed = read_service(
        {
            "metadata": {
                "name": "web",
                "namespace": "a",
                "uid": "u",
                "resourceVersion": "5",
                "annotations": {"other": "annotation"},
                "labels": {"a": "label"},
            },
            "spec": {
                "selector": {"app": "web"},
                "ports": [{"port": 443, "targetPort": 8443, "protocol": "TCP"}],
                "clusterIP": "10.0.0.1",
            },
            "status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}},
        }
    )
    assert changed == view({})


@pytest.mark.parametrize("port", [{"port": 80}, {"port": 80, "targetPort": 0}])
def test_a_port_without_a_target_is_its_own_target(port: JsonObject) -> None:
    (found,) = view({}, ports=[port]).ports
    assert (found.protocol, found.target) == ("TCP", 80)


# Invalid annotations


@pytest.mark.parametrize(
    ("annotation", "text", "sentence"),
    [
        (ALIAS, "[{", "must be JSON of a list of ports"),
        (ALIAS, "{}", "must be a JSON list of ports"),
        (ALIAS, "null", "must be a JSON list of ports"),
        (ALIAS, "[80]", "[0]: must be a map such as"),
        (ALIAS, '[{"protocol": "TCP"}]', "[0].port: is missing"),
        (ALIAS, '[{"port": 0}]', "[0].port: must be a number from 1 to 65535"),
        (ALIAS, '[{"port": "65536"}]', "[0].port: must be a number from 1 to 65535"),
        (ALIAS, f'[{{"port": "{"1" * 5000}"}}]', "[0].port: must be a number from 1 to 65535"),
        (ALIAS, '[{"port": true}]', "[0].port: must be a number from 1 to 65535"),
        (ALIAS, '[{"port": "A"}]', "[0].port: must be a number from 1 to 65535"),
        (ALIAS, '[{"port": "a-name-of-16-chr"}]', "[0].port: must be a number from 1 to 65535"),
        (ALIAS, '[{"port": 1, "protocol": "tcp"}]', "[0].protocol: must be one of TCP, UDP, SCTP"),
        (ALIAS, '[{"port": 5, "endPort": 4}]', "[0].endPort: must be a number from 5 to 65535"),
        (ALIAS, '[{"port": "a", "endPort": 4}]', "[0].endPort: must be a number, and so must port"),
        ("from--allowed-ports", GOOD, "the alias is empty"),
        ("from-Upper-allowed-ports", GOOD, 'the alias "Upper" must be'),
        (WORLD, "null", "must be a JSON list of ports"),
        (WORLD, '[{"port": 1}, {"port": 0}]', "[1].port: must be a number from 1 to 65535"),
        (SELECTORS, "[", "must be JSON of a list of label selectors"),
        (SELECTORS, '["a"]', "[0]: must be a label selector"),
        (SELECTORS, '[{"matchlabels": {}}]', "[0]: a label selector has no field 'matchlabels'"),
        (SELECTORS, '[{"matchLabels": {"a": "b c"}}]', '[0]: "b c" cannot be a value of the label'),
        (NAMESPACE_ALIAS, "", '"" must be letters'),
        (NAMESPACE_ALIAS, "all shoots", '"all shoots" must be letters'),
        (POD_SELECTOR, "{", "must be JSON of a label selector"),
        (POD_SELECTOR, "{}", "it selects every pod of the namespace"),
    ],
)
def test_an_error_is_one_sentence_that_names_the_annotation_and_the_field(
    annotation: str, text: str, sentence: str
) -> None:
    found = view({annotation: text})
    (problem,) = found.problems
    assert problem.startswith(f"annotation {L}{annotation}: {sentence}")
    assert found.broken == {L + annotation}


def test_an_error_in_the_legacy_alias_is_reported_for_its_annotation() -> None:
    found = view({"from-policy-pod-label-selector": "a b", "from-policy-allowed-ports": GOOD})
    assert found.broken == {L + "from-policy-pod-label-selector"}
    assert [alias.name for alias in found.aliases] == ["policy"]


def test_all_errors_are_reported_and_valid_parts_are_used() -> None:
    found = view(
        {
            ALIAS: '[{"port": 1}, {"port": 0}, {"port": "B"}]',
            WORLD: "[",
            SELECTORS: '[{"matchLabels": 1}, {"matchLabels": {"a": "b"}}]',
        }
    )
    assert len(found.problems) == 4
    assert [alias.ports for alias in found.aliases] == [(PolicyPort("TCP", 1),)]
    assert found.namespace_selectors == ({"matchLabels": {"a": "b"}},)
    assert found.from_world is None


def test_one_invalid_entry_of_from_world_invalidates_all() -> None:
    # Without the entry, the list could be empty, which allows everything.
    assert view({WORLD: '[{"port": 0}]'}).from_world is None


def test_with_an_invalid_namespace_alias_only_the_own_namespace_is_allowed() -> None:
    found = view({NAMESPACE_ALIAS: "a b", SELECTORS: "[{}]"})
    assert {intent.peer for intent in intents(found, ["a", "b"])} == {"a"}


def test_with_an_invalid_pod_selector_no_new_policies_are_written() -> None:
    assert intents(view({POD_SELECTOR: "[]", WORLD: "[]"}), ["a"]) == []


# Policies that are kept

OWN = [Key("a", "ingress-to-web-tcp-8443"), Key("a", "egress-to-web-tcp-8443")]
PEER = [Key("a", "ingress-to-web-tcp-8443-from-b"), Key("b", "egress-to-a-web-tcp-8443")]
PEER_BEFORE = [Key("a", "ingress-to-web-tcp-80-from-b"), Key("b", "egress-to-a-web-tcp-80")]
VIA = [Key("a", "ingress-to-web-tcp-1-via-x"), Key("a", "egress-to-web-tcp-1-via-x")]
VIA_PEER = [Key("a", "ingress-to-web-tcp-1-via-x-from-b"), Key("b", "egress-to-a-web-tcp-1-via-x")]
VIA_OTHER = [Key("a", "ingress-to-web-tcp-1-via-y-from-b"), Key("b", "egress-to-a-web-tcp-1-via-y")]
EVERYBODY = [Key("a", "ingress-to-web-from-world")]
CONTROLLER = [
    Key("a", "ingress-to-web-tcp-8443-from-ingress-controller"),
    Key("c", "egress-to-a-web-tcp-8443-from-ingress-controller"),
    Key("c", "egress-to-a-web-tcp-8443-from-istio"),
]
ALL = [*OWN, *PEER, *PEER_BEFORE, *VIA, *VIA_PEER, *VIA_OTHER, *EVERYBODY, *CONTROLLER]


@pytest.mark.parametrize(
    ("texts", "kept"),
    [
        ({}, []),
        ({ALIAS: GOOD, WORLD: "[]", SELECTORS: "[]"}, []),
        ({ALIAS: "["}, [*VIA, *VIA_PEER]),
        ({ALIAS: '[{"port": 1}, 2]'}, [*VIA, *VIA_PEER]),
        ({WORLD: "["}, EVERYBODY),
        ({SELECTORS: "["}, PEER),
        ({SELECTORS: "[", ALIAS: GOOD}, [*PEER, *VIA_PEER]),
        ({NAMESPACE_ALIAS: "a b", ALIAS: GOOD}, [*PEER, *VIA_PEER]),
        ({POD_SELECTOR: "["}, ALL),
    ],
)
def test_policies_of_a_broken_annotation_are_kept(texts: dict[str, str], kept: list[Key]) -> None:
    assert [key for key in ALL if is_kept(view(texts), key)] == kept
