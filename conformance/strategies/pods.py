"""Pods and what they contain."""

from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.strategies.kubernetes import LABELS, NAMES, some
from pergola.api.objects import JsonObject

NAMESPACE: Final = "kube-system"
ZONE: Final = "topology.kubernetes.io/zone"
HOST: Final = "kubernetes.io/hostname"
TEMPLATE_HASH: Final = "pod-template-hash"

_KEYS: Final = st.sampled_from(["app", "app", "role", "role", TEMPLATE_HASH])
_EXPRESSIONS: Final = st.one_of(
    st.fixed_dictionaries(
        {
            "key": _KEYS,
            "operator": st.sampled_from(["In", "NotIn"]),
            "values": st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=2),
        }
    ),
    st.fixed_dictionaries({"key": _KEYS, "operator": st.sampled_from(["Exists", "DoesNotExist"])}),
)
SELECTORS: Final = some(
    {
        "matchLabels": st.dictionaries(_KEYS, st.sampled_from(["a", "b"]), max_size=2),
        "matchExpressions": st.lists(_EXPRESSIONS, max_size=2),
    }
)
"""Label selectors."""
SPREAD: Final = st.lists(
    some(
        {
            "labelSelector": SELECTORS,
            "minDomains": st.integers(1, 3),
            "matchLabelKeys": st.lists(_KEYS, max_size=2, unique=True),
            "nodeTaintsPolicy": st.just("Honor"),
        },
        {
            "topologyKey": st.sampled_from([HOST, ZONE, "rack"]),
            "maxSkew": st.integers(1, 2),
            "whenUnsatisfiable": st.sampled_from(["DoNotSchedule", "ScheduleAnyway"]),
        },
    ),
    max_size=3,
)
"""Topology spread constraints."""
_EFFECTS: Final = ("NoSchedule", "NoExecute", "PreferNoSchedule")
_TAINT_KEYS: Final = (
    "dedicated",
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "ToBeDeletedByClusterAutoscaler",
    "example.com/kubernetes.io",
)
TAINTS: Final = st.lists(
    some(
        {"value": st.sampled_from(["", "a", "b"])},
        {"key": st.sampled_from(_TAINT_KEYS), "effect": st.sampled_from(_EFFECTS)},
    ),
    max_size=3,
)
"""Taints of nodes."""
TOLERATIONS: Final = st.lists(
    st.one_of(
        some(
            {
                "value": st.sampled_from(["a", "b", ""]),
                "effect": st.sampled_from(_EFFECTS),
                "operator": st.just("Equal"),
            },
            {"key": st.sampled_from(_TAINT_KEYS)},
        ),
        some(
            {"key": st.sampled_from(_TAINT_KEYS)},
            {
                "operator": st.just("Exists"),
                "effect": st.just("NoExecute"),
                "tolerationSeconds": st.integers(0, 300),
            },
        ),
        some({"key": st.sampled_from(_TAINT_KEYS)}, {"operator": st.just("Exists")}),
    ),
    max_size=3,
)
"""Tolerations of pods."""
_TERM: Final = some(
    {
        "matchExpressions": st.lists(
            st.fixed_dictionaries(
                {
                    "key": st.sampled_from([ZONE, "pool"]),
                    "operator": st.just("In"),
                    "values": st.lists(st.sampled_from(["a", "z"]), min_size=1, max_size=2),
                }
            ),
            max_size=2,
        ),
        "matchFields": st.just([{"key": "metadata.name", "operator": "In", "values": ["node-1"]}]),
    }
)
AFFINITY: Final = some(
    {
        "nodeAffinity": some(
            {
                "requiredDuringSchedulingIgnoredDuringExecution": st.fixed_dictionaries(
                    {"nodeSelectorTerms": st.lists(_TERM, min_size=1, max_size=2)}
                ),
                "preferredDuringSchedulingIgnoredDuringExecution": st.lists(
                    st.fixed_dictionaries({"weight": st.just(1), "preference": _TERM}), max_size=1
                ),
            }
        ),
        "podAntiAffinity": st.just({}),
    }
)
"""Affinities of pods."""
_ENV: Final = st.lists(
    st.one_of(
        some(
            {"value": st.sampled_from(["", "1.2.3.4", "x"])},
            {"name": st.sampled_from(["KUBERNETES_SERVICE_HOST", "A", "B"])},
        ),
        st.fixed_dictionaries(
            {
                "name": st.just("KUBERNETES_SERVICE_HOST"),
                "valueFrom": st.just({"fieldRef": {"fieldPath": "status.hostIP"}}),
            }
        ),
    ),
    max_size=3,
)
_MOUNTS: Final = st.lists(
    st.fixed_dictionaries(
        {
            "name": st.sampled_from(["kube-api-access-gardener", "kube-api-access-x1", "data"]),
            "mountPath": st.sampled_from(
                ["/var/run/secrets/kubernetes.io/serviceaccount", "/data"]
            ),
        }
    ),
    max_size=2,
    unique_by=lambda mount: mount["mountPath"],  # an API server refuses another one
)
_SECCOMP: Final = st.sampled_from(
    [
        {"type": "RuntimeDefault"},
        {"type": "Unconfined"},
        {"type": "Localhost", "localhostProfile": "a.json"},
    ]
)


def _containers(most: int, least: int = 0) -> SearchStrategy[list[JsonObject]]:
    container = some(
        {
            "env": _ENV,
            "volumeMounts": _MOUNTS,
            "securityContext": some(
                {"seccompProfile": _SECCOMP, "privileged": st.just(False)}  # noqa: FBT003 # JSON
            ),
        },
        {"image": st.just("i")},
    )

    def named(found: list[JsonObject]) -> list[JsonObject]:
        return [{**each, "name": f"c{number}"} for number, each in enumerate(found)]

    return st.lists(container, min_size=least, max_size=most).map(named)


_GENERIC: Final = st.sampled_from(["generic-token-kubeconfig-1a"] * 3 + ["generic-token", "other"])
_SOURCES: Final[SearchStrategy[JsonObject]] = st.one_of(
    st.fixed_dictionaries({"secret": st.fixed_dictionaries({"secretName": _GENERIC})}),
    st.fixed_dictionaries(
        {
            "projected": st.fixed_dictionaries(
                {
                    "sources": st.lists(
                        st.one_of(
                            st.fixed_dictionaries(
                                {"secret": st.fixed_dictionaries({"name": _GENERIC})}
                            ),
                            st.just({"configMap": {"name": "kube-root-ca.crt"}}),
                            st.just({"serviceAccountToken": {"path": "token"}}),
                        ),
                        max_size=2,
                    )
                }
            )
        }
    ),
    st.just({"emptyDir": {}}),
)
_VOLUMES: Final = st.lists(
    st.tuples(
        st.sampled_from(["kube-api-access-x1", "data", "kubeconfig", "kubeconfig", "other"]),
        _SOURCES,
    ),
    max_size=2,
    unique_by=lambda volume: volume[0],
).map(lambda volumes: [{"name": name, **source} for name, source in volumes])
_BOOLEANS: Final = st.booleans()
_EXPIRATION: Final = "projected-token-mount.resources.gardener.cloud/expiration-seconds"
_ANNOTATIONS: Final = st.dictionaries(
    st.sampled_from(["a", _EXPIRATION]),
    st.sampled_from(["600", "43200", "0"] * 3 + ["", "x", "-5", " 7", "9" * 30, "1e3"]),
    max_size=2,
)
METADATA: Final = some(
    {
        "annotations": _ANNOTATIONS,
        "generateName": st.just("web-"),
        "ownerReferences": st.sampled_from(
            [
                [],
                *(
                    [
                        {
                            "apiVersion": "apps/v1",
                            "kind": kind,
                            "name": "o",
                            "uid": "1",
                            "controller": True,
                        }
                    ]
                    for kind in ("ReplicaSet", "DaemonSet", "StatefulSet")
                ),
            ]
        ),
    },
    {
        "namespace": st.just(NAMESPACE),
        "name": NAMES,
        "labels": st.sampled_from([{}, {"app": "a"}, {"app": "a", TEMPLATE_HASH: "b"}]),
    },
)
_FIELDS: Final[dict[str, SearchStrategy[Any]]] = {
    "initContainers": _containers(1),
    "volumes": _VOLUMES,
    "tolerations": TOLERATIONS,
    "affinity": AFFINITY,
    "nodeSelector": LABELS,
    "schedulerName": st.sampled_from(["", "default-scheduler", "other"]),
    "serviceAccountName": st.sampled_from(["", "default", "a"]),
    "automountServiceAccountToken": _BOOLEANS,
    "hostNetwork": _BOOLEANS,
    "securityContext": some({"seccompProfile": _SECCOMP, "runAsUser": st.just(0)}),
    "hostAliases": st.lists(
        st.fixed_dictionaries(
            {
                "ip": st.sampled_from(["10.0.0.1", "10.0.0.2"]),
                "hostnames": st.lists(st.sampled_from(["x", "api"]), max_size=2),
            }
        ),
        max_size=2,
        unique_by=lambda alias: str(alias["ip"]),
    ),
}
SPECS: Final = some(_FIELDS, {"containers": _containers(2, 1), "topologySpreadConstraints": SPREAD})
"""Specs of pods."""
PODS: Final = st.fixed_dictionaries({"metadata": METADATA, "spec": SPECS})
"""Pods without apiVersion and kind."""
