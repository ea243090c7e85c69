"""Credentials for AWS in the garden: Secrets with keys, and WorkloadIdentities (spec 31 §8).

Findings never contain a value of a Secret.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from pergola.api.field_errors import Cause, forbidden, required
from pergola.api.objects import JsonObject, JsonValue, map_at
from pergola.api.schema.read import Malformed
from pergola.api.schema.validate import REQUIRED
from pergola.cloud.aws.identity import decoded
from pergola.cloud.errors import CredentialsInvalid
from pergola.extensions.provider_config import read_strict
from pergola.providers.aws.validation.identifiers import check_text
from pergola.providers.aws.validation.written import malformed
from pergola.providers.aws.workload_identity import (
    WORKLOAD_IDENTITY_CONFIG,
    WorkloadIdentityConfig,
)

CONFIG: Final = "spec.targetSystem.providerConfig"
_DATA: Final = "secret.data"
_KEY_ID: Final = ("accessKeyID", "AWS_ACCESS_KEY_ID")
_SECRET_KEY: Final = ("secretAccessKey", "AWS_SECRET_ACCESS_KEY")
_REGION: Final = ("region", "AWS_REGION")
"""The names of a key: of Gardener, and of DNS providers."""
_KEY_ID_FORM: Final = re.compile("[A-Z0-9]+")
_KEY_ID_LENGTH: Final = 20
_SECRET_KEY_FORM: Final = re.compile("[A-Za-z0-9/+=]+")
_SECRET_KEY_LENGTH: Final = 40
_REGION_FORM: Final = re.compile(r"[a-z-]+-\d+", re.ASCII)
_LONGEST_REGION: Final = 32
_ROLE: Final = re.compile(
    r"arn:aws[a-z0-9-]*:iam::\d{12}:role(/[\w+=,.@-]+)*/[\w+=,.@-]+", re.ASCII
)


def check_secret(secret: JsonObject) -> Iterator[Cause]:
    """Yield all findings about a Secret, or an InternalSecret, with an access key."""
    try:
        data = decoded(secret, "the Secret")
    except CredentialsInvalid as error:
        yield _hidden(_DATA, str(error))
        return
    for ours, dns in (_KEY_ID, _SECRET_KEY, _REGION):
        if ours in data and dns in data:
            yield _hidden(_DATA, f"must not have both {ours} and {dns}")
    for name in sorted(data.keys() - {*_KEY_ID, *_SECRET_KEY, *_REGION}):
        detail = "the Secret must have nothing but an access key and its region"
        yield forbidden(f"{_DATA}[{name}]", detail)
    yield from _key(data, _KEY_ID, _KEY_ID_FORM, _KEY_ID_LENGTH)
    yield from _key(data, _SECRET_KEY, _SECRET_KEY_FORM, _SECRET_KEY_LENGTH)
    yield from _region(data)


def check_workload_identity(identity: JsonObject) -> Iterator[Cause]:
    """Yield all findings about the config of a WorkloadIdentity."""
    value = map_at(identity, "spec", "targetSystem").get("providerConfig")
    if value is None:
        yield required(CONFIG, "name the role in AWS in a WorkloadIdentityConfig")
        return
    try:
        config = _config_of(value)
    except Malformed as error:
        yield from malformed(error)
        return
    yield from check_text(f"{CONFIG}.roleARN", config.role_arn, _ROLE, longest=len(config.role_arn))


def check_stored_identity(identity: JsonObject) -> Iterator[Cause]:
    """Yield a finding if the config of a stored WorkloadIdentity is something else.

    A role that is missing there does not prevent users from setting one.
    """
    try:
        _config_of(map_at(identity, "spec", "targetSystem").get("providerConfig"))
    except Malformed as error:
        if all(finding.problem == REQUIRED for finding in error.findings):
            return
        detail = f"the stored config cannot be read ({error}): create another WorkloadIdentity"
        yield Cause("FieldValueInvalid", f"Invalid value: {detail}", CONFIG)


def _config_of(value: JsonValue) -> WorkloadIdentityConfig:
    gvk = WORKLOAD_IDENTITY_CONFIG
    return read_strict(WorkloadIdentityConfig, value, gvk, path=CONFIG, needs_type=True)


def _key(
    data: Mapping[str, bytes], names: tuple[str, str], form: re.Pattern[str], length: int
) -> Iterator[Cause]:
    name, text = _chosen(data, names)
    path = f"{_DATA}[{name}]"
    if not text:
        yield required(path, "access to AWS needs it")
        return
    if not form.fullmatch(text):
        yield _hidden(path, f"does not match ^{form.pattern}$")
    if len(text) != length:
        yield _hidden(path, f"must have {length} characters, not {len(text)}")


def _region(data: Mapping[str, bytes]) -> Iterator[Cause]:
    """Check the region, whose value may be a key by mistake."""
    name, text = _chosen(data, _REGION)
    path = f"{_DATA}[{name}]"
    if text and not _REGION_FORM.fullmatch(text):
        yield _hidden(path, f"does not match ^{_REGION_FORM.pattern}$")
    if len(text) > _LONGEST_REGION:
        yield _hidden(path, f"must have at most {_LONGEST_REGION} characters")


def _chosen(data: Mapping[str, bytes], names: tuple[str, str]) -> tuple[str, str]:
    """Return the name and the value of a key; the name for DNS wins."""
    ours, dns = names
    name = dns if dns in data else ours
    # A byte that is not UTF-8 counts as a character.
    return name, data.get(name, b"").decode(errors="surrogateescape")


def _hidden(path: str, detail: str) -> Cause:
    return Cause("FieldValueInvalid", f"Invalid value: (hidden): {detail}", path)
