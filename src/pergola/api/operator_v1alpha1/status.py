"""`status` of a Garden (spec 20 §7)."""

# ruff: noqa: RUF012 - Structs give every value its own copy of an empty default

from msgspec import field

from pergola.api.core_v1 import Condition
from pergola.api.extensions_v1alpha1 import LastError, LastOperation
from pergola.api.schema.declare import Timestamp, Value


class OperatorIdentity(Value):
    """The operator that reconciles the Garden."""

    id: str
    """The id of the process."""
    name: str
    """The name of the process, which is the name of its pod."""
    version: str
    """The version of the operator."""


class AdvertisedAddress(Value):
    """An address of the virtual cluster."""

    name: str
    """The purpose of the address."""
    url: str
    """The address."""


class PendingWorkersRollout(Value):
    """A worker pool whose nodes lack the new credential; Gardens have no worker pools."""

    name: str
    """The name of the worker pool."""
    last_initiation_time: Timestamp | None = None
    """The start of the rollout."""


class Rotation(Value):
    """The progress of a credential's rotation."""

    phase: str
    """One of `Preparing`, `Prepared`, `Completing` and `Completed`."""
    last_initiation_time: Timestamp | None = None
    """The start of the last rotation."""
    last_initiation_finished_time: Timestamp | None = None
    """The time since which old and new credential have both been valid."""
    last_completion_triggered_time: Timestamp | None = None
    """The start of the old credential's removal."""
    last_completion_time: Timestamp | None = None
    """The completion of the last rotation."""


class ClientRotation(Rotation):
    """The progress of the rotation of a credential that external clients use."""

    pending_workers_rollouts: list[PendingWorkersRollout] = []
    """Always empty: only Shoots have worker pools."""


class EncryptionKeyRotation(Rotation):
    """The progress of the rotation of etcd's encryption key."""

    auto_complete_after_prepared: bool | None = None
    """Whether the rotation completes automatically."""


class ObservabilityRotation(Value):
    """The rotation of the monitoring passwords."""

    last_initiation_time: Timestamp | None = None
    """The start of the last rotation."""
    last_completion_time: Timestamp | None = None
    """The completion of the last rotation."""


class CredentialsRotation(Value):
    """The progress of all rotations."""

    certificate_authorities: ClientRotation | None = None
    """The certificate authorities."""
    service_account_key: ClientRotation | None = None
    """The key that signs tokens of ServiceAccounts."""
    etcd_encryption_key: EncryptionKeyRotation | None = None
    """The key that encrypts data in etcd."""
    observability: ObservabilityRotation | None = None
    """The passwords of monitoring."""
    workload_identity_key: Rotation | None = None
    """The key that signs tokens of workload identities."""


class EncryptionProviderStatus(Value):
    """The encryption provider in use."""

    type: str
    """The algorithm."""


class EncryptionAtRest(Value):
    """The encryption in use."""

    resources: list[str] = []
    """The encrypted resources, except for those that always are."""
    provider: EncryptionProviderStatus | None = None
    """The encryption provider in use."""


class Credentials(Value):
    """The state of the credentials."""

    rotation: CredentialsRotation | None = None
    """The progress of all rotations."""
    encryption_at_rest: EncryptionAtRest | None = None
    """The encryption in use."""


class GardenStatus(Value):
    """The observed state of a Garden."""

    conditions: list[Condition] = []
    """The health of the garden, by aspect."""
    constraints: list[Condition] = []
    """Conditions that restrict the possible operations."""
    gardener: OperatorIdentity | None = None
    """The operator that reconciles the Garden."""
    last_operation: LastOperation | None = None
    """The current or last operation."""
    last_errors: list[LastError] = []
    """The errors of the last operation, by task; empty if it succeeded."""
    observed_generation: int | None = None
    """The generation of the current or last operation."""
    credentials: Credentials | None = None
    """The state of the credentials."""
    encrypted_resources: list[str] = []
    """The same as `credentials.encryptionAtRest.resources`, for older clients."""
    advertised_addresses: list[AdvertisedAddress] = field(default_factory=list)
    """The addresses of the virtual cluster."""
