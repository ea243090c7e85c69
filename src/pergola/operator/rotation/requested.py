"""The rotations that a user can request for a Garden: pure functions (spec 21 §10.1, §10.2)."""

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

from pergola.api import marks
from pergola.api.known.kubernetes_versions import parse_version
from pergola.api.objects import JsonObject, annotations_of
from pergola.api.operator_v1alpha1 import Garden, garden_from
from pergola.api.operator_v1alpha1 import operations as op
from pergola.garden.landscape.errors import OperatorError
from pergola.garden.landscape.phases import COMPLETING, PREPARING
from pergola.garden.rules.operations import check_operations
from pergola.kube.patches import apply_merge_patch
from pergola.operator.rotation.current import (
    ACCOUNT_KEY,
    AUTHORITIES,
    ENCRYPTION_KEY,
    OBSERVABILITY,
    WORKLOAD_KEY,
)
from pergola.operator.rotation.phases import key_completes_now, rotation_of

Kind: TypeAlias = Literal[
    "all",
    "ca",
    "service-account-key",
    "etcd-encryption-key",
    "observability",
    "workload-identity-key",
]
Action: TypeAlias = Literal["start", "complete"]

FIELDS: Final[Mapping[Kind, str]] = {
    "ca": AUTHORITIES,
    "service-account-key": ACCOUNT_KEY,
    "etcd-encryption-key": ENCRYPTION_KEY,
    "observability": OBSERVABILITY,
    "workload-identity-key": WORKLOAD_KEY,
}
"""The fields of `status.credentials.rotation`."""

_OPERATIONS: Final[Mapping[tuple[Kind, Action], str]] = {
    ("all", "start"): op.ROTATE_CREDENTIALS_START,
    ("all", "complete"): op.ROTATE_CREDENTIALS_COMPLETE,
    ("ca", "start"): op.ROTATE_CA_START,
    ("ca", "complete"): op.ROTATE_CA_COMPLETE,
    ("service-account-key", "start"): op.ROTATE_SERVICE_ACCOUNT_KEY_START,
    ("service-account-key", "complete"): op.ROTATE_SERVICE_ACCOUNT_KEY_COMPLETE,
    ("etcd-encryption-key", "start"): op.ROTATE_ETCD_ENCRYPTION_KEY,
    ("etcd-encryption-key", "complete"): op.ROTATE_ETCD_ENCRYPTION_KEY_COMPLETE,
    ("observability", "start"): op.ROTATE_OBSERVABILITY_CREDENTIALS,
    ("workload-identity-key", "start"): op.ROTATE_WORKLOAD_IDENTITY_KEY_START,
    ("workload-identity-key", "complete"): op.ROTATE_WORKLOAD_IDENTITY_KEY_COMPLETE,
}
_EFFECTS: Final[Mapping[tuple[Kind, Action], str]] = {
    ("ca", "start"): "new certificate authorities are trusted beside the old ones, and the "
    "gardenlets of all Seeds get new kubeconfigs",
    ("ca", "complete"): "certificates of the old authorities are no longer accepted",
    ("service-account-key", "start"): "a new key signs the tokens of ServiceAccounts, the old one "
    "stays valid, and the components and all Seeds get new tokens",
    ("service-account-key", "complete"): "tokens that the old key signed are no longer accepted",
    ("etcd-encryption-key", "start"): "all encrypted objects are rewritten with a new key; then "
    "the old key is removed",
    ("etcd-encryption-key", "complete"): "the old key is removed",
    ("observability", "start"): "the passwords of the observability hosts are replaced at once, "
    "and all Seeds are reconciled",
    ("workload-identity-key", "start"): "a new key signs the tokens of workload identities, the "
    "old one stays published, and all Seeds get new tokens",
    ("workload-identity-key", "complete"): (
        "tokens of workload identities that the old key signed are no longer accepted"
    ),
}
_BY_ITSELF: Final = (1, 34)


class Refused(OperatorError):
    """The webhook would refuse a request; the text gives the reason."""


class Request(NamedTuple):
    """A request that the webhook accepts.

    Attributes:
        operation: The value of the annotation `gardener.cloud/operation`.
        effects: What will happen, with one clause for each credential.
    """

    operation: str
    effects: tuple[str, ...]


def request(garden: JsonObject, kind: Kind, action: Action) -> Request:
    """Return the request for a step of a rotation.

    Raises:
        Refused: The webhook would refuse it.
    """
    operation = _OPERATIONS.get((kind, action))
    if operation is None:
        raise Refused("the passwords of observability are replaced in one step: use --start")
    pending = annotations_of(garden).get(marks.OPERATION, "")
    if pending:
        raise Refused(f'the operator has not begun "{pending}" yet: wait until it has')
    requested = {"metadata": {"annotations": {marks.OPERATION: operation}}}
    typed = garden_from(apply_merge_patch(garden, requested))
    version = parse_version(typed.spec.virtual_cluster.kubernetes.version)
    findings = [cause.message for cause in check_operations(typed, version)]
    if findings:
        raise Refused("; ".join(findings))
    return Request(operation, tuple(_effects(typed, kind, action)))


def is_under_way(garden: Garden) -> bool:
    """Return whether a rotation continues without a request."""
    phases = {getattr(each, "phase", "") for each in rotation_of(garden).values()}
    return bool(phases & {PREPARING, COMPLETING}) or key_completes_now(garden)


def _effects(garden: Garden, kind: Kind, action: Action) -> list[str]:
    kinds = FIELDS if kind == "all" else (kind,)
    version = parse_version(garden.spec.virtual_cluster.kubernetes.version)
    completes = version is not None and version.of_minor >= _BY_ITSELF
    return [
        _EFFECTS[each, action]
        for each in kinds
        if (each, action) in _EFFECTS
        and not (each == "etcd-encryption-key" and action == "complete" and completes)
    ]
