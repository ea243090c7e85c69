"""Invalidation of unused tokens in Secrets: spec 12 §9."""

import pytest

from pergola.admission.review import Operation
from pergola.api.objects import JsonObject
from pergola.resource_manager.webhooks.token_invalidator import CONSIDER, review
from tests.support.reviews import patched, review_of

OTHER = {"ca.crt": "Y2E=", "namespace": "bnM="}


def secret(data: JsonObject | None, *, consider: str | None = None) -> JsonObject:
    labels = {} if consider is None else {CONSIDER: consider}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "token", "namespace": "kube-system", "labels": labels},
        "data": data,
    }


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE"])
@pytest.mark.parametrize("before", [OTHER, OTHER | {"token": "dmFsaWQ="}, {}])
@pytest.mark.parametrize("consider", ["true", "false", ""])
def test_a_considered_token_becomes_invalid(
    before: JsonObject, consider: str, operation: Operation
) -> None:
    given = secret(before, consider=consider)
    changed = patched(given, review(review_of(given, operation)))
    assert changed["data"] == before | {"token": "AAAA"}


def test_a_deleted_token_becomes_invalid_again() -> None:
    given = secret(OTHER | {"token": "AAAA"}, consider="true")
    assert review(review_of(given, "UPDATE")).because == "the token is already invalid"
    del given["data"]["token"]
    assert patched(given, review(review_of(given, "UPDATE")))["data"]["token"] == "AAAA"


def test_an_invalid_token_is_removed_once_a_token_is_needed_again() -> None:
    given = secret(OTHER | {"token": "AAAA"})
    assert patched(given, review(review_of(given, "UPDATE")))["data"] == OTHER


@pytest.mark.parametrize("data", [OTHER, OTHER | {"token": "dmFsaWQ="}, {}])
def test_a_valid_token_is_kept_while_needed(data: JsonObject) -> None:
    verdict = review(review_of(secret(data), "UPDATE"))
    assert (verdict.allowed, verdict.edits) == (True, ())
    assert verdict.because == f"the label {CONSIDER} is not set"


@pytest.mark.parametrize("consider", [None, "true"])
def test_a_secret_without_data_is_unchanged(consider: str | None) -> None:
    verdict = review(review_of(secret(None, consider=consider), "UPDATE"))
    assert (verdict.edits, verdict.because) == ((), "the Secret has no data")


def test_errors_about_a_malformed_secret_show_no_values() -> None:
    given = secret(None) | {"data": "c2VjcmV0"}
    verdict = review(review_of(given))
    assert (verdict.allowed, verdict.code) == (False, 400)
    assert verdict.message == "cannot decode the Secret: data: expected a map, found a string"
