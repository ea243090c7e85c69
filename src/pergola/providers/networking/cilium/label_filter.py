"""Labels that differ from pod to pod, which therefore must not give pods their identity.

Agents and operator read a file of rules (cilium's `pkg/labelsfilter`). In a file, unlike in their
built-in list, each rule needs a source, prefixes are literal, and one rule that includes labels
would exclude all others. So every rule excludes, no rule may match the namespace of a pod
(`io.kubernetes.pod.namespace`), and the source is that of labels from Kubernetes: the source `any`
matches none of them.
"""

from typing import Final

from pergola.api.objects import JsonObject

NAME: Final = "label-prefix-conf"
KEY: Final = "label-prefix"
MOUNT: Final = "/tmp/cilium/label-prefix"  # noqa: S108 - in the container
_SOURCE: Final = "k8s"
# Agents log an error unless a rule of this name exists. Taken literally, it matches no label.
_RESERVED: Final[JsonObject] = {"prefix": ".*", "source": "reserved", "invert": True}

EXCLUDED: Final = (
    "annotation",
    "apps.kubernetes.io/pod-index",
    "batch.kubernetes.io/controller-uid",
    "batch.kubernetes.io/job-completion-index",
    "beta.kubernetes.io",
    "controller-revision-hash",
    "controller-uid",
    "etcd_node",
    "failure-domain.beta.kubernetes.io",
    "io.kubernetes.container",
    "io.kubernetes.docker",
    "io.kubernetes.pod.uid",
    "io.kubernetes.sandbox",
    "k8s.io",
    "kubernetes.io",
    "pod-template-generation",
    "pod-template-hash",
    "statefulset.kubernetes.io/pod-name",
    "topology.kubernetes.io",
)
"""Prefixes of labels, as literal as agents take them."""


def label_prefixes() -> JsonObject:
    """Return the content of the file. Its ConfigMap is immutable, so it depends on nothing."""
    rules = [{"prefix": prefix, "source": _SOURCE, "invert": True} for prefix in EXCLUDED]
    return {"version": 1, "valid-prefixes": [_RESERVED, *rules]}
