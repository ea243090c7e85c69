"""The status of an InfraCluster, for both generations of the contract."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.api.objects import JsonObject
from pergola.api.schema import validate
from pergola.externally_managed.conditions import conditions_of
from pergola.externally_managed.contract import Contract, FailureDomain
from pergola.externally_managed.description import Network, read_network
from pergola.externally_managed.status import Outcome, paused_patch, status_patch
from pergola.kube.patches import apply_merge_patch
from tests.support.cluster_api import infra_cluster_schema

NOW = datetime(2030, 1, 1, tzinfo=UTC)
DOMAINS = (FailureDomain("a"), FailureDomain("b", control_plane=False))
OLD: Contract = Contract("v1beta1", "v1", ("v1beta1",))
NEW: Contract = Contract("v1beta2", "v1", ("v1beta2", "v1beta1"))


def written(obj: JsonObject, contract: Contract, outcome: Outcome, after: int = 0) -> JsonObject:
    """Return the object after the patch."""
    patch = status_patch(obj, contract, outcome, NOW + timedelta(minutes=after))
    return apply_merge_patch(obj, {"status": patch})


@pytest.mark.parametrize("contract", [OLD, NEW], ids=lambda contract: contract.version)
def test_a_complete_network_is_ready_and_then_nothing_is_written(contract: Contract) -> None:
    outcome = Outcome(failure_domains=DOMAINS, extra={"networkStatus": {"x": 1}})
    obj = written({"metadata": {"generation": 2}}, contract, outcome)
    assert obj["status"]["networkStatus"] == {"x": 1}
    assert status_patch(obj, contract, outcome, NOW + timedelta(days=1)) == {}


def test_each_contract_has_its_own_status_fields() -> None:
    outcome = Outcome(failure_domains=DOMAINS)
    old = written({}, OLD, outcome)["status"]
    assert old["ready"] is True
    assert "initialization" not in old
    assert old["failureDomains"] == {"a": {"controlPlane": True}, "b": {"controlPlane": False}}
    assert "observedGeneration" not in old["conditions"][0]
    new = written({}, NEW, outcome)["status"]
    assert new["initialization"] == {"provisioned": True}
    assert new["ready"] is True  # its CRD names the older contract, too
    assert [domain["name"] for domain in new["failureDomains"]] == ["a", "b"]
    assert new["conditions"][0]["observedGeneration"] == 0


@pytest.mark.parametrize("contract", [OLD, NEW], ids=lambda contract: contract.version)
def test_readiness_never_reverts_and_the_condition_reports_problems(contract: Contract) -> None:
    obj = written({}, contract, Outcome(failure_domains=DOMAINS))
    worse = written(obj, contract, Outcome("NetworkIncomplete", ["no subnet", "no route"]), 5)
    status = worse["status"]
    assert status.get("ready") or status["initialization"]["provisioned"]
    (condition,) = status["conditions"]
    assert (condition["status"], condition["reason"]) == ("False", "NetworkIncomplete")
    assert condition["message"] == "no subnet; no route"
    assert condition["lastTransitionTime"] == "2030-01-01T00:05:00Z"
    assert ("severity" in condition) is (contract.version == "v1beta1")
    assert status["failureDomains"] == obj["status"]["failureDomains"]


@pytest.mark.parametrize("contract", [OLD, NEW], ids=lambda contract: contract.version)
def test_obsolete_failure_domains_are_removed(contract: Contract) -> None:
    obj = written({}, contract, Outcome(failure_domains=DOMAINS))
    fewer = written(obj, contract, Outcome(failure_domains=DOMAINS[:1]))
    assert len(fewer["status"]["failureDomains"]) == 1
    none = written(fewer, contract, Outcome(failure_domains=()))
    assert "failureDomains" not in none["status"]


def test_a_pause_is_reported_once_and_withdrawn_if_the_contract_has_a_condition() -> None:
    assert paused_patch({}, OLD, NOW) == {}
    obj = apply_merge_patch({}, {"status": paused_patch({}, NEW, NOW)})
    assert obj["status"]["conditions"][0]["status"] == "True"
    assert paused_patch(obj, NEW, NOW + timedelta(hours=1)) == {}
    resumed = written(obj, NEW, Outcome())
    states = {c["type"]: (c["status"], c["reason"]) for c in resumed["status"]["conditions"]}
    assert states == {"Paused": ("False", "NotPaused"), "Ready": ("True", "NetworkReady")}


@pytest.mark.parametrize("outcome", [Outcome(), Outcome("Broken", ["no subnet"])], ids=str)
def test_the_conditions_that_core_prefers_say_the_same(outcome: Outcome) -> None:
    def left(kind: str) -> JsonObject:
        return {"type": kind, "status": "Unknown", "reason": "Left", "message": "by the provider"}

    newer = {"conditions": [left("Ready"), left("Paused"), left("Other")], "more": 1}
    obj: JsonObject = {"metadata": {"generation": 3}, "status": {"v1beta2": newer}}

    found = written(obj, OLD, outcome)

    core = {each["type"]: each for each in conditions_of(found)}
    [older] = found["status"]["conditions"]
    said = ("status", "reason", "message")
    assert [core["Ready"][name] for name in said] == [older[name] for name in said]
    assert core["Ready"]["observedGeneration"] == 3
    assert "severity" not in core["Ready"]
    assert core["Paused"]["status"] == "False"
    assert core["Other"] == left("Other")
    assert found["status"]["v1beta2"]["more"] == 1
    assert status_patch(found, OLD, outcome, NOW + timedelta(days=1)) == {}
    paused = apply_merge_patch(found, {"status": paused_patch(found, OLD, NOW)})
    assert {each["type"]: each["status"] for each in conditions_of(paused)}["Paused"] == "True"


def test_conditions_of_others_are_kept() -> None:
    other = {"type": "Other", "status": "True", "extra": 1}
    obj = written({"status": {"conditions": [other]}}, NEW, Outcome())
    assert obj["status"]["conditions"][0] == other


# Descriptions


def test_a_valid_description_is_parsed() -> None:
    network = read_network(
        {
            "endpoint": {"host": "api.example", "port": 6443},
            "failureDomains": [{"name": "a"}, {"name": "b", "controlPlane": False}],
            "spec": {"network": {"id": "net-1"}},
        },
        "ConfigMap demo/net",
    )
    assert isinstance(network, Network)
    assert [domain.name for domain in network.failure_domains] == ["a", "b"]
    assert network.desired_spec() == {
        "network": {"id": "net-1"},
        "controlPlaneEndpoint": {"host": "api.example", "port": 6443},
    }


@pytest.mark.parametrize(
    ("value", "paths"),
    [
        ({"endpoint": {"host": "", "port": 70000}}, ["endpoint.host", "endpoint.port"]),
        ({"endpoint": {"host": "x"}}, ["endpoint.port"]),
        ({"failureDomains": [{}, {"name": 7}]}, ["failureDomains[0]", "failureDomains[1].name"]),
        ({"failureDomains": [{"name": "a"}, {"name": "a"}]}, ["failureDomains"]),
        ({"spec": {"controlPlaneEndpoint": {}}}, ["spec.controlPlaneEndpoint"]),
        ("nothing", [""]),
        (
            {"failuredomains": []},
            ['failuredomains: is not a known field; did you mean "failureDomains"'],
        ),
        (
            {
                "endpoint": {"host": "api:6443", "prot": 1},
                "failureDomains": [{"name": "a"}, {"name": "a"}],
                "spec": {"controlPlaneEndpoint": {}},
            },
            [
                "endpoint.port: is required",
                'endpoint.prot: is not a known field; did you mean "port"',
                "endpoint.host: must be a host without a port",
                'failureDomains: name "a" appears more than once',
                "spec.controlPlaneEndpoint: must be written as endpoint",
            ],
        ),
    ],
)
def test_all_errors_of_a_description_are_reported(
    value: JsonObject | str, paths: list[str]
) -> None:
    problems = read_network(value, "ConfigMap demo/net")
    assert isinstance(problems, list)
    assert len(problems) == len(paths)
    for problem, path in zip(problems, paths, strict=True):
        assert problem.startswith(f"ConfigMap demo/net: {path}")


# Values that the providers' CRDs accept


@st.composite
def objects(draw: st.DrawFn, contract: Contract) -> JsonObject:
    """Return an InfraCluster whose status satisfies the CRD, as its provider may have left it."""
    text = st.text(min_size=1, max_size=20)
    condition = {
        "type": st.sampled_from(["Ready", "Paused", "VpcReady", "SubnetsReady"]),
        "status": st.sampled_from(["True", "False", "Unknown"]),
        "reason": st.sampled_from(["NotPaused", "Paused", "Done"]),
        "message": text,
        "lastTransitionTime": st.just("2029-12-31T23:59:59Z"),
    }
    omitted = ("reason", "message") if contract.version == "v1beta1" else ()
    drawn = st.fixed_dictionaries(
        {name: value for name, value in condition.items() if name not in omitted},
        optional={name: condition[name] for name in omitted},
    )
    conditions = st.lists(drawn, unique_by=lambda each: each["type"], max_size=4)
    return {"metadata": {"generation": 3}, "spec": {}, "status": {"conditions": draw(conditions)}}


@pytest.mark.parametrize("contract", [OLD, NEW], ids=lambda contract: contract.version)
@given(st.data())
def test_every_status_satisfies_the_crd(contract: Contract, data: st.DataObject) -> None:
    obj = data.draw(objects(contract))
    schema = infra_cluster_schema(contract.version)["properties"]["status"]
    problems = data.draw(st.lists(st.text(min_size=1)))
    if data.draw(st.booleans()):
        problems.append("x" * data.draw(st.sampled_from([10230, 10240, 40000])))
    domains = data.draw(st.lists(st.sampled_from("abc"), unique=True))
    only = contract._replace(versions=(contract.version,))
    outcome = Outcome(
        "NetworkIncomplete", problems, [FailureDomain(name) for name in domains] or None
    )
    for patch in (status_patch(obj, only, outcome, NOW), paused_patch(obj, only, NOW)):
        status = apply_merge_patch(obj["status"], patch)
        assert validate(schema, status) == []
    assert status_patch(written(obj, only, outcome), only, outcome, NOW) == {}


def test_a_paused_condition_of_the_provider_with_status_false_is_kept() -> None:
    said = {"type": "Paused", "status": "False", "reason": "X", "lastTransitionTime": "2029"}
    obj: JsonObject = {"status": {"conditions": [said]}}
    assert written(obj, OLD, Outcome())["status"]["conditions"][0] == said
