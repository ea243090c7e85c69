"""Networks of type calico, with their Shoots."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.strategies.fields import ANYTHING
from pergola.api.objects import JsonObject, JsonValue

NAMESPACE: Final = "shoot--demo--blue"
_API_VERSION: Final = "calico.networking.extensions.gardener.cloud/v1alpha1"
_PODS: Final = {"IPv4": "100.96.0.0/11", "IPv6": "2001:db8:1::/56"}
_SERVICES: Final = {"IPv4": "100.64.0.0/13", "IPv6": "2001:db8:2::/112"}
_NODES: Final = {"IPv4": "10.250.0.0/16", "IPv6": "2001:db8:3::/56"}
_SOME_NODES: Final = (*_NODES.values(), "10.251.0.0/16", "2001:db8:4::/64")
_FLAGS: Final = (True, False)
_METHODS: Final = (
    "first-found",
    "can-reach=10.0.0.1",
    "interface=eth.*",
    "skip-interface=docker0",
    "cidr=10.250.0.0/16",
    "cidr=2001:db8:3::/56",
    "kubernetes-internal-ip",
)
_ODD_METHODS: Final = (
    "first-found=x",
    "can-reach",
    "can-reach=",
    "can-reach=::1",
    "can-reach=no_host",
    "interface=[",
    "interface=a b",
    "cidr=10.0.0.0",
    "cidr=10.250.0.0/16,10.251.0.0/16",
    "cidr=",
    "text",
)
_MODES: Final = ("Always", "Never", "CrossSubnet", "Off")
_BACKENDS: Final = ("bird", "vxlan", "none")
_CPU: Final = ("100m", "1", "0.5", 1, 0.5, 2)
_MEMORY: Final = ("100Mi", "1Gi", "1e9", 1000000, 1073741824)
_ODD_AMOUNTS: Final = ("0", 0, "-1", -1, "", "text", "1 Gi", True, None, "0.5m", "1.5", 1.5)
_CIDRS: Final = ("usePodCIDR", "usePodCidr", "10.1.0.0/16", "2001:db8:5::/64")
_ODD_CIDRS: Final = ("", "usePodCidrIPv6", "10.1.0.0", "10.1.0.1/16", "010.1.0.0/16")
_MTUS: Final = ("0", "1430", "1480", "9000")
_ODD_MTUS: Final = ("", "-1", "+1430", "01430", "1e3", "text", " 1430", 1430, 0)
_SCALING: Final = ("cluster-proportional", "vpa", "static")
_LOOPS: Final = ("Disabled", "Drop", "Reject")


def _or_odd(usual: Sequence[JsonValue], odd: Sequence[JsonValue]) -> SearchStrategy[Any]:
    """Return usual values, and now and then null or an odd one."""
    return st.one_of(*[st.sampled_from(usual)] * 6, st.none(), *[st.sampled_from(odd)] * bool(odd))


def _usual(*values: JsonValue) -> SearchStrategy[Any]:
    return _or_odd(values, ())


def _struct(**fields: SearchStrategy[Any]) -> SearchStrategy[Any]:
    """Return objects that may lack any field; some are empty, and some are null."""
    some, whole = st.fixed_dictionaries({}, optional=fields), st.fixed_dictionaries(fields)
    return st.one_of(whole, whole, whole, some, some, st.builds(dict), st.none())


def _config(*, odd: bool) -> Mapping[str, SearchStrategy[Any]]:
    """Return values for every field of a NetworkConfig."""

    def chosen(usual: Sequence[JsonValue], others: Sequence[JsonValue]) -> SearchStrategy[Any]:
        return _or_odd(usual, others if odd else ())

    flag = chosen(_FLAGS, ("true", 0, 1, ""))
    method = chosen(_METHODS, _ODD_METHODS)
    amounts = _struct(
        cpu=chosen(_CPU, _ODD_AMOUNTS),
        memory=chosen(_MEMORY, _ODD_AMOUNTS),
        **({"storage": st.just("1Gi")} if odd else {}),
    )
    enabled = _struct(enabled=flag)
    return {
        "backend": chosen(_BACKENDS, ("", "BIRD", 1)),
        "ipam": _struct(
            type=chosen(("host-local", "calico-ipam", ""), ("text", 1)),
            cidr=chosen(_CIDRS, _ODD_CIDRS),
        ),
        "ipv4": _struct(
            pool=chosen(("ipip", "vxlan"), ("", "text")),
            mode=chosen(_MODES, ("", "always")),
            autoDetectionMethod=method,
        ),
        "ipv6": _struct(
            pool=chosen(("vxlan",), ("ipip", "", "text")),
            mode=chosen(_MODES[:3], ("Off", "", "always")),
            autoDetectionMethod=method,
            sourceNATEnabled=flag,
        ),
        "typha": enabled,
        "vethMTU": chosen(_MTUS, _ODD_MTUS),
        "ebpfDataplane": enabled,
        "overlay": _struct(enabled=flag, createPodRoutes=flag),
        "snatToUpstreamDNS": enabled,
        "autoScaling": _struct(
            mode=chosen(_SCALING, ("", "text")),
            resources=_struct(node=amounts, typha=amounts),
        ),
        "vxlan": enabled,
        "wireguardEncryption": flag,
        "birdExporter": enabled,
        "multus": _struct(enabled=flag, installCNIPlugins=flag),
        "serviceLoopPrevention": chosen(_LOOPS, ("", "drop")),
        "ipip": chosen(_MODES, ("", "text")),
        "ipAutodetectionMethod": chosen(_METHODS, (*_ODD_METHODS, "")),
    }


_USUAL: Final = _config(odd=False)
_ODD: Final = _config(odd=True)
_CORE: Final = (
    "backend",
    "ipam",
    "ipv4",
    "ipv6",
    "overlay",
    "vxlan",
    "ipip",
    "wireguardEncryption",
)
"""Fields that together decide the routes between nodes."""
_TYPE: Final = {"apiVersion": _API_VERSION, "kind": "NetworkConfig"}


def _of(fields: Mapping[str, SearchStrategy[Any]], most: int) -> SearchStrategy[JsonObject]:
    """Return configs with some of the fields."""
    names = st.lists(st.sampled_from(sorted(fields)), max_size=most, unique=True)
    chosen = names.flatmap(lambda found: st.fixed_dictionaries({n: fields[n] for n in found}))
    return st.tuples(st.sampled_from([{}, _TYPE]), chosen).map(lambda parts: parts[0] | parts[1])


_ROUTES: Final = st.fixed_dictionaries({}, optional={name: _USUAL[name] for name in _CORE})
_TUNNELS: Final = st.fixed_dictionaries(
    {name: st.fixed_dictionaries({"enabled": st.booleans()}) for name in ("overlay", "vxlan")},
    optional={name: _USUAL[name] for name in ("ipam", "ipv4", "backend", "wireguardEncryption")},
)
_AMOUNTS: Final = _struct(cpu=st.sampled_from(_CPU), memory=st.sampled_from(_MEMORY))
_RESOURCES: Final = {"resources": _struct(node=_AMOUNTS, typha=_AMOUNTS)}
_WORKLOADS: Final = st.fixed_dictionaries(
    {
        "autoScaling": st.fixed_dictionaries(
            {"mode": st.sampled_from(_SCALING)}, optional=_RESOURCES
        )
    },
    optional={name: _USUAL[name] for name in sorted(_USUAL.keys() - {*_CORE, "autoScaling"})},
)
_CONFIGS: Final = st.one_of(
    *(_ROUTES, _ROUTES, _TUNNELS, _WORKLOADS), _of(_USUAL, 6), _of(_ODD, 2), st.none()
)

_PLACES: Final = (
    *_ODD,
    *(f"{name}.enabled" for name in ("typha", "overlay", "vxlan", "ebpfDataplane", "multus")),
    "overlay.createPodRoutes",
    "ipv4.mode",
    "ipv6.sourceNATEnabled",
    "autoScaling.mode",
    "autoScaling.resources",
    "autoScaling.resources.node",
    "autoScaling.resources.node.cpu",
    "ipam.type",
    "ipam.cidr",
    "unknown",
    "typha.unknown",
    "Overlay",
    "apiVersion",
    "kind",
)
"""Fields that get values of other types, and unknown ones."""


def _wrong() -> SearchStrategy[JsonObject]:
    """Return configs with a value of any type at one place."""
    return st.builds(_nested, st.sampled_from(_PLACES), ANYTHING)


def _nested(path: str, value: JsonValue) -> JsonObject:
    first, _, rest = path.partition(".")
    found: JsonObject = {first: _nested(rest, value) if rest else value}
    return {"mode": "static", **found} if first == "resources" else found


_FAMILIES: Final[Sequence[Sequence[str]]] = (
    ["IPv4"],
    ["IPv4"],
    ["IPv6"],
    ["IPv4", "IPv6"],
    ["IPv6", "IPv4"],
)
_MIGRATION: Final = "DualStackNodesMigrationReady"


def _shoot(
    *,
    families: Sequence[str] = ("IPv4",),
    config: JsonValue = None,
    has_nodes: bool = True,
    status: JsonObject | None = None,
    kube_proxy: JsonObject | None = None,
    vpa: bool | None = None,
    version: str = "1.34.2",
) -> JsonObject:
    kubernetes: JsonObject = {"version": version}
    if kube_proxy is not None:
        kubernetes["kubeProxy"] = kube_proxy
    if vpa is not None:
        kubernetes["verticalPodAutoscaler"] = {"enabled": vpa}
    networking: JsonObject = {
        "type": "calico",
        "ipFamilies": list(families),
        "pods": _PODS[families[0]],
        "services": _SERVICES[families[0]],
        **({"nodes": _NODES[families[0]]} if has_nodes else {}),
        **({} if config is None else {"providerConfig": config}),
    }
    return {
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": "Shoot",
        "metadata": {"name": "blue", "namespace": "garden-demo"},
        "spec": {
            "kubernetes": kubernetes,
            "networking": networking,
            "provider": {"type": "local", "workers": [{"name": "pool", "minimum": 1}]},
        },
        "status": status or {},
    }


def _network(families: Sequence[str], config: JsonValue) -> JsonObject:
    spec: JsonObject = {
        "type": "calico",
        "ipFamilies": list(families),
        "podCIDR": _PODS[families[0]],
        "serviceCIDR": _SERVICES[families[0]],
        **({} if config is None else {"providerConfig": config}),
    }
    return {
        "apiVersion": "extensions.gardener.cloud/v1alpha1",
        "kind": "Network",
        "metadata": {"name": "blue", "namespace": NAMESPACE},
        "spec": spec,
    }


def question(
    config: JsonValue,
    families: Sequence[str] = ("IPv4",),
    *,
    has_nodes: bool = True,
    in_status: Sequence[str] = (),
    pods_in_status: bool = True,
    constraint: str | None = None,
    kube_proxy: JsonObject | None = None,
    vpa: bool | None = None,
    version: str = "1.34.2",
    non_privileged: bool = False,
) -> JsonObject:
    """Return a Network with its Shoot.

    Args:
        has_nodes: whether the spec of the Shoot has a range of nodes.
        in_status: the ranges of nodes in its status.
        pods_in_status: whether its status has the ranges of pods.
        constraint: the status of the constraint about a migration to two IP families.
    """
    known: JsonObject = {}
    if pods_in_status:
        known["pods"] = [_PODS[family] for family in families]
    if in_status:
        known["nodes"] = list(in_status)
    status: JsonObject = {"networking": known}
    if constraint is not None:
        condition = {"type": _MIGRATION, "status": constraint, "reason": "a", "message": "a"}
        status["constraints"] = [condition]
    shoot = _shoot(
        families=families,
        config=config,
        has_nodes=has_nodes,
        status=status,
        kube_proxy=kube_proxy,
        vpa=vpa,
        version=version,
    )
    return {
        "network": _network(families, config),
        "shoot": shoot,
        "gates": {"NonPrivilegedCalicoNode": non_privileged},
    }


_PROXIES: Final = st.sampled_from(
    [None, None, {}, {"enabled": True}, {"enabled": True, "mode": "NFTables"}]
) | st.sampled_from(
    [
        {"mode": "IPVS"},
        {"mode": "NFTables"},
        {"enabled": False},
        {"enabled": False, "mode": "IPTables"},
    ]
)


def some_network() -> SearchStrategy[JsonObject]:
    """Return Networks with some options, and their Shoots."""
    return st.builds(
        _without_kube_proxy_or,
        _CONFIGS,
        st.sampled_from(_FAMILIES),
        has_nodes=st.sampled_from([True, True, False]),
        in_status=st.lists(st.sampled_from(_SOME_NODES), max_size=3, unique=True),
        pods_in_status=st.sampled_from([True] * 7 + [False]),
        constraint=st.sampled_from([None, None, None, "True", "False", "Progressing"]),
        kube_proxy=_PROXIES,
        vpa=st.sampled_from([None, True, False]),
        version=st.sampled_from(["1.32.0", "1.34.2", "1.36.0"]),
        non_privileged=st.booleans(),
    )


def _without_kube_proxy_or(config: JsonValue, families: Sequence[str], **rest: Any) -> JsonObject:
    """Return a Network; without kube-proxy, its config mostly has the dataplane that it needs."""
    proxy = rest["kube_proxy"] or {}
    if proxy.get("enabled") is False and isinstance(config, dict) and len(config) != 1:
        config = {**config, "ebpfDataplane": {"enabled": True}}
    return question(config, families, **rest)


def some_shoot() -> SearchStrategy[JsonObject]:
    """Return Shoots with configs that have odd values and values of other types."""
    configs = st.one_of(_of(_ODD, 3), _of(_ODD, 3), _wrong())
    return st.builds(_only_shoot, configs, st.sampled_from(_FAMILIES), kube_proxy=_PROXIES)


def _only_shoot(config: JsonValue, families: Sequence[str], **rest: Any) -> JsonObject:
    return {"shoot": _shoot(families=families, config=config, **rest)}


_TABLE: Final[Sequence[JsonObject | None]] = (
    None,
    {},
    {"typha": {}},
    {"overlay": {}},
    {"overlay": {"enabled": None}},
    {"overlay": {"enabled": True}},
    {"overlay": {"enabled": False}},
    {"overlay": {"createPodRoutes": True}},
    {"overlay": {"enabled": False, "createPodRoutes": True}},
    {"overlay": {"enabled": True, "createPodRoutes": True}},
    {"vxlan": {}},
    {"vxlan": {"enabled": True}},
    {"vxlan": {"enabled": True}, "overlay": {"enabled": True}},
    {"vxlan": {"enabled": True}, "overlay": {"enabled": False}},
    {"vxlan": {"enabled": True}, "ipam": {"type": "host-local"}},
    {"snatToUpstreamDNS": {}, "overlay": {"enabled": False}},
    {"snatToUpstreamDNS": {"enabled": False}, "overlay": {"enabled": False}},
    {"ebpfDataplane": {}},
    {"ebpfDataplane": {"enabled": True}},
    {"birdExporter": {}},
    {"birdExporter": {"enabled": True}},
    {"multus": {}},
    {"multus": {"enabled": True, "installCNIPlugins": True}},
    {"ipam": {}},
    {"ipam": {"type": ""}},
    {"ipam": {"type": "calico-ipam"}},
    {"ipam": {"cidr": "usePodCIDR"}},
    {"ipam": {"cidr": "10.1.0.0/16"}},
    {"ipv4": {}},
    {"ipv4": {"mode": "Never"}, "ipip": "Always"},
    {"ipv4": {"pool": "vxlan"}},
    {"ipv4": {"pool": "vxlan"}, "backend": "vxlan"},
    {"ipv6": {}},
    {"ipv6": {"mode": "Always"}},
    {"ipv6": {"sourceNATEnabled": True}},
    {"backend": "none"},
    {"backend": "vxlan"},
    {"ipip": "Never"},
    {"ipv4": {"mode": "Off"}},
    {"ipv6": {"mode": "Off"}},
    {"ipv6": {"pool": "ipip"}},
    {"ipam": {"cidr": "10.1.0.1/16"}},
    {"ipAutodetectionMethod": "cidr=10.250.0.0/16,10.251.0.0/16"},
    {"vethMTU": "+1430"},
    {"apiVersion": None},
    {"kind": None},
    {"ipip": "CrossSubnet"},
    {"ipAutodetectionMethod": "can-reach=10.0.0.1"},
    {"ipv4": {"autoDetectionMethod": "can-reach=10.0.0.1"}},
    {"wireguardEncryption": True},
    {"serviceLoopPrevention": "Drop"},
    {"vethMTU": "1430"},
    {"autoScaling": {}},
    {"autoScaling": {"mode": "vpa"}},
    {"autoScaling": {"mode": "vpa", "resources": {"node": {"cpu": "500m", "memory": "1Gi"}}}},
    {"autoScaling": {"mode": "vpa", "resources": {"typha": {"cpu": 1}}}, "typha": {}},
    {"autoScaling": {"mode": "vpa"}, "typha": {"enabled": False}},
    {"typha": {"enabled": False}},
    {"autoScaling": {"mode": "static", "resources": {"node": {"cpu": 0.5}}}},
    {"autoScaling": {"mode": "static", "resources": {"node": {"memory": "1e9"}, "typha": {}}}},
    {"autoScaling": {"mode": "static", "resources": {"typha": {"cpu": 1, "memory": 1000000}}}},
)
_EBPF: Final[JsonObject] = {"ebpfDataplane": {"enabled": True}}
_BOTH: Final = ("IPv4", "IPv6")
TABLE: Final[Sequence[JsonObject]] = (
    *(question(config, families) for families in _FAMILIES[1:] for config in _TABLE),
    *(question(config, vpa=True) for config in _TABLE if config and "autoScaling" in config),
    *(question(_EBPF, non_privileged=True, kube_proxy={"enabled": on}) for on in _FLAGS),
    question(_EBPF, kube_proxy={"enabled": False, "mode": "IPTables"}),
    question({}, kube_proxy={"enabled": False}),
    question({}, kube_proxy={"mode": "NFTables"}),
    question({"birdExporter": {"enabled": True}}, non_privileged=True),
    question({}, in_status=_SOME_NODES),
    question({}, in_status=_SOME_NODES, has_nodes=False),
    question({"ipv4": {"autoDetectionMethod": "first-found"}}, in_status=_SOME_NODES),
    question({}, _BOTH, in_status=_SOME_NODES),
    question({}, _BOTH, pods_in_status=False),
    *(question({"ipv6": {}}, _BOTH, constraint=status) for status in ("True", "False")),
)
"""Networks with each option, for each choice of IP families, and with some options of the Shoot."""
