"""Networks of type calico, with their Shoots."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.strategies.fields import ANYTHING
from pergola.api.objects import JsonObject, JsonValue

NAMESPACE: Final = "shoot--demo--blue"
_API_VERSION: Final = "calico.networking.extensions.gardener.cloud/v1alpha1"
_PODS: Final = {"IPv4": "100.96.0.0/11", "IPv6": "2001:db8:1::/56"}
_SERVICES: Final = {"IPv4": "100.64.0.0/13", "IPv6": "2001:db8:2::/112"}
_NODES: Final = ("10.250.0.0/16", "10.251.0.0/16", "2001:db8:3::/56", "2001:db8:4::/64")
_WITHOUT_IPV6: Final = ("10.250.0.0/16", "10.251.0.0/16")
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
_LOOPS: Final = ("Disabled", "Drop", "Reject")


def _or_odd(usual: Sequence[JsonValue], odd: Sequence[JsonValue]) -> SearchStrategy[Any]:
    """Return usual values, and now and then null or an odd one."""
    return st.one_of(*[st.sampled_from(usual)] * 6, st.none(), *[st.sampled_from(odd)] * bool(odd))


def _usual(*values: JsonValue) -> SearchStrategy[Any]:
    return _or_odd(values, ())


def _struct(**fields: SearchStrategy[Any]) -> SearchStrategy[Any]:
    """Return objects that may lack any field; some are empty, and some are null."""
    some = st.fixed_dictionaries({}, optional=fields)
    return st.one_of(some, some, some, st.builds(dict), st.none())


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
            mode=chosen(("cluster-proportional", "vpa", "static"), ("", "text")),
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
"""Fields that decide the routes between nodes together."""
_TYPE: Final = {"apiVersion": _API_VERSION, "kind": "NetworkConfig"}


def _of(fields: Mapping[str, SearchStrategy[Any]], most: int) -> SearchStrategy[JsonObject]:
    """Return configs with some of the fields."""
    names = st.lists(st.sampled_from(sorted(fields)), max_size=most, unique=True)
    chosen = names.flatmap(lambda found: st.fixed_dictionaries({n: fields[n] for n in found}))
    return st.tuples(st.sampled_from([{}, _TYPE]), chosen).map(lambda parts: parts[0] | parts[1])


_ROUTES: Final = _of({name: _USUAL[name] for name in _CORE}, len(_CORE))
_CONFIGS: Final = st.one_of(_ROUTES, _ROUTES, _of(_USUAL, 6), _of(_ODD, 2), st.none())


def _wrong() -> Iterator[SearchStrategy[JsonObject]]:
    """Yield configs with a value of another type at one place."""
    for name in _ODD:
        yield ANYTHING.map(lambda value, name=name: {name: value})
    for path in ("overlay.enabled", "overlay.createPodRoutes", "typha.enabled", "ipv4.mode",
                 "autoScaling.mode", "autoScaling.resources", "autoScaling.resources.node",
                 "autoScaling.resources.node.cpu", "ipam.type", "ipam.cidr"):  # fmt: skip
        yield ANYTHING.map(lambda value, path=path: _nested(path, value))
    for field in ("unknown", "Overlay", "apiVersion", "kind"):
        yield ANYTHING.map(lambda value, field=field: {field: value})


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
    nodes: str | None = _NODES[0],
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
        **({} if nodes is None else {"nodes": nodes}),
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
    nodes: str | None = _NODES[0],
    in_status: Sequence[str] = (),
    constraint: str | None = None,
    kube_proxy: JsonObject | None = None,
    vpa: bool | None = None,
    version: str = "1.34.2",
    non_privileged: bool = False,
) -> JsonObject:
    """Return a Network with its Shoot.

    Args:
        in_status: the ranges of nodes in the status of the Shoot.
        constraint: the status of the constraint about a migration to two IP families.
    """
    known: JsonObject = {"pods": [_PODS[family] for family in families]}
    if in_status:
        known["nodes"] = list(in_status)
    status: JsonObject = {"networking": known}
    if constraint is not None:
        condition = {"type": _MIGRATION, "status": constraint, "reason": "a", "message": "a"}
        status["constraints"] = [condition]
    shoot = _shoot(
        families=families,
        config=config,
        nodes=nodes,
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
        nodes=st.sampled_from([_NODES[0], _NODES[0], None, _NODES[2]]),
        in_status=st.lists(st.sampled_from(_NODES), max_size=3, unique=True),
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
    configs = st.one_of(_of(_ODD, 3), _of(_ODD, 3), st.one_of([*_wrong()]))
    return st.builds(_only_shoot, configs, st.sampled_from(_FAMILIES), kube_proxy=_PROXIES)


def _only_shoot(config: JsonValue, families: Sequence[str], **rest: Any) -> JsonObject:
    return {"shoot": _shoot(families=families, config=config, **rest)}


TABLE: Final[Sequence[tuple[JsonValue, Sequence[str]]]] = tuple(
    (config, families)
    for families in _FAMILIES[1:]
    for config in (
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
        {"ipip": "CrossSubnet"},
        {"ipAutodetectionMethod": "can-reach=10.0.0.1"},
        {"ipv4": {"autoDetectionMethod": "can-reach=10.0.0.1"}},
        {"wireguardEncryption": True},
        {"serviceLoopPrevention": "Drop"},
        {"vethMTU": "1430"},
        {"autoScaling": {}},
        {"autoScaling": {"mode": "vpa"}},
        {"autoScaling": {"mode": "static", "resources": {"node": {"cpu": 0.5}}}},
        {"autoScaling": {"mode": "static", "resources": {"node": {"memory": "1e9"}, "typha": {}}}},
        {"autoScaling": {"mode": "static", "resources": {"typha": {"cpu": 1, "memory": 1000000}}}},
    )
)
"""Configs with each option, for each choice of IP families."""
