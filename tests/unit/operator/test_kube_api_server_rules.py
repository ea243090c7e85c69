"""Rules about the kube-apiserver of a Garden, one row each: spec 21 §7.4.1."""

from typing import Any

import pytest

from pergola.api.objects import JsonObject
from tests.support.gardens import MINIMAL, SERVER, VIRTUAL, findings, with_values


def plugin(name: str, **settings: Any) -> list[JsonObject]:
    return [{"name": name, **settings}]


RULES: list[tuple[str, dict[str, Any], list[tuple[str, str]]]] = [
    (
        "anonymous authentication and default cache sizes end with Kubernetes 1.34",
        {
            f"{VIRTUAL}.kubernetes.version": "1.35.0",
            f"{SERVER}.enableAnonymousAuthentication": False,
            f"{SERVER}.watchCacheSizes": {"default": 1},
        },
        [
            ("Forbidden", f"{SERVER}.enableAnonymousAuthentication"),
            ("Forbidden", f"{SERVER}.watchCacheSizes.default"),
        ],
    ),
    (
        "an admission plugin has a name",
        {f"{SERVER}.admissionPlugins": plugin("")},
        [("Required", f"{SERVER}.admissionPlugins[0].name")],
    ),
    (
        "an admission plugin is known",
        {f"{SERVER}.admissionPlugins": plugin("Unknown")},
        [("Invalid", f"{SERVER}.admissionPlugins[0].name")],
    ),
    (
        "an admission plugin is known to the version",
        {f"{SERVER}.admissionPlugins": plugin("PodResizeValidator")},
        [("Forbidden", f"{SERVER}.admissionPlugins[0].name")],
    ),
    (
        "an admission plugin that no supported version has is refused",
        {f"{SERVER}.admissionPlugins": plugin("SecurityContextDeny")},
        [("Forbidden", f"{SERVER}.admissionPlugins[0].name")],
    ),
    (
        "admission plugins are unique",
        {f"{SERVER}.admissionPlugins": plugin("LimitRanger") * 2},
        [("Duplicate", f"{SERVER}.admissionPlugins[1].name")],
    ),
    (
        "required admission plugins cannot be disabled",
        {f"{SERVER}.admissionPlugins": plugin("NodeRestriction", disabled=True)},
        [("Forbidden", f"{SERVER}.admissionPlugins[0]")],
    ),
    (
        "few admission plugins read a configuration",
        {f"{SERVER}.admissionPlugins": plugin("LimitRanger", config={"a": 1})},
        [("Forbidden", f"{SERVER}.admissionPlugins[0].config")],
    ),
    (
        "few admission plugins use a kubeconfig",
        {f"{SERVER}.admissionPlugins": plugin("LimitRanger", kubeconfigSecretName="a")},
        [("Forbidden", f"{SERVER}.admissionPlugins[0].kubeconfigSecretName")],
    ),
    (
        "the configuration of PodSecurity has its kind",
        {f"{SERVER}.admissionPlugins": plugin("PodSecurity", config={"kind": "Other"})},
        [("Invalid", f"{SERVER}.admissionPlugins[0].config")],
    ),
    (
        "the configuration of PodSecurity has its shape",
        {
            f"{SERVER}.admissionPlugins": plugin(
                "PodSecurity",
                config={
                    "apiVersion": "pod-security.admission.config.k8s.io/v1",
                    "kind": "PodSecurityConfiguration",
                    "defaults": "baseline",
                },
            )
        },
        [("Invalid", f"{SERVER}.admissionPlugins[0].config.defaults")],
    ),
    (
        "an API has the form of one",
        {f"{SERVER}.runtimeConfig": {"apps": True}},
        [("Invalid", f"{SERVER}.runtimeConfig[apps]")],
    ),
    (
        "an API is known",
        {f"{SERVER}.runtimeConfig": {"api/all": True, "apps/v1/toasters": True}},
        [
            ("Invalid", f"{SERVER}.runtimeConfig[api/all]"),
            ("Invalid", f"{SERVER}.runtimeConfig[apps/v1/toasters]"),
        ],
    ),
    (
        "an API is known to the version",
        {f"{SERVER}.runtimeConfig": {"storagemigration.k8s.io/v1beta1": True}},
        [("Forbidden", f"{SERVER}.runtimeConfig[storagemigration.k8s.io/v1beta1]")],
    ),
    (
        "required APIs cannot be disabled, in whole or in part",
        {
            f"{SERVER}.runtimeConfig": {
                "v1": False,
                "v1/pods": False,
                "events.k8s.io/v1": False,
                "discovery.k8s.io/v1/endpointslices": False,
                "apps/v1": False,
                "extensions/v1beta1": False,
            }
        },
        [
            ("Forbidden", f"{SERVER}.runtimeConfig[v1]"),
            ("Forbidden", f"{SERVER}.runtimeConfig[v1/pods]"),
            ("Forbidden", f"{SERVER}.runtimeConfig[events.k8s.io/v1]"),
            ("Forbidden", f"{SERVER}.runtimeConfig[discovery.k8s.io/v1/endpointslices]"),
        ],
    ),
    (
        "a feature gate is known, known to the version, and not locked to another value",
        {
            f"{SERVER}.featureGates": {
                "Nothing": True,
                "APIListChunking": True,
                "APIServerTracing": False,
                "AllAlpha": False,
            }
        },
        [
            ("Invalid", f"{SERVER}.featureGates.Nothing"),
            ("Forbidden", f"{SERVER}.featureGates.APIListChunking"),
            ("Forbidden", f"{SERVER}.featureGates.APIServerTracing"),
        ],
    ),
    (
        "an audit policy has a name, and the namespace a valid one",
        {f"{SERVER}.auditConfig.auditPolicy.configMapRef": {"namespace": "A"}},
        [
            ("Required", f"{SERVER}.auditConfig.auditPolicy.configMapRef.name"),
            ("Invalid", f"{SERVER}.auditConfig.auditPolicy.configMapRef.namespace"),
        ],
    ),
    (
        "an audit webhook requires an audit policy",
        {f"{SERVER}.auditWebhook": {"kubeconfigSecretName": "audit"}},
        [("Required", f"{SERVER}.auditConfig.auditPolicy.configMapRef")],
    ),
    (
        "structured authentication requires its feature gate and a name",
        {
            f"{SERVER}.structuredAuthentication": {"configMapName": ""},
            f"{SERVER}.featureGates": {"StructuredAuthenticationConfiguration": False},
            f"{VIRTUAL}.kubernetes.version": "1.33.1",
        },
        [
            ("Forbidden", f"{SERVER}.structuredAuthentication"),
            ("Forbidden", f"{SERVER}.structuredAuthentication.configMapName"),
        ],
    ),
    (
        "structured authorization requires a name",
        {f"{SERVER}.structuredAuthorization": {"configMapName": "", "kubeconfigs": []}},
        [("Forbidden", f"{SERVER}.structuredAuthorization.configMapName")],
    ),
    (
        "structured authorization requires kubeconfigs",
        {f"{SERVER}.structuredAuthorization": {"configMapName": "a", "kubeconfigs": []}},
        [("Required", f"{SERVER}.structuredAuthorization.kubeconfigs")],
    ),
    (
        "every authorizer has one kubeconfig",
        {
            f"{SERVER}.structuredAuthorization": {
                "configMapName": "a",
                "kubeconfigs": [{"authorizerName": "a", "secretName": "b"}] * 2,
            }
        },
        [("Duplicate", f"{SERVER}.structuredAuthorization.kubeconfigs[1].authorizerName")],
    ),
    (
        "an OpenID provider has an address and a client, and excludes structured authentication",
        {
            f"{SERVER}.oidcConfig": {
                "caBundle": "no certificate",
                "clientAuthentication": {},
                "signingAlgs": ["MD5"],
                "usernameClaim": "",
            },
            f"{SERVER}.structuredAuthentication": {"configMapName": "a"},
        },
        [
            ("Required", f"{SERVER}.oidcConfig.clientID"),
            ("Required", f"{SERVER}.oidcConfig.issuerURL"),
            ("Invalid", f"{SERVER}.oidcConfig.caBundle"),
            ("Forbidden", f"{SERVER}.oidcConfig.clientAuthentication"),
            ("NotSupported", f"{SERVER}.oidcConfig.signingAlgs[0]"),
            ("Invalid", f"{SERVER}.oidcConfig.usernameClaim"),
            ("Forbidden", f"{SERVER}.oidcConfig"),
        ],
    ),
    (
        "sizes of watch caches are not negative, and their resources lower case",
        {
            f"{SERVER}.watchCacheSizes": {
                "default": -1,
                "resources": [
                    {"resource": "", "size": -1},
                    {"resource": "Pods", "apiGroup": "Apps,", "size": 0},
                    {"resource": "pods.apps", "size": 0},
                ],
            }
        },
        [
            ("Invalid", f"{SERVER}.watchCacheSizes.default"),
            ("Required", f"{SERVER}.watchCacheSizes.resources[0].resource"),
            ("Invalid", f"{SERVER}.watchCacheSizes.resources[0].size"),
            ("Invalid", f"{SERVER}.watchCacheSizes.resources[1].resource"),
            ("Invalid", f"{SERVER}.watchCacheSizes.resources[1].apiGroup"),
            ("Invalid", f"{SERVER}.watchCacheSizes.resources[1].apiGroup"),
            ("Invalid", f"{SERVER}.watchCacheSizes.resources[2].resource"),
        ],
    ),
    (
        "numbers are not negative",
        {
            f"{SERVER}.logging": {"verbosity": -1, "httpAccessVerbosity": -1},
            f"{SERVER}.defaultNotReadyTolerationSeconds": -1,
            f"{SERVER}.defaultUnreachableTolerationSeconds": -1,
            f"{SERVER}.requests": {"maxNonMutatingInflight": -1, "maxMutatingInflight": -1},
        },
        [
            ("Invalid", f"{SERVER}.logging.verbosity"),
            ("Invalid", f"{SERVER}.logging.httpAccessVerbosity"),
            ("Invalid", f"{SERVER}.requests.maxNonMutatingInflight"),
            ("Invalid", f"{SERVER}.requests.maxMutatingInflight"),
            ("Invalid", f"{SERVER}.defaultNotReadyTolerationSeconds"),
            ("Invalid", f"{SERVER}.defaultUnreachableTolerationSeconds"),
        ],
    ),
    (
        "requests at once have a limit",
        {f"{SERVER}.requests": {"maxNonMutatingInflight": 5001, "maxMutatingInflight": 2501}},
        [
            ("Invalid", f"{SERVER}.requests.maxNonMutatingInflight"),
            ("Invalid", f"{SERVER}.requests.maxMutatingInflight"),
        ],
    ),
    (
        "tokens live for 30 to 90 days",
        {f"{SERVER}.serviceAccountConfig": {"maxTokenExpiration": "719h"}},
        [("Forbidden", f"{SERVER}.serviceAccountConfig.maxTokenExpiration")],
    ),
    (
        "tokens live for 90 days at most",
        {f"{SERVER}.serviceAccountConfig": {"maxTokenExpiration": "2161h"}},
        [("Forbidden", f"{SERVER}.serviceAccountConfig.maxTokenExpiration")],
    ),
    (
        "the lifetime of tokens is not negative",
        {f"{SERVER}.serviceAccountConfig": {"maxTokenExpiration": "-1h"}},
        [("Invalid", f"{SERVER}.serviceAccountConfig.maxTokenExpiration")],
    ),
    (
        "an issuer is an https URL without extras",
        {f"{SERVER}.serviceAccountConfig": {"issuer": "http://user@issuer.example.org/?a=b#c"}},
        [("Invalid", f"{SERVER}.serviceAccountConfig.issuer")] * 4,
    ),
    (
        "accepted issuers are URLs, unique, and not the issuer",
        {
            f"{SERVER}.serviceAccountConfig": {
                "issuer": "https://a.example.org",
                "acceptedIssuers": [
                    "https://a.example.org",
                    "https://b.example.org",
                    "https://b.example.org",
                    "https:///c",
                ],
            }
        },
        [
            ("Invalid", f"{SERVER}.serviceAccountConfig.acceptedIssuers[0]"),
            ("Duplicate", f"{SERVER}.serviceAccountConfig.acceptedIssuers[2]"),
            ("Invalid", f"{SERVER}.serviceAccountConfig.acceptedIssuers[3]"),
        ],
    ),
    (
        "Events are kept for a day at most",
        {f"{SERVER}.eventTTL": "24h1s"},
        [("Invalid", f"{SERVER}.eventTTL")],
    ),
    (
        "Events are not kept for less than nothing",
        {f"{SERVER}.eventTTL": "-1s"},
        [("Invalid", f"{SERVER}.eventTTL")],
    ),
    (
        "TLS is 1.2 or 1.3",
        {f"{SERVER}.tlsMinVersion": "VersionTLS11"},
        [("NotSupported", f"{SERVER}.tlsMinVersion")],
    ),
    (
        "the API server is scaled down to what it works with",
        {f"{SERVER}.autoscaling": {"minAllowed": {"cpu": "19m", "memory": "199M"}}},
        [
            ("Invalid", f"{SERVER}.autoscaling.minAllowed.cpu"),
            ("Invalid", f"{SERVER}.autoscaling.minAllowed.memory"),
        ],
    ),
    (
        "audiences are unique and have no comma",
        {f"{SERVER}.apiAudiences": ["a", "a", "b,c"]},
        [
            ("Duplicate", f"{SERVER}.apiAudiences[1]"),
            ("Invalid", f"{SERVER}.apiAudiences[2]"),
        ],
    ),
    (
        "no SNI pattern matches the first domain of the API server",
        {
            f"{SERVER}.sni": {
                "domainPatterns": [
                    "api.garden.example.org",
                    "*.garden.example.org",
                    "*.example.org",
                    "api.example.org",
                ]
            }
        },
        [
            ("Forbidden", f"{SERVER}.sni.domainPatterns[0]"),
            ("Forbidden", f"{SERVER}.sni.domainPatterns[1]"),
        ],
    ),
    (
        "SNI patterns and the name of the Secret are subdomains",
        {f"{SERVER}.sni": {"secretName": "A", "domainPatterns": ["api.*.example.org"]}},
        [
            ("Invalid", f"{SERVER}.sni.secretName"),
            ("Invalid", f"{SERVER}.sni.domainPatterns[0]"),
        ],
    ),
    ("SNI without patterns is allowed", {f"{SERVER}.sni": {}}, []),
]


@pytest.mark.parametrize(("values", "expected"), [r[1:] for r in RULES], ids=[r[0] for r in RULES])
def test_a_rule(values: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    assert findings(with_values(MINIMAL, values)) == expected
