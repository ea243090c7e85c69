"""The config of Calico: `calico.networking.extensions.gardener.cloud/v1alpha1` (spec 40 §5.1).

Enumerations are plain strings here, because their findings list the supported values (`checks`).
Nothing is defaulted here: `values` contains the defaults.
"""

from msgspec import field

from pergola.api.schema.declare import Value
from pergola.api.schema.quantity import ResourceList


class IPAM(Value):
    """The address assignment of pods."""

    type: str | None = None
    """`host-local` (default) or, with IPv4 alone, `calico-ipam`."""
    cidr: str | None = None
    """The range of host-local: `usePodCIDR` (default) or a CIDR; unused in dual-stack."""


class IPv4(Value):
    """The IPv4 traffic of pods between nodes."""

    pool: str | None = None
    """The encapsulation: `ipip` (default) or `vxlan`."""
    mode: str | None = None
    """When to encapsulate: `Always` (default), `Never`, `CrossSubnet` or `Off`."""
    auto_detection_method: str | None = None
    """The detection of a node's address, e.g. `can-reach=10.0.0.1`; by default by nodes' CIDRs."""


class IPv6(Value):
    """The IPv6 traffic of pods between nodes."""

    pool: str | None = None
    """The encapsulation: `vxlan`."""
    mode: str | None = None
    """When to encapsulate: `Never` (default), `Always` or `CrossSubnet`."""
    auto_detection_method: str | None = None
    """The detection of a node's address; by default, the nodes' CIDRs."""
    source_nat_enabled: bool | None = field(name="sourceNATEnabled", default=None)
    """Whether packets that leave the cluster get the node's address."""


class Typha(Value):
    """A cache between the nodes and the API server; by default, there is one."""

    enabled: bool = False
    """Whether Typha runs."""


class EbpfDataplane(Value):
    """The dataplane that replaces iptables and kube-proxy."""

    enabled: bool = False
    """Whether eBPF is used."""


class Overlay(Value):
    """The encapsulation of pods' packets between nodes; by default, backend and modes decide."""

    enabled: bool = False
    """Whether to use an overlay."""
    create_pod_routes: bool | None = None
    """Whether Calico announces the routes to the pods of each node; only without an overlay."""


class SnatToUpstreamDNS(Value):
    """The source address of DNS queries that leave the cluster; by default that of the node."""

    enabled: bool = False
    """Whether to use the node's address; only without an overlay."""


class StaticResources(Value):
    """Amounts of `cpu` and `memory`: the requests in mode `static`, the minimum in mode `vpa`."""

    node: ResourceList | None = None
    """For calico-node."""
    typha: ResourceList | None = None
    """For Typha."""


class AutoScaling(Value):
    """The scaling of resource requests of Calico's pods."""

    mode: str | None = None
    """`cluster-proportional` (default), `vpa` or `static`."""
    resources: StaticResources | None = None
    """The requests, or their minimum."""


class VXLAN(Value):
    """VXLAN instead of IP-in-IP."""

    enabled: bool = False
    """Whether the IPv4 pool is one of VXLAN, and Calico assigns the addresses."""


class BirdExporter(Value):
    """Metrics of BIRD."""

    enabled: bool = False
    """Whether to export them."""


class Multus(Value):
    """Several networks for a pod."""

    enabled: bool = False
    """Whether Multus is installed before Calico."""
    install_cni_plugins: bool | None = field(name="installCNIPlugins", default=None)
    """Whether the reference CNI plugins are installed as well."""


class NetworkConfig(Value):
    """The settings of Calico that the owner of a Shoot can change."""

    backend: str | None = None
    """The routing between nodes: `bird` (default), `vxlan` or `none`."""
    ipam: IPAM | None = None
    """The address assignment of pods."""
    ipv4: IPv4 | None = None
    """Pods' IPv4 traffic."""
    ipv6: IPv6 | None = None
    """Pods' IPv6 traffic."""
    typha: Typha | None = None
    """A cache between the nodes and the API server."""
    veth_mtu: str | None = field(name="vethMTU", default=None)
    """The MTU of pods' interfaces as text; `0` (default) to detect it."""
    ebpf_dataplane: EbpfDataplane | None = None
    """The dataplane that needs no kube-proxy."""
    overlay: Overlay | None = None
    """The overlay; takes precedence over the backend and the modes."""
    snat_to_upstream_dns: SnatToUpstreamDNS | None = field(name="snatToUpstreamDNS", default=None)
    """The source address of DNS queries that leave the cluster."""
    auto_scaling: AutoScaling | None = None
    """The scaling of resource requests."""
    vxlan: VXLAN | None = None
    """VXLAN instead of IP-in-IP."""
    wireguard_encryption: bool | None = None
    """Whether traffic between nodes is encrypted."""
    bird_exporter: BirdExporter | None = None
    """Metrics of BIRD."""
    multus: Multus | None = None
    """Several networks for a pod."""
    service_loop_prevention: str | None = None
    """The handling of packets to Services without endpoints: `Disabled`, `Drop` or `Reject`."""
    ipip: str | None = None
    """Deprecated, without effect: `ipv4.mode`."""
    ip_autodetection_method: str | None = None
    """Deprecated, without effect: `ipv4.autoDetectionMethod`."""
