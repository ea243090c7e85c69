"""Worker pools of Shoots on AWS, and their WorkerConfigs."""

from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.strategies.aws import TYPES, ZONE_NAMES, ZONES, config, ids
from conformance.strategies.fields import ANYTHING, below, free, or_absent
from pergola.api.objects import JsonObject

_WORKER_CONFIG: Final = config(
    "WorkerConfig",
    {
        "volume": {"iops": 4000, "throughput": 250},
        "dataVolumes": [
            {"name": "a", "iops": 3000, "throughput": 150, "snapshotID": "snap-0a1b2c3d"},
            {"name": "b", "iops": 100},
        ],
        "nodeTemplate": {
            "capacity": {"cpu": "4", "memory": "16Gi"},
            "virtualCapacity": {"example.com/licence": "7"},
        },
        "iamInstanceProfile": {"name": "nodes"},
        "instanceMetadataOptions": {"httpTokens": "optional", "httpPutResponseHopLimit": 3},
        "cpuOptions": {"coreCount": 2, "threadsPerCore": 1, "amdSevSnp": "enabled"},
        "capacityReservation": {
            "capacityReservationPreference": "capacity-reservations-only",
            "capacityReservationId": "cr-0a1b2c3d",
        },
        "networkInterfaces": [
            {"networkCardIndex": 0, "deviceIndex": 0, "type": "efa", "description": "first"},
            {"networkCardIndexRange": {"from": 1, "to": 3}, "deviceIndex": 1, "type": "efa-only"},
        ],
        "placement": {
            "groupId": "pg-1",
            "tenancy": "host",
            "hostId": "h-1",
            "partitionNumber": 2,
            "affinity": "host",
        },
        "instanceMarketOptions": {"marketType": "spot"},
    },
)
_POOL: Final = {
    "name": "pool",
    "minimum": 1,
    "maximum": 3,
    "machine": {
        "type": "m5.large",
        "architecture": "amd64",
        "image": {"name": "gardenlinux", "version": "1592.4.0"},
    },
    "volume": {"size": "50Gi", "type": "gp3"},
    "zones": list(ZONES[:2]),
}
POOLS: Final[tuple[JsonObject, ...]] = (
    _POOL,
    {**_POOL, "providerConfig": config("WorkerConfig", {})},
    {
        **_POOL,
        "volume": {"size": "50Gi", "type": "io1"},
        "dataVolumes": [
            {"name": "a", "size": "20Gi", "type": "gp3"},
            {"name": "b", "size": "20Gi", "type": "io1"},
        ],
        "providerConfig": _WORKER_CONFIG,
    },
)
"""Valid pools."""

_NUMBERS: Final = st.sampled_from(
    [0, 1, 2, 3, -1, 64, 65, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**63 - 1, 2**63]
) | or_absent(None, 1.0, 1e3, 0.5, "1")
_QUANTITIES: Final = st.sampled_from(
    ["0", "1", "-1", "1.5", "500m", "1000m", "16Gi", "1e3", "1E3", "1E", "1k", "1K", "0.0001n"]
) | st.sampled_from(
    ["", "Gi", "+1", " 1", ".5", "5.", "1_000", "\u0661", 1, 0, -1, 1.5, 1e30, 2**63, None, True]
)
_NAMES: Final = st.sampled_from(["a", "b", "c", "", "A"])
_PROFILES: Final = st.sampled_from(
    ["nodes", "", "a" * 128, "a" * 129, "a b", "a+=,.@-_", "ä", "a\n", "a/b"]
) | or_absent(None)
_ARNS: Final = (
    st.sampled_from(
        ["arn:aws:iam::123456789012:instance-profile/nodes", "arn:", "arn", "", "arn:a b", "arn:ä"]
    )
    | st.sampled_from(
        ["arn:aws:resource-groups:eu-west-1:123456789012:group/a", "arn:aws:resource-groups:"]
    )
    | st.sampled_from([f"arn:{'a' * 251}", f"arn:{'a' * 252}", "arn:aws:resource-groups:a b"])
    | or_absent(None)
)


def _word(*words: str) -> SearchStrategy[Any]:
    return or_absent(*words, *words, "", "other", words[0].upper(), f"{words[0]} ", None)


_VOLUMES: Final = st.lists(
    st.fixed_dictionaries(
        {"name": _NAMES},
        optional={"iops": st.sampled_from([0, 1, -1, None]), "snapshotID": ids("snap")},
    ),
    max_size=3,
)
_INTERFACES: Final = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "networkCardIndex": st.integers(-1, 2),
            "networkCardIndexRange": st.fixed_dictionaries(
                {}, optional={"from": st.integers(-1, 2), "to": st.integers(-1, 2)}
            ),
            "deviceIndex": st.integers(-1, 1),
            "type": st.sampled_from(["interface", "efa", "efa-only", "efa-only", "branch"]),
            "subnetID": st.sampled_from(["subnet-1", "", "x"]),
        },
    ),
    max_size=2,
)
_CONFIG: Final[dict[str, SearchStrategy[Any]]] = {
    "volume.iops": _NUMBERS,
    "volume.throughput": _NUMBERS,
    "dataVolumes": _VOLUMES,
    "dataVolumes.0.name": _NAMES,
    "dataVolumes.0.iops": _NUMBERS,
    "dataVolumes.1.throughput": _NUMBERS,
    "dataVolumes.0.snapshotID": ids("snap") | or_absent(None),
    "dataVolumes.1.unknown": st.just(1),
    "nodeTemplate.capacity": st.dictionaries(
        st.sampled_from(["cpu", "gpu", "memory", "storage", "x y", "example.com/a", ""]),
        _QUANTITIES,
        max_size=2,
    ),
    "nodeTemplate.capacity.cpu": _QUANTITIES,
    "nodeTemplate.capacity.storage": _QUANTITIES,
    "nodeTemplate.virtualCapacity": st.dictionaries(
        st.sampled_from(["example.com/a", "a", ""]), _QUANTITIES, max_size=2
    ),
    "iamInstanceProfile.name": _PROFILES,
    "iamInstanceProfile.arn": _ARNS,
    "instanceMetadataOptions.httpTokens": _word("required", "optional"),
    "instanceMetadataOptions.httpPutResponseHopLimit": _NUMBERS,
    "cpuOptions.coreCount": _NUMBERS,
    "cpuOptions.threadsPerCore": _NUMBERS,
    "cpuOptions.amdSevSnp": _word("enabled", "disabled"),
    "capacityReservation.capacityReservationPreference": _word(
        "capacity-reservations-only", "open", "none"
    ),
    "capacityReservation.capacityReservationId": ids("cr") | or_absent(None),
    "capacityReservation.capacityReservationResourceGroupArn": _ARNS,
    "networkInterfaces": _INTERFACES,
    "networkInterfaces.0.networkCardIndex": _NUMBERS,
    "networkInterfaces.1.networkCardIndexRange.from": _NUMBERS,
    "networkInterfaces.1.networkCardIndexRange.to": _NUMBERS,
    "networkInterfaces.0.deviceIndex": _NUMBERS,
    "networkInterfaces.0.type": _word("interface", "efa", "efa-only"),
    "placement.groupId": st.sampled_from(["pg-1", "", "ä"]) | or_absent(None),
    "placement.tenancy": _word("default", "dedicated", "host"),
    "placement.hostId": st.sampled_from(["h-1", ""]) | or_absent(None),
    "placement.partitionNumber": _NUMBERS,
    "placement.affinity": _word("default", "host"),
    "instanceMarketOptions.marketType": _word("spot", "capacity-block"),
}
_TYPES: Final = st.sampled_from(["gp3", "io1", "io1", "io2", ""]) | or_absent()
_DATA_VOLUME: Final = st.fixed_dictionaries(
    {"name": _NAMES, "size": st.sampled_from(["20Gi", "20Gi", ""])},
    optional={"type": st.sampled_from(["gp3", "io1", ""])},
)
TYPED: Final[dict[str, SearchStrategy[Any]]] = {
    "name": st.sampled_from(["pool", "other"]),
    "volume": or_absent(),
    "volume.size": st.sampled_from(["50Gi", "", "x"]),
    "volume.type": _TYPES,
    "dataVolumes": st.lists(_DATA_VOLUME, min_size=1, max_size=3)
    | st.lists(_DATA_VOLUME, min_size=10),
    "dataVolumes.0.type": _TYPES,
    "dataVolumes.1.name": _NAMES,
    "zones": st.lists(ZONE_NAMES, max_size=3) | or_absent(),
    "updateStrategy": st.sampled_from(
        ["AutoRollingUpdate", "AutoInPlaceUpdate", "ManualInPlaceUpdate", "AutoInPlaceUpdate"]
    ),
    "machine.image.version": st.sampled_from(["1592.4.0", "1592.5.0", ""]),
    "maximum": st.integers(0, 3),
}
"""Fields of pools, which the API server decodes."""
FIELDS: Final = {
    **TYPED,
    "providerConfig": ANYTHING | or_absent(config("WorkerConfig", {})),
    **below("providerConfig", free(_CONFIG | TYPES)),
}
"""Fields of pools, and of their configs, which may be anything."""
