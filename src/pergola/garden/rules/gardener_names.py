"""Feature gates and admission plugins of Gardener."""

from typing import Final

FEATURE_GATES: Final[dict[str, bool | None]] = dict.fromkeys(
    (
        "CloudProfileCapabilities",
        "DefaultSeccompProfile",
        "DisableNginxIngressInGarden",
        "DisableNginxIngressInSeed",
        "DisableNginxIngressInShoot",
        "BackupEntryForGarden",
        "CustomDNSServerInNodeLocalDNS",
        "InPlaceNodeUpdates",
        "IstioTLSTermination",
        "LiveControlPlaneMigration",
        "OpenTelemetryCollector",
        "PrometheusHealthChecks",
        "RemoveHTTPProxyLegacyPort",
        "RemoveVali",
        "VPNBondingModeRoundRobin",
        "VersionClassificationLifecycle",
        "VictoriaLogsBackend",
    )
) | {"DoNotCopyBackupCredentials": True}
"""Feature gates of the Gardener components, and the value to which one is locked."""

VPA_FEATURE_GATES: Final = frozenset({"CPUStartupBoost", "InPlace", "PerVPAConfig"})
"""Feature gates of the vertical pod autoscaler."""

ADMISSION_PLUGINS: Final = (
    "NamespaceLifecycle",
    "ResourceReferenceManager",
    "ExtensionValidator",
    "ExtensionLabels",
    "ShootTolerationRestriction",
    "ShootExposureClass",
    "ShootDNS",
    "ShootManagedSeed",
    "ShootNodeLocalDNSEnabledByDefault",
    "ShootDNSRewriting",
    "ShootQuotaValidator",
    "ShootMutator",
    "ShootValidator",
    "SeedValidator",
    "SeedMutator",
    "ControllerRegistrationResources",
    "NamespacedCloudProfileValidator",
    "ProjectMutator",
    "DeletionConfirmation",
    "FinalizerRemoval",
    "CustomVerbAuthorizer",
    "ShootVPAEnabledByDefault",
    "ShootResourceReservation",
    "ManagedSeed",
    "ManagedSeedShoot",
    "Bastion",
    "BackupBucketValidator",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionWebhook",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionWebhook",
    "ResourceQuota",
)
"""Admission plugins of gardener-apiserver, in the order in which they run."""
