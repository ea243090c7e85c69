"""The credentials of a Garden: those that components need, and those that exist (spec 20 §10)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from pergola.secrets_manager import Generated, ManagedSecret, Options, SecretConfig


@dataclass(frozen=True, slots=True)
class Credential:
    """A credential to generate, and how to keep it."""

    config: SecretConfig
    options: Options = field(default_factory=Options)


@dataclass(frozen=True, slots=True)
class Credentials:
    """The credentials that exist, by config name."""

    generated: Mapping[str, Generated] = field(default_factory=lambda: MappingProxyType({}))

    def current(self, name: str) -> ManagedSecret:
        """Return the current Secret of a config.

        Raises:
            KeyError: No earlier component needs it, which is a bug.
        """
        return self.generated[name].current

    def name(self, name: str) -> str:
        """Return the object name of the current Secret, for volumes; raises as `current` does."""
        return self.current(name).object_name

    def bundle(self, name: str) -> ManagedSecret:
        """Return the Secret with both old and current data; raises as `current` does."""
        found = self.generated[name]
        return found.bundle or found.current

    def bundle_name(self, name: str) -> str:
        """Return the object name of the bundle; raises as `current` does."""
        return self.bundle(name).object_name

    def old(self, name: str) -> ManagedSecret | None:
        """Return the old Secret while it is kept; raises as `current` does."""
        return self.generated[name].old
