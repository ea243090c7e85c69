"""Rules about changes of encryption at rest (spec 21 §7.5)."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from pergola.api.field_errors import Cause, forbidden
from pergola.api.operator_v1alpha1 import Garden
from pergola.api.operator_v1alpha1.api_server import EncryptionConfig
from pergola.garden.landscape.encryption_at_rest import (
    encrypted_now,
    is_served_by_gardener,
    resource_keys,
)
from pergola.garden.rules.encryption import GARDENER, KUBERNETES, encryption_configs
from pergola.garden.rules.operations import phase_of

_COMPLETED: Final = "Completed"
_ROLLING_OUT: Final = (
    "cannot be changed because a previous encryption configuration change is currently being "
    "rolled out"
)


class _Server(NamedTuple):
    """The encryption of one API server: the old and new settings, and the current state."""

    path: str
    new: EncryptionConfig
    old: EncryptionConfig
    resources: set[str]
    provider: str | None

    @property
    def is_rolling_out(self) -> bool:
        """Whether an earlier change is incomplete."""
        other_provider = self.provider is not None and self.provider != self.old.provider.type
        return other_provider or resource_keys(self.old.resources) != self.resources


def check_encryption_changes(new: Garden, old: Garden) -> Iterator[Cause]:
    """Yield the findings about changes of the encryption of both API servers."""
    for server in _servers(new, old):
        other_resources = resource_keys(server.new.resources) != resource_keys(server.old.resources)
        other_provider = server.new.provider.type != server.old.provider.type
        if other_resources:
            yield from _unfinished(server, new, f"{server.path}.resources", "resources")
        if other_provider:
            at = f"{server.path}.provider.type"
            yield from _unfinished(server, new, at, "provider type")
            yield from _before_the_first_reconciliation(new, at)
        if other_provider and other_resources:
            yield forbidden(
                f"{server.path}.provider.type",
                "provider type cannot be changed together with resources",
            )


def _servers(new: Garden, old: Garden) -> Iterator[_Server]:
    current = encrypted_now(new.status)
    provider = (current.provider.type or None) if current.provider else None
    configs = zip(encryption_configs(new.spec), encryption_configs(old.spec), strict=True)
    for path, (now, before) in zip((KUBERNETES, GARDENER), configs, strict=True):
        of_gardener = path == GARDENER
        resources = [r for r in current.resources if is_served_by_gardener(r) == of_gardener]
        yield _Server(path, now, before, resource_keys(resources), provider)


def _unfinished(server: _Server, garden: Garden, path: str, what: str) -> Iterator[Cause]:
    if phase_of(garden, "etcdEncryptionKey") not in ("", _COMPLETED):
        field = ".status.credentials.rotation.etcdEncryptionKey.phase"
        yield forbidden(path, f'{what} cannot be changed when {field} is not "{_COMPLETED}"')
    if server.is_rolling_out:
        yield forbidden(path, f"{what} {_ROLLING_OUT}")


def _before_the_first_reconciliation(garden: Garden, path: str) -> Iterator[Cause]:
    last = garden.status.last_operation if garden.status else None
    was_created = last is not None and last.type in ("Create", "Restore")
    if last is not None and (
        last.type == "Reconcile" or (was_created and last.state == "Succeeded")
    ):
        return
    yield forbidden(path, "provider type cannot be changed before the Garden was reconciled once")
