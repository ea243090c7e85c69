"""Rules about Gardener and encryption in a Garden, one row each: spec 20 §6, spec 21 §7.4."""

from typing import Any

import pytest

from tests.support.gardens import GARDENER, MINIMAL, SERVER, findings, with_values

ADMISSION = f"{GARDENER}.gardenerAdmissionController.resourceAdmissionConfiguration"
LIMIT = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["secrets"], "size": "1Mi"}
DASHBOARD_PATH = f"{GARDENER}.gardenerDashboard"
DISCOVERY_PATH = f"{GARDENER}.gardenerDiscoveryServer"

ENCRYPTION: list[tuple[str, dict[str, Any], list[tuple[str, str]]]] = [
    (
        "resources to encrypt are lower case",
        {f"{SERVER}.encryptionConfig.resources": ["ConfigMaps"]},
        [("Invalid", f"{SERVER}.encryptionConfig.resources[0]")],
    ),
    (
        "wildcards, trailing dots and resources without an API are not encrypted",
        {
            f"{SERVER}.encryptionConfig.resources": [
                "*.apps",
                "configmaps.",
                "apiserveripinfo",
                "serviceipallocations",
                "servicenodeportallocations",
                "events.events.k8s.io",
                "ingresses.extensions",
            ]
        },
        [("Invalid", f"{SERVER}.encryptionConfig.resources[{index}]") for index in range(7)],
    ),
    (
        "Secrets are always encrypted",
        {f"{SERVER}.encryptionConfig.resources": ["secrets"]},
        [("Forbidden", f"{SERVER}.encryptionConfig.resources[0]")],
    ),
    (
        "resources of Kubernetes exist, those of other groups may",
        {
            f"{SERVER}.encryptionConfig.resources": [
                "configmap",
                "deployments.apps",
                "toasters.apps",
                "widgets.example.org",
                "volumeattributesclasses.storage.k8s.io",
            ]
        },
        [
            ("Invalid", f"{SERVER}.encryptionConfig.resources[0]"),
            ("Invalid", f"{SERVER}.encryptionConfig.resources[2]"),
        ],
    ),
    (
        "resources to encrypt are unique",
        {f"{SERVER}.encryptionConfig.resources": ["configmaps", "configmaps"]},
        [("Duplicate", f"{SERVER}.encryptionConfig.resources[1]")],
    ),
    (
        "each API server encrypts what it serves",
        {
            f"{SERVER}.encryptionConfig.resources": ["shoots.core.gardener.cloud"],
            f"{GARDENER}.gardenerAPIServer.encryptionConfig.resources": ["configmaps"],
        },
        [
            ("Invalid", f"{SERVER}.encryptionConfig.resources[0]"),
            ("Invalid", f"{GARDENER}.gardenerAPIServer.encryptionConfig.resources[0]"),
        ],
    ),
    (
        "four resources of Gardener are always encrypted",
        {
            f"{GARDENER}.gardenerAPIServer.encryptionConfig.resources": [
                "controllerdeployments.core.gardener.cloud",
                "controllerregistrations.core.gardener.cloud",
                "internalsecrets.core.gardener.cloud",
                "shootstates.core.gardener.cloud",
                "shoots.core.gardener.cloud",
            ]
        },
        [
            ("Forbidden", f"{GARDENER}.gardenerAPIServer.encryptionConfig.resources[{index}]")
            for index in range(4)
        ],
    ),
    (
        "resources of Gardener are lower case, without wildcards, unique",
        {
            f"{GARDENER}.gardenerAPIServer.encryptionConfig.resources": [
                "Shoots.core.gardener.cloud",
                "*.core.gardener.cloud",
                "seeds.core.gardener.cloud",
                "seeds.core.gardener.cloud",
            ]
        },
        [
            ("Invalid", f"{GARDENER}.gardenerAPIServer.encryptionConfig.resources[0]"),
            ("Invalid", f"{GARDENER}.gardenerAPIServer.encryptionConfig.resources[1]"),
            ("Duplicate", f"{GARDENER}.gardenerAPIServer.encryptionConfig.resources[3]"),
        ],
    ),
    (
        "the encryption provider is known",
        {f"{SERVER}.encryptionConfig.provider": {"type": "rot13"}},
        [("NotSupported", f"{SERVER}.encryptionConfig.provider.type")],
    ),
    (
        "both API servers encrypt alike",
        {f"{GARDENER}.gardenerAPIServer.encryptionConfig.provider": {"type": "secretbox"}},
        [("Invalid", f"{GARDENER}.gardenerAPIServer.encryptionConfig.provider.type")],
    ),
]

GARDENER_COMPONENTS: list[tuple[str, dict[str, Any], list[tuple[str, str]]]] = [
    (
        "Gardener's feature gates are known and not locked to another value",
        {
            f"{GARDENER}.gardenerAPIServer.featureGates": {"Nothing": True},
            f"{GARDENER}.gardenerControllerManager.featureGates": {"Nothing": True},
            f"{GARDENER}.gardenerScheduler.featureGates": {"DoNotCopyBackupCredentials": False},
        },
        [
            ("Forbidden", f"{GARDENER}.gardenerAPIServer.featureGates.Nothing"),
            ("Forbidden", f"{GARDENER}.gardenerControllerManager.featureGates.Nothing"),
            ("Forbidden", f"{GARDENER}.gardenerScheduler.featureGates.DoNotCopyBackupCredentials"),
        ],
    ),
    (
        "Gardener's admission plugins have a name and are known",
        {
            f"{GARDENER}.gardenerAPIServer.admissionPlugins": [
                {"name": ""},
                {"name": "LimitRanger"},
                {"name": "ShootDNS"},
            ]
        },
        [
            ("Required", f"{GARDENER}.gardenerAPIServer.admissionPlugins[0].name"),
            ("NotSupported", f"{GARDENER}.gardenerAPIServer.admissionPlugins[1].name"),
        ],
    ),
    (
        "gardener-apiserver has the limits of kube-apiserver",
        {
            f"{GARDENER}.gardenerAPIServer": {
                "auditWebhook": {"kubeconfigSecretName": "a"},
                "watchCacheSizes": {"default": -1},
                "logging": {"verbosity": -1},
                "requests": {"maxMutatingInflight": 2501},
            }
        },
        [
            ("Required", f"{GARDENER}.gardenerAPIServer.auditConfig.auditPolicy.configMapRef"),
            ("Invalid", f"{GARDENER}.gardenerAPIServer.watchCacheSizes.default"),
            ("Invalid", f"{GARDENER}.gardenerAPIServer.logging.verbosity"),
            ("Invalid", f"{GARDENER}.gardenerAPIServer.requests.maxMutatingInflight"),
        ],
    ),
    (
        "administrators' kubeconfigs live for an hour at least",
        {f"{GARDENER}.gardenerAPIServer.shootAdminKubeconfigMaxExpiration": "59m"},
        [("Invalid", f"{GARDENER}.gardenerAPIServer.shootAdminKubeconfigMaxExpiration")],
    ),
    (
        "administrators' kubeconfigs live for 2^32 seconds at most",
        {f"{GARDENER}.gardenerAPIServer.shootAdminKubeconfigMaxExpiration": "1193047h"},
        [("Invalid", f"{GARDENER}.gardenerAPIServer.shootAdminKubeconfigMaxExpiration")],
    ),
    (
        "above a limit an object is refused or reported",
        {ADMISSION: {"operationMode": "ignore", "limits": [LIMIT]}},
        [("NotSupported", f"{ADMISSION}.operationMode")],
    ),
    (
        "a limit is complete",
        {ADMISSION: {"limits": [{"resources": []}]}},
        [
            ("Invalid", f"{ADMISSION}.limits[0].apiGroups"),
            ("Invalid", f"{ADMISSION}.limits[0].apiVersions"),
            ("Invalid", f"{ADMISSION}.limits[0].resources"),
            ("Required", f"{ADMISSION}.limits[0]"),
        ],
    ),
    (
        "a limit has no empty names and is not negative",
        {ADMISSION: {"limits": [LIMIT | {"resources": [""], "size": "-1", "count": -1}]}},
        [
            ("Invalid", f"{ADMISSION}.limits[0].resources[0]"),
            ("Invalid", f"{ADMISSION}.limits[0].size"),
            ("Invalid", f"{ADMISSION}.limits[0].count"),
        ],
    ),
    (
        "who has no limits is named as in RBAC",
        {
            ADMISSION: {
                "limits": [LIMIT],
                "unrestrictedSubjects": [
                    {"kind": "Robot", "name": ""},
                    {"kind": "User", "name": "a", "namespace": "b"},
                    {"kind": "ServiceAccount", "name": "a", "apiGroup": "c"},
                ],
            }
        },
        [
            ("NotSupported", f"{ADMISSION}.unrestrictedSubjects[0].kind"),
            ("Invalid", f"{ADMISSION}.unrestrictedSubjects[0].name"),
            ("Invalid", f"{ADMISSION}.unrestrictedSubjects[1].namespace"),
            ("NotSupported", f"{ADMISSION}.unrestrictedSubjects[1].apiGroup"),
            ("Invalid", f"{ADMISSION}.unrestrictedSubjects[2].namespace"),
            ("Invalid", f"{ADMISSION}.unrestrictedSubjects[2].apiGroup"),
        ],
    ),
    (
        "quotas select projects by valid labels",
        {
            f"{GARDENER}.gardenerControllerManager.defaultProjectQuotas": [
                {"config": {}, "projectSelector": {"matchLabels": {"a b": "c"}}}
            ]
        },
        [
            (
                "Invalid",
                (
                    f"{GARDENER}.gardenerControllerManager.defaultProjectQuotas[0]"
                    ".projectSelector.matchLabels[a b]"
                ),
            )
        ],
    ),
    (
        "extra namespaces have valid names",
        {f"{GARDENER}.gardenerResourceManager": {"additionalTargetNamespaces": ["A"]}},
        [("Invalid", f"{GARDENER}.gardenerResourceManager.additionalTargetNamespaces[0]")],
    ),
]

DASHBOARD: list[tuple[str, dict[str, Any], list[tuple[str, str]]]] = [
    ("an empty dashboard is allowed", {DASHBOARD_PATH: {}, DISCOVERY_PATH: {}}, []),
    (
        "the dashboard has one way to log in at least",
        {DASHBOARD_PATH: {"enableTokenLogin": False}},
        [("Forbidden", f"{DASHBOARD_PATH}.enableTokenLogin")],
    ),
    (
        "the authority of SNI requires SNI",
        {DASHBOARD_PATH: {"propagateCAFromSNI": True}},
        [("Forbidden", f"{DASHBOARD_PATH}.propagateCAFromSNI")],
    ),
    (
        "OIDC of the dashboard requires OIDC of the API server, an issuer and a client",
        {DASHBOARD_PATH: {"oidcConfig": {"secretRef": {"name": "a"}}}},
        [
            ("Invalid", f"{DASHBOARD_PATH}.oidcConfig"),
            ("Required", f"{DASHBOARD_PATH}.oidcConfig.issuerURL"),
            ("Required", f"{DASHBOARD_PATH}.oidcConfig.clientIDPublic"),
        ],
    ),
    (
        "the dashboard may leave issuer and client to the API server",
        {
            f"{SERVER}.oidcConfig": {"issuerURL": "https://a.example.org", "clientID": "a"},
            DASHBOARD_PATH: {"oidcConfig": {"secretRef": {"name": "a"}}},
        },
        [],
    ),
    (
        "the dashboard has its own issuer and client, or none",
        {
            f"{SERVER}.oidcConfig": {"issuerURL": "https://a.example.org", "clientID": "a"},
            DASHBOARD_PATH: {"oidcConfig": {"secretRef": {"name": "a"}, "clientIDPublic": "b"}},
        },
        [("Required", f"{DASHBOARD_PATH}.oidcConfig.issuerURL")],
    ),
    (
        "the issuer of the dashboard is an https URL",
        {
            f"{SERVER}.structuredAuthentication": {"configMapName": "a"},
            DASHBOARD_PATH: {
                "oidcConfig": {
                    "secretRef": {"name": "a"},
                    "issuerURL": "http://a.example.org",
                    "clientIDPublic": "b",
                }
            },
        },
        [("Invalid", f"{DASHBOARD_PATH}.oidcConfig.issuerURL")],
    ),
    (
        "dashboard and discovery server have valid names",
        {
            DASHBOARD_PATH: {"domain": {"name": "A"}, "tlsSecretName": "A"},
            DISCOVERY_PATH: {
                "domain": {"name": "a.example.org", "provider": "b"},
                "tlsSecretName": "A",
            },
        },
        [
            ("Invalid", f"{DASHBOARD_PATH}.domain.name"),
            ("Invalid", f"{DASHBOARD_PATH}.tlsSecretName"),
            ("Invalid", f"{DISCOVERY_PATH}.domain.provider"),
            ("Invalid", f"{DISCOVERY_PATH}.tlsSecretName"),
        ],
    ),
]

RULES = [*ENCRYPTION, *GARDENER_COMPONENTS, *DASHBOARD]


@pytest.mark.parametrize(("values", "expected"), [r[1:] for r in RULES], ids=[r[0] for r in RULES])
def test_a_rule(values: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    assert findings(with_values(MINIMAL, values)) == expected
