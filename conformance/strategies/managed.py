"""Objects of ManagedResources: as manifests, and as others left them in a cluster."""

from typing import Any, Final, NamedTuple

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.clusters import CLUSTER_SCOPED
from conformance.strategies.kubernetes import some
from pergola.api import marks
from pergola.api.objects import JsonObject
from pergola.kube.patches import apply_merge_patch

_RESTARTED: Final = "kubectl.kubernetes.io/restartedAt"
_TRUTHS: Final = st.sampled_from(["true", "true", "T", "1", "True", "false", "yes"])
_VALUES: Final = st.sampled_from(["x", "y", ""])
LABELS: Final = st.dictionaries(
    st.sampled_from(["app", "role", "tier", marks.GARBAGE_COLLECTABLE]),
    st.sampled_from(["a", "b", "true"]),
    max_size=3,
)
"""Labels of manifests and live objects."""
PROPAGATIONS: Final = ("Background", "Foreground", "Orphan")
UNKNOWN: Final = "Other"
"""An unknown propagation."""
_NOTES: Final[dict[str, SearchStrategy[str]]] = {
    "a": _VALUES,
    "b": _VALUES,
    "reference.resources.gardener.cloud/secret-12345678": st.just("s"),
    marks.PRESERVE_REPLICAS: _TRUTHS,
    marks.PRESERVE_RESOURCES: _TRUTHS,
    marks.DELETE_ON_INVALID_UPDATE: _TRUTHS,
    marks.DELETION_PROPAGATION_ON_INVALID_UPDATE: st.sampled_from([*PROPAGATIONS, UNKNOWN]),
    marks.KEEP_OBJECT: _TRUTHS,
    marks.FINALIZE_DELETION_AFTER: st.sampled_from(["0", "1h", "30m", "1h30m", "2400h", "1d", ""]),
}


def _annotations(more: dict[str, SearchStrategy[str]]) -> SearchStrategy[JsonObject]:
    names = sorted([*_NOTES, *more])
    strategies = {**_NOTES, **more}
    return st.lists(st.sampled_from(names), max_size=3, unique=True).flatmap(
        lambda chosen: st.fixed_dictionaries({name: strategies[name] for name in chosen})
    )


ANNOTATIONS: Final = _annotations(
    {marks.IGNORE: _TRUTHS, marks.MODE: st.sampled_from(["Ignore", "Ignore", "ignore"])}
)
"""Annotations of manifests."""
LIVE_ANNOTATIONS: Final = _annotations(
    {
        marks.DESCRIPTION: st.sampled_from([marks.DESCRIPTION_TEXT, "x"]),
        "loadbalancer.openstack.org/id": _VALUES,
        "deployment.kubernetes.io/revision": st.sampled_from(["1", "2"]),
    }
)
"""Annotations of live objects, without the origin."""
OWNERS: Final = st.lists(
    st.fixed_dictionaries(
        {
            "apiVersion": st.just("v1"),
            "kind": st.just("ConfigMap"),
            "name": st.just("owner"),
            "uid": st.sampled_from(["1", "2"]),
        }
    ),
    max_size=1,
)
"""Owner references."""


class Kind(NamedTuple):
    """A kind of object.

    Attributes:
        body: everything but metadata, as in a manifest.
        filled: what others add to a live object.
        live: the body of a live object, unless it may be that of any manifest.
    """

    version: str
    name: str
    body: SearchStrategy[JsonObject]
    filled: SearchStrategy[JsonObject] = st.just({})  # a constant
    live: SearchStrategy[JsonObject] | None = None

    @property
    def namespaced(self) -> bool:
        """Whether objects of this kind have a namespace."""
        return self.name not in CLUSTER_SCOPED


_QUANTITIES: Final = st.dictionaries(
    st.sampled_from(["cpu", "memory", "example.com/gpu"]),
    st.sampled_from(["1", "2", "3"]),
    max_size=3,
)
_CONTAINERS: Final = st.lists(
    some(
        {"resources": some({"requests": _QUANTITIES, "limits": _QUANTITIES})},
        {"name": st.sampled_from(["a", "b", "c"]), "image": st.sampled_from(["i", "j"])},
    ),
    min_size=1,
    max_size=2,
    unique_by=lambda container: str(container["name"]),
)
_TEMPLATE_NOTES: Final = st.dictionaries(
    st.sampled_from(["a", _RESTARTED]), st.sampled_from(["x", "y"]), max_size=2
)
_TEMPLATES: Final = st.fixed_dictionaries(
    {
        "metadata": some({"annotations": _TEMPLATE_NOTES}, {"labels": st.just({"app": "a"})}),
        "spec": some({"initContainers": _CONTAINERS}, {"containers": _CONTAINERS}),
    }
)
_SELECTOR: Final = st.just({"matchLabels": {"app": "a"}})
_REPLICAS: Final = {"replicas": st.integers(0, 4)}
_DATA: Final = st.dictionaries(
    st.sampled_from(["k", "l"]), st.sampled_from(["eA==", "eQ=="]), max_size=2
)
_CLAIMS: Final = st.lists(
    st.fixed_dictionaries(
        {
            "metadata": some({"labels": LABELS}, {"name": st.sampled_from(["data", "logs"])}),
            "spec": some(
                {"storageClassName": st.sampled_from(["fast", "slow"])},
                {"accessModes": st.just(["ReadWriteOnce"])},
            ),
        }
    ),
    max_size=2,
    unique_by=lambda claim: str(claim["metadata"]["name"]),
)
_STORAGE: Final = st.sampled_from(["1Gi", "2Gi"])
_PROTOCOLS: Final = st.sampled_from(["TCP", "TCP", "UDP"])
_BALANCED: Final = ("NodePort", "LoadBalancer")


_ANY_PORT: Final = st.tuples(
    st.sampled_from(["http", "https", "metrics"]), st.sampled_from([80, 443, 8080])
).map(lambda port: [port])
_OWN_PORTS: Final = st.lists(
    st.sampled_from([("http", 80), ("https", 443), ("metrics", 8080)]),
    min_size=1,
    max_size=3,
    unique=True,
)
_Ports = SearchStrategy[list[tuple[str, int]]]


def _ports(
    ports: _Ports, node_ports: SearchStrategy[tuple[int, ...]]
) -> SearchStrategy[list[JsonObject]]:
    """Return ports with names and numbers; a node port of 0 is left out."""
    return st.builds(
        lambda named, assigned, protocol, target: [
            {"name": name, "port": port, "targetPort": target, "protocol": protocol}
            | ({"nodePort": node_port} if node_port else {})
            for (name, port), node_port in zip(named, assigned, strict=False)
        ],
        ports,
        node_ports,
        _PROTOCOLS,
        st.sampled_from([1, 2]),
    )


def _service(kind: str, ports: _Ports, *, live: bool) -> SearchStrategy[JsonObject]:
    """Return the spec of a Service of a type, with the fields that the type has."""
    if kind == "ExternalName":
        return st.fixed_dictionaries({"type": st.just(kind), "externalName": st.just("a.b")})
    is_balanced = kind in _BALANCED
    chosen = [(0, 0, 0)]
    if is_balanced:
        chosen = [(30001, 30002, 30003)] if live else [(0, 0, 0), (30011, 0, 0), (0, 0, 30013)]
    address = st.sampled_from(["10.0.0.1", "10.0.0.2"])
    headless = st.just("None") if kind == "ClusterIP" else address
    required: dict[str, SearchStrategy[Any]] = {
        "ports": _ports(ports, st.sampled_from(chosen)),
        "type": st.just(kind),
    }
    fields: dict[str, SearchStrategy[Any]] = {"selector": st.just({"app": "a"})}
    (required if live else fields)["clusterIP"] = address | headless
    if is_balanced:
        fields["externalTrafficPolicy"] = st.sampled_from(["Local", "Cluster"])
    if kind == "LoadBalancer":
        fields["loadBalancerIP"] = st.sampled_from(["1.1.1.1", "2.2.2.2"])
    if kind == "LoadBalancer" and live:
        local = {"externalTrafficPolicy": st.just("Local"), "healthCheckNodePort": st.just(30009)}
        del fields["externalTrafficPolicy"]
        return some(fields, required) | some(fields, required | local)
    return some(fields, required)


def _services(ports: _Ports, *, live: bool) -> SearchStrategy[JsonObject]:
    kinds = st.sampled_from(["ClusterIP", *_BALANCED, *_BALANCED, "ExternalName"])
    return kinds.flatmap(lambda kind: _service(kind, ports, live=live)).map(
        lambda spec: {"spec": spec}
    )


_REFERENCES: Final = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from(["x", "y"])}), max_size=2
)
_HOOKS: Final = st.lists(
    st.fixed_dictionaries(
        {
            "name": st.sampled_from(["a.example.com", "b.example.com"]),
            "clientConfig": some(
                {"caBundle": st.sampled_from(["eA==", "eQ=="])},
                {"url": st.just("https://example.com")},
            ),
            "sideEffects": st.just("None"),
            "admissionReviewVersions": st.just(["v1"]),
        }
    ),
    min_size=1,
    max_size=2,
    unique_by=lambda hook: str(hook["name"]),
)


def _with_spec(
    fields: dict[str, SearchStrategy[Any]], required: dict[str, SearchStrategy[Any]] | None = None
) -> SearchStrategy[JsonObject]:
    return st.fixed_dictionaries({"spec": some(fields, required)})


_WORKLOAD: Final = {"selector": _SELECTOR, "template": _TEMPLATES}
_SET: Final = {**_WORKLOAD, "serviceName": st.just("s")}
_JOB: Final = _with_spec(
    {"parallelism": st.integers(1, 3), "backoffLimit": st.integers(0, 2)},
    {"template": _TEMPLATES},
)
_CLAIM_SPEC: Final = {
    "accessModes": st.just(["ReadWriteOnce"]),
    "resources": st.fixed_dictionaries({"requests": st.fixed_dictionaries({"storage": _STORAGE})}),
}
_VOLUME_SPEC: Final = {
    "capacity": st.fixed_dictionaries({"storage": _STORAGE}),
    "accessModes": st.just(["ReadWriteOnce"]),
    "hostPath": st.just({"path": "/a"}),
}
_JOB_LABELS: Final = {"batch.kubernetes.io/controller-uid": "u", "job-name": "o0"}
_JOB_FILLED: Final[JsonObject] = {
    "spec": {
        "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}},
        "template": {"metadata": {"labels": _JOB_LABELS}},
    }
}
KINDS: Final = (
    Kind("v1", "ConfigMap", some({"data": _DATA, "immutable": st.booleans()})),
    Kind(
        "v1",
        "Secret",
        some(
            {
                "data": _DATA,
                "immutable": st.booleans(),
                "type": st.sampled_from(["Opaque", "kubernetes.io/service-account-token"]),
            }
        ),
    ),
    # Of several live ports that fit, the original takes the last one: none of these questions.
    *(
        Kind(
            "v1",
            "Service",
            _services(ports, live=False),
            st.just({"status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}}),
            _services(ports, live=True),
        )
        for ports in (_ANY_PORT, _OWN_PORTS)
    ),
    Kind(
        "v1",
        "ServiceAccount",
        some(
            {
                "secrets": _REFERENCES,
                "imagePullSecrets": _REFERENCES,
                "automountServiceAccountToken": st.booleans(),
            }
        ),
    ),
    Kind(
        "apps/v1",
        "Deployment",
        _with_spec(_REPLICAS, _WORKLOAD),
        some({"spec": st.just({"replicas": 1}), "status": st.just({"replicas": 1})}),
    ),
    Kind(
        "apps/v1",
        "StatefulSet",
        _with_spec({**_REPLICAS, "volumeClaimTemplates": _CLAIMS}, _SET),
    ),
    Kind("apps/v1", "DaemonSet", _with_spec({}, _WORKLOAD)),
    Kind("batch/v1", "Job", _JOB, st.just(_JOB_FILLED)),
    Kind(
        "batch/v1",
        "CronJob",
        _with_spec(
            {"suspend": st.booleans()},
            {"schedule": st.sampled_from(["* * * * *", "0 * * * *"]), "jobTemplate": _JOB},
        ),
    ),
    Kind(
        "v1",
        "PersistentVolumeClaim",
        _with_spec({"storageClassName": st.just("fast")}, _CLAIM_SPEC),
        some({"spec": st.just({"volumeName": "v"}), "status": st.just({"phase": "Bound"})}),
    ),
    Kind(
        "v1",
        "PersistentVolume",
        _with_spec({}, _VOLUME_SPEC),
        some(
            {
                "spec": st.just(
                    {"claimRef": {"kind": "PersistentVolumeClaim", "name": "c", "uid": "1"}}
                ),
                "status": st.just({"phase": "Bound"}),
            }
        ),
    ),
    Kind("v1", "Namespace", st.just({})),
    Kind(
        "rbac.authorization.k8s.io/v1",
        "ClusterRole",
        st.fixed_dictionaries(
            {
                "rules": st.sampled_from(
                    [
                        [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
                        [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}],
                    ]
                )
            }
        ),
    ),
    Kind(
        "admissionregistration.k8s.io/v1",
        "MutatingWebhookConfiguration",
        st.fixed_dictionaries({"webhooks": _HOOKS}),
    ),
    Kind(
        "policy/v1",
        "PodDisruptionBudget",
        _with_spec({"maxUnavailable": st.integers(0, 2)}, {"selector": _SELECTOR}),
    ),
)
"""Kinds of objects, with a rule or without."""


def live_body(kind: Kind) -> SearchStrategy[JsonObject]:
    """Return everything but metadata of a live object."""
    body = kind.body if kind.live is None else kind.live
    return st.tuples(body, kind.filled).map(lambda parts: apply_merge_patch(*parts))
