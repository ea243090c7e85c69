"""Requests in Secrets, due times of tokens, and writes (spec 11 §1)."""

import base64
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pergola.api.conditions import timestamp
from pergola.api.durations import parse_duration
from pergola.api.objects import JsonObject, Key
from pergola.kube.yaml import dump
from pergola.resource_manager.controllers.token_requestor import decide, names
from pergola.resource_manager.controllers.token_requestor.decide import (
    due_locally,
    renewal_time,
    renews_in,
)
from pergola.resource_manager.controllers.token_requestor.desired import (
    corrected,
    data_for,
    kubeconfig_to_fill,
    new_account,
    source_patch,
    target_secret,
)
from pergola.resource_manager.controllers.token_requestor.inputs import (
    MistakesError,
    Request,
    read_request,
)
from pergola.resource_manager.controllers.token_requestor.memory import BURST, Issued, Known
from pergola.resource_manager.controllers.token_requestor.observe import (
    Holding,
    SeenSecret,
    TokenFacts,
    digest_of,
    observe,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
RENEWAL = "2026-03-01T12:00:00Z"
ASKED = {names.NAME: "robot", names.NAMESPACE: "kube-system"}
REQUEST = Request(Key("kube-system", "robot"), {}, 43200, None, injects_ca=False)
TARGET = {names.TARGET_NAME: "there", names.TARGET_NAMESPACE: "ns"}
TOKEN = TokenFacts(b"digest")
HOLDS = Holding(frozenset({"token"}), TOKEN)
KEY = Key("garden", "access")


def seen(annotations: dict[str, str] | None = None, **data: bytes) -> SeenSecret:
    return observe(
        {
            "metadata": {"namespace": "garden", "name": "access", "annotations": annotations},
            "data": {key: base64.b64encode(value).decode() for key, value in data.items()},
        }
    )


# Relevance


@pytest.mark.parametrize(
    ("labels", "resource_class", "expected"),
    [
        ({}, "*", False),
        ({names.PURPOSE: "token-requestor"}, "*", True),
        ({names.PURPOSE: "token-requestor"}, "shoot", False),
        ({names.PURPOSE: "token-requestor", names.CLASS: "shoot"}, "shoot", True),
        ({names.PURPOSE: "token-requestor", names.CLASS: "garden"}, "shoot", False),
        ({names.PURPOSE: "other", names.CLASS: "shoot"}, "shoot", False),
    ],
)
def test_secrets_are_selected_by_purpose_and_class(
    labels: dict[str, str], resource_class: str, expected: bool
) -> None:
    assert names.is_relevant(labels, resource_class) is expected


# Requests


def test_a_request_has_defaults() -> None:
    assert read_request(seen(ASKED)) == REQUEST


def test_empty_labels_leave_the_service_account_alone() -> None:
    assert read_request(seen({**ASKED, names.LABELS: ""})).labels == {}


def test_every_field_of_a_request_is_read() -> None:
    labels = {names.LABELS: '{"a": "b"}', names.INJECT_CA: "t", names.EXPIRATION: "90m0.9s"}
    assert read_request(seen(ASKED | labels | TARGET)) == Request(
        Key("kube-system", "robot"), {"a": "b"}, 5400, Key("ns", "there"), injects_ca=True
    )


def test_a_fixed_namespace_overrides_the_annotation() -> None:
    asked = {names.NAME: "robot", names.NAMESPACE: "no/namespace"}
    assert read_request(seen(asked), "fixed").account == Key("fixed", "robot")


def test_an_unknown_ca_is_not_injected() -> None:
    assert not read_request(seen(ASKED | {names.INJECT_CA: "true"}), has_ca=False).injects_ca


@pytest.mark.parametrize("text", ["1", "t", "T", "TRUE", "true", "True"])
def test_six_spellings_request_the_ca(text: str) -> None:
    assert read_request(seen(ASKED | {names.INJECT_CA: text})).injects_ca


@pytest.mark.parametrize("text", ["", "yes", "tRUE", "0", " true"])
def test_other_values_do_not_request_the_ca(text: str) -> None:
    assert not read_request(seen(ASKED | {names.INJECT_CA: text})).injects_ca


@pytest.mark.parametrize("left_out", TARGET)
@pytest.mark.parametrize("value", [None, ""])
def test_one_target_annotation_alone_has_no_effect(left_out: str, value: str | None) -> None:
    half = {key: text for key, text in (TARGET | {left_out: value}).items() if text is not None}
    assert read_request(seen(ASKED | half)).target is None


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({names.NAME: ""}, "is required"),
        ({names.NAME: "../x"}, '"../x" is not a valid name'),
        ({names.NAMESPACE: "a.b"}, '"a.b" is not a valid name'),
        ({names.EXPIRATION: "unparsable"}, 'invalid duration "unparsable"'),
        ({names.EXPIRATION: ""}, 'invalid duration ""'),
        ({names.EXPIRATION: "9m59s"}, 'invalid duration "9m59s": tokens live 10m'),
        ({names.EXPIRATION: "2000000h"}, 'invalid duration "2000000h"'),
        ({names.LABELS: "{"}, "must be a JSON object of strings, not '{'"),
        ({names.LABELS: '{"a": 1}'}, "must be a JSON object of strings"),
        (TARGET | {names.TARGET_NAME: "A"}, '"A" is not a valid name'),
    ],
)
def test_an_error_names_its_field(changes: dict[str, str], problem: str) -> None:
    with pytest.raises(MistakesError) as error:
        read_request(seen(ASKED | changes))
    (mistake,) = error.value.mistakes
    assert mistake.field.startswith("metadata.annotations[")
    assert mistake.field.removeprefix("metadata.annotations[")[:-1] in changes
    assert problem in mistake.problem


def test_a_kubeconfig_without_a_cluster_is_an_error_only_for_the_ca() -> None:
    content = dump(
        {
            "current-context": "m",
            "contexts": [{"name": "m", "context": {"cluster": "c", "user": "u"}}],
            "users": [{"name": "u", "user": {}}],
        }
    ).encode()
    read_request(seen(ASKED, kubeconfig=content))
    with pytest.raises(MistakesError, match=r"data\[kubeconfig\]: did not find cluster"):
        read_request(seen(ASKED | {names.INJECT_CA: "1"}, kubeconfig=content))


# When a token is due: the rules in their order

FUTURE = {names.RENEW: "2026-03-01T13:00:00Z"}


def expiring(life: timedelta) -> Holding:
    return replace(HOLDS, token=replace(TOKEN, expires=NOW + life))


@pytest.mark.parametrize(
    ("annotations", "changes", "holder", "expected"),
    [
        ({}, {}, HOLDS, decide.REQUESTED),
        ({names.RENEW: ""}, {}, HOLDS, decide.REQUESTED),
        (FUTURE, {"target": KEY}, None, decide.NO_TARGET),
        (FUTURE, {}, Holding(), decide.NO_TOKEN),
        (FUTURE, {"injects_ca": True}, HOLDS, decide.OTHER_CA),
        (FUTURE, {"injects_ca": True}, replace(HOLDS, ca=digest_of(b"CA")), None),
        (FUTURE, {}, replace(HOLDS, ca=b"whatever"), None),
        (FUTURE, {"target": KEY}, HOLDS, None),
        (FUTURE, {}, HOLDS, None),
        (FUTURE, {}, expiring(timedelta(seconds=1)), None),
        (FUTURE, {}, expiring(timedelta(0)), decide.EXPIRED),
    ],
)
def test_a_token_is_due_for_each_documented_reason(
    annotations: dict[str, str],
    changes: dict[str, Any],
    holder: Holding | None,
    expected: decide.Due | None,
) -> None:
    request = replace(REQUEST, **changes)
    assert due_locally(seen(annotations), request, holder, digest_of(b"CA"), NOW) == expected


@pytest.mark.parametrize("key", ["token", "kubeconfig"])
def test_credentials_left_in_the_source_are_moved(key: str) -> None:
    source = seen(FUTURE, **{key: b"x"})
    request = replace(REQUEST, target=KEY)
    assert due_locally(source, request, HOLDS, None, NOW) == decide.TO_MOVE


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2021-10-04T19:36:00Z", datetime(2021, 10, 4, 19, 36, tzinfo=UTC)),
        ("2021-10-04T21:36:00+02:00", datetime(2021, 10, 4, 19, 36, tzinfo=UTC)),
    ],
)
def test_renewal_times_are_rfc_3339(text: str, expected: datetime) -> None:
    assert renewal_time(seen({names.RENEW: text})) == expected
    assert timestamp(expected) == "2021-10-04T19:36:00Z"


@pytest.mark.parametrize("text", ["invalid-format", "2021-10-04", "2021-10-04T19:36:00"])
def test_other_times_are_refused(text: str) -> None:
    with pytest.raises(MistakesError, match=f"could not parse renew timestamp: '{text}'"):
        renewal_time(seen({names.RENEW: text}))


@pytest.mark.parametrize(
    ("life", "earliest", "latest"),
    [
        ("10m", "8m", "8m24s"),
        ("12h", "9h36m", "10h4m48s"),
        ("24h", "19h12m", "20h9m36s"),
        ("100h", "19h12m", "20h9m36s"),
    ],
)
def test_the_window_of_renewal_depends_on_the_lifetime(
    life: str, earliest: str, latest: str
) -> None:
    lives = parse_duration(life)
    assert timedelta(seconds=renews_in(lives, 0.0)) == parse_duration(earliest)
    assert timedelta(seconds=renews_in(lives, 1.0)) == parse_duration(latest)


# Rate limits

FIRST = Issued(b"1", "t1")


def test_the_first_token_and_one_that_is_certainly_due_are_issued_at_once() -> None:
    known = Known()
    assert known.wait(60.0, 0.0, doubted=FIRST) == 0
    known.issued(FIRST, 0.0)
    assert known.wait(60.0, 1.0, doubted=None) == 0


def test_a_new_token_that_may_be_due_has_to_wait() -> None:
    known = Known()
    known.issued(FIRST, 10.0)
    assert known.wait(60.0, 15.0, doubted=FIRST) == 55.0
    assert known.wait(60.0, 70.0, doubted=FIRST) == 0
    assert known.wait(60.0, 15.0, doubted=Issued(b"other", "t1")) == 0
    assert known.wait(60.0, 15.0, doubted=Issued(b"1", "another client replaced it")) == 0


def test_an_interval_never_has_more_than_a_burst_of_tokens() -> None:
    known = Known()
    for second in range(BURST):
        assert known.wait(60.0, float(second), doubted=None) == 0
        known.issued(Issued(b"%d" % second, "t"), float(second))
    assert known.wait(60.0, 10.0, doubted=None) == 50.0
    assert known.wait(60.0, 60.0, doubted=None) == 0
    known.issued(FIRST, 60.0)
    assert known.wait(60.0, 60.0, doubted=None) == 1.0


# Reviews of tokens by the API server


def test_a_token_is_reviewed_once_an_hour_unless_it_changed_or_names_no_uid() -> None:
    known, token = Known(), replace(TOKEN, account_uid="u")
    assert known.needs_review(token, 0.0)
    known.accepted(token.digest, 0.0)
    assert not known.needs_review(token, 3599.0)
    assert known.needs_review(token, 3600.0)
    assert known.needs_review(replace(token, digest=b"other"), 1.0)
    assert known.needs_review(replace(token, account_uid=""), 1.0)


def test_an_issued_token_is_not_reviewed() -> None:
    known = Known()
    known.issued(Issued(TOKEN.digest, "t1"), 0.0)
    assert not known.needs_review(replace(TOKEN, account_uid="u"), 3599.0)


# The ServiceAccount


def test_a_new_service_account_mounts_nothing_and_has_exactly_the_requested_labels() -> None:
    account = new_account(replace(REQUEST, labels={"a": "b"}))
    assert account["automountServiceAccountToken"] is False
    assert account["metadata"]["labels"] == {"a": "b"}
    assert "labels" not in new_account(REQUEST)["metadata"]
    assert corrected(account, replace(REQUEST, labels={"a": "b"})) is None


def test_a_correct_service_account_is_not_written_and_other_labels_are_kept() -> None:
    live: JsonObject = {
        "metadata": {"labels": {"x": "y"}, "annotations": {"m": "n"}, "uid": "u"},
        "automountServiceAccountToken": False,
        "imagePullSecrets": [{"name": "s"}],
    }
    assert corrected(live, REQUEST) is None
    changed = corrected(live, replace(REQUEST, labels={"a": "b"}))
    assert changed is not None
    assert changed["metadata"]["labels"] == {"x": "y", "a": "b"}
    assert changed["metadata"]["annotations"] == {"m": "n", names.LABELS: '{"a":"b"}'}
    assert changed["imagePullSecrets"] == live["imagePullSecrets"]
    back = corrected(changed, REQUEST)
    assert back is not None
    assert back["metadata"]["labels"] == {"x": "y"}
    assert back["metadata"]["annotations"] == {"m": "n"}
    assert live["metadata"]["labels"] == {"x": "y"}


@pytest.mark.parametrize("automount", [True, None])
def test_automounting_is_disabled(automount: bool | None) -> None:
    changed = corrected({"metadata": {}, "automountServiceAccountToken": automount}, REQUEST)
    assert changed is not None
    assert changed["automountServiceAccountToken"] is False


@pytest.mark.parametrize("record", ["{", "5", "null"])
def test_an_unreadable_record_removes_no_label(record: str) -> None:
    live: JsonObject = {"metadata": {"labels": {"a": "b"}, "annotations": {names.LABELS: record}}}
    changed = corrected(live, REQUEST)
    assert changed is not None
    assert changed["metadata"]["labels"] == {"a": "b"}


# Writes


def b64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def live_secret(**data: bytes) -> JsonObject:
    return {
        "metadata": {"namespace": "ns", "name": "s", "resourceVersion": "7"},
        "data": {key.replace("_", "."): b64(value) for key, value in data.items()},
    }


def test_the_patch_of_the_source_has_its_resource_version() -> None:
    data = data_for("t", b"CA", None)
    assert source_patch(live_secret(), RENEWAL, data) == {
        "metadata": {
            "resourceVersion": "7",
            "annotations": {names.RENEW: "2026-03-01T12:00:00Z"},
        },
        "data": {"token": b64(b"t"), "bundle.crt": b64(b"CA")},
    }


def test_an_unrequested_ca_is_removed_only_if_present() -> None:
    data = data_for("t", None, None)
    assert source_patch(live_secret(), RENEWAL, data)["data"] == {"token": b64(b"t")}
    patch = source_patch(live_secret(bundle_crt=b"old"), RENEWAL, data)
    assert patch["data"] == {"token": b64(b"t"), "bundle.crt": None}


def test_credentials_moved_to_the_target_are_removed_from_the_source() -> None:
    source = live_secret(token=b"t", kubeconfig=b"k", bundle_crt=b"c", other=b"o")
    gone = {"token": None, "kubeconfig": None, "bundle.crt": None}
    assert source_patch(source, RENEWAL, None)["data"] == gone
    assert "data" not in source_patch(live_secret(other=b"o"), RENEWAL, None)


def test_the_target_keeps_its_other_data() -> None:
    data = data_for("t", None, None)
    new = target_secret(Key("ns", "s"), None, data)
    assert new["metadata"] == {"namespace": "ns", "name": "s"}
    assert new["data"] == {"token": b64(b"t")}
    live = live_secret(other=b"o", bundle_crt=b"c")
    changed = target_secret(Key("ns", "s"), live, data)
    assert changed["data"] == {"token": b64(b"t"), "other": b64(b"o")}
    assert changed["metadata"]["resourceVersion"] == "7"
    assert live["data"].keys() == {"other", "bundle.crt"}


def test_the_kubeconfig_of_the_source_takes_precedence_over_that_of_the_target() -> None:
    source, target = live_secret(kubeconfig=b"s"), live_secret(kubeconfig=b"t")
    assert kubeconfig_to_fill(source, target) == b"s"
    assert kubeconfig_to_fill(live_secret(), target) == b"t"
    assert kubeconfig_to_fill(live_secret(), None) is None
