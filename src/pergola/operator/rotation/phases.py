"""The phases of credential rotations: pure functions of a Garden and the time (spec 21 §10.3).

Each returns a merge patch of `status.credentials.rotation`; an empty one changes nothing.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Final

from pergola.api.conditions import timestamp
from pergola.api.known.kubernetes_versions import parse_version
from pergola.api.objects import JsonObject
from pergola.api.operator_v1alpha1 import Garden, operations
from pergola.api.operator_v1alpha1.status import (
    CredentialsRotation,
    ObservabilityRotation,
    Rotation,
)
from pergola.garden.landscape.encryption_at_rest import encrypted_now
from pergola.garden.landscape.phases import COMPLETED, COMPLETING, PREPARED, PREPARING

_CA: Final = "certificateAuthorities"
_ACCOUNT_KEY: Final = "serviceAccountKey"
_ETCD_KEY: Final = "etcdEncryptionKey"
_WORKLOAD_KEY: Final = "workloadIdentityKey"
_OBSERVABILITY: Final = "observability"
_AUTOMATIC: Final = "autoCompleteAfterPrepared"
_COMPLETES_BY_ITSELF: Final = (1, 34)

_STARTS: Final = {
    operations.ROTATE_CREDENTIALS_START: (
        _CA,
        _ACCOUNT_KEY,
        _ETCD_KEY,
        _OBSERVABILITY,
        _WORKLOAD_KEY,
    ),
    operations.ROTATE_CA_START: (_CA,),
    operations.ROTATE_SERVICE_ACCOUNT_KEY_START: (_ACCOUNT_KEY,),
    operations.ROTATE_ETCD_ENCRYPTION_KEY: (_ETCD_KEY,),
    operations.ROTATE_ETCD_ENCRYPTION_KEY_START: (_ETCD_KEY,),
    operations.ROTATE_OBSERVABILITY_CREDENTIALS: (_OBSERVABILITY,),
    operations.ROTATE_WORKLOAD_IDENTITY_KEY_START: (_WORKLOAD_KEY,),
}
_COMPLETES: Final = {
    operations.ROTATE_CREDENTIALS_COMPLETE: (_CA, _ACCOUNT_KEY, _ETCD_KEY, _WORKLOAD_KEY),
    operations.ROTATE_CA_COMPLETE: (_CA,),
    operations.ROTATE_SERVICE_ACCOUNT_KEY_COMPLETE: (_ACCOUNT_KEY,),
    operations.ROTATE_ETCD_ENCRYPTION_KEY_COMPLETE: (_ETCD_KEY,),
    operations.ROTATE_WORKLOAD_IDENTITY_KEY_COMPLETE: (_WORKLOAD_KEY,),
}


def begun(garden: Garden, requested: Iterable[str], now: datetime) -> JsonObject:
    """Return the change at the start of a reconciliation.

    A request that the phase does not permit changes nothing. An operator that is killed after it
    wrote the status sees its request again: starting once more would create a third credential, and
    lose the one that everyone uses.

    Args:
        requested: The operations that the Garden's annotation names.
    """
    requested, current = list(requested), rotation_of(garden)
    started = {
        part
        for each in requested
        for part in _STARTS.get(each, ())
        if part == _OBSERVABILITY or _phase(current.get(part)) in ("", COMPLETED)
    }
    completed = {
        part
        for each in requested
        for part in _COMPLETES.get(each, ())
        if _phase(current.get(part)) == PREPARED
    }
    if operations.ROTATE_CREDENTIALS_COMPLETE in requested and _completes_by_itself(garden):
        completed.discard(_ETCD_KEY)
    if _changes_provider(garden):
        started.add(_ETCD_KEY)
    if key_completes_now(garden):
        completed.add(_ETCD_KEY)
    patch: JsonObject = {part: _started(now) for part in _PHASED if part in started}
    if _ETCD_KEY in started:
        patch[_ETCD_KEY][_AUTOMATIC] = _is_automatic(garden, requested)
    if _OBSERVABILITY in started:
        patch[_OBSERVABILITY] = {"lastInitiationTime": timestamp(now)}
    for part in sorted(completed):
        patch[part] = {"phase": COMPLETING, "lastCompletionTriggeredTime": timestamp(now)}
    return patch


def succeeded(garden: Garden, now: datetime) -> JsonObject:
    """Return the change after a successful reconciliation."""
    patch: JsonObject = {}
    current = rotation_of(garden)
    for part in _PHASED:
        rotation = current.get(part)
        if isinstance(rotation, Rotation) and rotation.phase in _ENDINGS:
            patch[part] = _ENDINGS[rotation.phase](now)
            if part == _ETCD_KEY and rotation.phase == COMPLETING:
                patch[part][_AUTOMATIC] = None
    if is_observability_running(garden):
        patch[_OBSERVABILITY] = {"lastCompletionTime": timestamp(now)}
    return patch


def key_completes_now(garden: Garden) -> bool:
    """Return whether the rotation of etcd's key continues without a request."""
    key = rotation_of(garden).get(_ETCD_KEY)
    if not isinstance(key, Rotation) or key.phase != PREPARED:
        return False
    return bool(getattr(key, "auto_complete_after_prepared", None)) or _completes_by_itself(garden)


def in_progress(garden: Garden) -> tuple[str, ...]:
    """Return the unfinished rotations, such as `serviceAccountKey: Prepared`."""
    phases = {part: _phase(rotation) for part, rotation in rotation_of(garden).items()}
    if is_observability_running(garden):
        phases[_OBSERVABILITY] = PREPARING
    running = {part: phase for part, phase in phases.items() if phase not in ("", COMPLETED)}
    return tuple(f"{part}: {phase}" for part, phase in running.items())


def is_observability_running(garden: Garden) -> bool:
    """Return whether the observability passwords were rotated but not everywhere yet."""
    observability = rotation_of(garden).get(_OBSERVABILITY)
    return isinstance(observability, ObservabilityRotation) and _is_running(observability)


def rotation_of(garden: Garden) -> dict[str, Rotation | ObservabilityRotation]:
    """Return the rotations in the status of a Garden, by the names of their fields."""
    credentials = garden.status.credentials if garden.status else None
    rotation = (credentials.rotation if credentials else None) or CredentialsRotation()
    found = {
        _CA: rotation.certificate_authorities,
        _ACCOUNT_KEY: rotation.service_account_key,
        _ETCD_KEY: rotation.etcd_encryption_key,
        _WORKLOAD_KEY: rotation.workload_identity_key,
        _OBSERVABILITY: rotation.observability,
    }
    return {name: each for name, each in found.items() if each is not None}


def phases_since(garden: Garden) -> dict[str, tuple[str, datetime]]:
    """Return the phase of each rotation, and since when it is in that phase.

    The passwords of observability have one step: `Preparing` until all Seeds have the new ones.
    """
    found: dict[str, tuple[str, datetime]] = {}
    for part, rotation in rotation_of(garden).items():
        phase, times = _phase(rotation), _times(rotation)
        if isinstance(rotation, ObservabilityRotation):
            phase = PREPARING if _is_running(rotation) else COMPLETED
        if since := times.get(phase):
            found[part] = phase, _time(since)
    return found


def _times(rotation: Rotation | ObservabilityRotation) -> dict[str, str | None]:
    """Return when a rotation entered each of its phases."""
    times = {
        PREPARING: rotation.last_initiation_time,
        COMPLETED: rotation.last_completion_time,
    }
    if isinstance(rotation, Rotation):
        times[PREPARED] = rotation.last_initiation_finished_time
        times[COMPLETING] = rotation.last_completion_triggered_time
    return times


_PHASED: Final = (_CA, _ACCOUNT_KEY, _ETCD_KEY, _WORKLOAD_KEY)


def _phase(rotation: Rotation | ObservabilityRotation | None) -> str:
    return rotation.phase if isinstance(rotation, Rotation) else ""


def _started(now: datetime) -> JsonObject:
    return {
        "phase": PREPARING,
        "lastInitiationTime": timestamp(now),
        "lastInitiationFinishedTime": None,
        "lastCompletionTriggeredTime": None,
    }


def _prepared(now: datetime) -> JsonObject:
    return {"phase": PREPARED, "lastInitiationFinishedTime": timestamp(now)}


def _completed(now: datetime) -> JsonObject:
    return {
        "phase": COMPLETED,
        "lastCompletionTime": timestamp(now),
        "lastInitiationFinishedTime": None,
        "lastCompletionTriggeredTime": None,
    }


_ENDINGS: Final[dict[str, Callable[[datetime], JsonObject]]] = {
    PREPARING: _prepared,
    COMPLETING: _completed,
}


def _is_automatic(garden: Garden, requested: Iterable[str]) -> bool:
    """Return whether a rotation of etcd's key that starts now completes without a request."""
    chosen = set(requested)
    if operations.ROTATE_CREDENTIALS_START in chosen:
        return _completes_by_itself(garden)
    return operations.ROTATE_ETCD_ENCRYPTION_KEY_START not in chosen


def _completes_by_itself(garden: Garden) -> bool:
    version = parse_version(garden.spec.virtual_cluster.kubernetes.version)
    return version is not None and version.of_minor >= _COMPLETES_BY_ITSELF


def _changes_provider(garden: Garden) -> bool:
    """Return whether the Garden requests another encryption provider than the one in use."""
    key = rotation_of(garden).get(_ETCD_KEY)
    if isinstance(key, Rotation) and key.phase not in ("", COMPLETED):
        return False
    used = encrypted_now(garden.status).provider
    provider = garden.spec.virtual_cluster.kubernetes.kube_api_server.encryption_config.provider
    return used is not None and used.type not in ("", provider.type)


def _is_running(observability: ObservabilityRotation) -> bool:
    started, completed = observability.last_initiation_time, observability.last_completion_time
    if started is None:
        return False
    return completed is None or _time(started) > _time(completed)


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
