"""Admission plugins of kube-apiserver, by version."""

from typing import Final

from pergola.api.known.kubernetes_versions import Minor
from pergola.api.known.version_ranges import Range

_ALWAYS: Final = (
    "AlwaysAdmit",
    "AlwaysDeny",
    "AlwaysPullImages",
    "CertificateApproval",
    "CertificateSigning",
    "CertificateSubjectRestriction",
    "ClusterTrustBundleAttest",
    "DefaultIngressClass",
    "DefaultStorageClass",
    "DefaultTolerationSeconds",
    "DenyServiceExternalIPs",
    "EventRateLimit",
    "ExtendedResourceToleration",
    "ImagePolicyWebhook",
    "LimitPodHardAntiAffinityTopology",
    "LimitRanger",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionWebhook",
    "NamespaceAutoProvision",
    "NamespaceExists",
    "NamespaceLifecycle",
    "NodeRestriction",
    "OwnerReferencesPermissionEnforcement",
    "PersistentVolumeClaimResize",
    "PodNodeSelector",
    "PodSecurity",
    "PodTolerationRestriction",
    "Priority",
    "ResourceQuota",
    "RuntimeClass",
    "ServiceAccount",
    "StorageObjectInUseProtection",
    "TaintNodesByCondition",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionWebhook",
)
_NEVER: Final = Range(None, Minor(0, 0))

VERSIONS: Final[dict[str, Range]] = {name: Range(None, None) for name in _ALWAYS} | {
    "JobValidation": Range(Minor(1, 36), None),
    "NodeDeclaredFeatureValidator": Range(Minor(1, 35), None),
    "PersistentVolumeLabel": _NEVER,
    "PodGroupProtection": Range(Minor(1, 36), None),
    "PodGroupWorkloadExists": Range(Minor(1, 36), None),
    "PodResizeValidator": Range(Minor(1, 36), None),
    "PodTopologyLabels": Range(Minor(1, 33), None),
    "SecurityContextDeny": _NEVER,
}
"""The versions that know each plugin."""

REQUIRED: Final = frozenset(
    {
        "MutatingAdmissionWebhook",
        "NamespaceLifecycle",
        "NodeRestriction",
        "PodSecurity",
        "Priority",
        "StorageObjectInUseProtection",
        "ValidatingAdmissionWebhook",
    }
)
"""Plugins that cannot be switched off."""

WITH_CONFIGURATION: Final = frozenset(
    {
        "EventRateLimit",
        "ImagePolicyWebhook",
        "MutatingAdmissionWebhook",
        "PodNodeSelector",
        "PodSecurity",
        "PodTolerationRestriction",
        "ResourceQuota",
        "ValidatingAdmissionWebhook",
    }
)
"""Plugins that read a configuration."""

WITH_KUBECONFIG: Final = frozenset(
    {"ImagePolicyWebhook", "MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"}
)
"""Plugins that call a server."""
