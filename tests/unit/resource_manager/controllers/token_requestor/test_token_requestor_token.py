"""The claims of a JWT, and the kubeconfig and Secret around it (spec 11 §1.4 and §1.5)."""

import base64
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.api.objects import JsonObject, Key
from pergola.kube.yaml import dump, parse
from pergola.resource_manager.controllers.token_requestor import names
from pergola.resource_manager.controllers.token_requestor.kubeconfig import (
    KubeconfigError,
    credentials_in,
    with_credentials,
)
from pergola.resource_manager.controllers.token_requestor.observe import (
    digest_of,
    facts_of,
    holding_of,
    observe,
    token_of,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def jwt(claims: Any) -> bytes:
    body = base64.urlsafe_b64encode(orjson.dumps(claims)).rstrip(b"=")
    return b"e30." + body + b".c2lnbmF0dXJl"


CLAIMS = {
    "iat": int(NOW.timestamp()),
    "exp": int((NOW + timedelta(hours=10)).timestamp()),
    "kubernetes.io": {
        "namespace": "kube-system",
        "serviceaccount": {"name": "robot", "uid": "u-1"},
    },
}


# Tokens


def test_a_token_names_its_service_account_and_lifetime() -> None:
    facts = facts_of(jwt(CLAIMS))
    assert facts is not None
    assert facts.digest == digest_of(jwt(CLAIMS))
    assert facts.account_uid == "u-1"
    assert facts.issued == NOW
    assert facts.expires == NOW + timedelta(hours=10)


@pytest.mark.parametrize("token", [b"", b" \n"])
def test_an_empty_token_has_no_facts(token: bytes) -> None:
    assert facts_of(token) is None


@pytest.mark.parametrize(
    "token",
    [
        b"opaque",
        b"a.b.c",
        b"a." + base64.urlsafe_b64encode(b"no json") + b".c",
        jwt([1]),
        jwt({"exp": "soon", "iat": True, "kubernetes.io": "x"}),
        jwt({"exp": 1e300, "kubernetes.io": {"namespace": 1, "serviceaccount": {"uid": "u"}}}),
    ],
)
def test_an_opaque_token_has_only_a_digest(token: bytes) -> None:
    facts = facts_of(token)
    assert facts is not None
    assert facts.digest == digest_of(token)
    assert (facts.issued, facts.expires, facts.account_uid) == (None, None, "")


@given(st.binary(max_size=80))
def test_any_content_is_read_without_an_error(content: bytes) -> None:
    for token in (content, b"a." + base64.urlsafe_b64encode(content) + b".b"):
        facts = facts_of(token)
        assert facts is None or facts.digest == digest_of(token)
    holding_of(secret(kubeconfig=content))


@pytest.mark.parametrize(
    ("hours", "share", "expired"),
    [(-1, 1.0, False), (0, 1.0, False), (9, 0.1, False), (10, 0.0, True), (99, 0.0, True)],
)
def test_the_remaining_lifetime_is_read_from_the_token(
    hours: int, share: float, expired: bool
) -> None:
    facts = facts_of(jwt(CLAIMS))
    assert facts is not None
    now = NOW + timedelta(hours=hours)
    assert facts.remaining_share(now) == pytest.approx(share)
    assert facts.has_expired(now) is expired


# Kubeconfigs


def config(**changes: Any) -> JsonObject:
    return {
        "current-context": "main",
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://a.example"}}],
        "users": [{"name": "other", "user": {"token": "o"}}, {"name": "u", "user": None}],
        **changes,
    }


def raw(**changes: Any) -> bytes:
    return dump(config(**changes)).encode()


def test_a_token_is_set_for_the_user_of_the_current_context() -> None:
    filled = with_credentials(raw(), "new", b"CA")
    assert credentials_in(filled)[:2] == (b"new", b"CA")
    assert parse(filled) == config(
        apiVersion="v1",
        kind="Config",
        clusters=[
            {
                "name": "c",
                "cluster": {
                    "server": "https://a.example",
                    "certificate-authority-data": base64.b64encode(b"CA").decode(),
                },
            }
        ],
        users=[{"name": "other", "user": {"token": "o"}}, {"name": "u", "user": {"token": "new"}}],
    )


def test_without_a_ca_the_cluster_is_neither_needed_nor_changed() -> None:
    filled = parse(with_credentials(raw(clusters=[]), "new", None))
    assert isinstance(filled, dict)
    assert filled["clusters"] == []


def test_json_is_read_and_sorted_yaml_is_written() -> None:
    filled = with_credentials(orjson.dumps(config()), "new", None)
    lines = [line for line in filled.decode().splitlines() if line[0].isalpha()]
    assert lines == sorted(lines)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"a: [", "is neither YAML nor JSON: .+"),
        (b"", "is not a kubeconfig: it must be a map"),
        (b"--- {}\n--- {}", "is neither YAML nor JSON: .+"),
        (raw(kind="Pod"), "is not a kubeconfig: its kind is not Config"),
        (raw(apiVersion="v2"), "is not a kubeconfig: its apiVersion is not v1"),
        (raw(contexts="x"), "did not find context defined in current context"),
        (raw(**{"current-context": None}), "did not find context defined in current context"),
        (raw(users=[]), 'did not find authInfo of current context named "u"'),
        (raw(users=[{"name": "u", "user": "x"}]), 'did not find authInfo .* named "u"'),
    ],
)
def test_an_unusable_kubeconfig_is_refused(content: bytes, problem: str) -> None:
    with pytest.raises(KubeconfigError, match=problem):
        credentials_in(content)
    with pytest.raises(KubeconfigError, match=problem):
        with_credentials(content, "new", None)


def test_a_ca_needs_a_cluster() -> None:
    with pytest.raises(KubeconfigError, match=r'did not find cluster .* named "c"'):
        with_credentials(raw(clusters=[]), "new", b"CA")
    assert "did not find cluster" in (credentials_in(raw(clusters=[])).cluster_problem or "")


def test_an_error_does_not_quote_the_content() -> None:
    with pytest.raises(KubeconfigError) as error:
        credentials_in(b"users: [{token: s3cr3t, s3cr3t: [")
    assert "s3cr3t" not in str(error.value)


# Secrets


def secret(**data: bytes) -> JsonObject:
    return {
        "metadata": {
            "namespace": "garden",
            "name": "access",
            "uid": "u",
            "resourceVersion": "7",
            "labels": {names.CLASS: "shoot"},
            "annotations": {names.NAME: "robot", "somebody": "else"},
        },
        "data": {
            key.replace("bundle_crt", "bundle.crt"): base64.b64encode(value).decode()
            for key, value in data.items()
        },
    }


def test_the_token_of_a_secret_is_not_cached() -> None:
    seen = observe(secret(token=jwt(CLAIMS), bundle_crt=b"CA", other=b"x"))
    assert seen.key == Key("garden", "access")
    assert seen.annotations == {names.NAME: "robot"}
    assert seen.holding.keys == {"token"}
    assert seen.holding.ca == digest_of(b"CA")
    assert jwt(CLAIMS).decode() not in repr(seen)


def test_the_token_and_ca_of_a_kubeconfig_are_effective() -> None:
    filled = with_credentials(raw(), "inside", b"inner CA")
    both = secret(token=b"beside", bundle_crt=b"outer CA", kubeconfig=filled)
    holding = holding_of(both)
    assert token_of(both) == b"inside"
    assert holding.token is not None
    assert holding.token.digest == digest_of(b"inside")
    assert holding.ca == digest_of(b"inner CA")
    assert holding.keys == {"token", "kubeconfig"}


def test_a_malformed_kubeconfig_is_a_problem_but_a_missing_token_is_not() -> None:
    assert holding_of(secret(kubeconfig=raw())).token is None
    assert holding_of(secret(kubeconfig=raw())).problem is None
    assert holding_of(secret(kubeconfig=b"[]")).problem is not None
    assert token_of(secret(kubeconfig=b"[]")) == b""


@pytest.mark.parametrize("data", [None, {"token": 5}, {"token": "%%%"}, {"token": ""}])
def test_empty_data_has_no_token(data: JsonObject | None) -> None:
    assert holding_of({"data": data}).token is None
