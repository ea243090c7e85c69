"""Workers on AWS: pools with WorkerConfigs, machine images in both formats, older statuses."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.strategies.aws import ZONES, config
from conformance.strategies.fields import ABSENT, Change
from pergola.api.objects import JsonObject

_NAMESPACE: Final = "shoot--demo--blue"
_REGION: Final = "eu-west-1"
_VERSIONS: Final = ("1592.4.0", "1.0+gl")
_DEFINITIONS: Final[tuple[list[JsonObject], ...]] = (
    [],
    [],
    [{"name": "architecture", "values": ["amd64", "arm64"]}],
    [
        {"name": "architecture", "values": ["amd64", "arm64"]},
        {"name": "bootMode", "values": ["uefi", "bios"]},
    ],
    [
        {"name": "gpu", "values": ["none", "nvidia"]},
        {"name": "architecture", "values": ["arm64", "amd64"]},
    ],
    [{"name": "architecture", "values": ["amd64"]}],
)
_TYPES: Final = {"m5.large": "amd64", "m6g.large": "arm64", "g4dn.xlarge": "amd64"}
_IMAGE: Final = {"name": "gardenlinux", "version": _VERSIONS[0]}
_ROTATED: Final = "2026-03-01T10:20:30Z"


_AMIS: Final = [
    {"name": _REGION, "ami": "ami-amd"},
    {"name": _REGION, "ami": "ami-arm", "architecture": "arm64"},
]


def _maybe(**fields: SearchStrategy[Any]) -> SearchStrategy[JsonObject]:
    return st.fixed_dictionaries({}, optional=fields)


def _quantities(*names: str) -> SearchStrategy[JsonObject]:
    return st.dictionaries(st.sampled_from(names), _QUANTITIES, max_size=3)


_QUANTITIES: Final = st.sampled_from(
    ["0", "1", "1500m", "0.5Gi", "16Gi", "1e3", "1E3", "3k", "1.5", "0.1", "1025Ki", "1024Mi"]
) | st.sampled_from(
    [0, 1, 7, 1.5, 10**12, "12345678901", "1P", "100n", "2500u", "1Ei", "10E", 2**63]
)
_NUMBERS: Final = st.sampled_from([1, 2, 3000, 2**31 - 1])
_CAPACITY: Final = _quantities("cpu", "memory", "gpu", "ephemeral-storage", "example.com/dongle")
_VIRTUAL: Final = st.dictionaries(
    st.sampled_from(["example.com/licence", "a{b", "b"]),
    st.sampled_from(["7", 0, "1k"]),
    max_size=2,
)
_TEXTS: Final = st.sampled_from(["first", "a<b&c>d", "größer", 'a "quoted" {', ""])
_INTERFACE: Final = st.fixed_dictionaries(
    {"deviceIndex": st.integers(0, 2)},
    optional={
        "type": st.sampled_from(["interface", "efa", "efa-only", ""]),
        "description": _TEXTS,
        "subnetID": st.sampled_from(["subnet-own", ""]),
    },
)
_CARDS: Final = _maybe(networkCardIndex=st.integers(0, 3)) | st.builds(
    lambda first, count: {"networkCardIndexRange": {"from": first, "to": first + count}},
    st.integers(0, 3),
    st.integers(-1, 3),
)
_CONFIGS: Final = _maybe(
    nodeTemplate=_maybe(capacity=_CAPACITY, virtualCapacity=_VIRTUAL),
    volume=_maybe(iops=_NUMBERS, throughput=_NUMBERS),
    dataVolumes=st.lists(
        st.fixed_dictionaries(
            {"name": st.sampled_from(["a", "b", "c"])},
            optional={
                "iops": _NUMBERS,
                "throughput": _NUMBERS,
                "snapshotID": st.sampled_from(["snap-1", ""]),
            },
        ),
        max_size=3,
    ),
    iamInstanceProfile=st.sampled_from(
        [{"name": "own"}, {"arn": "arn:1"}, {"name": "own", "arn": "arn:1"}, {"arn": "arn:2"}]
    ),
    instanceMetadataOptions=_maybe(
        httpTokens=st.sampled_from(["required", "optional"]),
        httpPutResponseHopLimit=st.integers(1, 64),
    ),
    cpuOptions=_maybe(
        coreCount=_NUMBERS,
        threadsPerCore=st.integers(1, 2),
        amdSevSnp=st.sampled_from(["enabled", "disabled"]),
    ),
    capacityReservation=_maybe(
        capacityReservationPreference=st.sampled_from(["open", "none"]),
        capacityReservationId=st.just("cr-1"),
        capacityReservationResourceGroupArn=st.just("arn:aws:resource-groups:a"),
    ),
    networkInterfaces=st.lists(st.builds(lambda a, b: a | b, _INTERFACE, _CARDS), max_size=3),
    placement=_maybe(
        groupId=st.sampled_from(["pg-1", ""]),
        tenancy=st.sampled_from(["default", "dedicated", "host"]),
        hostId=st.just("h-1"),
        partitionNumber=_NUMBERS,
        affinity=st.just("host"),
    ),
    instanceMarketOptions=st.sampled_from([{"marketType": "spot"}, {"marketType": ""}]),
)
_PROVIDER_CONFIGS: Final = st.none() | _CONFIGS.map(lambda made: config("WorkerConfig", made))
_SIZES: Final = st.sampled_from(["50Gi", "50Gi", "050Gi", "20.5Gi", "7", "2147483647Gi"])
_WRONG_SIZES: Final = st.sampled_from(["2147483648Gi", "Gi", "", "99999999999999999999Gi"])
_OFTEN: Final = st.integers(0, 19).map(bool)
"""False in one of twenty cases: a Worker that is refused tells little."""
_ENCRYPTION: Final[dict[str, SearchStrategy[Any]]] = {
    "type": st.sampled_from(["gp3", "io1", ""]),
    "encrypted": st.booleans(),
}
_VOLUMES: Final = _OFTEN.flatmap(
    lambda fine: st.fixed_dictionaries(
        {"size": _SIZES if fine else _WRONG_SIZES}, optional=_ENCRYPTION
    )
)
_DATA_VOLUMES: Final = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(list("abcdefghijklmno")), "size": _SIZES}, optional=_ENCRYPTION
    ),
    max_size=3,
    unique_by=lambda volume: volume["name"],
)
_LIMITS: Final = st.sampled_from([0, 1, 2, 5, "0%", "10%", "33%", "100%"])
_KUBERNETES: Final = st.sampled_from(
    ["1.31.9", "1.32.0", "1.33.5", "1.34.0-alpha.1", "1.34.0", "1.34.2", "v1.35.1", "1.35.0"]
)
_KUBELET: Final = _maybe(
    kubeReserved=_maybe(
        cpu=st.sampled_from(["100m", "0.1"]),
        memory=st.sampled_from(["1Gi", "0.5Gi"]),
        pid=st.sampled_from(["20k", "100"]),
        ephemeralStorage=st.sampled_from(["1Gi", "1024Mi"]),
    ),
    evictionHard=_maybe(
        imageFSAvailable=st.sampled_from(["5%", "1Gi"]),
        memoryAvailable=st.just("100Mi"),
        nodeFSInodesFree=st.just("5%"),
    ),
    cpuManagerPolicy=st.sampled_from(["none", "static", ""]),
    maxPods=st.just(110),
)
_POOL_FIELDS: Final[dict[str, SearchStrategy[Any]]] = {
    "kubernetesVersion": _KUBERNETES,
    "dataVolumes": _DATA_VOLUMES,
    "nodeTemplate": _maybe(
        capacity=_CAPACITY, virtualCapacity=_quantities("example.com/licence", "example.com/seat")
    ),
    "updateStrategy": st.sampled_from(
        ["AutoRollingUpdate", "AutoInPlaceUpdate", "ManualInPlaceUpdate"]
    ),
    "kubeletConfig": _KUBELET,
    "labels": st.dictionaries(
        st.sampled_from(["a", "kubernetes.io/role/node", "topology.kubernetes.io/zone"]),
        st.sampled_from(["b", ""]),
        max_size=2,
    ),
    "annotations": st.just({"a": "b"}),
    "taints": st.just([{"key": "a", "value": "b", "effect": "NoSchedule"}]),
    "priority": st.integers(0, 3),
    "clusterAutoscaler": _maybe(
        scaleDownUnneededTime=st.sampled_from(["1h30m", "90m0s", "0s"]),
        scaleDownUtilizationThreshold=st.sampled_from(["0.5", "1"]),
    ),
    "machineControllerManager": _maybe(
        machineDrainTimeout=st.sampled_from(["2h", "0s"]),
        maxEvictRetries=st.integers(0, 3),
        nodeConditions=st.lists(st.sampled_from(["A", "B"]), max_size=2),
        disableHealthTimeout=st.booleans(),
    ),
}
_ZONE_LISTS: Final = st.sampled_from(
    [[ZONES[0]], [ZONES[0]], [ZONES[1]], [*ZONES[:2]], [*ZONES[:3]], [ZONES[1], ZONES[0]], []]
)


def _pool(machine: str) -> SearchStrategy[JsonObject]:
    return st.fixed_dictionaries(
        {
            "machineType": st.just(machine),
            "machineImage": st.fixed_dictionaries(
                {
                    "name": st.sampled_from(["gardenlinux"] * 19 + ["other"]),
                    "version": st.sampled_from(_VERSIONS),
                }
            ),
            "minimum": st.integers(0, 5),
            "maximum": st.integers(1, 9),
            "maxSurge": _LIMITS,
            "maxUnavailable": _LIMITS,
            "zones": _ZONE_LISTS,
            "volume": _VOLUMES,
            "nodeAgentSecretName": st.sampled_from(["gardener-node-agent-a", "other"]),
            "providerConfig": _PROVIDER_CONFIGS,
        },
        optional=_POOL_FIELDS | {"architecture": st.just(_TYPES[machine])},
    ).map(lambda made: _complete(made, machine))


def _complete(pool: JsonObject, machine: str) -> JsonObject:
    found = {name: value for name, value in pool.items() if value is not None}
    if _TYPES[machine] != "amd64":
        found["architecture"] = _TYPES[machine]
    return {**found, "userDataSecretRef": {"name": "init", "key": "userData"}}


def _capabilities(definitions: Sequence[JsonObject]) -> SearchStrategy[JsonObject]:
    """Return capabilities; a flavor that names no architecture is refused by the original."""
    values = {
        str(each["name"]): st.lists(st.sampled_from(each["values"]), min_size=1, unique=True)
        for each in definitions or _DEFINITIONS[2]
    }
    return st.fixed_dictionaries({"architecture": values.pop("architecture")}, optional=values)


def _flavor_regions(amis: SearchStrategy[str]) -> SearchStrategy[Any]:
    region = st.fixed_dictionaries(
        {"name": st.sampled_from([_REGION] * 4 + ["eu-central-1"]), "ami": amis}
    )
    return st.lists(region, min_size=1, max_size=2)


def _images(definitions: Sequence[JsonObject]) -> SearchStrategy[Any]:
    """Return images in both formats, as a CloudProfile with these definitions may have them."""
    amis = st.integers(1, 9).map("ami-{}".format)
    region = st.fixed_dictionaries(
        {"name": st.sampled_from([_REGION] * 4 + ["eu-central-1"]), "ami": amis},
        optional={"architecture": st.sampled_from(["amd64", "arm64"])},
    )
    old: dict[str, SearchStrategy[Any]] = {"regions": st.lists(region, max_size=3)}
    flavor = st.fixed_dictionaries(
        {"regions": _flavor_regions(amis), "capabilities": _capabilities(definitions)}
    )
    new: dict[str, SearchStrategy[Any]] = {
        "capabilityFlavors": st.lists(flavor, min_size=1, max_size=3)
    }
    version: dict[str, SearchStrategy[Any]] = {"version": st.sampled_from(_VERSIONS)}
    versions = st.lists(
        st.fixed_dictionaries(version | old)
        | st.fixed_dictionaries(version | new)
        | st.fixed_dictionaries(version | old | new),
        min_size=1,
        max_size=4,
    )
    image = st.fixed_dictionaries({"name": st.just("gardenlinux"), "versions": versions})
    all_ = {
        "name": "gardenlinux",
        "versions": [{"version": v, "regions": _AMIS} for v in _VERSIONS],
    }
    return st.just([all_]) | st.just([all_]) | st.lists(image, min_size=1, max_size=2)


def _status(definitions: Sequence[JsonObject]) -> SearchStrategy[Any]:
    image = st.fixed_dictionaries(
        {
            "name": st.just("gardenlinux"),
            "version": st.sampled_from(_VERSIONS),
            "ami": st.integers(1, 3).map("ami-of-status-{}".format),
        },
        optional={
            "architecture": st.sampled_from(["amd64", "arm64"]),
            "capabilities": _capabilities(definitions),
        },
    )
    return st.none() | st.lists(image, max_size=4).map(
        lambda images: config("WorkerStatus", {"machineImages": images} if images else {})
    )


def _machine_types(definitions: Sequence[JsonObject]) -> SearchStrategy[Any]:
    capabilities = _capabilities(definitions) | _capabilities(definitions).map(
        lambda found: {name: values for name, values in found.items() if name != "architecture"}
    )
    types = [
        st.fixed_dictionaries(
            {"name": st.just(name), "architecture": st.just(architecture)},
            optional={"capabilities": capabilities} if definitions else {},
        )
        for name, architecture in _TYPES.items()
    ]
    return st.tuples(*types).map(list)


def _infrastructure(zones: Sequence[str] = ZONES[:3], **fields: Any) -> JsonObject:
    nodes = [{"id": f"subnet-{zone[-1]}", "purpose": "nodes", "zone": zone} for zone in zones]
    others = [{"id": "subnet-public", "purpose": "public", "zone": ZONES[0]}]
    status = {
        "ec2": {"keyName": "key"},
        "iam": {"instanceProfiles": [{"name": "nodes", "purpose": "nodes"}], "roles": []},
        "vpc": {
            "id": "vpc-1",
            "subnets": [*others, *nodes],
            "securityGroups": [
                {"id": "sg-other", "purpose": "other"},
                {"id": "sg-nodes", "purpose": "nodes"},
                {"id": "sg-second", "purpose": "nodes"},
            ],
        },
    }
    return config("InfrastructureStatus", status | fields)


_INFRASTRUCTURES: Final = st.sampled_from(
    [
        *[_infrastructure()] * 9,
        _infrastructure(ec2={"keyName": ""}),
        _infrastructure(ZONES[:2]),
        _infrastructure(iam={"instanceProfiles": [], "roles": []}),
    ]
)
_FAMILIES: Final = st.sampled_from(
    [["IPv4"], ["IPv4"], ["IPv6"], ["IPv4", "IPv6"], ["IPv6", "IPv4"], None]
)
_ROTATION: Final = _maybe(
    lastInitiationTime=st.just(_ROTATED),
    pendingWorkersRollouts=st.lists(
        st.fixed_dictionaries(
            {"name": st.sampled_from(["a", "b"])},
            optional={"lastInitiationTime": st.just("2025-01-02T03:04:05Z")},
        ),
        max_size=2,
    ),
)
_ROTATIONS: Final = _maybe(certificateAuthorities=_ROTATION, serviceAccountKey=_ROTATION)


def some_worker() -> SearchStrategy[JsonObject]:
    """Return Workers; most have machines."""
    return st.one_of([_with(definitions) for definitions in _DEFINITIONS])


def _with(definitions: Sequence[JsonObject]) -> SearchStrategy[JsonObject]:
    pools = st.lists(st.sampled_from([*_TYPES]).flatmap(_pool), min_size=1, max_size=2)
    return st.builds(
        _question,
        st.just(definitions),
        pools,
        _images(definitions),
        _machine_types(definitions),
        _status(definitions),
        st.tuples(_INFRASTRUCTURES, _FAMILIES, _ROTATIONS),
        st.sampled_from(["", "", "", "indented", "reversed", "blanks"]),
    )


def _question(
    definitions: Sequence[JsonObject],
    pools: Sequence[JsonObject],
    images: Sequence[JsonObject],
    types: Sequence[JsonObject],
    status: JsonObject | None,
    rest: tuple[JsonObject, Sequence[str] | None, JsonObject],
    style: str,
) -> JsonObject:
    infrastructure, families, rotations = rest
    named = [{"name": name, **pool} for name, pool in zip("ab", pools, strict=False)]
    worker: JsonObject = {
        "apiVersion": "extensions.gardener.cloud/v1alpha1",
        "kind": "Worker",
        "metadata": {"name": "blue", "namespace": _NAMESPACE},
        "spec": {
            "type": "aws",
            "region": _REGION,
            "secretRef": {"name": "cloudprovider", "namespace": _NAMESPACE},
            "infrastructureProviderStatus": infrastructure,
            "pools": named,
        },
    }
    if status is not None:
        worker["status"] = {"providerStatus": status}
    profile = {"machineImages": images}
    spec: JsonObject = {
        "providerConfig": config("CloudProfileConfig", profile),
        "machineTypes": types,
        **({"machineCapabilities": definitions} if definitions else {}),
    }
    found: JsonObject = {
        "worker": worker,
        "cluster": _cluster(spec, families, rotations),
        "secrets": [_INIT],
    }
    if style:
        found["rawProviderConfigs"] = {
            pool["name"]: _written(pool["providerConfig"], style)
            for pool in named
            if "providerConfig" in pool
        }
    return found


def _cluster(
    profile: JsonObject, families: Sequence[str] | None, rotations: Mapping[str, Any]
) -> JsonObject:
    networking = {} if families is None else {"networking": {"ipFamilies": families}}
    shoot: JsonObject = {
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": "Shoot",
        "metadata": {"name": "blue", "namespace": "garden-demo"},
        "spec": {"kubernetes": {"version": "1.34.2"}, **networking},
        "status": {"technicalID": _NAMESPACE, "credentials": {"rotation": rotations}},
    }
    return {
        "apiVersion": "extensions.gardener.cloud/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": _NAMESPACE},
        "spec": {
            "shoot": shoot,
            "seed": {"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Seed"},
            "cloudProfile": {
                "apiVersion": "core.gardener.cloud/v1beta1",
                "kind": "CloudProfile",
                "metadata": {"name": "aws"},
                "spec": profile,
            },
        },
    }


def _written(value: JsonObject, style: str) -> str:
    """Return a config with other blanks and another order of fields, which an API server keeps."""
    if style == "reversed":
        return json.dumps(_reversed(value), separators=(",", ":"))
    if style == "indented":
        return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    return json.dumps(value, separators=(" , ", "  :\t"), sort_keys=True)


def _reversed(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {name: _reversed(each) for name, each in reversed(value.items())}


_INIT: Final[JsonObject] = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "init", "namespace": _NAMESPACE},
    "type": "Opaque",
    "data": {"userData": "IyEvYmluL3NoCg=="},
}
BASE: Final = _question(
    [],
    [
        _complete(
            {
                "machineType": "m5.large",
                "machineImage": _IMAGE,
                "minimum": 3,
                "maximum": 6,
                "maxSurge": 1,
                "maxUnavailable": 0,
                "zones": [*ZONES[:2]],
                "volume": {"size": "50Gi", "type": "gp3"},
                "nodeAgentSecretName": "gardener-node-agent-a",
                "kubernetesVersion": "1.34.2",
                "nodeTemplate": {"capacity": {"cpu": "2", "memory": "8Gi"}},
                "providerConfig": config("WorkerConfig", {}),
            },
            "m5.large",
        )
    ],
    [{"name": "gardenlinux", "versions": [{"version": _VERSIONS[0], "regions": _AMIS}]}],
    [{"name": name, "architecture": architecture} for name, architecture in _TYPES.items()],
    None,
    (_infrastructure(), ["IPv4"], {}),
    "",
)
"""A Worker with one pool in two zones."""
_POOL: Final = "worker.spec.pools.0"
VARIANTS: Final[tuple[tuple[Change, ...], ...]] = (
    (),
    (Change("worker.spec.pools", []),),
    (Change(f"{_POOL}.providerConfig", ABSENT),),
    (Change(f"{_POOL}.volume", ABSENT),),
    (Change(f"{_POOL}.nodeTemplate", ABSENT),),
    (Change(f"{_POOL}.machineType", "m9.huge"),),
    (Change(f"{_POOL}.kubernetesVersion", "1.33.5"),),
    (Change(f"{_POOL}.kubernetesVersion", "new"),),
    (Change(f"{_POOL}.kubernetesVersion", ABSENT),),
    (Change(f"{_POOL}.updateStrategy", "AutoInPlaceUpdate"),),
    (Change("worker.spec.infrastructureProviderStatus.vpc.securityGroups", []),),
    (Change("cluster.spec.cloudProfile.spec.providerConfig", ABSENT),),
)
"""Changes of `BASE`, each for an option."""
