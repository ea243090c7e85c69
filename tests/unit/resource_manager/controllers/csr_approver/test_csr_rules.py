"""The requesters of certificates and their permitted requests: one test per rule of spec 11 §3."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.resource_manager.controllers.csr_approver import rules
from pergola.resource_manager.controllers.csr_approver.controller import (
    API_CLIENT,
    decided,
    keep_undecided,
    seconds_to_wait,
)
from pergola.resource_manager.controllers.csr_approver.judge import KUBELET_SERVING
from pergola.resource_manager.controllers.csr_approver.request import Request
from pergola.resource_manager.controllers.csr_approver.rules import APPROVED, Denied, Machine, Node

REQUEST = Request(
    username="system:node:foo",
    common_name="system:node:foo",
    organizations=("system:nodes",),
    dns_names=frozenset({"foo", "foo.alias", "foo.internal", "foo.example.org"}),
    ip_addresses=frozenset(
        map(ip_address, ["10.0.0.1", "2080:1000:1000:8ff0::", "10.0.0.2", "192.0.2.1"])
    ),
)
NODE = Node(
    uid="1",
    addresses=(
        ("Hostname", "foo"),
        ("Hostname", "foo.alias"),
        ("InternalDNS", "foo.internal"),
        ("ExternalDNS", "foo.example.org"),
        ("InternalIP", "10.0.0.1"),
        ("InternalIP", "10.0.0.2"),
        ("InternalIP", "2080:1000:1000:8ff0:0:0:0:0"),
        ("ExternalIP", "192.0.2.1"),
    ),
)
MACHINES = [Machine("foo")]
AGENT = "gardener.cloud:node-agent:machine:m-1"
BOOTSTRAPPED = (
    'Cannot use bootstrap token since gardener-node-agent for machine "m-1" is already bootstrapped'
)
AGENTS = "gardener.cloud:node-agents"
AGENT_REQUEST = Request(AGENT, AGENT, (AGENTS,), frozenset(), frozenset())
BOOTSTRAP = "system:bootstrap:abcdef"
SHOOT = "gardener.cloud:gardenadm:shoot:1234"
SHOOT_REQUEST = Request(
    BOOTSTRAP, SHOOT, ("gardener.cloud:system:shoots",), frozenset(), frozenset()
)
CREATED = datetime(2026, 3, 1, 12, tzinfo=UTC)
PATIENCE = timedelta(seconds=30)


def with_addresses(*addresses: tuple[str, str]) -> Node:
    return Node("1", addresses)


# Serving certificates of kubelets


def test_a_request_that_satisfies_all_rules_is_approved() -> None:
    assert rules.kubelet_request(REQUEST) is None
    assert rules.kubelet_node(REQUEST, NODE, MACHINES, "shoot--a") == APPROVED


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (
            replace(REQUEST, username="foo"),
            'username "foo" is not prefixed with "system:node:"',
        ),
        (
            replace(REQUEST, dns_names=frozenset(), ip_addresses=frozenset()),
            "no DNS names or IP addresses in the SANs found",
        ),
        (
            replace(REQUEST, common_name="system:node:bar"),
            "common name in CSR does not match username",
        ),
        (
            replace(REQUEST, organizations=()),
            "organization in CSR does not match nodes group",
        ),
        (
            replace(REQUEST, organizations=("system:nodes", "system:masters")),
            "organization in CSR does not match nodes group",
        ),
        (
            replace(REQUEST, organizations=("system:masters",)),
            "organization in CSR does not match nodes group",
        ),
    ],
)
def test_rules_1_to_4_depend_only_on_the_request(request_: Request, reason: str) -> None:
    assert rules.kubelet_request(request_) == Denied(reason)


def test_one_kind_of_alternative_names_satisfies_rule_2() -> None:
    assert rules.kubelet_request(replace(REQUEST, dns_names=frozenset())) is None
    assert rules.kubelet_request(replace(REQUEST, ip_addresses=frozenset())) is None


def test_rule_5_names_the_missing_node() -> None:
    verdict = rules.kubelet_node(REQUEST, None, [], None)
    assert verdict == Denied('could not find node object with name "foo"', may_pass=True)


@pytest.mark.parametrize("machines", [0, 2])
def test_rule_6_requires_exactly_one_machine(machines: int) -> None:
    verdict = rules.kubelet_node(REQUEST, NODE, MACHINES * machines, "shoot--a")
    reason = (
        f'Expected exactly one machine in namespace "shoot--a" for node "foo" but found {machines}'
    )
    assert verdict == Denied(reason, may_pass=True)


def test_a_machine_that_is_being_deleted_does_not_count_beside_its_replacement() -> None:
    old, new = Machine("foo", is_deleting=True), Machine("foo")
    assert rules.kubelet_node(REQUEST, NODE, [old, new], "shoot--a") == APPROVED
    assert rules.kubelet_node(REQUEST, NODE, [old], "shoot--a") == APPROVED  # it still drains
    assert rules.kubelet_node(REQUEST, NODE, [old, new, new], "shoot--a") != APPROVED
    assert rules.kubelet_node(REQUEST, NODE, [old, old], "shoot--a") != APPROVED


def test_rule_6_is_skipped_if_nodes_have_no_machines() -> None:
    assert rules.kubelet_node(REQUEST, NODE, [], None) == APPROVED


@pytest.mark.parametrize(
    "names", [REQUEST.dns_names | {"other"}, REQUEST.dns_names - {"foo"}, frozenset[str]()]
)
def test_rule_7_compares_the_sets_of_dns_names(names: frozenset[str]) -> None:
    reason = (
        "DNS names in CSR do not match addresses of type"
        " 'Hostname' or 'InternalDNS' or 'ExternalDNS' in node object"
    )
    verdict = rules.kubelet_node(replace(REQUEST, dns_names=names), NODE, MACHINES, "shoot--a")
    assert verdict == Denied(reason, may_pass=True)


def test_rule_8_compares_the_sets_of_ip_addresses() -> None:
    reason = (
        "IP addresses in CSR do not match addresses of type"
        " 'InternalIP' or 'ExternalIP' in node object"
    )
    for addresses in (
        REQUEST.ip_addresses | {ip_address("10.9.9.9")},
        REQUEST.ip_addresses - {ip_address("10.0.0.1")},
    ):
        changed = replace(REQUEST, ip_addresses=addresses)
        verdict = rules.kubelet_node(changed, NODE, MACHINES, "shoot--a")
        assert verdict == Denied(reason, may_pass=True)


def test_an_invalid_address_of_the_node_is_reported() -> None:
    node = with_addresses(*NODE.addresses, ("InternalIP", "10.0.0.256"))
    verdict = rules.kubelet_node(REQUEST, node, MACHINES, "shoot--a")
    assert isinstance(verdict, Denied)
    assert verdict.reason.startswith('IP address "10.0.0.256" in node.Status.Addresses is invalid:')
    assert verdict.may_pass


def test_order_repetition_and_notation_of_addresses_are_ignored() -> None:
    node = with_addresses(
        *reversed(NODE.addresses), ("InternalIP", "::ffff:10.0.0.1"), ("Hostname", "foo")
    )
    assert rules.kubelet_node(REQUEST, node, MACHINES, "shoot--a") == APPROVED


@pytest.mark.parametrize("claim", rules.claims_in(REQUEST))
def test_a_name_or_address_of_another_node_is_denied_unless_the_cloud_reports_it(
    claim: str,
) -> None:
    others = {claim: 'node "bar"'}
    for machines, namespace in (([], None), (MACHINES, "shoot--a")):
        verdict = rules.kubelet_node(REQUEST, NODE, machines, namespace, others)
        reason = f'"{claim}" in CSR is also a name or address of node "bar"'
        assert verdict == Denied(reason, may_pass=True)
    attested = [Machine("foo", frozenset({claim}))]
    assert rules.kubelet_node(REQUEST, NODE, attested, "shoot--a", others) == APPROVED


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("10.0.0.1", "::ffff:10.0.0.1"),
        ("2080:1000:1000:8ff0::", "2080:1000:1000:8ff0:0:0:0:0"),
        ("Foo.Internal", "foo.internal"),
    ],
)
def test_the_same_name_or_address_is_found_in_any_form(one: str, other: str) -> None:
    assert rules.as_claim(one) == rules.as_claim(other)
    assert rules.as_claim(one) in rules.claims_of("bar", with_addresses(("InternalIP", other)))


def test_a_node_and_its_machine_are_not_others() -> None:
    nodes = {"foo": NODE, "bar": with_addresses(("InternalIP", "10.0.0.1"), ("InternalIP", "::1"))}
    machines = {
        "m-1": Machine("foo", frozenset({"10.0.0.2"})),
        "m-2": Machine("", frozenset({"192.0.2.1"})),
    }
    others = rules.claimed_by_others(REQUEST, "foo", nodes, machines)
    assert others == {"10.0.0.1": 'node "bar"', "192.0.2.1": 'machine "m-2"'}


def test_a_node_has_its_name_before_it_has_addresses() -> None:
    assert rules.claims_of("bar", with_addresses()) == {"bar"}


# Client certificates of gardener-node-agent


def test_a_node_agent_renews_its_own_certificate() -> None:
    for node in (None, NODE):
        assert rules.node_agent(AGENT_REQUEST, Machine("foo"), node) == APPROVED


def test_a_bootstrap_token_gets_the_first_certificate_of_a_machine() -> None:
    request = replace(AGENT_REQUEST, username=BOOTSTRAP)
    assert rules.node_agent(request, Machine(""), None) == APPROVED
    # The label alone proves nothing: it may exist before the Node does.
    assert rules.node_agent(request, Machine("foo"), None) == APPROVED


@pytest.mark.parametrize(
    ("username", "machine", "node", "reason"),
    [
        (AGENT, None, None, 'machine "m-1" does not exist'),
        (
            BOOTSTRAP,
            Machine("foo"),
            NODE,
            BOOTSTRAPPED,
        ),
        (
            AGENT + "2",
            Machine("foo"),
            NODE,
            f'username "{AGENT}2" and commonName "{AGENT}" do not match',
        ),
        (
            "somebody",
            Machine("foo"),
            NODE,
            'username "somebody" is not allowed to create CSRs for a gardener-node-agent',
        ),
    ],
)
def test_an_invalid_request_of_a_node_agent_is_denied(
    username: str, machine: Machine | None, node: Node | None, reason: str
) -> None:
    request = replace(AGENT_REQUEST, username=username)
    assert rules.node_agent(request, machine, node) == Denied(reason)


def test_a_node_agent_without_a_machine_name_is_denied() -> None:
    request = replace(AGENT_REQUEST, username=BOOTSTRAP, common_name=rules.NODE_AGENT)
    verdict = rules.node_agent(request, Machine(""), None)
    assert verdict == Denied('machine "" does not exist')


# Client certificates of gardenadm


def test_gardenadm_gets_a_certificate_by_a_bootstrap_token() -> None:
    assert rules.gardenadm(SHOOT_REQUEST) == APPROVED


def test_gardenadm_is_denied_without_a_bootstrap_token() -> None:
    assert rules.gardenadm(replace(SHOOT_REQUEST, username="somebody")) == Denied(
        'username "somebody" is not allowed to create CSRs for a gardenadm client'
    )


@pytest.mark.parametrize(
    "organizations", [(), ("system:masters",), ("gardener.cloud:system:shoots", "system:masters")]
)
def test_gardenadm_is_denied_for_another_group(organizations: tuple[str, ...]) -> None:
    assert rules.gardenadm(replace(SHOOT_REQUEST, organizations=organizations)) == Denied(
        "organization in CSR does not match nodes group"
    )


# Groups: the organizations of a certificate


def judged_node_agent(request: Request) -> object:
    return rules.node_agent(request, Machine("foo"), None)


def judged_bootstrap(request: Request) -> object:
    return judged_node_agent(replace(request, username=BOOTSTRAP))


GRANTED: list[tuple[Callable[[Request], object], Request]] = [
    (
        lambda it: rules.kubelet_request(it) or rules.kubelet_node(it, NODE, MACHINES, "shoot--a"),
        REQUEST,
    ),
    (judged_node_agent, AGENT_REQUEST),
    (judged_bootstrap, AGENT_REQUEST),
    (rules.gardenadm, SHOOT_REQUEST),
]
GROUPS = ["system:masters", "gardener.cloud:system:admins", "system:nodes", AGENTS, ""]


@pytest.mark.parametrize(("judge", "request_"), GRANTED)
@given(organizations=st.lists(st.sampled_from([*GROUPS, *SHOOT_REQUEST.organizations]) | st.text()))
def test_no_kind_of_request_gets_any_group_but_its_own(
    judge: Callable[[Request], object], request_: Request, organizations: list[str]
) -> None:
    assert judge(request_) == APPROVED
    asked = replace(request_, organizations=tuple(organizations))
    is_its_own = asked.organizations == request_.organizations
    assert (judge(asked) == APPROVED) is is_its_own


# Decisions and their timing


@pytest.mark.parametrize(
    ("signer", "verdict", "kind", "reason", "message"),
    [
        (
            KUBELET_SERVING,
            APPROVED,
            "Approved",
            "RequestApproved",
            "Approving kubelet server certificate CSR (all checks passed)",
        ),
        (
            KUBELET_SERVING,
            Denied("so"),
            "Denied",
            "RequestDenied",
            "Denying kubelet server certificate CSR (so)",
        ),
        (
            API_CLIENT,
            APPROVED,
            "Approved",
            "RequestApproved",
            "Approving gardener-node-agent certificate CSR (all checks passed)",
        ),
        (
            API_CLIENT,
            Denied("so"),
            "Denied",
            "RequestDenied",
            "Denying gardener-node-agent certificate CSR (so)",
        ),
    ],
)
def test_a_decision_is_an_additional_condition(
    signer: str, verdict: rules.Verdict, kind: str, reason: str, message: str
) -> None:
    failed = {"type": "Failed", "status": "True"}
    csr = {"spec": {"signerName": signer}, "status": {"conditions": [failed]}}
    condition = {"type": kind, "status": "True", "reason": reason, "message": message}
    assert decided(csr, verdict) == {
        "spec": {"signerName": signer},
        "status": {"conditions": [failed, condition]},
    }


@pytest.mark.parametrize(
    ("status", "is_undecided"),
    [
        ({}, True),
        ({"conditions": [{"type": "Failed", "status": "True"}]}, True),
        ({"conditions": [{"type": "Approved", "status": "False"}]}, False),
        ({"conditions": [{"type": "Denied", "status": "True"}]}, False),
        ({"certificate": "LS0t"}, False),
    ],
)
def test_a_request_is_decided_by_either_condition_or_a_certificate(
    status: dict[str, object], is_undecided: bool
) -> None:
    csr = {"status": status}
    assert keep_undecided(csr) == (csr if is_undecided else None)


@pytest.mark.parametrize(
    ("age", "seconds"),
    [(0.0, 1.0), (0.5, 1.0), (1.0, 1.0), (4.0, 4.0), (20.0, 10.0), (29.9, 0.1), (30.0, 0.0)],
)
def test_a_denial_waits_until_the_request_is_old_enough(age: float, seconds: float) -> None:
    now = CREATED + timedelta(seconds=age)
    assert seconds_to_wait(CREATED, now, PATIENCE) == pytest.approx(seconds)


def test_a_request_is_checked_a_few_times_before_its_denial() -> None:
    polls, now = 0, CREATED
    while wait := seconds_to_wait(CREATED, now, PATIENCE):
        polls, now = polls + 1, now + timedelta(seconds=wait)
    assert polls == 6


def test_clock_skew_does_not_delay_a_denial_forever() -> None:
    assert seconds_to_wait(CREATED, CREATED - timedelta(seconds=2), PATIENCE) == 1.0
    assert seconds_to_wait(CREATED, CREATED - timedelta(hours=1), PATIENCE) == 0.0
