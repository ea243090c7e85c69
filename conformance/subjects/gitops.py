"""Health rules for Flux and Argo CD, which must agree with the dashboard.

Here the original answers with rules of ours, from examples/gitops: what differs is a fault of a
rule.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import orjson
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.comparison import Difference
from conformance.oracles import ARGOCD, FLUX, Answer, OracleModule
from pergola.api.conditions import FALSE, TRUE, get_condition
from pergola.api.managed_resource_conditions import APPLIED, HEALTHY, PROGRESSING, Reason
from pergola.api.marks import IGNORE, OPERATION, OPERATOR_IGNORE
from pergola.api.objects import GroupVersionKind, JsonObject, JsonValue, map_at, maps_at
from pergola.api.operator_v1alpha1 import EXTENSION, GARDEN
from pergola.api.operator_v1alpha1.extension import INSTALLED
from pergola.api.operator_v1alpha1.garden import CARE_CONDITIONS
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.dashboard.state.kinds import AWS_CLUSTER, WATCHED
from pergola.dashboard.state.verdicts import State, verdict
from pergola.extension_api.kinds import GROUP as EXTENSIONS
from pergola.kube.yaml import parse
from pergola.operator.extension.reconcile import GARDEN_UNFINISHED_TEXT, NO_GARDEN_TEXT
from pergola.operator.gardenlet.names import GARDENLET, REGISTERED

RULES: Final = Path(__file__).parents[2] / "examples" / "gitops"
KINDS: Final = (*WATCHED, GARDENLET)
"""The kinds that have rules."""
_REQUIRED: Final[dict[GroupVersionKind, tuple[str, ...]]] = {
    MANAGED_RESOURCE: (APPLIED, HEALTHY, PROGRESSING),
    GARDEN: CARE_CONDITIONS,
    EXTENSION: (INSTALLED,),
    GARDENLET: (REGISTERED,),
    AWS_CLUSTER: ("Ready",),
}
"""The conditions that a controller reports once it has judged an object."""
_OTHERS: Final = ("Paused", "RequiredRuntime", "ControlPlaneHealthy")
_WAITING: Final = (NO_GARDEN_TEXT, GARDEN_UNFINISHED_TEXT)


class FluxHealth:
    """The verdict of Flux, by a rule of `spec.healthCheckExprs` and without one."""

    name = "flux-health"
    ask = "flux-health"
    title = "Health rules for Flux"
    of: OracleModule = FLUX
    code = ("pergola.dashboard.state.verdicts",)

    def table(self) -> Iterator[JsonObject]:
        """Yield the typical states of each kind."""
        for obj in _typical():
            yield {"object": obj, "rule": _flux_rule(obj)}

    def questions(self) -> SearchStrategy[JsonObject]:
        """Return objects in all kinds of states."""
        return _objects().map(lambda obj: {"object": obj, "rule": _flux_rule(obj)})

    def meaning(self, answer: Answer) -> JsonValue:
        """Return the verdict by the rule."""
        return answer.output.get("rule")

    def compare(self, question: JsonObject, answer: Answer) -> Iterable[Difference]:
        """Compare with the dashboard, and the recorded rule with the present one."""
        obj: JsonObject = question["object"]
        yield from _differing("rule", question["rule"], _flux_rule(obj))
        if answer.outcome == "output":
            yield from _differing("status", answer.output["rule"], flux_status(obj))
        elif map_at(obj, "status"):
            yield from _differing("status", answer.value, flux_status(obj))


class ArgoCDHealth:
    """The verdict of Argo CD, by the rules in `resource.customizations`."""

    name = "argocd-health"
    ask = "argocd-health"
    title = "Health rules for Argo CD"
    of: OracleModule = ARGOCD
    code = ("pergola.dashboard.state.verdicts",)

    def table(self) -> Iterator[JsonObject]:
        """Yield the typical states of each kind."""
        for obj in _typical():
            yield {"object": obj, "customizations": _customizations()}

    def questions(self) -> SearchStrategy[JsonObject]:
        """Return objects in all kinds of states."""
        return _objects().map(lambda obj: {"object": obj, "customizations": _customizations()})

    def meaning(self, answer: Answer) -> JsonValue:
        """Return the verdict without its message."""
        return answer.output.get("status")

    def compare(self, question: JsonObject, answer: Answer) -> Iterable[Difference]:
        """Compare with the dashboard, and the recorded rules with the present ones."""
        yield from _differing("rules", question["customizations"], _customizations())
        theirs = answer.output["status"] if answer.outcome == "output" else answer.value
        yield from _differing("status", theirs, argocd_status(question["object"]))


def flux_status(obj: JsonObject) -> str:
    """Return what Flux should say: `Failed` only of what no waiting mends.

    Flux stops to wait at a failure, and at `InProgress` its time limit decides.
    """
    if "deletionTimestamp" in obj["metadata"] or _is_outdated(obj):
        return "InProgress"
    state = verdict(_gvk(obj), _without_ignoring(obj)).state
    if state is State.TROUBLE and _is_stuck(obj):
        return "Failed"
    return "Current" if state is State.HEALTHY and _is_judged(obj) else "InProgress"


def argocd_status(obj: JsonObject) -> str:
    """Return what Argo CD should say: the dashboard's verdict, but waiting is no failure.

    A failure in a wave ends the whole synchronisation.
    """
    if "deletionTimestamp" in obj["metadata"]:
        return "Progressing"
    if verdict(_gvk(obj), obj).state is State.IGNORED:
        return "Suspended"
    state = verdict(_gvk(obj), _without_waiting(obj)).state
    if state is State.TROUBLE:
        return "Degraded"
    waits = _without_waiting(obj) != obj or _is_outdated(obj) or not _is_judged(obj)
    return "Healthy" if state is State.HEALTHY and not waits else "Progressing"


def _is_judged(obj: JsonObject) -> bool:
    gvk, status = _gvk(obj), map_at(obj, "status")
    reported = {each.get("type") for each in maps_at(status, "conditions")}
    missing = {*_REQUIRED.get(gvk, ())} - reported
    has_operation = not _has_operation(gvk) or "lastOperation" in status
    return not missing and has_operation


def _is_outdated(obj: JsonObject) -> bool:
    observed = map_at(obj, "status").get("observedGeneration")
    return observed is not None and observed != obj["metadata"]["generation"]


def _is_stuck(obj: JsonObject) -> bool:
    status = map_at(obj, "status")
    if _gvk(obj) == MANAGED_RESOURCE:
        applied = get_condition(maps_at(status, "conditions"), APPLIED) or {}
        failure = applied.get("status"), applied.get("reason")
        return failure == (FALSE, Reason.DECODING_FAILED)
    return map_at(status, "lastOperation").get("state") in ("Failed", "Aborted")


def _without_ignoring(obj: JsonObject) -> JsonObject:
    return {**obj, "metadata": {**obj["metadata"], "annotations": _other_annotations(obj)}}


def _other_annotations(obj: JsonObject) -> JsonObject:
    annotations = map_at(obj, "metadata", "annotations")
    return {key: annotations[key] for key in annotations if key == OPERATION}


def _without_waiting(obj: JsonObject) -> JsonObject:
    """Return an object without the failing conditions that only wait for something."""
    conditions = maps_at(obj, "status", "conditions")
    rollout = get_condition(conditions, PROGRESSING) or {}
    applied = get_condition(conditions, APPLIED) or {}
    rolls_out = rollout.get("status") == TRUE and applied.get("status") != FALSE
    left = [
        each
        for each in conditions
        if not (each["status"] == FALSE and _waits(each, rolls_out=rolls_out))
    ]
    return obj if left == conditions else {**obj, "status": {**obj["status"], "conditions": left}}


def _waits(condition: JsonObject, *, rolls_out: bool) -> bool:
    if condition["type"] == INSTALLED:
        return condition["message"] in _WAITING
    return rolls_out and condition["type"] == HEALTHY


def _has_operation(gvk: GroupVersionKind) -> bool:
    return gvk.group == EXTENSIONS or gvk == GARDEN


def _gvk(obj: JsonObject) -> GroupVersionKind:
    return GroupVersionKind.of(obj)


def _differing(path: str, theirs: JsonValue, ours: JsonValue) -> Iterator[Difference]:
    if theirs != ours:
        yield Difference(path, orjson.dumps(theirs).decode(), orjson.dumps(ours).decode())


@cache
def _flux_rules() -> dict[GroupVersionKind, JsonObject]:
    kustomization = _read("flux-health-checks.yaml")
    return {
        GroupVersionKind.of(rule): {
            name: text for name, text in rule.items() if name not in ("apiVersion", "kind")
        }
        for rule in kustomization["spec"]["healthCheckExprs"]
    }


def _flux_rule(obj: JsonObject) -> JsonObject:
    return _flux_rules()[_gvk(obj)]


@cache
def _customizations() -> str:
    settings = _read("argocd-cm.yaml")
    return str(settings["data"]["resource.customizations"])


def _read(name: str) -> JsonObject:
    found = parse((RULES / name).read_text())
    if not isinstance(found, dict):
        raise AssertionError(f"{name} is an object")
    return found


_STATUSES: Final = st.sampled_from(
    ["True", "True", "True", "False", "False", "Unknown", "Progressing"]
)
_REASONS: Final = st.sampled_from(["A", Reason.DECODING_FAILED, Reason.APPLY_FAILED])
_MESSAGES: Final = st.sampled_from(["", "text", *_WAITING])
_OPERATIONS: Final = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["Create", "Reconcile", "Delete", "Migrate", "Restore"]),
        "state": st.sampled_from(
            ["Succeeded", "Succeeded", "Error", "Failed", "Aborted", "Pending", "Processing"]
        ),
        "progress": st.integers(0, 100),
        "description": st.sampled_from(["", "text"]),
        "lastUpdateTime": st.just("2026-01-01T00:00:00Z"),
    }
)
_ERRORS: Final = st.just({"description": "quota exceeded", "codes": ["ERR_INFRA_QUOTA_EXCEEDED"]})
_ANNOTATIONS: Final = st.dictionaries(
    st.sampled_from([IGNORE, OPERATOR_IGNORE, "cluster.x-k8s.io/paused", OPERATION, "a"]),
    st.sampled_from(["true", "TRUE", "false", "", "reconcile"]),
    max_size=2,
)


def _objects() -> SearchStrategy[JsonObject]:
    return st.sampled_from(KINDS).flatmap(_objects_of)


def _objects_of(gvk: GroupVersionKind) -> SearchStrategy[JsonObject]:
    required = _REQUIRED.get(gvk, ())
    types = st.sampled_from([*required, *required, *_OTHERS])
    conditions = _conditions(required) | st.lists(
        types, unique=True, max_size=len(required) + 2
    ).flatmap(_conditions)
    status: dict[str, SearchStrategy[Any]] = {
        "conditions": conditions,
        "observedGeneration": st.sampled_from([2, 2, 2, 1]),
    }
    if _has_operation(gvk):
        status["lastOperation"] = _OPERATIONS
        status["lastError"] = _ERRORS
    metadata = st.fixed_dictionaries(
        {"name": st.just("a"), "generation": st.just(2)},
        optional={
            "annotations": _ANNOTATIONS,
            "deletionTimestamp": st.just("2026-01-01T00:00:00Z"),
        },
    )
    return st.fixed_dictionaries(
        {
            "apiVersion": st.just(gvk.api_version),
            "kind": st.just(gvk.kind),
            "metadata": metadata,
        },
        optional={"status": st.fixed_dictionaries({}, optional=status)},
    )


def _conditions(types: Iterable[str]) -> SearchStrategy[list[JsonObject]]:
    return st.tuples(*map(_condition, types)).map(list)


def _condition(kind: str) -> SearchStrategy[JsonObject]:
    good = "False" if kind == PROGRESSING else "True"
    return st.fixed_dictionaries(
        {
            "type": st.just(kind),
            "status": st.just(good) | _STATUSES,
            "reason": _REASONS,
            "message": _MESSAGES,
        }
    )


def _typical() -> Iterator[JsonObject]:
    """Yield each kind new, in progress, healthy, failing, failed, ignored and being deleted."""
    for gvk in KINDS:
        for state, (status, annotations) in _states(gvk).items():
            metadata: JsonObject = {"name": state, "generation": 2, "annotations": annotations}
            if state == "deleted":
                metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
            yield {
                "apiVersion": gvk.api_version,
                "kind": gvk.kind,
                "metadata": metadata,
                "status": status,
            }


def _states(gvk: GroupVersionKind) -> dict[str, tuple[JsonObject, JsonObject]]:
    fine = _status(gvk)
    some = {**fine, "conditions": fine["conditions"][:1]}
    return {
        "new": ({}, {}),
        "outdated": ({**fine, "observedGeneration": 1}, {}),
        "working": (_status(gvk, operation="Processing"), {}),
        "unknown": (_status(gvk, "Unknown"), {}),
        "partly-judged": (some, {}),
        "healthy": (fine, {}),
        "rolling-out": (_status(gvk, rollout="True"), {}),
        "unhealthy-in-rollout": (_status(gvk, FALSE, rollout="True"), {}),
        "waiting": (_status(gvk, FALSE, message=_WAITING[0]), {}),
        "failing": (_status(gvk, FALSE, operation="Error"), {}),
        "failed": (_status(gvk, FALSE, operation="Failed", reason=Reason.DECODING_FAILED), {}),
        "ignored": (fine, {IGNORE: "true"}),
        "requested": (fine, {OPERATION: "reconcile"}),
        "deleted": (fine, {}),
    }


def _status(
    gvk: GroupVersionKind,
    health: str = "True",
    *,
    rollout: str = FALSE,
    operation: str = "Succeeded",
    reason: str = "A",
    message: str = "text",
) -> JsonObject:
    conditions: list[JsonObject] = [
        {
            "type": kind,
            "status": rollout if kind == PROGRESSING else health,
            "reason": reason,
            "message": message,
        }
        for kind in _REQUIRED.get(gvk, ())
    ]
    status: JsonObject = {"observedGeneration": 2, "conditions": conditions}
    if _has_operation(gvk):
        status["lastOperation"] = {
            "type": "Reconcile",
            "state": operation,
            "description": "text",
            "lastUpdateTime": "2026-01-01T00:00:00Z",
        }
    return status
