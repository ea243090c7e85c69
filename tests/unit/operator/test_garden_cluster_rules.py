"""Rules about both clusters of a Garden and their names, one row each: spec 21 §7.4."""

from typing import Any

import pytest

from tests.support.gardens import MANAGER, MINIMAL, RUNTIME, VIRTUAL, findings, with_values

PROVIDERS = [{"name": "primary", "type": "local", "secretRef": {"name": "dns"}}]

DNS: list[tuple[str, dict[str, Any], list[tuple[str, str]]]] = [
    (
        "names of DNS providers are unique",
        {
            "spec.dns": {"providers": PROVIDERS * 2},
            f"{RUNTIME}.ingress.domains": [{"name": "a.example.org", "provider": "primary"}],
            f"{VIRTUAL}.dns.domains": [{"name": "b.example.org", "provider": "primary"}],
        },
        [("Duplicate", "spec.dns.providers[1]")],
    ),
    (
        "with DNS every domain names a provider",
        {"spec.dns": {"providers": PROVIDERS}},
        [
            ("Required", f"{RUNTIME}.ingress.domains[0].provider"),
            ("Required", f"{VIRTUAL}.dns.domains[0].provider"),
        ],
    ),
    (
        "a provider is one of the Garden",
        {
            "spec.dns": {"providers": PROVIDERS},
            f"{RUNTIME}.ingress.domains": [{"name": "a.example.org", "provider": "other"}],
            f"{VIRTUAL}.dns.domains": [{"name": "b.example.org", "provider": "primary"}],
        },
        [("Invalid", f"{RUNTIME}.ingress.domains[0].provider")],
    ),
    (
        "without DNS a domain cannot name a provider",
        {f"{VIRTUAL}.dns.domains": [{"name": "b.example.org", "provider": "primary"}]},
        [("Invalid", f"{VIRTUAL}.dns.domains[0].provider")],
    ),
    (
        "a domain is a DNS subdomain",
        {
            f"{RUNTIME}.ingress.domains": [{"name": "A_b"}],
            f"{VIRTUAL}.dns.domains": [{"name": "-a"}],
        },
        [
            ("Invalid", f"{RUNTIME}.ingress.domains[0].name"),
            ("Invalid", f"{VIRTUAL}.dns.domains[0].name"),
        ],
    ),
    (
        "domains are unique",
        {f"{VIRTUAL}.dns.domains": [{"name": "a.example.org"}, {"name": "a.example.org"}]},
        [("Duplicate", f"{VIRTUAL}.dns.domains[1].name")],
    ),
    (
        "there is at least one domain",
        {f"{RUNTIME}.ingress.domains": ..., f"{VIRTUAL}.dns.domains": ...},
        [("Required", f"{RUNTIME}.ingress.domains"), ("Required", f"{VIRTUAL}.dns.domains")],
    ),
]

REFERENCES: list[tuple[str, dict[str, Any], list[tuple[str, str]]]] = [
    (
        "an extension is registered for gardens",
        {"spec.extensions": [{"type": "certificates"}, {"type": "unknown"}]},
        [("NotSupported", "spec.extensions[1].type")],
    ),
    (
        "extensions are unique",
        {"spec.extensions": [{"type": "certificates"}, {"type": "certificates"}]},
        [("Duplicate", "spec.extensions[1].type")],
    ),
    (
        "a resource has a name and a complete reference",
        {"spec.resources": [{"name": "", "resourceRef": {"kind": "", "name": ""}}]},
        [
            ("Required", "spec.resources[0].name"),
            ("Required", "spec.resources[0].resourceRef.name"),
            ("Required", "spec.resources[0].resourceRef.apiVersion"),
            ("Required", "spec.resources[0].resourceRef.kind"),
        ],
    ),
    (
        "names of resources are unique",
        {
            "spec.resources": [
                {"name": "a", "resourceRef": {"apiVersion": "v1", "kind": "Secret", "name": "a"}}
            ]
            * 2
        },
        [("Duplicate", "spec.resources[1].name")],
    ),
    (
        "a resource is a Secret or a ConfigMap",
        {
            "spec.resources": [
                {
                    "name": "a",
                    "resourceRef": {
                        "apiVersion": "security.gardener.cloud/v1alpha1",
                        "kind": "WorkloadIdentity",
                        "name": "a",
                    },
                }
            ]
        },
        [
            ("NotSupported", "spec.resources[0].resourceRef.apiVersion"),
            ("NotSupported", "spec.resources[0].resourceRef.kind"),
        ],
    ),
]

RUNTIME_CLUSTER: list[tuple[str, dict[str, Any], list[tuple[str, str]]]] = [
    (
        "an IP family is IPv4 or IPv6, and with a wrong one ranges are not read",
        {f"{RUNTIME}.networking.ipFamilies": ["IPv5"], f"{RUNTIME}.networking.pods": ["x"]},
        [("NotSupported", f"{RUNTIME}.networking.ipFamilies[0]")],
    ),
    (
        "IP families are unique",
        {f"{RUNTIME}.networking.ipFamilies": ["IPv4", "IPv4"]},
        [("Duplicate", f"{RUNTIME}.networking.ipFamilies[1]")],
    ),
    (
        "ranges are CIDRs, and with a wrong one no intersections are reported",
        {
            f"{RUNTIME}.networking.nodes": ["10.0.0.0"],
            f"{RUNTIME}.networking.pods": ["10.1.0.0/33"],
            f"{RUNTIME}.networking.services": ["10.1.0.0/16", "services"],
            f"{RUNTIME}.networking.blockCIDRs": ["nothing"],
        },
        [
            ("Invalid", f"{RUNTIME}.networking.blockCIDRs[0]"),
            ("Invalid", f"{RUNTIME}.networking.nodes[0]"),
            ("Invalid", f"{RUNTIME}.networking.pods[0]"),
            ("Invalid", f"{RUNTIME}.networking.services[1]"),
        ],
    ),
    (
        "nodes, pods and Services have ranges of their own",
        {
            f"{RUNTIME}.networking.nodes": ["10.0.0.0/8"],
            f"{RUNTIME}.networking.services": ["10.1.128.0/17"],
        },
        [
            ("Invalid", f"{RUNTIME}.networking.nodes[0]"),
            ("Invalid", f"{RUNTIME}.networking.nodes[0]"),
            ("Invalid", f"{RUNTIME}.networking.pods[0]"),
        ],
    ),
    (
        "the external traffic policy is Cluster or Local",
        {f"{RUNTIME}.settings.loadBalancerServices": {"externalTrafficPolicy": "Global"}},
        [
            (
                "NotSupported",
                f"{RUNTIME}.settings.loadBalancerServices.externalTrafficPolicy",
            )
        ],
    ),
    (
        "the vertical pod autoscaler knows its feature gates",
        {
            f"{RUNTIME}.settings.verticalPodAutoscaler": {
                "featureGates": {"InPlace": True, "X": True}
            }
        },
        [("Invalid", f"{RUNTIME}.settings.verticalPodAutoscaler.featureGates.X")],
    ),
    (
        "the vertical pod autoscaler scales CPU and memory, up to more than nothing",
        {
            f"{RUNTIME}.settings.verticalPodAutoscaler": {
                "maxAllowed": {"cpu": "0", "memory": "-1Gi", "storage": "1Gi"}
            }
        },
        [
            ("Invalid", f"{RUNTIME}.settings.verticalPodAutoscaler.maxAllowed.cpu"),
            ("Invalid", f"{RUNTIME}.settings.verticalPodAutoscaler.maxAllowed.memory"),
            ("NotSupported", f"{RUNTIME}.settings.verticalPodAutoscaler.maxAllowed.storage"),
        ],
    ),
    (
        "topology-aware routing requires two zones and high availability",
        {f"{RUNTIME}.settings.topologyAwareRouting": {"enabled": True}},
        [
            ("Forbidden", f"{RUNTIME}.settings.topologyAwareRouting.enabled"),
            ("Forbidden", f"{RUNTIME}.settings.topologyAwareRouting.enabled"),
        ],
    ),
    (
        "volumes have a size that is not negative",
        {f"{RUNTIME}.volume": {"minimumSize": "-1Gi"}},
        [("Invalid", f"{RUNTIME}.volume.minimumSize")],
    ),
]

VIRTUAL_CLUSTER: list[tuple[str, dict[str, Any], list[tuple[str, str]]]] = [
    (
        "an etcd is scaled down by CPU and memory, to what it works with",
        {
            f"{VIRTUAL}.etcd.main.autoscaling": {"minAllowed": {"memory": "299M"}},
            f"{VIRTUAL}.etcd.events.autoscaling": {"minAllowed": {"memory": "59M", "disk": "1"}},
        },
        [
            ("Invalid", f"{VIRTUAL}.etcd.main.autoscaling.minAllowed.memory"),
            ("Invalid", f"{VIRTUAL}.etcd.events.autoscaling.minAllowed.memory"),
            ("NotSupported", f"{VIRTUAL}.etcd.events.autoscaling.minAllowed.disk"),
        ],
    ),
    (
        "an etcd that is scaled down has a lower limit",
        {f"{VIRTUAL}.etcd.main.autoscaling": {"minAllowed": {}}},
        [("Required", f"{VIRTUAL}.etcd.main.autoscaling.minAllowed")],
    ),
    (
        "the version of Kubernetes is not too old",
        {f"{VIRTUAL}.kubernetes.version": "1.31.9"},
        [("NotSupported", f"{VIRTUAL}.kubernetes.version")],
    ),
    (
        "the version of Kubernetes is not too new",
        {f"{VIRTUAL}.kubernetes.version": "1.37.0"},
        [("NotSupported", f"{VIRTUAL}.kubernetes.version")],
    ),
    (
        "the version of Kubernetes is a version",
        {f"{VIRTUAL}.kubernetes.version": "latest"},
        [("NotSupported", f"{VIRTUAL}.kubernetes.version")],
    ),
    (
        "ranges of virtual Services are CIDRs",
        {f"{VIRTUAL}.networking.services": ["100.64.0.0"]},
        [("Invalid", f"{VIRTUAL}.networking.services[0]")],
    ),
    (
        "virtual Services share no addresses with the runtime cluster",
        {
            f"{RUNTIME}.networking.nodes": ["100.65.0.0/16"],
            f"{RUNTIME}.networking.pods": ["100.64.0.0/16"],
            f"{RUNTIME}.networking.services": ["100.66.0.0/16"],
        },
        [("Invalid", f"{VIRTUAL}.networking.services[0]")] * 3,
    ),
    (
        "virtual Services have two ranges at most",
        {f"{VIRTUAL}.networking.services": ["100.64.0.0/16", "fd00::/112", "100.65.0.0/16"]},
        [("Forbidden", f"{VIRTUAL}.networking.services")],
    ),
    (
        "two ranges of virtual Services are of different IP families",
        {f"{VIRTUAL}.networking.services": ["100.64.0.0/16", "100.65.0.0/16"]},
        [("Forbidden", f"{VIRTUAL}.networking.services")],
    ),
    (
        "a cluster without nodes has no settings of nodes",
        {
            MANAGER: {
                "nodeCIDRMaskSize": 24,
                "nodeCIDRMaskSizeIPv6": 64,
                "horizontalPodAutoscaler": {"syncPeriod": "1m"},
                "podEvictionTimeout": "1m",
                "nodeMonitorGracePeriod": "1m",
            }
        },
        [
            ("Forbidden", f"{MANAGER}.nodeCIDRMaskSize"),
            ("Forbidden", f"{MANAGER}.nodeCIDRMaskSizeIPv6"),
            ("Forbidden", f"{MANAGER}.horizontalPodAutoscaler"),
            ("Forbidden", f"{MANAGER}.podEvictionTimeout"),
            ("Forbidden", f"{MANAGER}.nodeMonitorGracePeriod"),
        ],
    ),
    (
        "the kube-controller-manager knows its feature gates",
        {f"{MANAGER}.featureGates": {"Nothing": True}},
        [("Invalid", f"{MANAGER}.featureGates.Nothing")],
    ),
]

RULES = [*DNS, *REFERENCES, *RUNTIME_CLUSTER, *VIRTUAL_CLUSTER]


@pytest.mark.parametrize(("values", "expected"), [r[1:] for r in RULES], ids=[r[0] for r in RULES])
def test_a_rule(values: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    assert findings(with_values(MINIMAL, values)) == expected
