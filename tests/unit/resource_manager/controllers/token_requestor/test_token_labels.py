"""The labels of a token Secret: spec 11 §2.2."""

import pytest

from pergola.api.objects import JsonObject
from pergola.resource_manager.controllers.token_invalidator import (
    Account,
    TokenSecret,
    keep_account,
    keep_secret,
    label_changes,
)

PURPOSE = "resources.gardener.cloud/purpose"
CONSIDER = "token-invalidator.resources.gardener.cloud/consider"
SKIP = "token-invalidator.resources.gardener.cloud/skip"
ADD_PURPOSE: dict[str, str | None] = {PURPOSE: "token-invalidator"}
OPTED_OUT = Account(automount=False, skip=None)


def secret(*, has_purpose: bool = True, considered: bool = False) -> TokenSecret:
    return TokenSecret("robot", "1", has_purpose, considered)


@pytest.mark.parametrize("has_purpose", [True, False])
@pytest.mark.parametrize(
    ("account", "considered", "in_use", "changes"),
    [
        (OPTED_OUT, False, False, {CONSIDER: "true"}),
        (OPTED_OUT, False, True, {}),
        (OPTED_OUT, True, False, {}),
        (Account(automount=None, skip=None), False, False, {}),
        (Account(automount=None, skip=None), True, False, {CONSIDER: None}),
        (Account(automount=True, skip=None), False, False, {}),
        (Account(automount=True, skip=None), True, False, {CONSIDER: None}),
        (Account(automount=False, skip="true"), False, False, {}),
        (Account(automount=False, skip="true"), True, False, {CONSIDER: None}),
        (Account(automount=False, skip=""), True, False, {CONSIDER: None}),
    ],
)
def test_the_labels_follow_the_service_account(
    account: Account,
    considered: bool,
    in_use: bool,
    changes: dict[str, str | None],
    has_purpose: bool,
) -> None:
    desired = changes if has_purpose else ADD_PURPOSE | changes
    seen = secret(has_purpose=has_purpose, considered=considered)
    assert label_changes(seen, account, in_use=in_use) == desired


def test_only_the_account_and_labels_of_a_secret_are_kept() -> None:
    obj: JsonObject = {
        "metadata": {
            "resourceVersion": "7",
            "annotations": {"kubernetes.io/service-account.name": "robot"},
            "labels": {PURPOSE: "anything", CONSIDER: ""},
        },
        "data": {"token": "c2VjcmV0"},
    }
    assert keep_secret(obj) == TokenSecret("robot", "7", has_purpose=True, considered=True)


@pytest.mark.parametrize("annotations", [None, {}, {"kubernetes.io/service-account.name": ""}])
def test_a_secret_without_an_account_is_not_cached(annotations: JsonObject | None) -> None:
    assert keep_secret({"metadata": {"annotations": annotations}}) is None


@pytest.mark.parametrize(
    ("obj", "account"),
    [
        ({}, Account(automount=None, skip=None)),
        ({"automountServiceAccountToken": False}, Account(automount=False, skip=None)),
        ({"metadata": {"labels": {SKIP: "true"}}}, Account(automount=None, skip="true")),
    ],
)
def test_the_settings_of_a_service_account_are_kept(obj: JsonObject, account: Account) -> None:
    assert keep_account(obj) == account
