"""The annotation cannot be removed: spec 50 §3."""

import pytest

from pergola.admission.review import GroupVersionResource, Operation, Request
from pergola.api.cluster_api import MANAGED_BY
from pergola.api.objects import GroupKind, GroupVersionKind, JsonObject
from pergola.externally_managed.webhook import (
    AnnotationGuard,
    annotation_findings,
    registration,
)

NO: JsonObject = {"metadata": {"name": "c"}}
EMPTY: JsonObject = {"metadata": {"name": "c", "annotations": {MANAGED_BY: ""}}}
YES: JsonObject = {"metadata": {"name": "c", "annotations": {MANAGED_BY: "terraform", "x": "y"}}}
OTHER: JsonObject = {"metadata": {"name": "c", "annotations": {"x": "y"}}}
GONE: JsonObject = {"metadata": {"name": "c", "deletionTimestamp": "2030-01-01T00:00:00Z"}}


def request(
    operation: Operation,
    new: JsonObject | None,
    old: JsonObject | None = None,
    version: str = "v1beta2",
    subresource: str = "",
) -> Request:
    group = "infrastructure.cluster.x-k8s.io"
    return Request(
        uid="u",
        operation=operation,
        kind=GroupVersionKind(group, version, "FooCluster"),
        resource=GroupVersionResource(group, version, "fooclusters"),
        subresource=subresource,
        name="c",
        object=new,
        old_object=old,
    )


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
@pytest.mark.parametrize(
    ("operation", "old", "new", "passes"),
    [
        ("CREATE", None, NO, True),
        ("CREATE", None, YES, True),
        ("UPDATE", NO, NO, True),
        ("UPDATE", NO, YES, True),
        ("UPDATE", YES, YES, True),
        ("UPDATE", YES, EMPTY, True),
        ("UPDATE", YES, NO, False),
        ("UPDATE", EMPTY, OTHER, False),
        ("UPDATE", YES, GONE, False),
        ("DELETE", YES, None, True),
    ],
)
def test_each_row_of_the_annotation_table(
    operation: Operation,
    old: JsonObject | None,
    new: JsonObject | None,
    passes: bool,
    version: str,
) -> None:
    verdict = AnnotationGuard()(request(operation, new, old, version))
    assert verdict.allowed is passes
    if not passes:
        assert (verdict.code, verdict.reason) == (422, "Invalid")
        (cause,) = verdict.causes
        assert (cause.field, cause.reason) == ("metadata.annotations", "FieldValueInvalid")
        assert cause.message.endswith(": removal of externally managed annotation is not allowed")


def test_the_status_is_ignored() -> None:
    assert AnnotationGuard()(request("UPDATE", NO, YES, subresource="status")).allowed


def test_the_finding_joins_those_of_a_providers_own_validation() -> None:
    (finding,) = annotation_findings(OTHER, YES)
    assert finding.message.startswith('Invalid value: {"x":"y"}: ')
    assert annotation_findings(OTHER, None) == []


def test_only_updates_of_the_main_resource_are_registered() -> None:
    entry = registration(
        GroupKind("infrastructure.cluster.x-k8s.io", "FooCluster"),
        "fooclusters",
        ("v1beta1", "v1beta2"),
        "/guard",
    ).render({})
    (rule,) = entry["rules"]
    assert rule["operations"] == ["UPDATE"]
    assert rule["resources"] == ["fooclusters"]
    assert rule["apiVersions"] == ["v1beta1", "v1beta2"]
    assert entry["failurePolicy"] == "Fail"
