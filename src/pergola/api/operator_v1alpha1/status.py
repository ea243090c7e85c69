"""`status` of a Garden (spec 20 §7)."""

# ruff: noqa: RUF012 - Structs give every value its own copy of an empty default

from msgspec import field

from pergola.api.core_v1 import Condition
from pergola.api.extensions_v1alpha1 import LastError, LastOperation
from pergola.api.schema.declare import Timestamp, Value


class OperatorIdentity(Value):
    """The operator that works on the Garden."""

    id: str
    """The id of the process."""
    name: str
    """The name of the process, which is that of its pod."""
    version: str
    """The version of the operator."""


class AdvertisedAddress(Value):
    """An address of the virtual cluster."""

    name: str
    """What is reached there."""
    url: str
    """The address."""


class PendingWorkersRollout(Value):
    """A worker pool whose nodes do not have the new credential; Gardens have none."""

    name: str
    """The name of the worker pool."""
    last_initiation_time: Timestamp | None = None
    """When the roll-out began."""


class Rotation(Value):
    """How far the rotation of a credential is."""

    phase: str
    """One of `Preparing`, `Prepared`, `Completing` and `Completed`."""
    last_initiation_time: Timestamp | None = None
    """When the last rotation began."""
    last_initiation_finished_time: Timestamp | None = None
    """When the new credential was in use beside the old one."""
    last_completion_triggered_time: Timestamp | None = None
    """When the removal of the old credential began."""
    last_completion_time: Timestamp | None = None
    """When the last rotation was complete."""


class ClientRotation(Rotation):
    """How far the rotation of a credential is that clients outside the garden know."""

    pending_workers_rollouts: list[PendingWorkersRollout] = []
    """Always empty: only Shoots have worker pools."""


class EncryptionKeyRotation(Rotation):
    """How far the rotation of the encryption key of etcd is."""

    auto_complete_after_prepared: bool | None = None
    """Whether the rotation completes by itself."""


class ObservabilityRotation(Value):
    """When the passwords of monitoring were rotated."""

    last_initiation_time: Timestamp | None = None
    """When the last rotation began."""
    last_completion_time: Timestamp | None = None
    """When the last rotation was complete."""


class CredentialsRotation(Value):
    """How far the rotations of all credentials are."""

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
    """How the data in etcd are encrypted."""

    type: str
    """The algorithm."""


class EncryptionAtRest(Value):
    """What is encrypted in etcd."""

    resources: list[str] = []
    """The encrypted resources beside those that always are."""
    provider: EncryptionProviderStatus | None = None
    """How they are encrypted."""


class Credentials(Value):
    """The state of the credentials."""

    rotation: CredentialsRotation | None = None
    """How far the rotations of all credentials are."""
    encryption_at_rest: EncryptionAtRest | None = None
    """What is encrypted in etcd."""


class GardenStatus(Value):
    """What the operator has to say about the Garden."""

    conditions: list[Condition] = []
    """The health of the garden, by aspect."""
    gardener: OperatorIdentity | None = None
    """The operator that works on the Garden."""
    last_operation: LastOperation | None = None
    """The operation that runs now or ran last."""
    last_errors: list[LastError] = []
    """Why the last operation failed, by task; empty if it did not."""
    observed_generation: int | None = None
    """The generation of the operation that runs now or ran last."""
    credentials: Credentials | None = None
    """The state of the credentials."""
    encrypted_resources: list[str] = []
    """The same as `credentials.encryptionAtRest.resources`, for older clients."""
    advertised_addresses: list[AdvertisedAddress] = field(default_factory=list)
    """The addresses of the virtual cluster."""
