"""The handler that reviews Gardens: spec 21 §7.1, §7.2, and its 'Must hold' lines."""

import copy
from datetime import UTC, datetime
from typing import Any

import pytest

from pergola.admission import Handler
from pergola.api.objects import JsonObject
from pergola.kube.errors import Unreachable
from pergola.operator.webhooks.garden.review import garden_validation
from pergola.runtime.clock import FakeClock
from tests.support.fixed_lookups import FixedLookups
from tests.support.gardens import MINIMAL, RUNTIME, SERVER, VIRTUAL, with_values
from tests.support.reviews import answer, review_of

NOW = datetime(2026, 6, 1, tzinfo=UTC)
ONLY_ONE = (
    "there can be only one operator.gardener.cloud/v1alpha1.Garden resource in the system at a time"
)


def handler(*, any_version: bool = False, **lookups: Any) -> Handler:
    found = garden_validation(FixedLookups(**lookups), FakeClock(NOW), any_version=any_version)
    return found.handler


def annotated(**annotations: str) -> JsonObject:
    garden = copy.deepcopy(MINIMAL)
    garden["metadata"]["annotations"] = annotations
    return garden


async def test_a_valid_garden_is_admitted() -> None:
    verdict = await answer(handler(), review_of(MINIMAL))

    assert verdict.allowed


@pytest.mark.parametrize("version", ["1.34.2", "nonsense"])
async def test_a_second_garden_is_refused_valid_or_not(version: str) -> None:
    second = with_values(MINIMAL, {f"{VIRTUAL}.kubernetes.version": version})

    verdict = await answer(handler(existing_gardens=[MINIMAL]), review_of(second))

    assert (verdict.code, verdict.reason, verdict.message) == (400, "BadRequest", ONLY_ONE)


@pytest.mark.parametrize(
    "finalizer", ["gardener.cloud/operator", "gardener.cloud/reference-protection"]
)
async def test_a_finalizer_of_the_operator_is_refused_on_creation(finalizer: str) -> None:
    garden = with_values(MINIMAL, {"metadata.finalizers": ["example.org/mine", finalizer]})

    verdict = await answer(handler(), review_of(garden))

    assert verdict.code == 400
    assert verdict.message == f'finalizer "{finalizer}" cannot be added on creation'


async def test_all_violations_are_causes_of_one_refusal() -> None:
    broken = with_values(
        MINIMAL,
        {
            f"{VIRTUAL}.dns.domains": [{"name": "A"}],
            f"{RUNTIME}.networking.services": ["10.1.0.0/16"],
        },
    )

    verdict = await answer(handler(), review_of(broken))

    assert (verdict.code, verdict.reason) == (422, "Invalid")
    assert verdict.message.startswith('Garden.operator.gardener.cloud "minimal" is invalid: [')
    assert [cause.field for cause in verdict.causes] == [
        f"{RUNTIME}.networking.pods[0]",
        f"{VIRTUAL}.dns.domains[0].name",
    ]


async def test_only_extension_types_registered_for_gardens_are_valid() -> None:
    garden = with_values(MINIMAL, {"spec.extensions": [{"type": "a"}, {"type": "b"}]})
    registered: JsonObject = {
        "spec": {
            "resources": [
                {"kind": "Extension", "type": "a", "clusterCompatibility": ["shoot", "garden"]},
                {"kind": "Extension", "type": "b", "clusterCompatibility": ["shoot"]},
                {"kind": "DNSRecord", "type": "b", "clusterCompatibility": ["garden"]},
            ]
        }
    }

    verdict = await answer(handler(existing_extensions=[registered]), review_of(garden))

    assert [str(cause) for cause in verdict.causes] == [
        'spec.extensions[1].type: Unsupported value: "b": supported values: "a"'
    ]


async def test_an_unreachable_cluster_is_an_internal_error() -> None:
    verdict = await answer(handler(error=Unreachable("no answer")), review_of(MINIMAL))

    assert (verdict.allowed, verdict.code) == (False, 500)


async def test_a_garden_that_violates_the_schema_is_refused_with_every_field() -> None:
    broken = with_values(MINIMAL, {f"{RUNTIME}.provider": 1, f"{RUNTIME}.ingress.controller": ...})

    verdict = await answer(handler(), review_of(broken))

    assert verdict.code == 422
    assert [(cause.reason, cause.field) for cause in verdict.causes] == [
        ("FieldValueRequired", f"{RUNTIME}.ingress.controller"),
        ("FieldValueInvalid", f"{RUNTIME}.provider"),
    ]


async def test_a_malformed_stored_garden_can_be_repaired() -> None:
    old = with_values(MINIMAL, {f"{RUNTIME}.networking.pods": "10.1.0.0/16"})

    assert (await answer(handler(), review_of(MINIMAL, "UPDATE", old_object=old))).allowed


@pytest.mark.parametrize("value", ["1", "t", "T", "true", "True", "TRUE"])
async def test_a_confirmed_deletion_is_admitted(value: str) -> None:
    garden = annotated(**{"confirmation.gardener.cloud/deletion": value})

    assert (await answer(handler(), review_of(garden, "DELETE"))).allowed


@pytest.mark.parametrize(
    "annotations",
    [
        {},
        {"confirmation.gardener.cloud/deletion": "false"},
        {"confirmation.gardener.cloud/deletion": "yes"},
    ],
)
async def test_an_unconfirmed_deletion_is_refused(annotations: dict[str, str]) -> None:
    garden = with_values(annotated(**annotations), {f"{VIRTUAL}.kubernetes.version": "nonsense"})

    verdict = await answer(handler(), review_of(garden, "DELETE"))

    assert verdict.code == 403
    assert verdict.message == (
        'must have a "confirmation.gardener.cloud/deletion" annotation to delete'
    )


async def test_a_deletion_in_progress_follows_the_same_rule() -> None:
    deleting = {"metadata.deletionTimestamp": "2026-05-01T00:00:00Z"}
    confirmed = annotated(**{"confirmation.gardener.cloud/deletion": "true"})

    refused = await answer(handler(), review_of(with_values(MINIMAL, deleting), "DELETE"))
    admitted = await answer(handler(), review_of(with_values(confirmed, deleting), "DELETE"))

    assert (refused.allowed, admitted.allowed) == (False, True)


async def test_metadata_of_a_garden_that_is_no_longer_supported_can_change() -> None:
    old = with_values(
        MINIMAL,
        {
            f"{VIRTUAL}.kubernetes.version": "1.20.1",
            "metadata.finalizers": ["gardener.cloud/operator"],
        },
    )
    new = with_values(old, {"metadata.finalizers": [], "metadata.labels": {"a": "b"}})

    assert (await answer(handler(), review_of(new, "UPDATE", old_object=old))).allowed


async def test_a_requested_operation_validates_the_whole_garden() -> None:
    old = with_values(MINIMAL, {f"{VIRTUAL}.kubernetes.version": "1.20.1"})
    new = with_values(old, {"metadata.annotations": {"gardener.cloud/operation": "reconcile"}})

    verdict = await answer(handler(), review_of(new, "UPDATE", old_object=old))

    assert [cause.field for cause in verdict.causes] == [f"{VIRTUAL}.kubernetes.version"]


async def test_an_update_is_validated_against_the_old_garden() -> None:
    new = with_values(MINIMAL, {f"{RUNTIME}.networking.pods": ["10.4.0.0/16"]})

    verdict = await answer(handler(), review_of(new, "UPDATE", old_object=MINIMAL))

    assert (verdict.code, [cause.field for cause in verdict.causes]) == (
        422,
        [f"{RUNTIME}.networking.pods[0]"],
    )


async def test_unsupported_versions_are_admitted_on_request() -> None:
    garden = with_values(MINIMAL, {f"{VIRTUAL}.kubernetes.version": "1.40.0"})

    refused = await answer(handler(), review_of(garden))
    admitted = await answer(handler(any_version=True), review_of(garden))

    assert (refused.allowed, admitted.allowed) == (False, True)


SAFE: JsonObject = with_values(
    MINIMAL,
    {
        f"{VIRTUAL}.etcd.main": {
            "backup": {"provider": "local", "secretRef": {"name": "backup"}},
            "storage": {"capacity": "10Gi"},
        },
        f"{VIRTUAL}.controlPlane": {"highAvailability": {}},
        "metadata.creationTimestamp": "2026-05-01T00:00:00Z",
    },
)
ROTATED = {
    "status.credentials.rotation": {
        name: {"phase": "Completed", "lastInitiationTime": "2026-04-01T00:00:00Z"}
        for name in (
            "certificateAuthorities",
            "serviceAccountKey",
            "etcdEncryptionKey",
            "workloadIdentityKey",
        )
    }
    | {"observability": {"lastInitiationTime": "2026-02-01T00:00:00Z"}}
}


async def test_a_safe_garden_causes_no_warning() -> None:
    assert (await answer(handler(), review_of(SAFE))).warnings == ()


@pytest.mark.parametrize(
    ("values", "about"),
    [
        ({f"{VIRTUAL}.etcd.main.backup": ...}, "spec.virtualCluster.etcd.main.backup is not set"),
        (
            {f"{VIRTUAL}.controlPlane": ...},
            "spec.virtualCluster.controlPlane.highAvailability is not set",
        ),
        ({f"{VIRTUAL}.kubernetes.version": "1.32.1"}, "1.32 is the oldest supported version"),
        ({f"{SERVER}.enableAnonymousAuthentication": True}, "enableAnonymousAuthentication is dep"),
        ({f"{SERVER}.watchCacheSizes": {"default": 1}}, "watchCacheSizes.default is deprecated"),
        (
            {f"{SERVER}.oidcConfig": {"issuerURL": "https://a.example.org", "clientID": "a"}},
            "oidcConfig is deprecated",
        ),
        (
            {"metadata.creationTimestamp": "2026-01-01T00:00:00Z", **ROTATED},
            "credentials have not been rotated for 90 days: observability;",
        ),
        (
            {"metadata.creationTimestamp": "2026-01-01T00:00:00Z"},
            "days: certificateAuthorities, serviceAccountKey, etcdEncryptionKey, observability, wo",
        ),
    ],
)
async def test_risky_and_deprecated_settings_cause_warnings(
    values: dict[str, Any], about: str
) -> None:
    [warning] = (await answer(handler(), review_of(with_values(SAFE, values)))).warnings

    assert about in warning


async def test_a_change_without_effect_causes_a_warning() -> None:
    new = with_values(SAFE, {f"{VIRTUAL}.etcd.main.storage.capacity": "20Gi"})

    [warning] = (await answer(handler(), review_of(new, "UPDATE", old_object=SAFE))).warnings

    assert warning.startswith("spec.virtualCluster.etcd.main.storage.capacity has no effect")


async def test_a_refusal_has_warnings_too() -> None:
    broken = with_values(MINIMAL, {f"{SERVER}.eventTTL": "25h"})

    verdict = await answer(handler(), review_of(broken))

    assert (verdict.code, len(verdict.warnings)) == (422, 2)
