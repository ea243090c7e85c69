"""Gardens with every field set."""

from collections.abc import Iterator
from typing import Any, Final

import orjson

from pergola.api.objects import JsonObject

_AUDIT_POLICY: Final = {"auditPolicy": {"configMapRef": {"name": "audit-policy"}}}
_AUDIT_WEBHOOK: Final = {
    "kubeconfigSecretName": "audit",
    "batchMaxSize": 100,
    "version": "audit.k8s.io/v1",
}
_LOGGING: Final = {"verbosity": 2, "httpAccessVerbosity": 3}
_REQUESTS: Final = {"maxNonMutatingInflight": 400, "maxMutatingInflight": 200}
_QUOTA: Final = {
    "config": {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "spec": {"hard": {"count/shoots.core.gardener.cloud": "100"}},
    },
    "projectSelector": {
        "matchLabels": {"a": "b"},
        "matchExpressions": [
            {"key": "c", "operator": "In", "values": ["d"]},
            {"key": "e", "operator": "Exists"},
        ],
    },
}
_KUBE_API_SERVER: Final = {
    "admissionPlugins": [
        {
            "name": "PodNodeSelector",
            "disabled": False,
            "config": {"apiVersion": "v1", "kind": "Configuration"},
        },
        {
            "name": "ValidatingAdmissionWebhook",
            "disabled": False,
            "kubeconfigSecretName": "plugin",
        },
    ],
    "apiAudiences": ["kubernetes"],
    "auditConfig": _AUDIT_POLICY,
    "auditWebhook": _AUDIT_WEBHOOK,
    "authentication": {
        "webhook": {"kubeconfigSecretName": "authn", "cacheTTL": "30m", "version": "v1beta1"}
    },
    "autoscaling": {"minAllowed": {"cpu": "1", "memory": "3Gi"}},
    "defaultNotReadyTolerationSeconds": 300,
    "defaultUnreachableTolerationSeconds": 300,
    "enableAnonymousAuthentication": False,
    "encryptionConfig": {
        "resources": ["configmaps", "deployments.apps"],
        "provider": {"type": "aescbc"},
    },
    "eventTTL": "1h",
    "featureGates": {"JobPodReplacementPolicy": True},
    "logging": _LOGGING,
    "requests": _REQUESTS,
    "resourcesToStoreInETCDEvents": [{"group": "networking.k8s.io", "resource": "networkpolicies"}],
    "runtimeConfig": {"apps/v1": True},
    "serviceAccountConfig": {
        "issuer": "https://issuer.example.com",
        "acceptedIssuers": ["https://other.example.com"],
        "extendTokenExpiration": True,
        "maxTokenExpiration": "1080h",
    },
    "sni": {"secretName": "sni", "domainPatterns": ["foo.example.com", "*.sni.example.com"]},
    "structuredAuthentication": {"configMapName": "authentication"},
    "structuredAuthorization": {
        "configMapName": "authorization",
        "kubeconfigs": [{"authorizerName": "webhook", "secretName": "authz"}],
    },
    "watchCacheSizes": {
        "default": 100,
        "resources": [
            {"resource": "secrets", "size": 500},
            {"apiGroup": "apps", "resource": "deployments", "size": 500},
        ],
    },
}
_GARDENER: Final = {
    "clusterIdentity": "garden",
    "gardenerAPIServer": {
        "admissionPlugins": [
            {"name": "ShootDNSRewriting", "disabled": False, "kubeconfigSecretName": "plugin"}
        ],
        "auditConfig": _AUDIT_POLICY,
        "auditWebhook": _AUDIT_WEBHOOK,
        "encryptionConfig": {
            "resources": ["shoots.core.gardener.cloud"],
            "provider": {"type": "aescbc"},
        },
        "featureGates": {"InPlaceNodeUpdates": True},
        "logging": _LOGGING,
        "requests": _REQUESTS,
        "shootAdminKubeconfigMaxExpiration": "24h",
        "watchCacheSizes": {
            "default": 100,
            "resources": [{"apiGroup": "core.gardener.cloud", "resource": "shoots", "size": 500}],
        },
    },
    "gardenerAdmissionController": {
        "logLevel": "info",
        "resourceAdmissionConfiguration": {
            "operationMode": "block",
            "limits": [
                {
                    "apiGroups": ["core.gardener.cloud"],
                    "apiVersions": ["*"],
                    "resources": ["shoots"],
                    "size": "100k",
                },
                {
                    "apiGroups": ["core.gardener.cloud"],
                    "apiVersions": ["v1beta1"],
                    "resources": ["projects"],
                    "count": 200,
                },
            ],
            "unrestrictedSubjects": [
                {"kind": "Group", "name": "seeds", "apiGroup": "rbac.authorization.k8s.io"},
                {"kind": "ServiceAccount", "name": "a", "namespace": "n"},
            ],
        },
    },
    "gardenerControllerManager": {
        "defaultProjectQuotas": [_QUOTA],
        "featureGates": {"DisableNginxIngressInShoot": True},
        "logLevel": "info",
    },
    "gardenerScheduler": {
        "featureGates": {"InPlaceNodeUpdates": True},
        "logLevel": "info",
        "strategy": "SameRegion",
    },
    "gardenerDashboard": {
        "logLevel": "info",
        "enableTokenLogin": True,
        "frontendConfigMapRef": {"name": "frontend"},
        "assetsConfigMapRef": {"name": "assets"},
        "gitHub": {
            "apiURL": "https://api.github.example.com",
            "organisation": "o",
            "repository": "r",
            "secretRef": {"name": "github"},
            "pollInterval": "15m",
        },
        "oidcConfig": {
            "clientIDPublic": "client",
            "issuerURL": "https://identity.example.com",
            "sessionLifetime": "12h",
            "additionalScopes": ["profile"],
            "secretRef": {"name": "oidc"},
            "certificateAuthoritySecretRef": {"name": "oidc-ca"},
        },
        "terminal": {
            "allowedHosts": ["*.seed.example.com"],
            "container": {"image": "busybox:latest", "description": "d"},
        },
        "domain": {"name": "dashboard.example.com", "provider": "primary"},
        "tlsSecretName": "dashboard-tls",
        "propagateCAFromSNI": True,
        "ingress": {"enabled": True},
    },
    "gardenerDiscoveryServer": {
        "domain": {"name": "discovery.example.com", "provider": "primary"},
        "tlsSecretName": "discovery-tls",
    },
    "gardenerResourceManager": {"additionalTargetNamespaces": ["n"]},
}
_ROTATED: Final = {
    "phase": "Completed",
    "lastInitiationTime": "2026-01-01T00:00:00Z",
    "lastCompletionTime": "2026-01-02T00:00:00Z",
}
GARDEN: Final[JsonObject] = {
    "apiVersion": "operator.gardener.cloud/v1alpha1",
    "kind": "Garden",
    "metadata": {
        "name": "garden",
        "uid": "1",
        "resourceVersion": "1",
        "generation": 1,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "annotations": {"gardener.cloud/operation": "reconcile"},
    },
    "spec": {
        "dns": {
            "providers": [
                {"name": "primary", "type": "local", "secretRef": {"name": "dns"}},
                {
                    "name": "second",
                    "type": "local",
                    "secretRef": {"name": "dns"},
                    "providerConfig": {"apiVersion": "v1", "kind": "Configuration"},
                },
            ]
        },
        "extensions": [
            {"type": "certificates", "providerConfig": {"apiVersion": "v1", "kind": "C"}}
        ],
        "resources": [
            {
                "name": "a",
                "resourceRef": {"apiVersion": "v1", "kind": "Secret", "name": "referenced"},
            }
        ],
        "runtimeCluster": {
            "ingress": {
                "domains": [
                    {"name": "ingress.example.com", "provider": "primary"},
                    {"name": "other.example.com", "provider": "second"},
                ],
                "controller": {
                    "kind": "nginx",
                    "providerConfig": {"apiVersion": "v1", "kind": "Configuration"},
                },
            },
            "networking": {
                "ipFamilies": ["IPv4"],
                "nodes": ["172.18.0.0/24"],
                "pods": ["10.1.0.0/16"],
                "services": ["10.2.0.0/16"],
                "blockCIDRs": ["169.254.169.254/32"],
            },
            "provider": {"region": "local", "zones": ["0", "1", "2"]},
            "settings": {
                "loadBalancerServices": {
                    "annotations": {"a": "b"},
                    "externalTrafficPolicy": "Local",
                    "proxyProtocol": {"allowed": True},
                },
                "persistentVolumeClaimAutoscaler": {"enabled": True},
                "verticalPodAutoscaler": {
                    "enabled": True,
                    "featureGates": {"CPUStartupBoost": True},
                    "maxAllowed": {"cpu": "8", "memory": "32Gi"},
                },
                "topologyAwareRouting": {"enabled": True},
            },
            "volume": {"minimumSize": "20Gi"},
        },
        "virtualCluster": {
            "controlPlane": {"highAvailability": {}},
            "dns": {
                "domains": [
                    {"name": "virtual.example.com", "provider": "primary"},
                    {"name": "virtual.example.org", "provider": "second"},
                ]
            },
            "etcd": {
                "main": {
                    "autoscaling": {"minAllowed": {"cpu": "2", "memory": "6Gi"}},
                    "backup": {
                        "provider": "local",
                        "region": "local",
                        "bucketName": "bucket",
                        "secretRef": {"name": "backup"},
                        "providerConfig": {"apiVersion": "v1", "kind": "Configuration"},
                    },
                    "storage": {"capacity": "25Gi", "className": "default"},
                },
                "events": {
                    "autoscaling": {"minAllowed": {"cpu": "1", "memory": "3Gi"}},
                    "storage": {"capacity": "10Gi", "className": "default"},
                },
            },
            "gardener": _GARDENER,
            "kubernetes": {
                "version": "1.34.2",
                "kubeAPIServer": _KUBE_API_SERVER,
                "kubeControllerManager": {
                    "featureGates": {"JobPodReplacementPolicy": True},
                    "certificateSigningDuration": "48h",
                },
            },
            "maintenance": {"timeWindow": {"begin": "220000+0100", "end": "230000+0100"}},
            "networking": {"services": ["100.64.0.0/13"]},
        },
    },
    "status": {
        "observedGeneration": 1,
        "lastOperation": {
            "type": "Reconcile",
            "state": "Succeeded",
            "progress": 100,
            "description": "d",
            "lastUpdateTime": "2026-01-01T00:00:00Z",
        },
        "credentials": {
            "rotation": {
                "certificateAuthorities": _ROTATED,
                "serviceAccountKey": _ROTATED,
                "etcdEncryptionKey": {**_ROTATED, "autoCompleteAfterPrepared": True},
                "observability": {"lastInitiationTime": "2026-01-01T00:00:00Z"},
                "workloadIdentityKey": _ROTATED,
            },
            "encryptionAtRest": {
                "resources": [
                    *("configmaps", "deployments.apps", "shoots.core.gardener.cloud"),
                    *("secrets", "controllerdeployments.core.gardener.cloud"),
                    *("controllerregistrations.core.gardener.cloud",),
                    *("internalsecrets.core.gardener.cloud",),
                    *("shootstates.core.gardener.cloud",),
                ],
                "provider": {"type": "aescbc"},
            },
        },
    },
}
"""A Garden with every field that a valid one may have at once."""

VIRTUAL: Final = ("spec", "virtualCluster")
"""The path of the virtual cluster."""
_ROTATION: Final = ("status", "credentials", "rotation")
Change = tuple[tuple[str, ...], Any]
"""A path, and the value to set there; None removes it."""


def _stored() -> Iterator[JsonObject]:
    """Yield other Gardens that an API server may have stored."""
    for version in ("1.32.9", "1.33.4", "1.36.2"):
        yield altered(GARDEN, ((*VIRTUAL, "kubernetes", "version"), version))
    for name in ("etcd", "controlPlane"):
        zones = ("spec", "runtimeCluster", "settings", "topologyAwareRouting")
        yield altered(GARDEN, ((*VIRTUAL, name), None), (zones, None))
    for name in ("gardenerDiscoveryServer", "gardenerAPIServer"):
        yield altered(GARDEN, ((*VIRTUAL, "gardener", name), None))
    yield altered(GARDEN, ((*VIRTUAL, "etcd", "main", "backup", "bucketName"), None))
    yield altered(GARDEN, (("spec", "dns"), None), *((at, None) for at in PROVIDERS))
    yield altered(GARDEN, (("status",), None))
    for phase in ("Preparing", "Prepared", "Completing", "PreparingWithoutWorkersRollout"):
        rotated = {"phase": phase, "lastInitiationTime": "2026-01-01T00:00:00Z"}
        older = ((*VIRTUAL, "kubernetes", "version"), "1.33.4")
        operation = (("metadata", "annotations"), None)
        names = GARDEN["status"]["credentials"]["rotation"].keys() - {"observability"}
        yield altered(
            GARDEN, older, operation, *(((*_ROTATION, name), rotated) for name in sorted(names))
        )
        yield altered(GARDEN, operation, ((*_ROTATION, "etcdEncryptionKey"), rotated))
    for state in ("Processing", "Failed"):
        yield altered(GARDEN, (("status", "lastOperation", "state"), state))


def altered(obj: JsonObject, *changes: Change) -> JsonObject:
    """Return a copy of an object with other values."""
    obj = orjson.loads(orjson.dumps(obj))  # unlike a deep copy, without parts that are shared
    for (*above, last), value in changes:
        place: Any = obj
        for step in above:
            place = place[int(step) if isinstance(place, list) else step]
        place.pop(last) if value is None else place.update({last: value})
    return obj


PROVIDERS: Final = (
    *(("spec", "runtimeCluster", "ingress", "domains", n, "provider") for n in "01"),
    *((*VIRTUAL, "dns", "domains", n, "provider") for n in "01"),
    (*VIRTUAL, "gardener", "gardenerDashboard", "domain", "provider"),
    (*VIRTUAL, "gardener", "gardenerDiscoveryServer", "domain", "provider"),
)
"""The paths of the names of DNS providers."""
_API_SERVER: Final = (*VIRTUAL, "kubernetes", "kubeAPIServer")
_VPA: Final = ("spec", "runtimeCluster", "settings", "verticalPodAutoscaler")
UNUSUAL: Final = (
    altered(GARDEN, (("spec", "dns"), None)),
    altered(GARDEN, ((*VIRTUAL, "dns", "domains"), None)),
    altered(GARDEN, ((*VIRTUAL, "dns", "domains"), [])),
    altered(GARDEN, (("spec", "runtimeCluster", "ingress", "domains"), None)),
    altered(GARDEN, ((*VIRTUAL, "etcd", "main", "storage", "className"), None)),
    altered(GARDEN, ((*VIRTUAL, "etcd", "main"), None)),
    altered(GARDEN, ((*VIRTUAL, "etcd", "main", "backup", "region"), None)),
    altered(GARDEN, ((*_API_SERVER, "auditConfig"), None)),
    altered(GARDEN, ((*_API_SERVER, "encryptionConfig", "resources"), ["unknown"])),
    altered(GARDEN, ((*_API_SERVER, "sni", "secretName"), "A")),
    altered(GARDEN, ((*_VPA, "maxAllowed", "cpu"), "0")),
    altered(GARDEN, ((*VIRTUAL, "gardener", "gardenerDashboard", "terminal"), {})),
)
"""Gardens about which the original and Pergola may decide differently."""
STORED: Final = (GARDEN, *_stored())
"""Gardens that may be stored: with other settings, versions, and in the course of rotations."""
