"""Deletion of protected objects: spec 12 §14."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pergola.admission.review import GroupVersionResource, Request, Verdict
from pergola.api import marks
from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.kube.errors import ApiError, NotFound
from pergola.resource_manager.webhooks.deletion_events import BURST, DeletionEvents
from pergola.resource_manager.webhooks.deletion_protection import (
    PROTECTED,
    DeletionProtection,
    registrations,
)
from pergola.resource_manager.webhooks.installation import Installation
from pergola.runtime.clock import FakeClock

NOW = datetime(2030, 1, 1, tzinfo=UTC)
NETWORKS = GroupVersionResource("extensions.gardener.cloud", "v1alpha1", "networks")
CRDS = GroupVersionResource("apiextensions.k8s.io", "v1", "customresourcedefinitions")
BASTIONS = GroupVersionResource("extensions.gardener.cloud", "v1alpha1", "bastions")
NEEDED = 'must have a "confirmation.gardener.cloud/deletion" annotation to delete'
CONFIRMED = {marks.CONFIRMATION_DELETION: "true"}


class Cluster:
    """A cluster that answers lists, and counts them."""

    def __init__(self, *objects: JsonObject, error: Exception | None = None) -> None:
        self.objects = list(objects)
        self.error = error
        self.asked: list[tuple[GroupVersionKind, str, str]] = []

    async def list(self, gvk: GroupVersionKind, namespace: str, labels: str) -> list[JsonObject]:
        self.asked.append((gvk, namespace, labels))
        if self.error:
            raise self.error
        return self.objects


def obj(name: str = "a", annotations: dict[str, str] | None = None) -> JsonObject:
    metadata = {"name": name, "namespace": "shoot", "annotations": annotations or {}}
    return {
        "apiVersion": "extensions.gardener.cloud/v1alpha1",
        "kind": "Network",
        "metadata": metadata,
    }


def delete(old: JsonObject | None = None, **fields: Any) -> Request:
    resource = fields.pop("resource", NETWORKS)
    kind = GroupVersionKind(resource.group, resource.version, PROTECTED.get(resource, "Other"))
    values: dict[str, Any] = {
        "uid": "u",
        "operation": "DELETE",
        "kind": kind,
        "resource": resource,
        "namespace": "shoot",
        "name": "a",
        "old_object": old,
    }
    return Request(**values | fields)


def protection(cluster: Cluster | None = None, **settings: Any) -> DeletionProtection:
    return DeletionProtection((cluster or Cluster()).list, clock=FakeClock(NOW), **settings)


async def test_other_operations_and_kinds_are_allowed() -> None:
    update = await protection()(delete(obj(), operation="UPDATE"))
    assert (update.allowed, update.message) == (True, "operation is not DELETE")
    pods = GroupVersionResource("", "v1", "pods")
    for resource in (pods, BASTIONS, GroupVersionResource(NETWORKS.group, "v1alpha1", "clusters")):
        verdict = await protection()(delete(obj(), resource=resource))
        assert (verdict.allowed, verdict.message) == (True, "resource is not deletion-protected")


@pytest.mark.parametrize("resource", sorted(PROTECTED), ids=lambda resource: resource.resource)
async def test_each_protected_kind_needs_the_annotation(resource: GroupVersionResource) -> None:
    refused = await protection()(delete(obj(), resource=resource))
    assert (refused.allowed, refused.code, refused.reason) == (False, 403, "Forbidden")
    assert refused.message.startswith(NEEDED)
    assert f"{PROTECTED[resource]} shoot/a has none" in refused.message
    passed = await protection()(delete(obj(annotations=CONFIRMED), resource=resource))
    assert (passed.allowed, passed.message) == (True, "")


@pytest.mark.parametrize(
    ("value", "passes"),
    [("true", True), ("TRUE", True), ("1", True), ("t", True), ("yes", False), ("", False)],
)
async def test_the_annotation_must_be_a_true_boolean(value: str, passes: bool) -> None:
    verdict = await protection()(delete(obj(annotations={marks.CONFIRMATION_DELETION: value})))
    assert verdict.allowed is passes
    if not passes:
        assert f'has the value "{value}" instead of "true"' in verdict.message


async def test_a_request_without_a_readable_object_is_an_error() -> None:
    nothing = await protection()(delete(None))
    assert (nothing.allowed, nothing.code) == (False, 500)
    assert nothing.message == "no object found in admission request"
    garbage = await protection()(delete({"metadata": 7}))
    assert (garbage.allowed, garbage.code) == (False, 500)
    instead = await protection()(delete(None, object=obj(annotations=CONFIRMED)))
    assert instead.allowed


async def test_a_collection_is_deleted_only_if_all_objects_are_confirmed() -> None:
    cluster = Cluster(obj("a", CONFIRMED), obj("b", CONFIRMED))
    assert (await protection(cluster)(delete(obj("a", CONFIRMED), name=""))).allowed
    assert cluster.asked == [(GroupVersionKind(*NETWORKS[:2], "Network"), "shoot", "")]
    cluster.objects.append(obj("c"))
    refused = await protection(cluster)(delete(obj("a", CONFIRMED), name=""))
    assert not refused.allowed
    expected = f"{NEEDED}: at least one Network in namespace shoot has none that is valid"
    assert refused.message == expected
    cluster.objects += [obj("secret-customer"), obj("d")]
    again = await protection(cluster)(delete(obj("a", CONFIRMED), name=""))
    assert again.message == expected, "the caller may not be permitted to list the others"
    assert (await protection(Cluster())(delete(None, name=""))).allowed


async def test_only_protected_crds_count_in_a_collection() -> None:
    cluster = Cluster()
    await protection(cluster)(delete(None, name="", namespace="", resource=CRDS))
    ((gvk, namespace, labels),) = cluster.asked
    assert (gvk.kind, namespace) == ("CustomResourceDefinition", "")
    assert labels == "gardener.cloud/deletion-protected=true"


@pytest.mark.parametrize("reviewed", [None, "a"])
async def test_the_answer_about_a_collection_names_only_the_reviewed_object(
    reviewed: str | None,
) -> None:
    cluster = Cluster(*(obj(name) for name in ("a", "customer-1", "customer-2")))
    about = obj(reviewed) if reviewed else None
    refused = await protection(cluster)(delete(about, name=""))
    assert not refused.allowed
    assert "customer" not in refused.message
    assert ("Network shoot/a has none" in refused.message) is (reviewed is not None)
    one = Cluster(obj("customer-1"))
    if not reviewed:
        assert (await protection(one)(delete(None, name=""))).message == refused.message


async def test_a_burst_needs_one_list_and_refusals_are_not_cached() -> None:
    cluster = Cluster(*(obj(name, CONFIRMED) for name in "abc"))
    handler = protection(cluster)
    requests = [delete(obj(name, CONFIRMED), name="") for name in "abc"]
    verdicts: list[Verdict] = list(await asyncio.gather(*map(handler, requests)))
    assert all(verdict.allowed for verdict in verdicts)
    assert len(cluster.asked) == 1
    # An object that was unconfirmed a moment ago may be confirmed now, and vice versa.
    cluster.objects.append(obj("d"))
    assert not (await handler(delete(obj("d"), name=""))).allowed
    other = await handler(delete(None, name="", namespace="other"))
    assert not other.allowed
    cluster.objects.pop()
    assert (await handler(delete(None, name="", namespace="other"))).allowed
    assert len(cluster.asked) == 3


async def test_a_failed_list_refuses_and_a_missing_kind_allows() -> None:
    broken = Cluster(error=ApiError(503, {"message": "etcd is not there"}))
    refused = await protection(broken)(delete(None, name=""))
    assert (refused.allowed, refused.code) == (False, 500)
    assert "etcd is not there" in refused.message
    gone = Cluster(error=NotFound(404, {"message": "gone"}))
    passed = await protection(gone)(delete(None, name=""))
    assert (passed.allowed, passed.message) == (True, "object was not found")


def at(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%f123Z")


@pytest.mark.parametrize(
    ("timestamp", "passes"),
    [
        (at(NOW - timedelta(minutes=59)), True),
        (at(NOW - timedelta(minutes=61)), False),
        ("2029-12-31T23:30:00", False),
        ("yesterday", False),
        (None, False),
    ],
)
async def test_a_confirmation_may_have_a_maximum_age(timestamp: str | None, passes: bool) -> None:
    annotations = dict(CONFIRMED)
    if timestamp is not None:
        annotations[marks.TIMESTAMP] = timestamp
    handler = protection(maximum_age=timedelta(hours=1))
    verdict = await handler(delete(obj(annotations=annotations)))
    assert verdict.allowed is passes
    if not passes:
        assert "within the last 1h" in verdict.message
    assert (await protection()(delete(obj(annotations=annotations)))).allowed


class Reported:
    """A stand-in for an Event recorder, which records the notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.normal: Callable[..., None] = lambda _, reason, note: self.notes.append(
            f"{reason}: {note}"
        )


def recording(reported: Any, *stored: JsonObject, now: float = 0.0) -> DeletionEvents:
    """Return a recorder of deletions' Events in a cluster with only some objects."""

    async def read(gvk: GroupVersionKind, key: Key) -> JsonObject:
        for obj in stored:
            if Key.of(obj) == key and gvk.kind == obj["kind"]:
                return obj
        raise NotFound(404, {"message": "gone"})

    return DeletionEvents(reported, read, now=lambda: now)


STORED = obj(annotations=CONFIRMED | {marks.TIMESTAMP: "2029-12-31T23:30:00Z"})


async def test_allowed_deletions_are_recorded_except_dry_runs() -> None:
    reported = Reported()
    handler = protection(Cluster(STORED), events=recording(reported, STORED))
    note = "ConfirmedDeletion: deletion by alice is allowed: confirmed at 2029-12-31T23:30:00Z"
    await handler(delete(STORED, user="alice"))
    assert reported.notes == [note]
    await handler(delete(STORED, user="alice", dry_run=True))
    await handler(delete(obj(), user="alice"))
    assert reported.notes == [note]
    await handler(delete(STORED, user="alice", name=""))
    assert reported.notes == [note, note]


async def test_no_event_is_recorded_about_an_object_that_does_not_exist() -> None:
    reported = Reported()
    unconfirmed, other = obj(), obj(annotations=CONFIRMED)
    other["metadata"]["uid"] = "another"
    for stored in ([], [unconfirmed], [other]):
        verdict = await protection(events=recording(reported, *stored))(delete(STORED))
        assert verdict.allowed
    assert reported.notes == []


async def test_events_are_rate_limited() -> None:
    reported = Reported()
    handler = protection(events=recording(reported, STORED))
    for _ in range(200):
        assert (await handler(delete(STORED))).allowed
    assert len(reported.notes) == BURST


async def test_a_list_is_used_once_for_each_of_its_objects() -> None:
    cluster = Cluster(obj("a", CONFIRMED), obj("b", CONFIRMED))
    handler = protection(cluster)
    for name in ("a", "b"):
        assert (await handler(delete(obj(name, CONFIRMED), name=""))).allowed
    assert len(cluster.asked) == 1
    # A later request for the same collection must see new objects.
    cluster.objects.append(obj("new"))
    refused = await handler(delete(obj("a", CONFIRMED), name=""))
    assert refused.message.startswith(f"{NEEDED}: at least one Network in namespace shoot")
    assert len(cluster.asked) == 2


async def test_an_unlisted_object_is_read_separately() -> None:
    cluster = Cluster(obj("a", CONFIRMED), obj("b", CONFIRMED))
    handler = protection(cluster)
    assert (await handler(delete(obj("a", CONFIRMED), name=""))).allowed
    cluster.objects.append(obj("c"))
    assert not (await handler(delete(obj("d", CONFIRMED), name=""))).allowed
    assert not (await handler(delete(None, name=""))).allowed


def test_bastions_are_not_sent_and_only_labelled_crds_are() -> None:
    crds, others = (r.render({}) for r in registrations(Installation("runtime")))
    assert crds["objectSelector"] == {"matchLabels": {marks.DELETION_PROTECTED: "true"}}
    assert crds["rules"][0]["apiVersions"] == ["v1beta1", "v1"]
    sent = {name for rule in others["rules"] for name in rule["resources"]}
    assert sent == {resource.resource for resource in PROTECTED} - {CRDS.resource}
    assert others["failurePolicy"] == crds["failurePolicy"] == "Fail"
