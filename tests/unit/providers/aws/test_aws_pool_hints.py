"""Warnings at admission about pools that Gardener admits and AWS refuses."""

from itertools import product
from typing import Any, Final

import pytest

from pergola.admission.review import GroupVersionResource, Request, Verdict
from pergola.api.kinds import SHOOT
from pergola.api.objects import JsonObject
from pergola.providers.aws.shoot_webhooks import shoot_validator
from pergola.providers.aws.validation.annotation_hints import annotation_hints
from pergola.providers.aws.validation.pool_hints import (
    ANY,
    BLOCK,
    DEFAULT,
    HOST,
    INTERRUPTIBLE,
    ON_DEMAND,
    ONLY,
    SPOT,
    TARGET,
    pool_hints,
)

PATH: Final = "spec.provider.workers[0]"
DEDICATED: Final = "dedicated"
MARKETS: Final = (ON_DEMAND, SPOT, BLOCK, INTERRUPTIBLE)
RESERVATIONS: Final[dict[str, JsonObject]] = {
    ANY: {"capacityReservationPreference": "open"},
    ONLY: {"capacityReservationPreference": ONLY},
    TARGET: {"capacityReservationId": "cr-1"},
}
TENANCIES: Final = (DEFAULT, DEDICATED, HOST)
ADMITTED: Final = {
    *product([ON_DEMAND], [ANY], TENANCIES),
    *product([ON_DEMAND], [ONLY, TARGET], [DEFAULT, DEDICATED]),
    *product([SPOT], [ANY], [DEFAULT, DEDICATED]),
    *product([BLOCK, INTERRUPTIBLE], [TARGET], [DEFAULT, DEDICATED]),
}
"""The combinations of market, reservation and tenancy that AWS accepts."""


def a_shoot(old: JsonObject | None = None, /, **pool: Any) -> JsonObject:
    base: JsonObject = {
        "name": "a",
        "minimum": 3,
        "maximum": 6,
        "zones": ["eu-west-1a"],
        "cri": {"name": "containerd"},
        **(old or {}),
        **pool,
    }
    return {"spec": {"provider": {"type": "aws", "workers": [base]}}}


def config(**fields: Any) -> JsonObject:
    return {
        "providerConfig": {
            "apiVersion": "aws.provider.extensions.gardener.cloud/v1alpha1",
            "kind": "WorkerConfig",
            **fields,
        }
    }


def hints(new: JsonObject, old: JsonObject | None = None) -> list[tuple[str, str]]:
    return [(each.field, each.message) for each in pool_hints(new, old)]


@pytest.mark.parametrize("market", MARKETS)
@pytest.mark.parametrize("reservation", RESERVATIONS)
@pytest.mark.parametrize("tenancy", TENANCIES)
def test_every_market_reservation_and_tenancy_is_decided(
    market: str, reservation: str, tenancy: str
) -> None:
    options = config(
        instanceMarketOptions={"marketType": market},
        capacityReservation=RESERVATIONS[reservation],
        placement={"tenancy": tenancy},
    )

    found = hints(a_shoot(**options))

    assert (not found) is ((market, reservation, tenancy) in ADMITTED)
    for field, message in found:
        assert field.startswith(f"{PATH}.providerConfig.")
        assert message.endswith("no machine can start")


def test_without_a_config_nothing_is_wrong() -> None:
    assert hints(a_shoot()) == []
    assert hints(a_shoot(providerConfig={"unknown": 1})) == []


def test_a_block_of_capacity_may_be_in_a_group() -> None:
    group = {"capacityReservationResourceGroupArn": "arn:aws:resource-groups:a"}
    options = config(instanceMarketOptions={"marketType": BLOCK}, capacityReservation=group)

    assert hints(a_shoot(**options)) == []


@pytest.mark.parametrize(
    ("placement", "fields"),
    [
        ({"affinity": "host"}, ["placement.affinity"]),
        ({"affinity": "host", "tenancy": "host"}, []),
        ({"affinity": "default"}, []),
        ({"partitionNumber": 1}, ["placement.partitionNumber"]),
        ({"partitionNumber": 1, "groupId": "pg-1"}, []),
    ],
)
def test_options_of_a_placement_need_each_other(placement: JsonObject, fields: list[str]) -> None:
    found = [field for field, _ in hints(a_shoot(**config(placement=placement)))]

    assert found == [f"{PATH}.providerConfig.{field}" for field in fields]


def test_a_label_that_is_too_long_for_a_tag_is_named() -> None:
    def key(length: int) -> str:
        return f"{'a' * (length - 7)}/key-01"

    assert hints(a_shoot(labels={key(128): "x"})) == []
    [(field, message)] = hints(a_shoot(labels={"short": "x", key(129): "y"}))
    assert field == f"{PATH}.labels"
    assert f'"{key(129)[:40]}…": has 129 characters' in message


def test_labels_beyond_the_last_tag_are_named() -> None:
    labels = {f"example.com/label-{number:02}": "x" for number in range(40)}
    fitting = dict([*labels.items()][:38])

    assert hints(a_shoot(labels=fitting)) == []
    assert hints(a_shoot(labels={**fitting, "worker.gardener.cloud/pool": "a"})) == []
    [(field, message)] = hints(a_shoot(labels=labels))
    assert field == f"{PATH}.labels"
    assert "at most 50, 12 of them from Gardener" in message
    assert message.endswith("remove example.com/label-38, example.com/label-39")


def test_container_runtimes_have_tags_too() -> None:
    labels = {f"example.com/label-{number:02}": "x" for number in range(38)}
    cri = {"name": "containerd", "containerRuntimes": [{"type": "gvisor"}]}

    [(_, message)] = hints(a_shoot(labels=labels, cri=cri))

    assert "13 of them from Gardener" in message


ZONES: Final = ["eu-west-1a", "eu-west-1b", "eu-west-1c"]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ((6, 1), (6, 1), ""),
        ((6, 1), (6, 2), "eu-west-1a has 3 instead of 6"),
        ((6, 1), (12, 2), ""),
        ((6, 2), (6, 3), "eu-west-1a has 2 instead of 3, eu-west-1b has 2 instead of 3"),
        ((7, 2), (9, 3), "eu-west-1a has 3 instead of 4"),
        ((6, 1), (3, 1), ""),
    ],
)
def test_a_zone_that_lowers_the_maximum_of_others_is_noticed(
    old: tuple[int, int], new: tuple[int, int], expected: str
) -> None:
    def shoot(maximum: int, zones: int) -> JsonObject:
        return a_shoot(maximum=maximum, zones=ZONES[:zones])

    found = hints(shoot(*new), shoot(*old))

    assert [message.rpartition(": ")[2] for _, message in found] == [expected] * bool(expected)


ANNOTATION: Final = "aws.provider.extensions.gardener.cloud"


def annotated(**annotations: str) -> JsonObject:
    names = {f"{ANNOTATION}/{k.replace('_', '-')}": v for k, v in annotations.items()}
    return {**a_shoot(), "metadata": {"annotations": names}}


@pytest.mark.parametrize(
    ("annotations", "wrong"),
    [
        ({}, []),
        ({"volume_attach_limit": "26"}, []),
        ({"volume_attach_limit": "-1"}, []),
        ({"volume_attach_limit": "many"}, ["volume-attach-limit"]),
        ({"volume_attach_limit": "26 "}, ["volume-attach-limit"]),
        ({"reserved_volume_attachments": "2.5"}, ["reserved-volume-attachments"]),
        (
            {"volume_attach_limit": "26", "reserved_volume_attachments": "2"},
            ["reserved-volume-attachments"],
        ),
        ({"legacy_xfs": "true"}, []),
        ({"legacy_xfs": "yes"}, ["legacy-xfs"]),
    ],
)
def test_annotations_with_which_the_driver_does_not_start_are_named(
    annotations: dict[str, str], wrong: list[str]
) -> None:
    found = [each.field for each in annotation_hints(annotated(**annotations))]

    assert found == [f"metadata.annotations[{ANNOTATION}/{name}]" for name in wrong]


def reviewed(new: JsonObject, old: JsonObject) -> Verdict:
    request = Request(
        uid="1",
        operation="UPDATE",
        kind=SHOOT,
        resource=GroupVersionResource("core.gardener.cloud", "v1beta1", "shoots"),
        namespace="garden-dev",
        name="web",
        object=new,
        old_object=old,
    )
    verdict = shoot_validator(lambda _: None)(request)
    assert isinstance(verdict, Verdict)
    return verdict


def test_hints_do_not_refuse_a_shoot() -> None:
    options = config(instanceMarketOptions={"marketType": BLOCK})

    verdict = reviewed(a_shoot(**options), a_shoot())

    assert verdict.allowed
    [hint] = [each for each in verdict.warnings if not each.endswith("(as before)")]
    assert hint.startswith(f"{PATH}.providerConfig.instanceMarketOptions.marketType: ")


def test_a_changed_annotation_is_reviewed_without_a_changed_spec() -> None:
    wrong = annotated(legacy_xfs="yes")

    assert [*map(str, annotation_hints(wrong))] == [*reviewed(wrong, a_shoot()).warnings]
    assert reviewed(wrong, wrong).warnings == ()
