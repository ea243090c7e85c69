"""Tokens of ServiceAccounts in Secrets: when a new one is issued, and where it is stored."""

import asyncio
import base64
import random
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Final, cast

import orjson
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.clusters import Cluster
from conformance.comparison import Difference, differences
from conformance.oracles import GARDENER, Answer, OracleModule
from conformance.strategies.kubernetes import some
from pergola.api.kinds import SECRET
from pergola.api.objects import (
    JsonObject,
    JsonValue,
    Key,
    annotations_of,
    labels_of,
    without_empty,
)
from pergola.kube.errors import Invalid, KubeError
from pergola.kube.yaml import dump, parse
from pergola.resource_manager.controllers.token_requestor import names
from pergola.resource_manager.controllers.token_requestor.controller import TokenRequestor
from pergola.resource_manager.controllers.token_requestor.inputs import Settings
from pergola.runtime.clock import FakeClock
from pergola.runtime.controlling.controller import Again, ReconcileError
from pergola.runtime.controlling.events import Recorder
from pergola.runtime.metrics import Metrics

_NOW: Final = datetime(2026, 1, 1, 12, tzinfo=UTC)
_KEY: Final = Key("shoot--a--b", "shoot-access-a")
_CA: Final = b"-----CA-----"
_UID: Final = "7"
_RENEWALS: Final = (
    *("2026-01-01T13:00:00Z", "2026-01-01T12:00:00Z", "2026-01-01T11:00:00Z"),
    *("2026-01-01T14:30:00+01:00", "2026-01-01T13:00:00.5Z", "", "tomorrow", "2026-01-01"),
)
_AUDIENCES: Final = ("gardener",)


def _jwt(hours: int, uid: str) -> str:
    """Return a token of the ServiceAccount that expires some hours from now."""
    expires = (_NOW + timedelta(hours=hours)).timestamp()
    account = {"namespace": "kube-system", "serviceaccount": {"name": "a", "uid": uid}}
    claims = {"iat": expires - 100000, "exp": expires, "kubernetes.io": account}
    parts = (b"{}", orjson.dumps(claims), b"x")
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)


_GOOD: Final = (_jwt(20, _UID), "opaque")
_BAD: Final = (_jwt(-1, _UID), _jwt(20, "8"))
"""Tokens that no API server accepts: expired, or of a ServiceAccount with another uid."""
_TOKENS: Final = st.sampled_from(["", *_GOOD, *_GOOD, *_BAD])


def _encoded(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _kubeconfig(parts: JsonObject) -> str:
    cluster = {"server": "https://example.com"}
    if ca := parts.get("ca"):
        cluster["certificate-authority-data"] = _encoded(ca.encode())
    user = {"token": parts["token"]} if parts.get("token") else {}
    users = [{"name": "other", "user": {"token": "x"}}, {"name": parts["user"], "user": user}]
    config: JsonObject = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": parts["current"],
        "contexts": [
            {"name": "c", "context": {"cluster": parts["cluster"], "user": "u"}},
            {"name": "d", "context": {"cluster": "k", "user": "other"}},
        ],
        "clusters": [{"name": "k", "cluster": cluster}],
        "users": users,
    }
    text = orjson.dumps(config).decode() if parts["json"] else dump(config)
    return _encoded(text.encode())


_CAS: Final = st.sampled_from([_CA.decode(), "other"])
_MOSTLY: Final = 6
_KUBECONFIGS: Final = some(
    {"ca": _CAS},
    {
        "token": _TOKENS,
        "current": st.sampled_from(["c"] * _MOSTLY + ["d", "missing"]),
        "user": st.sampled_from(["u"] * _MOSTLY + ["v"]),
        "cluster": st.sampled_from(["k"] * _MOSTLY + ["missing"]),
        "json": st.booleans(),
    },
).map(_kubeconfig)
_PLAIN: Final = some(
    {
        names.KEY_TOKEN: _TOKENS.map(lambda token: _encoded(token.encode())),
        names.KEY_CA: _CAS.map(lambda ca: _encoded(ca.encode())),
        "other": st.just("eA=="),
    }
)
_DATA: Final = st.one_of(
    _PLAIN,
    _PLAIN,
    st.builds(lambda data, config: {**data, names.KEY_KUBECONFIG: config}, _PLAIN, _KUBECONFIGS),
    st.just({names.KEY_KUBECONFIG: _encoded(b"[]")}),
)
_TARGETS: Final = some(
    {names.TARGET_NAME: st.sampled_from(["t", "t", ""]), names.TARGET_NAMESPACE: st.just("n")}
)
_MISTAKES: Final = ("a", '{"a":1}', "[]", "9m59s", "0", "1d", "-1h", "h")
_ANNOTATIONS: Final = some(
    {
        names.LABELS: st.sampled_from(
            ['{"a":"b"}', '{"a":"b","c":"d"}', "{}", "null", "", *_MISTAKES[:3]]
        ),
        names.EXPIRATION: st.sampled_from(
            ["12h", "24h", "10m", "1h30m", "100h", "10m0.5s", *_MISTAKES[3:]]
        ),
        names.INJECT_CA: st.sampled_from(["true", "1", "T", "false", "yes", ""]),
        names.RENEW: st.sampled_from(_RENEWALS),
        "other": st.just("x"),
    },
    {names.NAME: st.just("a"), names.NAMESPACE: st.just("kube-system")},
)


def _secret(
    annotations: JsonObject, target: JsonObject, labels: JsonObject, data: JsonObject
) -> JsonObject:
    is_moved = target.get(names.TARGET_NAME) and target.get(names.TARGET_NAMESPACE)
    if is_moved and (annotations.get(names.RENEW) or names.KEY_KUBECONFIG in data):
        # Pergola moves credentials, even a kubeconfig, that the target Secret should have.
        data = {k: v for k, v in data.items() if k not in (names.KEY_TOKEN, names.KEY_KUBECONFIG)}
    if annotations.get(names.RENEW):
        # Pergola reports mistakes at once, not only when a new token is due.
        annotations = {
            name: value
            for name, value in annotations.items()
            if name not in (names.LABELS, names.EXPIRATION) or value not in _MISTAKES
        }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": _KEY.name,
            "namespace": _KEY.namespace,
            "labels": labels,
            "annotations": {**annotations, **target},
        },
        "data": data,
    }


def _account(labels: JsonObject | None, automount: bool | None) -> JsonObject:
    """Return a ServiceAccount with the labels that it got from the Secret before."""
    metadata: JsonObject = {"name": "a", "namespace": "kube-system", "uid": _UID}
    if labels:
        metadata["labels"] = labels
        metadata["annotations"] = {names.LABELS: orjson.dumps(labels).decode()}
    found = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
    return found if automount is None else {**found, "automountServiceAccountToken": automount}


_LABELS: Final = st.fixed_dictionaries(
    {
        names.CLASS: st.sampled_from(["shoot"] * _MOSTLY + ["garden", ""]),
        names.PURPOSE: st.sampled_from([names.PURPOSE_TOKEN_REQUESTOR] * _MOSTLY + ["other"]),
    }
)
_ACCOUNTS: Final = st.builds(
    _account,
    st.sampled_from([None, {"a": "b"}, {"a": "x"}, {"e": "f"}]),
    st.sampled_from([None, True, False]),
)


def _question(
    secret: JsonObject,
    account: JsonObject | None,
    target: JsonObject | None,
    other: JsonObject,
) -> JsonObject:
    found = [] if account is None else [account]
    if target is not None:
        metadata = {"name": "t", "namespace": "n"}
        found.append({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": target})
    # An account that does not exist has no valid tokens.
    texts = orjson.dumps([secret, target]).decode()
    is_bad = account is None or any(_encoded(bad.encode()) in texts for bad in _BAD)
    accepted = other["accepted"] and not is_bad and not _has_bad_kubeconfig(secret, target)
    return {**other, "accepted": accepted, "secret": secret, "target": found}


def _has_bad_kubeconfig(secret: JsonObject, target: JsonObject | None) -> bool:
    for data in (secret["data"], target or {}):
        text = base64.b64decode(data.get(names.KEY_KUBECONFIG, "")).decode()
        if any(bad in text for bad in _BAD):
            return True
    return False


class TokenRequests:
    """One Secret, handled once.

    If it cannot be handled, Pergola finds that out before it writes anything; only the Secrets are
    compared then, not the ServiceAccount. What it notes on ServiceAccounts is not compared.
    """

    name = "token-requests"
    ask = "token-requests"
    title = "Tokens in Secrets"
    of: OracleModule = GARDENER
    code = ("pergola.resource_manager.controllers.token_requestor",)

    def table(self) -> Iterator[JsonObject]:
        """Yield nothing: random questions say it all."""
        yield from ()

    def questions(self) -> SearchStrategy[JsonObject]:
        """Return Secrets with credentials, and the objects that they name in the target cluster."""
        other = some(
            {"namespace": st.just("kube-system")},
            {
                "ca": st.just(_encoded(_CA)),
                "accepted": st.sampled_from([True, True, True, False]),
                "class": st.sampled_from(["shoot"] * _MOSTLY + ["garden", None, None]),
                "longest": st.sampled_from([10**6, 3600]),
                "now": st.just(_NOW.isoformat()),
            },
        )
        secret = st.builds(_secret, _ANNOTATIONS, _TARGETS, _LABELS, _DATA)
        return st.builds(_question, secret, st.none() | _ACCOUNTS, st.none() | _DATA, other)

    def meaning(self, answer: Answer) -> JsonValue:
        """Return the content of both clusters, and when the Secret is handled again."""
        return _meaning(answer.output)

    def compare(self, question: JsonObject, answer: Answer) -> Iterable[Difference]:
        """Compare the clusters and the time of the renewal."""
        return differences(_meaning(answer.output), _meaning(asyncio.run(_handled(question))))


def _meaning(answer: JsonObject) -> JsonObject:
    secrets = {
        name: [_content(secret) for secret in answer.get(name, ())]
        for name in ("secrets", "targets")
    }
    if answer.get("failed"):
        return {"failed": True, **secrets}
    accounts = [
        {
            "labels": labels_of(account),
            "automount": account.get("automountServiceAccountToken"),
        }
        for account in answer.get("accounts", ())
    ]
    again = {key: answer.get(key) for key in ("again", "requested")}
    found: JsonObject = without_empty({"accounts": accounts, **secrets})
    return found | again


def _content(secret: JsonObject) -> JsonValue:
    data = {**(secret.get("data") or {})}
    if config := data.pop(names.KEY_KUBECONFIG, None):
        data["config"] = parse(base64.b64decode(config))
    found: JsonValue = without_empty({"annotations": annotations_of(secret), "data": data})
    return found


class _Reports:
    """Counts the warnings about the Secret."""

    def __init__(self) -> None:
        self.count = 0

    def warning(self, *_: object) -> None:
        self.count += 1


class _Unspread(random.Random):
    """No spread, as the original is asked without jitter."""

    def random(self) -> float:
        return 0.0


async def _handled(question: JsonObject) -> JsonObject:
    home, requested = Cluster([question["secret"]], uids="home-"), []

    def issue(body: JsonObject) -> JsonObject:
        seconds = body["spec"]["expirationSeconds"]
        if not 600 <= seconds <= 2**32:
            raise Invalid(422, {"reason": "Invalid", "message": "expirationSeconds"})
        requested.append(seconds)
        expires = _NOW + timedelta(seconds=min(seconds, question["longest"]))
        return {"status": {"token": "issued", "expirationTimestamp": expires.isoformat()}}

    user = "system:serviceaccount:kube-system:a"
    status = {"authenticated": question["accepted"], "user": {"username": user}}
    answers = {"token": issue, "TokenReview": lambda _: {"status": status}}
    cluster = Cluster(question["target"], answers=answers)
    resource_class = question["class"] or names.ALL_CLASSES
    settings = Settings(
        resource_class=resource_class,
        audiences=_AUDIENCES,
        fixed_namespace=question.get("namespace", ""),
        ca_bundle=base64.b64decode(question["ca"]),
    )
    requestor = TokenRequestor(
        home.client, cluster.client, settings, Metrics(), FakeClock(_NOW), _Unspread()
    )
    reports = _Reports()
    requestor.recorder = cast("Recorder", reports)
    again, why = 0.0, ""
    secret = await home.get(SECRET, _KEY)
    if names.is_relevant(labels_of(secret), resource_class):  # as the selector of the watch
        requestor.secrets.observe(secret)
        try:
            outcome = await requestor.reconcile(_KEY)
            again = outcome.seconds if isinstance(outcome, Again) else 0.0
        except (KubeError, ReconcileError) as error:
            why = str(error)
    by_kind: dict[str, list[JsonObject]] = {"Secret": [], "ServiceAccount": []}
    for document in cluster.documents:
        by_kind[document["kind"]].append(document)
    return {
        "failed": reports.count > 0,
        "why": why,
        "again": again,
        "requested": requested,
        "secrets": home.documents,
        "targets": by_kind["Secret"],
        "accounts": by_kind["ServiceAccount"],
    }
