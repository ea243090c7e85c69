"""The config and the status of a Network of type cilium (spec 40 §6.1).

Every field is optional, and None if absent, to distinguish values that a user wrote from defaults.
`values.Values` has the defaults.
"""

# ruff: noqa: RUF012 - Structs give every value its own copy of an empty default

from typing import Annotated, Final

from msgspec import field

from pergola.api.objects import GroupVersionKind
from pergola.api.schema.declare import INT32, Value
from pergola.api.schema.duration import Duration

GROUP: Final = "cilium.networking.extensions.gardener.cloud"
NETWORK_CONFIG: Final = GroupVersionKind(GROUP, "v1alpha1", "NetworkConfig")


class KubeProxy(Value):
    """The address of the API server for clusters without kube-proxy."""

    k8s_service_host: str | None = None
    """An IP address or a DNS name; takes effect only together with a port."""
    k8s_service_port: Annotated[int, INT32] | None = None
    """A port; takes effect only together with a host."""


class Hubble(Value):
    """Hubble, which shows the flows of the cluster."""

    enabled: bool = False
    """Whether hubble-relay, hubble-ui and their certificates are deployed."""


class IPv4(Value):
    """IPv4 in the cluster; without effect, because the IP families of the Network decide."""

    enabled: bool = False
    """Whether pods have IPv4 addresses."""


class IPv6(Value):
    """IPv6 in the cluster; without effect, because the IP families of the Network decide."""

    enabled: bool = False
    """Whether pods have IPv6 addresses."""


class SocketLoadBalancing(Value):
    """Load balancing at sockets instead of for each packet."""

    enabled: bool = False
    """Whether it is limited to processes of the host, as service meshes need it."""


class CNI(Value):
    """The configuration of the container network interface on nodes; by default exclusive."""

    exclusive: bool = False
    """Whether the configurations of other plugins are disabled."""


class EgressGateway(Value):
    """Traffic that leaves the cluster through chosen nodes, with predictable addresses."""

    enabled: bool = False
    """Whether policies for egress gateways have an effect."""


class L2Announcements(Value):
    """Announcement of Service addresses in the local network; each Service has a Lease."""

    enabled: bool = False
    """Whether addresses are announced."""
    lease_duration: Duration | None = None
    """The time until other nodes take over an announcement; 15 s."""
    lease_renew_deadline: Duration | None = None
    """The time for which the announcing node tries to renew its Lease; 5 s."""
    lease_retry_period: Duration | None = None
    """The time between two attempts to renew it; 2 s."""


class Overlay(Value):
    """The encapsulation of packets between nodes."""

    enabled: bool = False
    """Whether to encapsulate them; otherwise the nodes' network routes packets to pods."""
    create_pod_routes: bool | None = None
    """Without an overlay: whether nodes have routes to the pods of nodes in their own subnet."""


class SnatToUpstreamDNS(Value):
    """Source addresses of DNS queries that leave the cluster."""

    enabled: bool = False
    """Whether to use the addresses of nodes."""


class SnatOutOfCluster(Value):
    """Source addresses of everything that leaves the cluster."""

    enabled: bool = False
    """Whether to use the addresses of nodes."""


class BGPControlPlane(Value):
    """Routes to pods and Services announced by BGP."""

    enabled: bool = False
    """Whether to announce them, as CiliumBGP resources describe."""


class Encryption(Value):
    """Encryption of traffic between nodes."""

    enabled: bool = False
    """Whether traffic is encrypted."""
    mode: str = ""
    """The method: `wireguard`."""
    node_to_node_enabled: bool = False
    """Whether traffic of nodes is encrypted, not only that of pods."""
    strict_mode: bool = False
    """Whether to drop unencrypted traffic of pods."""


class NetworkConfig(Value):
    """The configuration of cilium in one Shoot."""

    debug: bool | None = None
    """Whether agents and operator log in detail."""
    kubeproxy: KubeProxy | None = None
    """The address of the API server for clusters without kube-proxy."""
    hubble: Hubble | None = None
    """Hubble, which shows the flows of the cluster."""
    tunnel: str | None = None
    """The encapsulation: `vxlan` (the default), `geneve` or `disabled`; see `overlay`."""
    store: str | None = None
    """The store that agents share: `kubernetes`."""
    ipv4: IPv4 | None = None
    """Without effect: the IP families of the Network decide."""
    ipv6: IPv6 | None = None
    """Without effect: the IP families of the Network decide."""
    bpf_socket_lb_hostns_only: SocketLoadBalancing | None = field(
        name="bpfSocketLBHostnsOnly", default=None
    )
    """Load balancing at sockets only for processes of the host, as service meshes need it."""
    cni: CNI | None = None
    """The configuration of the container network interface on nodes."""
    egress_gateway: EgressGateway | None = None
    """Traffic that leaves through chosen nodes; needs an overlay, and no kube-proxy."""
    mtu: int | None = None
    """The largest packet in bytes; 0 to detect it."""
    devices: list[str] = []
    """The network devices of nodes that face the outside; detected if there are none."""
    direct_routing_device: str | None = None
    """The network device that connects nodes with each other."""
    load_balancing_mode: str | None = None
    """The return path of responses from Services: `snat` (the default), `dsr` or `hybrid`."""
    l2_announcements: L2Announcements | None = None
    """Addresses of Services announced in the local network."""
    ipv4_native_routing_cidr_enabled: bool | None = field(
        name="ipv4NativeRoutingCIDREnabled", default=None
    )
    """Whether IPv4 packets to pods keep their source address; see `overlay`."""
    ipv6_native_routing_cidr_enabled: bool | None = field(
        name="ipv6NativeRoutingCIDREnabled", default=None
    )
    """Whether IPv6 packets to pods keep their source address; see `overlay`."""
    overlay: Overlay | None = None
    """The encapsulation of packets between nodes; overrides `tunnel` and the native ranges."""
    snat_to_upstream_dns: SnatToUpstreamDNS | None = field(name="snatToUpstreamDNS", default=None)
    """Source addresses of DNS queries that leave the cluster."""
    snat_out_of_cluster: SnatOutOfCluster | None = None
    """Source addresses of everything that leaves the cluster."""
    enable_ipv4_masquerade: bool | None = field(name="enableIpv4Masquerade", default=None)
    """Whether IPv4 packets that leave the cluster carry the address of their node; true."""
    enable_ipv6_masquerade: bool | None = field(name="enableIpv6Masquerade", default=None)
    """Whether IPv6 packets that leave the cluster carry the address of their node; false."""
    enable_bpf_masquerade: bool | None = field(name="enableBPFMasquerade", default=None)
    """Whether eBPF rewrites these addresses, not iptables; true."""
    bgp_control_plane: BGPControlPlane | None = field(name="bgpControlPlane", default=None)
    """Routes announced by BGP."""
    policy_audit_mode: bool | None = None
    """Whether policies only report what they would drop."""
    encryption: Encryption | None = None
    """Encryption of traffic between nodes."""


class NetworkStatus(Value, kw_only=True):
    """The effective settings of cilium in a Shoot: `status.providerStatus`."""

    agent_version: str
    """The image tag of the agents."""
    routing_mode: str
    """`tunnel` or `native`."""
    tunnel_protocol: str | None = None
    """The encapsulation, if there is one."""
    ipam: str
    """The IPAM mode; chosen once, never changed."""
    kube_proxy_replacement: bool
    """Whether cilium routes Services instead of kube-proxy."""
    mtu: int | None = None
    """The largest packet in bytes; absent if nodes detect it."""
