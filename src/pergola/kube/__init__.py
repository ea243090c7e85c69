"""One API server: the only room that speaks HTTP to a cluster.

Not for: caching, which is in `pergola.runtime`, or the semantics of individual kinds.
"""

from pergola.kube.client import Client
from pergola.kube.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    InvalidKey,
    KubeError,
    NotFound,
    TooManyRequests,
    Unauthorized,
    UnknownKind,
    Unreachable,
)
from pergola.kube.finalizers import add_finalizer, remove_finalizer
from pergola.kube.kubeconfig import ClusterConfig, in_cluster, load

__all__ = [
    "AlreadyExists",
    "ApiError",
    "Client",
    "ClusterConfig",
    "Conflict",
    "Forbidden",
    "Gone",
    "Invalid",
    "InvalidKey",
    "KubeError",
    "NotFound",
    "TooManyRequests",
    "Unauthorized",
    "UnknownKind",
    "Unreachable",
    "add_finalizer",
    "in_cluster",
    "load",
    "remove_finalizer",
]
