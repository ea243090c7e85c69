"""Histories of credentials: what is generated in several runs, and what happens in between."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.strategies.kubernetes import some
from pergola.api.objects import JsonObject
from pergola.secrets_manager.managed import (
    BUNDLE_FOR,
    CA_CHECKSUM,
    IDENTITY,
    INITIATED,
    ISSUED_AT,
    MANAGED_BY,
    MANAGER,
    NAME,
    PERSIST,
    RENEW_AT,
    VALID_UNTIL,
)

_BEGIN: Final = datetime(2026, 1, 1, 12, tzinfo=UTC)
_DAY: Final = 86400
_GAPS: Final = st.sampled_from([0.1, 1, 2, 11, 15, 21, 25, 29, 31, 300, 640, 2950, 3700])
"""Days between two runs."""
_MONTH: Final = 30 * _DAY
_VALIDITIES: Final = st.sampled_from([_MONTH, _MONTH, 730 * _DAY])
_AUTHORITIES: Final = ("ca", "ca-client")
_NAMES: Final = (*_AUTHORITIES, "server", "client", "both", "user", "key", "encryption")
_OTHERS: Final = ("password", "tokens", "kubeconfig")
_ROTATED: Final = st.sampled_from([*_NAMES, *_OTHERS])
_BUNDLES: Final = ("ca-bundle", "key-bundle")
_ALL: Final = (*_NAMES, *_OTHERS, *_BUNDLES)
_MOVED: Final = (*_AUTHORITIES, "key", "encryption")
"""What users give to a new manager: these have no hosts, users or signer that data must fit."""
_MOSTLY: Final = 5
_LABELS: Final = some(
    {
        "gardener.cloud/role": st.sampled_from(["a", "b"]),
        PERSIST: st.just("false"),
        NAME: st.just("other"),
    }
)

_STORED: Final[Mapping[str, SearchStrategy[Any]]] = {
    "persist": st.booleans(),
    "keepOld": st.sampled_from([True, True, False]),
    "ignoreOld": st.sampled_from([False] * _MOSTLY + [True]),
    "labels": st.one_of(st.just({}), st.just({}), _LABELS),
}
_RENEWED: Final[Mapping[str, SearchStrategy[Any]]] = {
    "ignoreOldAfter": st.sampled_from([_DAY, _DAY, 20 * _DAY]),
    "renewAt": st.sampled_from([50, 90, 100]),
}
_PLAIN: Final[Mapping[str, Mapping[str, SearchStrategy[Any]]]] = {
    "key": {},
    "encryption": {"provider": st.sampled_from(["", "", "aesgcm"])},
    "password": {
        "username": st.sampled_from(["admin", "admin", "root"]),
        "length": st.sampled_from([32, 32, 16]),
    },
    "tokens": {
        "users": st.sampled_from(
            [
                [{"name": "health-check", "groups": []}],
                [{"name": "health-check", "groups": []}],
                [{"name": "health-check", "groups": ["a"]}, {"name": "b", "groups": ["c", "d"]}],
            ]
        )
    },
    "kubeconfig": {"host": st.sampled_from(["a.example.com", "a.example.com", "10.0.0.1"])},
}
_ISSUED: Final[Mapping[str, SearchStrategy[Any]]] = {
    "commonName": st.sampled_from(["a", "a", "system:b"]),
    "organizations": st.sampled_from([[], [], ["o"], ["o", "p"]]),
    "hosts": st.sampled_from([["a", "b.c"], ["a", "b.c"], ["a", "10.0.0.1", "::1"]]),
    "unpublished": st.booleans(),
    "signedBy": st.sampled_from(["ca", "ca", "ca-client"]),
}
_CLASSES: Final = {"use": st.sampled_from(["current", "old"])}


def _authority(name: str) -> SearchStrategy[JsonObject]:
    return some(_RENEWED, {**_STORED, "kind": st.just("authority"), "name": st.just(name)})


def _certificate(name: str, **uses: bool) -> SearchStrategy[JsonObject]:
    """Return certificates for a server, a client, or both."""
    fixed = {"kind": st.just("certificate"), "name": st.just(name)}
    purposes = {use: st.just(value) for use, value in uses.items()}
    return some({**_RENEWED, **_CLASSES}, {**_STORED, **_ISSUED, **purposes, **fixed})


def _credential(name: str) -> SearchStrategy[JsonObject]:
    """Return the credentials of a name, which always has the same kind."""
    match name:
        case "ca" | "ca-client":
            return _authority(name)
        case "server" | "client" | "both":
            is_server, is_client = name != "client", name != "server"
            return _certificate(name, server=is_server, client=is_client)
        case "user":
            host = {"host": st.sampled_from(["a.example.com", "a.example.com", "b.example.com"])}
            fixed = {"kind": st.just("client"), "name": st.just(name), "hosts": st.just([])}
            # A kubeconfig always contains the authority, whatever the original's field says.
            published = {"unpublished": st.just(value=False)}
            of_user = {**_STORED, **_ISSUED, **published, **host, **fixed}
            return some({**_RENEWED, **_CLASSES}, of_user)
    fixed = {"kind": st.just(name), "name": st.just(name)}
    return some(_RENEWED, {**_STORED, **_PLAIN[name], **fixed})


_CREDENTIALS: Final = {name: _credential(name) for name in (*_NAMES, *_OTHERS)}
_ORDER: Final = [*_CREDENTIALS]
_SEVERAL: Final = st.lists(
    # Passwords are rare, because they take long to hash.
    st.sampled_from([*_NAMES * 3, *_AUTHORITIES * 3, *_OTHERS, *_OTHERS[1:]]),
    min_size=1,
    max_size=4,
    unique=True,
)


@st.composite
def _limits(draw: st.DrawFn) -> JsonObject:
    """Return a validity for each of some names. Only those of authorities never change."""
    return {name: draw(_VALIDITIES) for name in _ORDER if draw(st.booleans())}


@st.composite
def _steps(draw: st.DrawFn, names: list[str], limits: JsonObject) -> list[JsonObject]:
    steps = [draw(_CREDENTIALS[name]) for name in sorted(names, key=_ORDER.index)]
    for step in steps:
        name = step["name"]
        if name in limits:
            step["validity"] = limits[name] if name in _AUTHORITIES else draw(_VALIDITIES)
        if name in _AUTHORITIES and limits.get(name) == _MONTH:
            step["ignoreOldAfter"] = _DAY  # or it would sign after it has expired
    return steps


_KEYS: Final = st.sampled_from(
    [
        *(CA_CHECKSUM, INITIATED, ISSUED_AT, VALID_UNTIL, RENEW_AT, PERSIST),
        *(BUNDLE_FOR, NAME, MANAGED_BY, IDENTITY, "other"),
    ]
)
_VALUES: Final = {
    NAME: st.sampled_from(["other", None]),
    MANAGED_BY: st.just("other"),
    IDENTITY: st.sampled_from(["other", None]),
    ISSUED_AT: st.sampled_from(["1767000000", None, ""]),
    VALID_UNTIL: st.sampled_from(["1900000000", None, ""]),
    RENEW_AT: st.sampled_from(["50", "0", None, ""]),
    INITIATED: st.sampled_from(["1767000000", "", None]),
}
_TEXTS: Final = st.sampled_from(["x", "true", "", None])


@st.composite
def _edit(draw: st.DrawFn) -> JsonObject:
    edit: JsonObject = {
        "edit": draw(st.sampled_from(["delete", "release", "move", "label", "label"])),
        "of": draw(st.sampled_from(_ALL)),
        "which": draw(st.sampled_from(["newest", "newest", "oldest"])),
    }
    if edit["edit"] == "move":
        edit["of"] = draw(st.sampled_from(_MOVED))
        edit["copies"] = draw(st.sampled_from([1, 1, 2]))
    if edit["edit"] == "label":
        edit["key"] = draw(_KEYS)
        if edit["key"] == BUNDLE_FOR:
            edit["of"] = draw(st.sampled_from(_BUNDLES))
        edit["value"] = draw(_VALUES.get(edit["key"], _TEXTS))
    return edit


def _secret(number: int, parts: JsonObject) -> JsonObject:
    """Return a Secret that the manager did not create."""
    metadata = {
        "name": f"foreign-{number}",
        "namespace": parts["namespace"],
        "labels": {NAME: parts["of"], MANAGED_BY: MANAGER, IDENTITY: parts["identity"]},
        "creationTimestamp": "2025-12-01T00:00:00Z",
    }
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"a": "eA=="}}


_FOREIGN: Final = st.lists(
    st.fixed_dictionaries(
        {
            "namespace": st.sampled_from(["garden", "other"]),
            "of": st.sampled_from(_ALL),
            "identity": st.sampled_from(["other", ""]),
        }
    ),
    max_size=2,
).map(lambda found: [_secret(number, parts) for number, parts in enumerate(found)])


@st.composite
def histories(draw: st.DrawFn) -> JsonObject:
    """Return runs with Secrets that others created, and edits between the runs."""
    names, limits, now = draw(_SEVERAL), draw(_limits()), _BEGIN
    runs: list[JsonObject] = []
    for number in range(draw(st.sampled_from([1, 2, 2, 3, 3]))):
        initiated = st.dictionaries(_ROTATED, st.sampled_from([_BEGIN, now]))
        times = {name: f"{time:%Y-%m-%dT%H:%M:%SZ}" for name, time in draw(initiated).items()}
        fewer = draw(st.sampled_from([names] * _MOSTLY + [names[:-1]]))
        runs.append(
            {
                "now": f"{now:%Y-%m-%dT%H:%M:%SZ}",
                "edits": draw(st.lists(_edit(), max_size=2)) if number else [],
                "initiated": times if draw(st.booleans()) else {},
                "generate": draw(_steps(fewer, limits)),
                "cleanup": draw(st.sampled_from([True, True, False])),
            }
        )
        now += timedelta(days=draw(_GAPS))
    return {"secrets": draw(_FOREIGN), "runs": runs}
