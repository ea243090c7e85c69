"""Rules about the annotation `gardener.cloud/operation` of a Garden (spec 21 §10.2)."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from pergola.api import marks
from pergola.api.field_errors import Cause, forbidden, unsupported
from pergola.api.known.kubernetes_versions import Minor, Version
from pergola.api.objects import deletion_timestamp_of, map_at
from pergola.api.operator_v1alpha1 import Garden
from pergola.api.operator_v1alpha1 import operations as op
from pergola.api.operator_v1alpha1.status import CredentialsRotation, Rotation
from pergola.garden.rules.encryption import is_rolling_out

_PATH: Final = f"metadata.annotations[{marks.OPERATION}]"
_WITH_SINGLE_STEP: Final = Minor(1, 34)
_CA: Final = "certificateAuthorities"
_ACCOUNTS: Final = "serviceAccountKey"
_ETCD: Final = "etcdEncryptionKey"
_IDENTITIES: Final = "workloadIdentityKey"
_ALL: Final = (_CA, _ACCOUNTS, _ETCD, _IDENTITIES)


class _Step(NamedTuple):
    """One operation, and the rotations whose phases must permit it."""

    action: str
    phases: tuple[str, ...] = ()
    completes: bool = False


_ETCD_KEY: Final = _Step("start ETCD encryption key rotation", (_ETCD,))
_STEPS: Final = {
    op.ROTATE_CREDENTIALS_START: _Step("start rotation of all credentials", _ALL),
    op.ROTATE_CREDENTIALS_COMPLETE: _Step(
        "complete rotation of all credentials", _ALL, completes=True
    ),
    op.ROTATE_CA_START: _Step("start CA rotation", (_CA,)),
    op.ROTATE_CA_COMPLETE: _Step("complete CA rotation", (_CA,), completes=True),
    op.ROTATE_SERVICE_ACCOUNT_KEY_START: _Step("start service account key rotation", (_ACCOUNTS,)),
    op.ROTATE_SERVICE_ACCOUNT_KEY_COMPLETE: _Step(
        "complete service account key rotation", (_ACCOUNTS,), completes=True
    ),
    op.ROTATE_ETCD_ENCRYPTION_KEY: _ETCD_KEY,
    op.ROTATE_ETCD_ENCRYPTION_KEY_START: _ETCD_KEY,
    op.ROTATE_ETCD_ENCRYPTION_KEY_COMPLETE: _Step(
        "complete ETCD encryption key rotation", (_ETCD,), completes=True
    ),
    op.ROTATE_OBSERVABILITY_CREDENTIALS: _Step("start Observability credentials rotation"),
    op.ROTATE_WORKLOAD_IDENTITY_KEY_START: _Step(
        "start workload identity key rotation", (_IDENTITIES,)
    ),
    op.ROTATE_WORKLOAD_IDENTITY_KEY_COMPLETE: _Step(
        "complete workload identity key rotation", (_IDENTITIES,), completes=True
    ),
}
_TWO_STEPS: Final = (op.ROTATE_ETCD_ENCRYPTION_KEY_START, op.ROTATE_ETCD_ENCRYPTION_KEY_COMPLETE)


def check_operations(garden: Garden, version: Version | None) -> Iterator[Cause]:
    """Yield the findings about the requested operations.

    Args:
        version: The version of Kubernetes, or None if it is unreadable.
    """
    requested = op.operations_in(_annotation(garden))
    single_step = version is None or version.of_minor >= _WITH_SINGLE_STEP
    for operation in requested:
        if operation not in op.OPERATIONS:
            yield unsupported(_PATH, operation, sorted(op.OPERATIONS))
            continue
        yield from _combination(operation, requested, single_step=single_step)
        if operation in _STEPS:
            yield from _context(operation, garden, single_step=single_step)


def phase_of(garden: Garden, credential: str) -> str:
    """Return the phase of a credential's rotation; empty before the first one."""
    credentials = garden.status.credentials if garden.status else None
    rotation = (credentials.rotation if credentials else None) or CredentialsRotation()
    found: dict[str, Rotation | None] = {
        _CA: rotation.certificate_authorities,
        _ACCOUNTS: rotation.service_account_key,
        _ETCD: rotation.etcd_encryption_key,
        _IDENTITIES: rotation.workload_identity_key,
    }
    of_credential = found[credential]
    return of_credential.phase if of_credential else ""


def _annotation(garden: Garden) -> str:
    text = map_at({"metadata": garden.metadata}, "metadata", "annotations").get(marks.OPERATION)
    return text if isinstance(text, str) else ""


def _combination(operation: str, requested: list[str], *, single_step: bool) -> Iterator[Cause]:
    if single_step and operation in _TWO_STEPS:
        yield forbidden(
            _PATH,
            f"for Kubernetes versions >= 1.34, operation '{operation}' is no longer supported, "
            "please use 'rotate-etcd-encryption-key' instead, which performs a complete etcd "
            "encryption key rotation",
        )
    other = op.ROTATE_ETCD_ENCRYPTION_KEY_START
    if operation == op.ROTATE_ETCD_ENCRYPTION_KEY and other in requested:
        yield forbidden(
            _PATH,
            f"operation '{operation}' is not permitted to be run together with {other} operations",
        )


def _context(operation: str, garden: Garden, *, single_step: bool) -> Iterator[Cause]:
    step = _STEPS[operation]
    if deletion_timestamp_of({"metadata": garden.metadata}):
        yield forbidden(_PATH, f"cannot {step.action} if garden has deletion timestamp")
    needed = "Prepared" if step.completes else "Completed"
    for credential in step.phases:
        by_itself = single_step and operation == op.ROTATE_CREDENTIALS_COMPLETE
        if credential == _ETCD and by_itself:
            continue
        phase = phase_of(garden, credential)
        if phase != needed and (step.completes or phase):
            field = f".status.credentials.rotation.{credential}.phase"
            yield forbidden(_PATH, f"cannot {step.action} if {field} is not '{needed}'")
    if _ETCD in step.phases and not step.completes and is_rolling_out(garden):
        yield forbidden(
            _PATH,
            f"cannot {step.action} because a previous encryption configuration change is "
            "currently being rolled out",
        )
