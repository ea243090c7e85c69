"""The phase and start of each rotation of a landscape."""

from typing import Final

from pergola.garden.landscape import Landscape
from pergola.garden.landscape.phases import PREPARING
from pergola.operator.rotation.phases import is_observability_running, rotation_of

AUTHORITIES: Final = "certificateAuthorities"
ACCOUNT_KEY: Final = "serviceAccountKey"
ENCRYPTION_KEY: Final = "etcdEncryptionKey"
WORKLOAD_KEY: Final = "workloadIdentityKey"
OBSERVABILITY: Final = "observability"

_NAMES: Final = {
    AUTHORITIES: "the certificate authorities are",
    ACCOUNT_KEY: "the key that signs tokens of ServiceAccounts is",
    ENCRYPTION_KEY: "etcd's encryption key is",
    WORKLOAD_KEY: "the key that signs tokens of workload identities is",
    OBSERVABILITY: "the passwords of observability are",
}


def phase_of(landscape: Landscape, part: str) -> str:
    """Return the phase of a rotation; empty if there was none."""
    return str(getattr(rotation_of(landscape.garden).get(part), "phase", ""))


def began(landscape: Landscape, part: str) -> str:
    """Return the start of the last rotation, RFC 3339; empty if there was none."""
    rotation = rotation_of(landscape.garden).get(part)
    return (rotation.last_initiation_time if rotation else None) or ""


def not_preparing(landscape: Landscape, part: str) -> str | None:
    """Return why the tasks that prepare a rotation have nothing to do; None if they do."""
    if part == OBSERVABILITY:
        is_running = is_observability_running(landscape.garden)
    else:
        is_running = phase_of(landscape, part) == PREPARING
    return None if is_running else f"{_NAMES[part]} not being rotated"
