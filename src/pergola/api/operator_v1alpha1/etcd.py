"""`spec.virtualCluster.etcd` of a Garden (spec 20 §5.3)."""

from typing import Annotated

from msgspec import field

from pergola.api.objects import JsonObject
from pergola.api.operator_v1alpha1.facets import Autoscaling, LocalReference
from pergola.api.schema.declare import Value, default, rule
from pergola.api.schema.quantity import Quantity


class Storage(Value):
    """The volume of an etcd."""

    capacity: Annotated[Quantity, default("10Gi")] = "10Gi"
    """The size of the volume."""
    class_name: str | None = None
    """The StorageClass of the volume; the cluster's default if absent."""


class Backup(Value):
    """The backup of the main etcd."""

    provider: Annotated[str, rule("self == oldSelf", "Provider is immutable")]
    """The provider of the object store; immutable."""
    secret_ref: LocalReference
    """The Secret with the credentials of the object store."""
    bucket_name: Annotated[str, rule("self == oldSelf", "BucketName is immutable")] | None = None
    """The bucket, optionally with a path; created by the operator if absent. Immutable."""
    provider_config: JsonObject | None = None
    """The configuration of the bucket, which only the provider understands."""
    region: Annotated[str, rule("self == oldSelf", "Region is immutable")] | None = None
    """The region of the bucket; that of the runtime cluster if absent. Immutable."""


class EtcdEvents(Value):
    """The etcd for Events."""

    autoscaling: Autoscaling | None = None
    """The lower limits of vertical autoscaling."""
    storage: Storage | None = None
    """Its volume."""


class EtcdMain(EtcdEvents):
    """The etcd for everything except Events."""

    backup: Backup | None = None
    """The backup; none if absent. A backup cannot be removed."""


class Etcd(Value):
    """The two etcds of the virtual cluster."""

    main: EtcdMain = field(default_factory=EtcdMain)
    """The etcd for everything except Events."""
    events: EtcdEvents = field(default_factory=EtcdEvents)
    """The etcd for Events."""
