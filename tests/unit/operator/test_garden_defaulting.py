"""Defaults of Gardens: spec 20 §5 and spec 21 §8.1."""

from typing import Any

import pytest

from pergola.api.objects import JsonObject
from pergola.api.operator_v1alpha1 import Garden, default_garden
from pergola.api.schema import schema_of
from pergola.api.schema.nulls import without_nulls
from pergola.operator.webhooks.garden.defaulting import WEBHOOK
from tests.support.gardens import (
    GARDENER,
    MANAGER,
    MINIMAL,
    RUNTIME,
    SERVER,
    VIRTUAL,
    with_values,
)
from tests.support.reviews import answer, patched, review_of

GARDENER_SERVER = f"{GARDENER}.gardenerAPIServer"
ALL: dict[str, Any] = {
    f"{RUNTIME}.networking.ipFamilies": ["IPv4"],
    f"{SERVER}.requests": {"maxNonMutatingInflight": 400, "maxMutatingInflight": 200},
    f"{SERVER}.eventTTL": "1h",
    f"{SERVER}.logging": {"verbosity": 2},
    f"{SERVER}.encryptionConfig": {"provider": {"type": "aescbc"}},
    MANAGER: {},
    f"{GARDENER_SERVER}.encryptionConfig": {"provider": {"type": "aescbc"}},
}
ROWS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("a minimal Garden gets all", {}, {}),
    ("null is absent", {SERVER: None, f"{RUNTIME}.networking.ipFamilies": None}, {}),
    ("no IP families are IPv4", {f"{RUNTIME}.networking.ipFamilies": []}, {}),
    (
        "IP families stay",
        {f"{RUNTIME}.networking.ipFamilies": ["IPv6"]},
        {f"{RUNTIME}.networking.ipFamilies": ["IPv6"]},
    ),
    (
        "half of a pair gets the other half",
        {f"{SERVER}.requests": {"maxMutatingInflight": 0}},
        {f"{SERVER}.requests": {"maxNonMutatingInflight": 400, "maxMutatingInflight": 0}},
    ),
    (
        "what is empty stays empty",
        {f"{SERVER}.eventTTL": "", f"{SERVER}.encryptionConfig": {"provider": {"type": ""}}},
        {
            f"{SERVER}.eventTTL": "",
            f"{SERVER}.encryptionConfig": {"provider": {"type": ""}},
            f"{GARDENER_SERVER}.encryptionConfig": {"provider": {"type": ""}},
        },
    ),
    (
        "gardener-apiserver encrypts like kube-apiserver",
        {f"{SERVER}.encryptionConfig": {"provider": {"type": "secretbox"}}},
        {
            f"{SERVER}.encryptionConfig": {"provider": {"type": "secretbox"}},
            f"{GARDENER_SERVER}.encryptionConfig": {"provider": {"type": "secretbox"}},
        },
    ),
    (
        "a domain that is only a name becomes an object",
        {
            f"{VIRTUAL}.dns.domains": ["a.example.org", {"name": "b.example.org"}],
            f"{RUNTIME}.ingress.domains": ["c.example.org"],
        },
        {
            f"{VIRTUAL}.dns.domains": [{"name": "a.example.org"}, {"name": "b.example.org"}],
            f"{RUNTIME}.ingress.domains": [{"name": "c.example.org"}],
        },
    ),
]


@pytest.mark.parametrize(("given", "expected"), [r[1:] for r in ROWS], ids=[r[0] for r in ROWS])
async def test_a_default(given: dict[str, Any], expected: dict[str, Any]) -> None:
    garden = with_values(MINIMAL, given)
    complete = with_values(MINIMAL, ALL | expected)

    assert patched(garden, await answer(WEBHOOK.handler, review_of(garden))) == complete
    assert default_garden(garden) == complete


async def test_defaulting_a_garden_again_changes_nothing() -> None:
    verdict = await answer(WEBHOOK.handler, review_of(default_garden(MINIMAL), "UPDATE"))

    assert (verdict.allowed, verdict.edits) == (True, ())


async def test_neither_finalizers_nor_annotations_are_touched() -> None:
    verdict = await answer(WEBHOOK.handler, review_of(MINIMAL))

    assert [edit.path for edit in verdict.edits if not edit.path.startswith("/spec/")] == []


async def test_a_deletion_is_allowed() -> None:
    verdict = await answer(WEBHOOK.handler, review_of(MINIMAL, "DELETE"))

    assert (verdict.allowed, verdict.edits) == (True, ())


SPARSE: list[JsonObject] = [
    {},
    {"spec": None},
    {"spec": []},
    {"spec": {"runtimeCluster": 1, "virtualCluster": {"kubernetes": "1.34"}}},
    {"spec": {"virtualCluster": {"kubernetes": {"version": "1", "kubeAPIServer": "a"}}}},
    {"spec": {"virtualCluster": {"kubernetes": {"kubeAPIServer": {"requests": [1]}}}}},
    {"spec": {"virtualCluster": {"gardener": {"gardenerAPIServer": 0}, "dns": {"domains": 1}}}},
    {"spec": {"runtimeCluster": {"networking": {"ipFamilies": "IPv4"}, "ingress": None}}},
]


@pytest.mark.parametrize("sparse", SPARSE)
async def test_a_malformed_garden_is_left_to_validation(sparse: JsonObject) -> None:
    garden = MINIMAL | {"spec": None} | sparse

    verdict = await answer(WEBHOOK.handler, review_of(garden))

    assert verdict.allowed
    # an API server removes these nulls before it calls the webhook
    assert without_nulls(schema_of(Garden), patched(garden, verdict)) == default_garden(garden)
