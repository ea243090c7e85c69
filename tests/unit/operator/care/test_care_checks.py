"""The verdict about each condition of a Garden (spec 21 §3.2, and 'Must hold' where it is pure)."""

from typing import Any

import pytest

from pergola.api.objects import JsonObject, Key
from pergola.api.operator_v1alpha1.garden import CARE_CONDITIONS
from pergola.garden.components.managed_resources import Expected
from pergola.health import CareFailure
from pergola.operator.care.check import Unable, Verdict, check
from pergola.operator.care.servers import Probe
from tests.support.care import observed, resource

API, RUNTIME, VIRTUAL, OBSERVABILITY = CARE_CONDITIONS
UNHEALTHY: dict[str, Any] = {"ResourcesHealthy": "False"}


def checked(*resources: JsonObject, reason: str = "", **changes: Any) -> dict[str, Verdict]:
    return check(observed(*resources, **changes), dict.fromkeys(CARE_CONDITIONS, reason))


def failing(verdicts: dict[str, Verdict]) -> set[str]:
    return {condition for condition, verdict in verdicts.items() if verdict is not None}


def failure(verdicts: dict[str, Verdict], condition: str) -> CareFailure:
    found = verdicts[condition]
    assert isinstance(found, CareFailure)
    return found


def test_the_four_conditions_have_a_fixed_order() -> None:
    assert [*checked()] == [
        "VirtualGardenAPIServerAvailable",
        "RuntimeComponentsHealthy",
        "VirtualComponentsHealthy",
        "ObservabilityComponentsHealthy",
    ]
    assert failing(checked()) == set()


def test_a_missing_deployment_is_reported() -> None:
    found = checked(
        deployments={
            "virtual-garden-kube-apiserver": "",
            "virtual-garden-gardener-resource-manager": "",
        }
    )
    assert failing(found) == {VIRTUAL}
    assert found[VIRTUAL] == CareFailure(
        "DeploymentMissing",
        "Missing required deployments: [virtual-garden-kube-controller-manager]",
    )


def test_both_etcds_are_required() -> None:
    assert checked(etcds={})[VIRTUAL] == CareFailure(
        "EtcdMissing",
        "Missing required etcds: [virtual-garden-etcd-events, virtual-garden-etcd-main]",
    )


@pytest.mark.parametrize(
    ("has_class", "label", "conditions"),
    [
        (True, "", {RUNTIME}),
        (True, RUNTIME, {RUNTIME}),
        (True, VIRTUAL, {VIRTUAL}),
        (True, OBSERVABILITY, {OBSERVABILITY}),
        (True, "Other", set()),
        (False, "", {VIRTUAL}),
        (False, VIRTUAL, {VIRTUAL}),
        (False, RUNTIME, {VIRTUAL}),
        (False, OBSERVABILITY, {VIRTUAL, OBSERVABILITY}),
    ],
)
def test_class_and_label_decide_which_conditions_a_managed_resource_counts_for(
    *, has_class: bool, label: str, conditions: set[str]
) -> None:
    one = resource("one", has_class=has_class, label=label, **UNHEALTHY)
    assert failing(checked(one)) == conditions


@pytest.mark.parametrize(
    ("has_class", "label", "condition"),
    [
        (True, "", RUNTIME),
        (True, OBSERVABILITY, OBSERVABILITY),
        (True, "Other", RUNTIME),
        (False, "", VIRTUAL),
        (False, RUNTIME, RUNTIME),
        (False, OBSERVABILITY, OBSERVABILITY),
    ],
)
def test_a_managed_resource_can_count_for_only_one_condition(
    *, has_class: bool, label: str, condition: str
) -> None:
    one = resource("one", has_class=has_class, label=label, **UNHEALTHY)
    assert failing(checked(one, once=True)) == {condition}


@pytest.mark.parametrize("status", ["True", "Unknown"])
def test_a_failed_rollout_has_the_message_of_the_managed_resource(status: str) -> None:
    one = resource("one", has_class=False, ResourcesProgressing=status)
    assert checked(one)[VIRTUAL] == CareFailure(
        "Because", "ManagedResource garden/one: ResourcesProgressing of one"
    )


def test_a_failed_apply_explains_an_outdated_generation_and_nothing_else_does() -> None:
    applied = resource("one", generation=2, reason="ApplyFailed", ResourcesApplied="False")
    assert failure(checked(applied), RUNTIME).reason == "ApplyFailed"
    other = resource("one", generation=2, reason="DecodingFailed", ResourcesApplied="False")
    assert checked(other)[RUNTIME] == CareFailure(
        "OutdatedStatus",
        "observed generation of managed resource 'garden/one' outdated (1/2)",
    )


def test_missing_conditions_are_listed() -> None:
    one = resource("one", ResourcesHealthy="", ResourcesProgressing="")
    assert checked(one)[RUNTIME] == CareFailure(
        "MissingManagedResourceCondition",
        "ManagedResource one is missing the following condition(s), "
        "[ResourcesHealthy, ResourcesProgressing]",
    )


def test_a_managed_resource_that_must_exist_is_reported_under_its_condition() -> None:
    vpa = Expected(Key("garden", "vpa"), RUNTIME)
    vali = Expected(Key("garden", "vali"), OBSERVABILITY)
    found = checked(resource("vpa"), expected=(vpa, vali))
    assert failing(found) == {OBSERVABILITY}
    assert found[OBSERVABILITY] == CareFailure(
        "ManagedResourceMissing", "ManagedResource garden/vali does not exist"
    )


def test_all_failing_items_are_listed_in_order() -> None:
    found = checked(
        resource("b", **UNHEALTHY),
        resource("a", namespace="istio-system", **UNHEALTHY),
        expected=(Expected(Key("garden", "c"), RUNTIME),),
    )
    assert failure(found, RUNTIME).message == (
        "ManagedResource garden/b: ResourcesHealthy of b; "
        "ManagedResource garden/c does not exist; "
        "ManagedResource istio-system/a: ResourcesHealthy of a"
    )


def test_only_the_first_ten_failing_items_are_listed() -> None:
    many = [resource(f"r{number:02}", **UNHEALTHY) for number in range(13)]
    message = failure(checked(*many), RUNTIME).message
    assert message.startswith("ManagedResource garden/r00: ")
    assert message.endswith("ManagedResource garden/r09: ResourcesHealthy of r09; and 3 more")


def test_the_reason_is_kept_while_an_item_fails_for_it() -> None:
    one = resource("one", reason="First", **UNHEALTHY)
    more = resource("more", reason="Second", **UNHEALTHY)
    assert failure(checked(one), RUNTIME).reason == "First"
    assert failure(checked(one, more, reason="First"), RUNTIME).reason == "First"
    assert failure(checked(more, reason="First"), RUNTIME).reason == "Second"
    assert failure(checked(one, more), RUNTIME).reason == "Second"


def test_the_order_of_the_cache_does_not_matter() -> None:
    found = [resource(name, **UNHEALTHY) for name in ("a", "b", "c")]
    assert checked(*found) == checked(*reversed(found))


@pytest.mark.parametrize(
    ("probe", "expected"),
    [
        (Probe(200, "ok", 3.0), None),
        (
            Probe(500, "[-]etcd failed", 0.1),
            CareFailure(
                "HealthzRequestError",
                "API server /healthz endpoint check returned a non ok status code 500. "
                "([-]etcd failed)",
            ),
        ),
        (
            Probe(0, "connection refused", 0.1),
            CareFailure(
                "HealthzRequestFailed",
                "Request to API server /healthz endpoint failed. (connection refused)",
            ),
        ),
        (
            None,
            CareFailure(
                "VirtualGardenAPIServerDown",
                "Could not reach virtual garden API server during client initialization.",
            ),
        ),
    ],
)
def test_the_api_server_is_judged_by_its_health_endpoint(
    probe: Probe | None, expected: CareFailure | None
) -> None:
    found = checked(probe=probe)
    assert found[API] == expected
    assert failing(found) == ({API} if expected else set())


def test_all_conditions_are_unknown_without_managed_resources() -> None:
    unable = Unable("failed listing ManagedResources in namespace garden: forbidden")
    found = checked(resources=unable, probe=None)
    assert found == dict.fromkeys(CARE_CONDITIONS, unable)


@pytest.mark.parametrize("part", ["etcds", "deployments"])
def test_only_its_own_condition_is_unknown_without_the_control_plane(part: str) -> None:
    unable = Unable("failed listing Etcds in namespace garden: forbidden")
    changes: dict[str, Any] = {part: unable}
    found = checked(**changes)
    assert failing(found) == {VIRTUAL}
    assert found[VIRTUAL] == unable


def test_the_control_plane_explains_failures_of_what_depends_on_it() -> None:
    one = resource("one", has_class=False, **UNHEALTHY)
    found = checked(one, etcds={})
    assert failure(found, VIRTUAL).reason == "EtcdMissing"


def test_only_observability_is_unknown_without_prometheuses() -> None:
    unable = Unable("failed listing Prometheuses in namespace garden: forbidden")
    one = resource("one", label=OBSERVABILITY, **UNHEALTHY)
    found = checked(one, prometheus=unable)
    assert found[OBSERVABILITY] == unable
    assert failing(found) == {OBSERVABILITY}


def test_managed_resources_come_before_health_queries() -> None:
    down = CareFailure("PrometheusHealthCheckDown", "it is down")
    one = resource("one", label=OBSERVABILITY, **UNHEALTHY)
    assert failure(checked(one, prometheus=down), OBSERVABILITY).reason == "Because"
    assert checked(prometheus=down)[OBSERVABILITY] == down


def test_healthy_items_are_reported_too() -> None:
    found = observed(resource("good"), resource("bad", **UNHEALTHY)).failures(RUNTIME)
    assert [(key.name, failure is None) for key, failure in found.items()] == [
        ("bad", False),
        ("good", True),
    ]
