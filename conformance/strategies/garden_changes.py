"""Changes that people make to Gardens."""

from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.strategies.changes import changed
from conformance.strategies.gardens import VIRTUAL, Change
from pergola.api.objects import JsonObject

_OPERATIONS: Final = (
    *("reconcile", "rotate-credentials-start", "rotate-credentials-complete", "rotate-ca-start"),
    *("rotate-ca-complete", "rotate-observability-credentials", "rotate-serviceaccount-key-start"),
    *("rotate-serviceaccount-key-complete", "rotate-etcd-encryption-key"),
    *("rotate-etcd-encryption-key-start", "rotate-etcd-encryption-key-complete"),
    *("rotate-workload-identity-key-start", "rotate-workload-identity-key-complete"),
    *("rotate-ssh-keypair", "retry"),
)
_TEXTS: Final = (
    *("1.32.9", "1.33.4", "1.34.0", "1.35.1", "1.36.2", "1.31.0", "1.37.0", "1.34", "v1.34.2"),
    *("IPv4", "IPv6", "primary", "second", "third", "local", "Cluster", "Local", "nginx"),
    *("configmaps", "secrets", "pods", "Deployments.apps", "*.apps", "leases.coordination.k8s.io"),
    *("shoots.core.gardener.cloud", "Shoots.core.gardener.cloud", "events", "unknown"),
    *("internalsecrets.core.gardener.cloud", "bastions.operations.gardener.cloud"),
    *("aescbc", "aesgcm", "secretbox", "kms", "Completed", "Prepared", "Preparing", "Completing"),
    *("Succeeded", "Failed", "Error", "Processing", "Reconcile", "Delete", "Create"),
    *("virtual.example.com", "api.virtual.example.com", "gardener.virtual.example.com"),
    *("ingress.example.com", "PodSecurity", "NamespaceLifecycle", "AlwaysPullImages"),
    *("PodNodeSelector", "ShootDNSRewriting", "ShootValidator", "ImagePolicyWebhook", "Priority"),
    *("block", "log", "info", "debug", "warn", "SameRegion", "MinimalDistance"),
    *("User", "Group", "ServiceAccount", "rbac.authorization.k8s.io", "core.gardener.cloud"),
    *("certificates", "backups", "In", "NotIn", "Exists", "DoesNotExist", "v1", "v1beta1"),
    *("Secret", "ConfigMap", "WorkloadIdentity", "Other", "audit.k8s.io/v1"),
    *("0s", "1s", "5m", "1h", "24h", "719h", "720h", "2160h", "2161h", "8761h", "1m30s", "-1h"),
    *("1193047h", "1h1", "h", "100M", "299M", "300M", "59M", "60M", "1e3", "-1", "10m"),
    *("220000+0000", "225959-0800", "000000+1400", "240000+0000", "10.0.0.0/16", "10.1.2.0/24"),
    *("fd00::/64", "10.2.0.0/15", "100.64.0.0/10", "VersionTLS13", "kubernetes"),
    *_OPERATIONS,
    *("rotate-ca-start;rotate-observability-credentials", "reconcile;", ";", "reconcile; retry"),
    "rotate-etcd-encryption-key;rotate-etcd-encryption-key-start",
)
_FEATURES: Final = (
    *(
        "InPlaceNodeUpdates",
        "DoNotCopyBackupCredentials",
        "RemoveVali",
        "UseNamespacedCloudProfile",
    ),
    *("JobPodReplacementPolicy", "AllAlpha", "AllBeta", "StructuredAuthenticationConfiguration"),
    *("MutatingAdmissionPolicy", "AnonymousAuthConfigurableEndpoints", "CPUStartupBoost"),
    *("InPlacePodVerticalScaling", "DynamicResourceAllocation", "Unknown", ""),
)
_API_SERVER: Final = (*VIRTUAL, "kubernetes", "kubeAPIServer")
_MANAGER: Final = (*VIRTUAL, "kubernetes", "kubeControllerManager")
_PARTS: Final = (*VIRTUAL, "gardener")
_FEATURE_GATES: Final = (
    _API_SERVER,
    _MANAGER,
    (*_PARTS, "gardenerAPIServer"),
    (*_PARTS, "gardenerControllerManager"),
    (*_PARTS, "gardenerScheduler"),
    ("spec", "runtimeCluster", "settings", "verticalPodAutoscaler"),
)
_AMOUNTS: Final = (
    (*_API_SERVER, "autoscaling", "minAllowed"),
    (*VIRTUAL, "etcd", "main", "autoscaling", "minAllowed"),
    (*VIRTUAL, "etcd", "events", "autoscaling", "minAllowed"),
    ("spec", "runtimeCluster", "settings", "verticalPodAutoscaler", "maxAllowed"),
)
_FRACTIONS: Final = st.sampled_from([0.0, 0.001, 0.02, 0.021, 0.1, 1.0, 1.5, -0.1])
_SETTINGS: Final[SearchStrategy[Change]] = st.one_of(
    st.tuples(
        st.tuples(
            st.sampled_from(_FEATURE_GATES), st.just("featureGates"), st.sampled_from(_FEATURES)
        ).map(lambda parts: (*parts[0], *parts[1:])),
        st.booleans(),
    ),
    st.tuples(
        st.sampled_from(["apps/v1", "apps/v2", "batch/v1beta1", "api/all", "a", ""]).map(
            lambda api: (*_API_SERVER, "runtimeConfig", api)
        ),
        st.booleans(),
    ),
    st.tuples(
        st.tuples(st.sampled_from(_AMOUNTS), st.sampled_from(["cpu", "memory", "storage"])).map(
            lambda parts: (*parts[0], parts[1])
        ),
        st.sampled_from(["0", "1", "-1", "1m", "59M", "60M", "299M", "300M", "1Gi", "1.5"]),
    ),
    st.tuples(st.just((*_PARTS, "gardenerAPIServer", "goAwayChance")), _FRACTIONS),
    st.tuples(st.just((*_MANAGER, "horizontalPodAutoscaler", "tolerance")), _FRACTIONS),
    st.tuples(
        st.sampled_from(["nodeCIDRMaskSize", "nodeCIDRMaskSizeIPv6"]).map(
            lambda name: (*_MANAGER, name)
        ),
        st.sampled_from([0, 24, 64, 129]),
    ),
    st.tuples(
        st.sampled_from(["podEvictionTimeout", "nodeMonitorGracePeriod"]).map(
            lambda name: (*_MANAGER, name)
        ),
        st.sampled_from(["2m", "0s", "-1m", "m"]),
    ),
    st.tuples(
        st.just((*_API_SERVER, "tlsMinVersion")), st.sampled_from(["VersionTLS12", "1.3", ""])
    ),
    st.tuples(
        st.just(("metadata", "annotations", "gardener.cloud/operation")),
        st.sampled_from(_OPERATIONS),
    ),
    st.tuples(
        st.just(("metadata", "finalizers")),
        st.sampled_from(
            [
                ["gardener.cloud/operator"],
                ["gardener.cloud/reference-protection"],
                ["example.com/a"],
            ]
        ),
    ),
    st.tuples(
        st.just((*VIRTUAL, "kubernetes", "version")),
        st.sampled_from(["1.32.9", "1.33.4", "1.35.1", "1.36.2"]),
    ),
)


def gardens(base: JsonObject) -> SearchStrategy[JsonObject]:
    """Return Gardens with a few odd values, and sometimes one more setting."""
    kept = [("metadata", name) for name in base["metadata"] if name != "annotations"]
    settings: SearchStrategy[Change | None] = st.none() | _SETTINGS
    return st.builds(_set, changed(base, texts=_TEXTS, keep=[*kept, ("status",)]), settings)


def _set(obj: JsonObject, setting: Change | None) -> JsonObject:
    if setting is None:
        return obj
    (*above, last), value = setting
    place: Any = obj  # `changed` returns a copy
    for step in above:
        place = place.setdefault(step, {})
    place[last] = value
    return obj
