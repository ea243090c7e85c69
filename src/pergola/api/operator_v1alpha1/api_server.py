"""Settings that kube-apiserver and gardener-apiserver share (spec 20 §5.4, §5.5)."""

# ruff: noqa: RUF012 - Structs give every value its own copy of an empty default

from typing import Annotated, Literal

from msgspec import Meta

from pergola.api.core_v1 import ObjectReference
from pergola.api.objects import JsonObject
from pergola.api.operator_v1alpha1.facets import NOT_EMPTY, Int32
from pergola.api.schema.declare import ATOMIC, INT32, Value, default


class AdmissionPlugin(Value):
    """An admission plugin to configure or disable."""

    name: str
    """The name of the plugin."""
    config: JsonObject | None = None
    """The configuration of the plugin."""
    disabled: bool = False
    """Whether to disable the plugin."""
    kubeconfig_secret_name: str | None = None
    """The Secret with the kubeconfig that the plugin uses."""


class AuditPolicy(Value):
    """The policy of the audit log."""

    config_map_ref: Annotated[ObjectReference, ATOMIC] | None = None
    """The ConfigMap with the policy under the key `policy`."""


class AuditConfig(Value):
    """The configuration of the audit log."""

    audit_policy: AuditPolicy | None = None
    """The policy of the audit log."""


class AuditWebhook(Value):
    """The webhook that receives the audit log."""

    kubeconfig_secret_name: Annotated[str, NOT_EMPTY]
    """The Secret with the kubeconfig of the receiver."""
    batch_max_size: Annotated[int, Meta(ge=1), INT32, default(30)] = 30
    """The maximum number of events per request."""
    version: Annotated[Literal["audit.k8s.io/v1"], default("audit.k8s.io/v1")] = "audit.k8s.io/v1"
    """The API version of the events."""


class Logging(Value):
    """The verbosity of logs."""

    verbosity: Int32 | None = None
    """The level of logs."""
    http_access_verbosity: Int32 | None = None
    """The level from which requests are logged."""


class Requests(Value):
    """The limits of concurrent requests."""

    max_non_mutating_inflight: Int32 | None = None
    """The maximum number of concurrent reads."""
    max_mutating_inflight: Int32 | None = None
    """The maximum number of concurrent writes."""


class ResourceWatchCacheSize(Value):
    """The watch cache of one resource."""

    resource: str
    """The resource, in plural."""
    size: Annotated[int, INT32]
    """The size; 0 disables the cache."""
    api_group: str | None = None
    """The API group of the resource; the core group if absent."""


class WatchCacheSizes(Value):
    """The sizes of watch caches."""

    default: Int32 | None = None
    """The default size."""
    resources: list[ResourceWatchCacheSize] = []
    """The sizes for individual resources."""


class EncryptionProvider(Value):
    """The encryption provider."""

    type: str = "aescbc"
    """The algorithm: `aescbc`, `aesgcm` or `secretbox`."""


class EncryptionConfig(Value):
    """The encryption of resources in etcd."""

    provider: EncryptionProvider
    """The encryption provider."""
    resources: list[str] = []
    """Extra resources to encrypt, as `resource` or `resource.group`; some are always encrypted."""


def default_encryption() -> EncryptionConfig:
    """Return the default encryption of a Garden."""
    return EncryptionConfig(provider=EncryptionProvider())
