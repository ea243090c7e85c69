"""Storage, signing and renewal of a credential (spec 20 §10.2)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum, auto

from pergola.secrets_manager.loss import Irreplaceable


class Rotate(Enum):
    """The treatment of the previous Secret when a new one is generated."""

    IN_PLACE = auto()
    """Nothing refers to it any longer; the next cleanup deletes it."""
    KEEP_OLD = auto()
    """It is kept next to the current one, and in the bundle."""


class Use(Enum):
    """Which authority of a config name signs."""

    DEFAULT = auto()
    """For servers the old one while it exists, because clients may not trust the new one yet."""
    CURRENT = auto()
    OLD = auto()


@dataclass(frozen=True, slots=True)
class SigningCA:
    """The authority that signs a certificate, by its config name."""

    name: str
    use: Use = Use.DEFAULT


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of one credential.

    Attributes:
        signed_by: Required for certificates, rejected for everything else.
        persist: Whether the Secret must survive the migration of a control plane.
        ignore_old: Whether to drop the old Secret even with `Rotate.KEEP_OLD`.
        ignore_old_after: Drop the old Secret once the current one has this age.
        validity: For authorities and certificates; for everything else, the time until renewal.
            None means 10 years for authorities and certificates, and no renewal for everything
            else.
        renew_at_percent: The percentage of the validity after which to renew; None for the default.
        labels: Additional labels.
        irreplaceable: If given, a missing Secret that is lost is an error instead of generated.
    """

    signed_by: SigningCA | None = None
    persist: bool = False
    rotate: Rotate = Rotate.IN_PLACE
    ignore_old: bool = False
    ignore_old_after: timedelta | None = None
    validity: timedelta | None = None
    renew_at_percent: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    irreplaceable: Irreplaceable | None = None
