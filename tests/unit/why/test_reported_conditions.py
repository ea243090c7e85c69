"""Every condition that Pergola writes is explained when it is not as it should be.

The types are read from the source, so that a new one is explained as well.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Final

import pytest

from pergola.api.managed_resource_conditions import Reason
from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.cli.garden.status_tree import health
from pergola.operator.care.extras import EXTRAS
from pergola.operator.reconcile.picture.taking import picture_of
from pergola.operator.reconcile.status import last_errors, sentence
from pergola.runtime.failures import Failures
from pergola.why.answer import Asked, Statement
from pergola.why.catalog import EXPLAINERS
from pergola.why.health.managed import managed_resource_problem
from pergola.why.managed_resource_problems import conditions, deletion
from tests.support.documented import ROOT

OPERATOR: Final = "operator.gardener.cloud/v1alpha1"
EXTENSIONS: Final = "extensions.gardener.cloud/v1alpha1"
GARDEN: Final = (OPERATOR, "Garden")
MANAGED: Final = ("resources.gardener.cloud/v1alpha1", "ManagedResource")
TYPES: Final = {
    "AdmissionHealthy": (OPERATOR, "Extension"),
    "BackupsHealthy": GARDEN,
    "CertificatesValid": GARDEN,
    "ControlPlaneHealthy": (EXTENSIONS, "ControlPlane"),
    "ControllerInstallationsHealthy": (OPERATOR, "Extension"),
    "CredentialsRotated": GARDEN,
    "DNSRecordsHealthy": GARDEN,
    "EveryNodeReady": (EXTENSIONS, "Worker"),
    "Installed": (OPERATOR, "Extension"),
    "LoadBalancerSubnetsAvailable": (EXTENSIONS, "Infrastructure"),
    "NodesSecurityGroupValid": (EXTENSIONS, "Infrastructure"),
    "ObservabilityComponentsHealthy": GARDEN,
    "ResourcesApplied": MANAGED,
    "ResourcesHealthy": MANAGED,
    "ResourcesProgressing": MANAGED,
    "RuntimeComponentsHealthy": GARDEN,
    "RuntimeHealthy": (OPERATOR, "Extension"),
    "SeedRegistered": ("seedmanagement.gardener.cloud/v1alpha1", "Gardenlet"),
    "SystemComponentsHealthy": (EXTENSIONS, "Network"),
    "VirtualComponentsHealthy": GARDEN,
    "VirtualGardenAPIServerAvailable": GARDEN,
}
"""The types of conditions, and a kind that has each."""
OTHERS: Final = {
    "DualStackNodesMigrationReady": "a constraint of Shoots, which gardenlet reports",
    "NetworkReady": "of InfraClusters of Cluster API, which have an explainer of their own",
    "NodeCriticalComponentsReady": "an Event",
}
"""Names that look like types."""
_NAME: Final = re.compile(r"[A-Z]\w+(Healthy|Available|Valid|Rotated|Ready|Registered|Installed)")
_ROOMS: Final = ("api", "extensions", "externally_managed", "operator", "providers")


def names_in_the_source() -> Iterator[str]:
    for room in _ROOMS:
        for path in (ROOT / "src" / "pergola" / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Constant):
                    yield str(node.value.value)


def test_the_table_has_each_type_that_the_source_declares() -> None:
    found = {name for name in names_in_the_source() if _NAME.fullmatch(name)}

    assert found - TYPES.keys() - OTHERS.keys() == set()
    assert set(EXTRAS) < TYPES.keys()


def with_condition(
    kind: str, status: str, reason: str = "Broken", *, observed: int = 1
) -> JsonObject:
    api_version, name = TYPES[kind]
    condition = {"type": kind, "status": status, "reason": reason, "message": "because of x."}
    return {
        "apiVersion": api_version,
        "kind": name,
        "metadata": {"name": "a", "namespace": "garden", "generation": 1},
        "status": {"conditions": [condition], "observedGeneration": observed},
    }


async def statements(obj: JsonObject) -> list[Statement]:
    asked = Asked(GroupVersionKind.of(obj), Key.of(obj), obj)
    if TYPES["ResourcesApplied"] == (obj["apiVersion"], obj["kind"]):
        return [*conditions(obj), *deletion(obj)]
    known = [each for each in EXPLAINERS if each.name in ("Gardens", "conditions")]
    [applying] = [each for each in known if each.applies(obj)]
    part = await applying.explain(asked, None)  # type: ignore[arg-type] # it reads nothing
    return [*part.statements]


def text_of(found: Iterable[Statement]) -> str:
    return "\n".join(f"{each.subject}: {each.text}" for each in found)


@pytest.mark.parametrize("kind", TYPES)
async def test_a_failing_condition_is_explained_with_its_message(kind: str) -> None:
    desired = "False" if kind.endswith("Progressing") else "True"
    for status in {"True", "False", "Unknown", "Progressing"} - {desired}:
        shown = text_of(await statements(with_condition(kind, status)))
        assert kind in shown
        assert "because of x." in shown
    assert "because of x." not in text_of(await statements(with_condition(kind, desired)))


REASONS: Final = sorted(
    {value for name, value in vars(Reason).items() if name.isupper() and isinstance(value, str)}
    | {Reason.missing("Job"), Reason.unhealthy("Job"), Reason.progressing("Job")}
)


@pytest.mark.parametrize("reason", REASONS)
@pytest.mark.parametrize("kind", [kind for kind in TYPES if TYPES[kind] == MANAGED])
async def test_a_managed_resource_and_its_garden_say_why_it_fails_in_each_generation(
    kind: str, reason: str
) -> None:
    status = "True" if kind.endswith("Progressing") else "False"
    for observed in (0, 1):
        resource = with_condition(kind, status, reason, observed=observed)
        assert "because of x." in text_of(await statements(resource))
        assert "because of x." in str(managed_resource_problem(resource))


@pytest.mark.parametrize("reason", REASONS)
async def test_a_managed_resource_that_is_deleted_says_why_its_objects_stay(reason: str) -> None:
    resource = with_condition("ResourcesApplied", "False", reason)
    resource["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert "because of x." in text_of(await statements(resource))


def test_the_status_of_a_garden_shows_all_its_conditions() -> None:
    kinds = [*(kind for kind in TYPES if TYPES[kind] == GARDEN), "OfALaterRelease"]
    garden = with_condition(kinds[0], "False")
    garden["status"]["conditions"] = [
        {"type": kind, "status": "False", "reason": "Broken", "message": "x"} for kind in kinds
    ]
    shown = health(picture_of(garden, [], lambda _: {}, datetime(2026, 1, 1, tzinfo=UTC))).plain

    for kind in kinds:
        assert f"\n{kind} " in f"\n{shown}"


def test_the_runbook_has_each_condition_with_an_alert() -> None:
    page = (ROOT / "docs" / "how-to" / "operating-pergola.md").read_text()
    for kind in TYPES:
        assert f"`{kind}`" in page, kind


@pytest.mark.parametrize(
    "error",
    [
        ValueError("the cause"),
        ExceptionGroup("several", [ValueError("the cause")]),
        Failures("several", [ExceptionGroup("more", [OSError("the cause"), ValueError("b")])]),
    ],
    ids=["alone", "in a group", "deep in a group"],
)
def test_the_status_names_the_cause_at_any_depth(error: Exception) -> None:
    [recorded] = last_errors(error, "")

    assert "the cause" in recorded["description"]
    assert "the cause" in sentence(error)
    assert "sub-exception" not in recorded["description"] + sentence(error)


INVALID: Final = (
    'error during apply of object "v1/Service/a/b": Service "b" is invalid: spec.ports[0].port: '
    "Invalid value: 99999"
)


def refused(message: str, secrets: list[JsonObject]) -> str:
    """Return the advice about a ManagedResource that cannot be applied."""
    condition: JsonObject = {
        "type": "ResourcesApplied",
        "status": "False",
        "reason": Reason.APPLY_FAILED,
        "message": message,
    }
    status = {"observedGeneration": 1, "conditions": [condition]}
    resource: JsonObject = {
        "metadata": {"name": "a", "namespace": "a", "generation": 1},
        "spec": {"secretRefs": secrets},
        "status": status,
    }
    (statement,) = conditions(resource)
    return statement.advice


@pytest.mark.parametrize(
    ("secrets", "named"),
    [
        ([{"name": "x"}], "Secret x:"),
        ([{"name": "x"}, {}, {"name": None}], "Secret x:"),
        ([{"name": f"s{n}"} for n in range(100)], "Secret s0, s1, s2 and 97 more:"),
    ],
)
def test_the_advice_about_invalid_content_names_its_secrets(
    secrets: list[JsonObject], named: str
) -> None:
    assert named in refused(INVALID, secrets)


def test_other_failures_come_without_advice_about_the_content() -> None:
    assert refused("the API server did not answer in time", [{"name": "x"}]) == ""
