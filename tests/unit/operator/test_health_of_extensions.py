"""The health of Extensions as conditions, with thresholds (spec 21 §13.6, §2.2)."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest

from pergola.api.conditions import get_condition, timestamp
from pergola.api.objects import JsonObject, Key
from pergola.health import CareFailure
from pergola.operator.extension.care import updated_conditions
from pergola.operator.extension.health import (
    ADMISSION_HEALTHY,
    INSTALLATIONS_HEALTHY,
    RUNTIME_HEALTHY,
    Unable,
    Verdict,
    check_installations,
    check_resources,
    relevant,
)
from pergola.operator.extension.installations import Installation

NOW: Final = datetime(2026, 1, 1, 12, tzinfo=UTC)
HEALTHY: Final = {"Valid": "True", "Installed": "True", "Healthy": "True", "Progressing": "False"}
CHART: Final[JsonObject] = {"helm": {"ociRepository": {"ref": "registry.example/a:1"}}}


def extension(deployment: JsonObject | None = None, **conditions: str) -> JsonObject:
    """Return an Extension with conditions of some statuses."""
    listed = [{"type": kind, "status": status} for kind, status in conditions.items()]
    return {"spec": {"deployment": deployment or {}}, "status": {"conditions": listed}}


def installation(
    where: JsonObject | None = None, version: str = "7", **statuses: str
) -> Installation:
    """Return an installation whose conditions have some statuses."""
    conditions = [
        {"type": kind, "status": status, "reason": f"{kind}Reason", "message": f"{kind} text"}
        for kind, status in {**HEALTHY, **statuses}.items()
        if status
    ]
    spec: JsonObject = {"registrationRef": {"name": "dns", "resourceVersion": version}}
    spec |= where or {"seedRef": {"name": "one"}}
    return Installation.of({"spec": spec, "status": {"conditions": conditions}})


def resource(name: str, healthy: str = "True") -> JsonObject:
    """Return a ManagedResource."""
    statuses = {
        "ResourcesApplied": "True",
        "ResourcesHealthy": healthy,
        "ResourcesProgressing": "False",
    }
    return {
        "metadata": {"name": name, "namespace": "garden", "generation": 1},
        "status": {
            "observedGeneration": 1,
            "conditions": [
                {"type": kind, "status": status, "reason": "Said", "message": f"{name} {kind}"}
                for kind, status in statuses.items()
            ],
        },
    }


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (extension(), {}),
        (extension(RequiredVirtual="True"), {INSTALLATIONS_HEALTHY: []}),
        (extension(RequiredRuntime="True"), {RUNTIME_HEALTHY: ["extension-dns-garden"]}),
        (extension(RequiredRuntime="False", RequiredVirtual="Unknown"), {}),
        (
            extension({"admission": {"runtimeCluster": CHART}}),
            {ADMISSION_HEALTHY: ["extension-admission-runtime-dns"]},
        ),
        (
            extension({"admission": {"runtimeCluster": CHART, "virtualCluster": CHART}}),
            {
                ADMISSION_HEALTHY: [
                    "extension-admission-virtual-dns",
                    "extension-admission-runtime-dns",
                ]
            },
        ),
    ],
)
def test_conditions_exist_only_while_relevant(
    found: JsonObject, expected: dict[str, list[str]]
) -> None:
    checked = relevant(found, "dns")

    assert {kind: [key.name for key in keys] for kind, keys in checked.items()} == expected


def test_the_reason_is_from_the_first_failing_resource_and_all_are_listed() -> None:
    resources = {Key("garden", name): resource(name, "False") for name in ("a", "b")}

    verdict = check_resources(resources, resources.get, NOW)

    assert verdict == CareFailure("Said", "a ResourcesHealthy; b ResourcesHealthy")
    assert check_resources([], resources.get, NOW) is None
    absent = check_resources([Key("garden", "c")], resources.get, NOW)
    assert absent == Unable("failed to get managed resource c: it does not exist")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (installation(), None),
        (
            installation(version="6"),
            CareFailure(
                "OutdatedControllerRegistration",
                "Seed: one: observed resource version of controller registration 'dns' outdated "
                "(6/7)",
            ),
        ),
        (installation(Valid="False"), CareFailure("ValidReason", "Seed: one: Valid text")),
        (
            installation(Installed="Unknown"),
            CareFailure("InstalledReason", "Seed: one: Installed text"),
        ),
        (
            installation(Progressing="True"),
            CareFailure("ProgressingReason", "Seed: one: Progressing text"),
        ),
        (
            installation({"shootRef": {"namespace": "garden-dev", "name": "s"}}, Healthy="False"),
            CareFailure("HealthyReason", "Shoot: garden-dev/s: Healthy text"),
        ),
        (
            installation(Healthy="", Valid=""),
            CareFailure(
                "MissingControllerInstallationCondition",
                "Seed: one: ControllerInstallation is missing the following condition(s), "
                "[Valid, Healthy]",
            ),
        ),
    ],
)
def test_an_installation_is_healthy_if_it_is_current_and_all_its_conditions_are(
    found: Installation, expected: Verdict
) -> None:
    assert check_installations([found], "7") == expected


def test_up_to_ten_failing_seeds_are_listed_in_order() -> None:
    found = [
        installation({"seedRef": {"name": f"s{number:02}"}}, Healthy="False")
        for number in reversed(range(12))
    ]

    verdict = check_installations(found, "7")

    assert isinstance(verdict, CareFailure)
    assert verdict.message.startswith("Seed: s00: Healthy text; Seed: s01: ")
    assert verdict.message.endswith("Seed: s09: Healthy text; and 2 more")


def test_without_installations_all_are_healthy() -> None:
    assert check_installations([], "7") is None


def condition(
    stored: list[JsonObject],
    verdict: Verdict,
    thresholds: Mapping[str, timedelta] | None = None,
    now: datetime = NOW,
) -> JsonObject:
    """Return `RuntimeHealthy` after a check."""
    verdicts = {RUNTIME_HEALTHY: verdict}
    found = updated_conditions(stored, verdicts=verdicts, thresholds=thresholds or {}, now=now)
    return get_condition(found, RUNTIME_HEALTHY) or {}


def test_a_failure_is_progressing_until_its_threshold() -> None:
    failure = CareFailure("Broken", "it is broken")
    thresholds = {RUNTIME_HEALTHY: timedelta(minutes=1)}
    healthy = condition([], None)
    assert (healthy["status"], healthy["reason"]) == ("True", "ExtensionComponentsRunning")
    assert healthy["message"] == "All extension components are healthy."

    progressing = condition([healthy], failure, thresholds=thresholds)
    assert (progressing["status"], progressing["reason"]) == ("Progressing", "Broken")
    assert progressing["lastTransitionTime"] == timestamp(NOW)
    for seconds, status in ((59, "Progressing"), (61, "False")):
        later = NOW + timedelta(seconds=seconds)
        found = condition([progressing], failure, thresholds=thresholds, now=later)
        assert found["status"] == status
    assert condition([healthy], failure)["status"] == "False"


def test_health_that_cannot_be_checked_is_unknown() -> None:
    found = condition([], Unable("no answer"))

    assert (found["status"], found["reason"]) == ("Unknown", "ConditionCheckError")
    assert found["message"] == "no answer"


def test_conditions_that_are_no_longer_relevant_are_removed() -> None:
    stored: list[JsonObject] = [
        {"type": "Installed", "status": "True"},
        {"type": ADMISSION_HEALTHY, "status": "False"},
    ]

    found = updated_conditions(stored, verdicts={RUNTIME_HEALTHY: None}, thresholds={}, now=NOW)

    assert [each["type"] for each in found] == ["Installed", RUNTIME_HEALTHY]
