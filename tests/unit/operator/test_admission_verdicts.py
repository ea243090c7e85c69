"""The verdicts of offline admission, compared with recorded ones of Gardener 1.150.

`recorded/admission.jsonl.xz` has one case per line: the new object, the stored one if it is an
update, other Extensions, and the errors (type and field) of Gardener's schemas, webhooks and
decoder. The cases are Gardener's own test table, public manifests, and every field of both kinds
with odd values.
"""

import json
import lzma
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from pergola.api.field_errors import Cause
from pergola.api.objects import JsonObject
from pergola.operator.webhooks.audit_policy import references_of
from pergola.operator.webhooks.offline import Stored, check_manifests

_RECORDED: Final = Path(__file__).parent / "recorded" / "admission.jsonl.xz"
_NOW: Final = datetime(2026, 6, 1, tzinfo=UTC)
_POLICY: Final = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None}]\n"


class Difference(NamedTuple):
    """A decided difference: why, and which errors of one side it explains.

    Attributes:
        field: The end of the field's path, as a regular expression.
        problem: A part of the error, or of the case's name if Gardener does not say more.
    """

    why: str
    field: str
    problem: str = ""


STRICTER: Final = (
    Difference(
        "a domain's provider without spec.dns has no records",
        r"domains\[\d+\]\.provider",
        "provider name not found",
    ),
    Difference("a cluster without a domain cannot be reached", r"\.domains", "at least one domain"),
    Difference("only networks can be blocked", r"\.blockCIDRs\[\d+\]", "invalid CIDR address"),
    Difference("running components never accept it", r"\.ipFamilies", "field is immutable"),
    Difference("running components never accept it", r"\.className", "field is immutable"),
    Difference(
        "no volume has a negative size", r"\.(minimumSize|capacity)", "greater than or equal to 0"
    ),
    Difference(
        "the backup would be removed with etcd.main", r"etcd\.main\.backup", "must not be deactiv"
    ),
    Difference(
        "nothing is sent without an audit policy", r"\.configMapRef", "auditWebhook has no effect"
    ),
    Difference(
        "no namespace can have this name",
        r"\.additionalTargetNamespaces\[\d+\]",
        "must be the name of a namespace",
    ),
    Difference(
        "nothing would be encrypted", r"\.encryptionConfig\.resources\[\d+\]", "no such resource"
    ),
    Difference("no host can have this name", r"\.sni\.domainPatterns\[\d+\]", "RFC 1123 subdomain"),
    Difference("no Secret can have this name", r"\.sni\.secretName", "RFC 1123 subdomain"),
    Difference("one of the two is lost", r"\.authorizerName", "Duplicate value"),
    Difference(
        "no selector has this operator", r"\.matchExpressions\[\d+\]\.operator", "must be one of"
    ),
    Difference(
        "Go writes a zero time as null, which no server stores",
        r"status\.lastOperation\.lastUpdateTime",
        "is required",
    ),
)
LAXER: Final = (
    Difference("keys of Secrets have dots and dashes", r"deployment\.extension\.\w*[vV]alues"),
    Difference("networks written without admission can be corrected", r"\.(nodes|pods|services).*"),
    Difference("defaulting sets the provider", r"\.encryptionConfig\.provider(\.type)?"),
    Difference("a stored object that violates its schema can be repaired", r"", " unset"),
)


class Case(NamedTuple):
    """A recorded case, with both verdicts."""

    name: str
    theirs: Sequence[tuple[str, str]]
    ours: Sequence[Cause]


@cache
def _cases() -> tuple[Case, ...]:
    with lzma.open(_RECORDED, "rt") as lines:
        return tuple(_judged(json.loads(line)) for line in lines)


def _judged(row: JsonObject) -> Case:
    new, old = row["new"], row.get("old")
    if old is not None and new.get("status"):
        old = {**old, "status": new["status"]}  # the server keeps the stored status
    stored = [*_extensions(row), *_policies(new)] + ([old] if old else [])
    checked = check_manifests([new], Stored(stored, is_complete=True), _NOW)
    causes = [cause for each in checked for cause in each.causes]
    return Case(row["case"], [(type_, field) for type_, field in row["errors"]], causes)


def _extensions(row: JsonObject) -> Iterator[JsonObject]:
    for index, extension in enumerate(row.get("extensions", ())):
        yield {**extension, "metadata": {"name": f"other-{index}"}}


def _policies(garden: JsonObject) -> Iterator[JsonObject]:
    for name in references_of(garden).values() if garden["kind"] == "Garden" else ():
        yield {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "garden"},
            "data": {"policy": _POLICY},
        }


def _explanation(differences: Sequence[Difference], field: str, problem: str) -> Difference | None:
    for difference in differences:
        pattern = rf".*{difference.field}" if difference.field else ""
        if re.fullmatch(pattern, field) and difference.problem in problem:
            return difference
    return None


def _differing() -> Iterator[tuple[Case, Sequence[Difference | None]]]:
    for case in _cases():
        if case.ours and not case.theirs:
            yield case, [_explanation(STRICTER, c.field, str(c)) for c in case.ours]
        elif case.theirs and not case.ours:
            yield case, [_explanation(LAXER, field, case.name) for _, field in case.theirs]


def test_admission_offline_decides_as_gardener_does_except_on_purpose() -> None:
    unexplained = [
        f"{case.name}: theirs {case.theirs}, ours {[*map(str, case.ours)]}"
        for case, explanations in _differing()
        if None in explanations
    ]

    assert len(_cases()) == 3750
    assert unexplained == []


@pytest.mark.parametrize("difference", [*STRICTER, *LAXER], ids=str)
def test_each_decided_difference_occurs(difference: Difference) -> None:
    occurring = Counter(each for _, explanations in _differing() for each in explanations)

    assert occurring[difference] > 0
