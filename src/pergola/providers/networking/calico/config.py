"""`calico.networking.extensions.gardener.cloud/v1alpha1`: the config of Calico (spec 40 §5.1).

Enumerations are plain strings here, because their findings name the supported values (`checks`).
Nothing is defaulted: `values` knows what an absent field means.
"""

from msgspec import field

from pergola.api.schema.declare import Value


class IPAM(Value):
    """How pods get their addresses."""

    type: str | None = None
    """`host-local` (default) or, with IPv4 alone, `calico-ipam`."""
    cidr: str | None = None
    """Of host-local: `usePodCIDR` (default) or a CIDR; nothing in dual-stack."""


class IPv4(Value):
    """Pods' IPv4 traffic between nodes."""

    pool: str | None = None
    """The encapsulation: `ipip` (default) or `vxlan`."""
    mode: str | None = None
    """When to encapsulate: `Always` (default), `Never`, `CrossSubnet` or `Off`."""
    auto_detection_method: str | None = None
    """How a node finds its address, such as `can-reach=10.0.0.1`; by the nodes' CIDRs if absent."""


class IPv6(Value):
    """Pods' IPv6 traffic between nodes."""

    pool: str | None = None
    """The encapsulation: `vxlan`."""
    mode: str | None = None
    """When to encapsulate: `Never` (default), `Always` or `CrossSubnet`."""
    auto_detection_method: str | None = None
    """How a node finds its address; by the nodes' CIDRs if absent."""
    source_nat_enabled: bool | None = field(name="sourceNATEnabled", default=None)
    """Whether traffic that leaves the cluster gets the node's address."""


class Typha(Value):
    """A cache between the nodes and the API server."""

    enabled: bool
    """Whether it runs; it does by default."""


class EbpfDataplane(Value):
    """The dataplane that needs neither iptables nor kube-proxy."""

    enabled: bool | None = None
    """Whether it is used."""


class Overlay(Value):
    """Whether pods' packets travel inside of packets between nodes."""

    enabled: bool | None = None
    """Whether there is an overlay; absent leaves it to the backend and the modes."""
    create_pod_routes: bool | None = None
    """Without an overlay: whether Calico announces the routes to the pods of each node."""


class SnatToUpstreamDNS(Value):
    """Without an overlay: how pods reach name servers outside of the cluster."""

    enabled: bool | None = None
    """Whether such packets get the node's address; they do by default."""


class StaticResources(Value):
    """Amounts of `cpu` and `memory`: requests in mode `static`, least ones in mode `vpa`."""

    node: dict[str, int | str] | None = None
    """For calico-node."""
    typha: dict[str, int | str] | None = None
    """For Typha."""


class AutoScaling(Value):
    """How the requests of Calico's pods grow with the cluster."""

    mode: str | None = None
    """`cluster-proportional` (default), `vpa` or `static`."""
    resources: StaticResources | None = None
    """Where the requests start."""


class VXLAN(Value):
    """VXLAN instead of IP-in-IP."""

    enabled: bool | None = None
    """Whether the overlay is VXLAN; nothing without an overlay."""


class BirdExporter(Value):
    """Metrics of BIRD."""

    enabled: bool | None = None
    """Whether they are exported."""


class Multus(Value):
    """Several networks for a pod."""

    enabled: bool | None = None
    """Whether Multus is installed before Calico."""
    install_cni_plugins: bool | None = field(name="installCNIPlugins", default=None)
    """Whether the reference CNI plugins are installed, too."""


class NetworkConfig(Value):
    """What a Shoot's owner may say about Calico."""

    backend: str | None = None
    """What routes between nodes: `bird` (default), `vxlan` or `none`."""
    ipam: IPAM | None = None
    """How pods get their addresses."""
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
    """Whether there is an overlay; wins over the backend and the mode."""
    snat_to_upstream_dns: SnatToUpstreamDNS | None = field(name="snatToUpstreamDNS", default=None)
    """How pods reach name servers outside of the cluster."""
    auto_scaling: AutoScaling | None = None
    """How requests grow with the cluster."""
    vxlan: VXLAN | None = None
    """VXLAN instead of IP-in-IP."""
    wireguard_encryption: bool | None = None
    """Whether traffic between nodes is encrypted."""
    bird_exporter: BirdExporter | None = None
    """Metrics of BIRD."""
    multus: Multus | None = None
    """Several networks for a pod."""
    service_loop_prevention: str | None = None
    """What happens to packets to Services without endpoints: `Disabled`, `Drop` or `Reject`."""
    ipip: str | None = None
    """Deprecated: `ipv4.mode`; only used without `ipv4`."""
    ip_autodetection_method: str | None = None
    """Deprecated: `ipv4.autoDetectionMethod`; only used without `ipv4`."""
