"""Shoots on AWS, and their CloudProfiles."""

from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.strategies import aws_infrastructure, aws_pools
from conformance.strategies.aws import CANONICAL, ZONES, config
from conformance.strategies.fields import ANYTHING, BOOLEANS, below, or_absent
from pergola.api.objects import JsonObject

_SHOOT: Final[JsonObject] = {
    "apiVersion": "core.gardener.cloud/v1beta1",
    "kind": "Shoot",
    "metadata": {"name": "blue", "namespace": "garden-demo"},
    "spec": {
        "cloudProfile": {"kind": "CloudProfile", "name": "aws"},
        "kubernetes": {"version": "1.34.2"},
        "networking": {
            "ipFamilies": ["IPv4"],
            "nodes": "10.250.0.0/16",
            "pods": "100.96.0.0/11",
            "services": "100.64.0.0/13",
            "type": "calico",
            "providerConfig": {
                "apiVersion": "calico.networking.extensions.gardener.cloud/v1alpha1",
                "kind": "NetworkConfig",
                "overlay": {"enabled": False},
            },
        },
        "provider": {
            "type": "aws",
            "controlPlaneConfig": config(
                "ControlPlaneConfig", {"cloudControllerManager": {"useCustomRouteController": True}}
            ),
            "infrastructureConfig": aws_infrastructure.BASES[1],
            "workers": [aws_pools.POOLS[1]],
        },
        "region": "eu-west-1",
        "seedName": "seed",
    },
}


def _shoot(**provider: Any) -> JsonObject:
    spec: JsonObject = {**_SHOOT["spec"]}
    return {**_SHOOT, "spec": {**spec, "provider": {**spec["provider"], **provider}}}


def _ipv6() -> JsonObject:
    found = _shoot(infrastructureConfig=aws_infrastructure.BASES[-1])
    pool = {**aws_pools.POOLS[0], "zones": [ZONES[0]]}
    found["spec"]["provider"]["workers"] = [pool]
    networking = {**found["spec"]["networking"], "ipFamilies": ["IPv4", "IPv6"]}
    found["spec"]["networking"] = networking
    return found


BASES: Final = (
    _shoot(),
    _shoot(workers=[aws_pools.POOLS[2], {**aws_pools.POOLS[0], "name": "other"}]),
    _shoot(infrastructureConfig=aws_infrastructure.BASES[3]),
    _ipv6(),
)
"""Valid Shoots; the last one with IPv6."""


def cloud_profile(images: JsonObject) -> JsonObject:
    """Return a CloudProfile with a config."""
    return {
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": "CloudProfile",
        "metadata": {"name": "aws"},
        "spec": {
            "type": "aws",
            "kubernetes": {"versions": [{"version": "1.34.2"}]},
            "machineImages": [
                {"name": "gardenlinux", "versions": [{"version": "1592.4.0"}]},
            ],
            "machineTypes": [
                {"name": "m5.large", "cpu": "2", "gpu": "0", "memory": "8Gi"},
                {"name": "m6g.large", "cpu": "2", "gpu": "0", "memory": "8Gi"},
            ],
            "regions": [{"name": "eu-west-1", "zones": [{"name": zone} for zone in ZONES]}],
            "providerConfig": images,
        },
    }


PROFILE: Final = cloud_profile(
    config(
        "CloudProfileConfig",
        {
            "machineImages": [
                {
                    "name": "gardenlinux",
                    "versions": [
                        {
                            "version": "1592.4.0",
                            "regions": [
                                {"name": "eu-west-1", "ami": "ami-1"},
                                {"name": "eu-west-1", "ami": "ami-2", "architecture": "arm64"},
                            ],
                        }
                    ],
                }
            ]
        },
    )
)
PROFILE_FIELDS: Final[dict[str, SearchStrategy[Any]]] = {
    "metadata.name": st.just("other"),
    "spec.machineTypes.0.name": st.just("m7.large"),
    "spec.regions": st.just([]),
    "spec.regions.0.zones": st.just([{"name": ZONES[0]}]),
    "spec.providerConfig": or_absent({}, config("CloudProfileConfig", {})),
    "spec.providerConfig.unknown": st.just(1),
    "spec.providerConfig.machineImages.0.versions.0.regions": st.just([]),
    "spec.providerConfig.machineImages.0.versions.0.version": st.just("1592.5.0"),
}
_NETWORKING: Final[dict[str, SearchStrategy[Any]]] = {
    "type": st.sampled_from(["calico", "cilium", "other"]),
    "nodes": or_absent("10.250.0.0/16", "10.250.0.0/17", "10.0.0.0/8", "10.251.0.0/16"),
    "pods": CANONICAL | or_absent(),
    "services": CANONICAL | or_absent(),
    "ipFamilies": or_absent(["IPv4"], ["IPv6"], ["IPv4", "IPv6"], ["IPv6", "IPv4"]),
    "providerConfig": ANYTHING | or_absent({}, {"overlay": {}}),
    "providerConfig.overlay": ANYTHING | or_absent(),
    "providerConfig.overlay.enabled": ANYTHING | BOOLEANS | BOOLEANS,
}
_DNS: Final = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["aws-route53", "aws-route53", "other"]),
            "primary": st.booleans(),
        },
    ),
    min_size=1,
    max_size=2,
)
# Without the fields whose differences are decided for the InfrastructureConfig.
_INFRASTRUCTURE: Final = {
    path: values
    for path, values in aws_infrastructure.TYPED.items()
    if not any(part in path for part in ("elastic", "vpc.cidr", "dualStack"))
}
FIELDS: Final[dict[str, SearchStrategy[Any]]] = {
    **below("spec.networking", _NETWORKING),
    **below("spec.provider.infrastructureConfig", _INFRASTRUCTURE),
    **below("spec.provider.workers.0", aws_pools.TYPED),
    "spec.networking": or_absent(),
    "spec.kubernetes.version": st.sampled_from(["1.33.5", "1.35.1"]),
    "spec.region": st.sampled_from(["eu-central-1", ""]),
    "spec.dns.providers": _DNS,
    "spec.provider.infrastructureConfig": ANYTHING | or_absent(*aws_infrastructure.BASES),
    "spec.provider.controlPlaneConfig": ANYTHING | or_absent(),
    "spec.provider.controlPlaneConfig.unknown": st.just(1),
    "spec.provider.controlPlaneConfig.storage": ANYTHING,
    "spec.provider.controlPlaneConfig.cloudControllerManager": ANYTHING | or_absent(),
    "spec.provider.controlPlaneConfig.cloudControllerManager.useCustomRouteController": BOOLEANS,
    "spec.provider.controlPlaneConfig.loadBalancerController.enabled": BOOLEANS,
    "spec.provider.controlPlaneConfig.loadBalancerController.ingressClassName": or_absent("", "a"),
    "spec.provider.workers": or_absent([], [aws_pools.POOLS[1], aws_pools.POOLS[0]]),
    "spec.provider.workers.0.machine.type": st.sampled_from(["m6g.large", "other"]),
    "spec.provider.workers.0.machine.architecture": or_absent("arm64", "amd64"),
    "spec.provider.workers.0.machine.image": or_absent({"name": "other", "version": "1.0.0"}),
    "spec.provider.workers.0.providerConfig.volume.iops": st.sampled_from([0, 1, -1]),
    "spec.systemComponents.nodeLocalDNS.enabled": st.booleans(),
    "spec.systemComponents.nodeLocalDNS.forceTCPToUpstreamDNS": BOOLEANS,
}
"""Fields of Shoots; those that the API server decodes have the right types."""
LIFE: Final[dict[str, SearchStrategy[Any]]] = {
    "metadata.deletionTimestamp": st.just("2026-01-01T00:00:00Z"),
    "status.seedName": st.sampled_from(["seed", "other"]),
    "status.lastOperation": st.fixed_dictionaries(
        {
            "type": st.sampled_from(["Create", "Reconcile", "Migrate", "Restore"]),
            "state": st.sampled_from(["Processing", "Succeeded", "Error"]),
            "description": st.just(""),
            "lastUpdateTime": st.just("2026-01-01T00:00:00Z"),
            "progress": st.just(100),
        }
    ),
}
"""Fields that say where a Shoot is in its life."""
