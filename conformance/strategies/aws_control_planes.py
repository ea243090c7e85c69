"""ControlPlanes on AWS, with their Clusters and credentials."""

import base64
from collections.abc import Sequence
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.strategies.aws import ZONES, config
from conformance.strategies.fields import ABSENT, BOOLEANS, Change, changed, changes, or_absent
from pergola.api.objects import JsonObject

NAMESPACE: Final = "shoot--demo--blue"
_AWS: Final = "aws.provider.extensions.gardener.cloud"
_MOST: Final = 6
_GATES: Final = st.dictionaries(
    st.sampled_from(["AllAlpha", "AllBeta", "CloudControllerManagerWebhook", "Unknown"]),
    st.booleans(),
    max_size=2,
)
_FAMILIES: Final = st.sampled_from(
    [["IPv4"], ["IPv6"], ["IPv4", "IPv6"], ["IPv6", "IPv4"], ["IPv4"]]
)
_RANGES: Final = ("100.96.0.0/11", "10.0.0.0/8", "2001:db8:1::/56", "2001:db8:2::/64")
_SOME_RANGES: Final = st.lists(st.sampled_from(_RANGES), max_size=3, unique=True)


def _encoded(**data: str) -> JsonObject:
    return {name: base64.b64encode(text.encode()).decode() for name, text in data.items()}


def _secret(labels: JsonObject, **data: str) -> JsonObject:
    metadata: JsonObject = {"name": "cloudprovider", "namespace": NAMESPACE}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {**metadata, **({"labels": labels} if labels else {})},
        "type": "Opaque",
        "data": _encoded(**data),
    }


KEYS: Final = _secret(
    {},
    accessKeyID="AKIA0000000000000000",
    secretAccessKey="0" * 40,
    credentialsFile="[default]\n",
)
ROLE: Final = _secret(
    {"security.gardener.cloud/purpose": "workload-identity-token-requestor"},
    roleARN="arn:aws:iam::123456789012:role/garden",
    token="token",  # noqa: S106 - a stand-in
    workloadIdentityTokenFile="/var/run/secrets/gardener.cloud/workload-identity/token",
    credentialsFile="[default]\n",
    config="{}",
)


def _subnets(*purposes: str) -> list[Any]:
    return [
        {"id": f"subnet-{zone[-1]}{number}", "purpose": purpose, "zone": zone}
        for zone in ZONES[:3]
        for number, purpose in enumerate(purposes)
    ]


_ALL: Final = ("nodes", "internal", "public")
_STATUS: Final = config(
    "InfrastructureStatus",
    {
        "ec2": {"keyName": "key"},
        "iam": {"instanceProfiles": [], "roles": []},
        "vpc": {"id": "vpc-1", "subnets": _subnets(*_ALL), "securityGroups": []},
    },
)
_SHOOT: Final[JsonObject] = {
    "apiVersion": "core.gardener.cloud/v1beta1",
    "kind": "Shoot",
    "metadata": {"name": "blue", "namespace": "garden-demo"},
    "spec": {
        "kubernetes": {"version": "1.34.2"},
        "networking": {
            "type": "calico",
            "ipFamilies": ["IPv4"],
            "nodes": "10.250.0.0/16",
            "pods": "100.96.0.0/11",
            "services": "100.64.0.0/13",
            "providerConfig": {"overlay": {"enabled": True}},
        },
        "provider": {
            "type": "aws",
            "infrastructureConfig": config(
                "InfrastructureConfig", {"networks": {"vpc": {"cidr": "10.250.0.0/16"}}}
            ),
            "workers": [{"name": "a"}],
        },
        "region": "eu-west-1",
    },
    "status": {"technicalID": NAMESPACE},
}
BASE: Final[JsonObject] = {
    "controlPlane": {
        "apiVersion": "extensions.gardener.cloud/v1alpha1",
        "kind": "ControlPlane",
        "metadata": {"name": "blue", "namespace": NAMESPACE},
        "spec": {
            "type": "aws",
            "region": "eu-west-1",
            "secretRef": {"name": "cloudprovider", "namespace": NAMESPACE},
            "infrastructureProviderStatus": _STATUS,
            "providerConfig": config("ControlPlaneConfig", {}),
        },
    },
    "cluster": {
        "apiVersion": "extensions.gardener.cloud/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": NAMESPACE},
        "spec": {
            "shoot": _SHOOT,
            "seed": {"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Seed"},
            "cloudProfile": {"apiVersion": "core.gardener.cloud/v1beta1", "kind": "CloudProfile"},
        },
    },
    "secret": KEYS,
    "scaledDown": False,
}
_SPEC: Final = "cluster.spec.shoot.spec"
_CONFIG: Final = "controlPlane.spec.providerConfig"
_PROVIDER_STATUS: Final = "controlPlane.spec.infrastructureProviderStatus"
_FIELDS: Final[dict[str, SearchStrategy[Any]]] = {
    "secret": st.sampled_from([KEYS, ROLE]),
    "scaledDown": st.booleans(),
    "controlPlane.metadata.namespace": st.just(NAMESPACE),
    "controlPlane.spec.region": st.sampled_from(["eu-central-1", "cn-north-1"]),
    _CONFIG: or_absent(config("ControlPlaneConfig", {})),
    f"{_CONFIG}.unknown": st.just(1),
    f"{_CONFIG}.storage": or_absent({}, {"managedDefaultClass": False}, {"managedDefaultClass": 1}),
    f"{_CONFIG}.loadBalancerController": st.sampled_from(
        [{"enabled": True}, {"enabled": False}, {"enabled": True, "ingressClassName": "own"}]
    ),
    f"{_CONFIG}.cloudControllerManager": st.sampled_from([{}, {"useCustomRouteController": True}]),
    f"{_CONFIG}.cloudControllerManager.featureGates": _GATES,
    f"{_PROVIDER_STATUS}.vpc.id": st.sampled_from(["vpc-2", "vpc-0123456789abcdef0"]),
    f"{_PROVIDER_STATUS}.vpc.subnets": st.sampled_from(
        [_subnets("nodes"), _subnets("nodes", "internal"), _subnets("public", "nodes"), []]
    ),
    f"{_PROVIDER_STATUS}.elasticFileSystem": st.just({"ID": "fs-1"}),
    f"{_SPEC}.provider.infrastructureConfig.elasticFileSystem": st.sampled_from(
        [{"enabled": True}, {"enabled": False}]
    ),
    f"{_SPEC}.hibernation": st.sampled_from([{"enabled": True}, {"enabled": False}]),
    "cluster.spec.shoot.metadata.deletionTimestamp": st.just("2026-01-01T00:00:00Z"),
    f"{_SPEC}.kubernetes.version": st.sampled_from(
        ["1.32.9", "1.33.5", "1.34.0", "1.35.1", "1.36.0"]
    ),
    f"{_SPEC}.kubernetes.kubeAPIServer": st.fixed_dictionaries(
        {},
        optional={
            "featureGates": st.just({"MutatingAdmissionPolicy": True}),
            "runtimeConfig": st.dictionaries(
                st.sampled_from(
                    [f"admissionregistration.k8s.io/{v}" for v in ("v1alpha1", "v1beta1", "v1")]
                ),
                st.booleans(),
            ),
        },
    ),
    f"{_SPEC}.kubernetes.kubeControllerManager": st.sampled_from(
        [{}, {"nodeCIDRMaskSize": 25}, {"nodeCIDRMaskSize": 80}]
    ),
    f"{_SPEC}.networking.type": st.sampled_from(["cilium", "other"]),
    f"{_SPEC}.networking.ipFamilies": _FAMILIES,
    f"{_SPEC}.networking.pods": or_absent(*_RANGES),
    f"{_SPEC}.networking.providerConfig.overlay.enabled": BOOLEANS,
    f"{_SPEC}.networking.providerConfig": or_absent({}, {"overlay": {"enabled": False}}),
    "cluster.spec.shoot.status.networking": st.fixed_dictionaries(
        {}, optional={"pods": _SOME_RANGES, "nodes": _SOME_RANGES}
    ),
    "cluster.spec.shoot.metadata.annotations": st.dictionaries(
        st.sampled_from(
            [
                f"{_AWS}/enable-volume-attributes-class",
                f"{_AWS}/legacy-xfs",
                f"{_AWS}/reserved-volume-attachments",
                f"{_AWS}/volume-attach-limit",
            ]
        ),
        st.sampled_from(["true", "false", "1", "42", "", "t", "yes"]),
        max_size=3,
    ),
    "cluster.metadata.annotations": st.just(
        {"generic-token-kubeconfig.secret.gardener.cloud/name": "generic-token-kubeconfig-1"}
    ),
}
_WITHOUT_OVERLAY: Final = [
    Change(f"{_SPEC}.networking.providerConfig.overlay", {"enabled": False}),
    Change(f"{_CONFIG}.cloudControllerManager", {"useCustomRouteController": True}),
]
_IPV6: Final = [
    Change(f"{_SPEC}.networking.ipFamilies", ["IPv6"]),
    Change(f"{_SPEC}.networking.pods", ABSENT),
    Change(
        "cluster.spec.shoot.status.networking",
        {"nodes": ["2001:db8:1::/56"], "pods": ["2001:db8:1::/56"]},
    ),
]
_FILES: Final = [
    Change(f"{_SPEC}.provider.infrastructureConfig.elasticFileSystem", {"enabled": True}),
    Change(f"{_PROVIDER_STATUS}.elasticFileSystem", {"ID": "fs-1"}),
]
_VERSION: Final = f"{_SPEC}.kubernetes.version"
VARIANTS: Final[Sequence[Sequence[Change]]] = (
    [],
    [Change("secret", ROLE), Change(f"{_CONFIG}.loadBalancerController", {"enabled": True})],
    _WITHOUT_OVERLAY,
    [*_WITHOUT_OVERLAY, Change(_VERSION, "1.36.0")],
    [*_IPV6, *_FILES],
    [Change(f"{_SPEC}.networking.ipFamilies", ["IPv6", "IPv4"]), *_FILES],
    [Change(f"{_SPEC}.hibernation", {"enabled": True}), Change(path="scaledDown", value=True)],
    [Change(f"{_PROVIDER_STATUS}.vpc.subnets", _subnets("nodes"))],
    [Change(f"{_CONFIG}.storage", {"managedDefaultClass": False})],
    [
        Change(_VERSION, "1.33.5"),
        Change(
            "cluster.spec.shoot.metadata.annotations",
            {f"{_AWS}/enable-volume-attributes-class": "true", f"{_AWS}/legacy-xfs": "true"},
        ),
    ],
    [Change(f"{_CONFIG}.cloudControllerManager", {"featureGates": {"AllBeta": False}})],
)
"""One after the other, these switch each part of a control plane on."""


def some_control_plane() -> SearchStrategy[JsonObject]:
    """Return ControlPlanes with some options, and a few odd fields."""
    return st.tuples(st.sampled_from(VARIANTS), changes(_FIELDS, most=_MOST)).map(
        lambda drawn: changed(BASE, [*drawn[0], *drawn[1]])
    )
