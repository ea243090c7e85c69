"""The programs that make up a sandbox, and their command lines.

Everything listens on loopback or on Unix sockets in the sandbox's own directory (etcd), as the
user, with random credentials. Leases and heartbeats are off, so that tests and benchmarks count
only their own requests.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

ETCD: Final = "etcd"
APISERVER: Final = "kube-apiserver"
CONTROLLER_MANAGER: Final = "kube-controller-manager"
SCHEDULER: Final = "kube-scheduler"
KWOK: Final = "kwok"
CONTAINERD: Final = "containerd"
KUBELET: Final = "kubelet"
KUBE_PROXY: Final = "kube-proxy"
FELIX: Final = "felix"
IMAGE_PROVIDER: Final = "image-provider"
LOAD_BALANCER: Final = "load-balancer"

Components = tuple[str, ...]
"""Names of the programs of a sandbox."""
ALL: Final[Components] = (ETCD, APISERVER, CONTROLLER_MANAGER, SCHEDULER, KWOK)
"""A control plane, and nodes that are simulated."""
API_ONLY: Final[Components] = (ETCD, APISERVER)
"""An API server, without controllers."""
WITH_NODE: Final[Components] = (
    ETCD,
    APISERVER,
    CONTROLLER_MANAGER,
    SCHEDULER,
    CONTAINERD,
    KUBELET,
    KUBE_PROXY,
    FELIX,
    IMAGE_PROVIDER,
    LOAD_BALANCER,
)
"""A control plane, and this machine as its only node."""
# The node components that are Pergola modules.
OWN_COMPONENTS: Final[Components] = (IMAGE_PROVIDER, LOAD_BALANCER)

BIN_PACKING: Final = "bin-packing-scheduler"
"""The scheduler of a Shoot's pods, if its profile says so; here it schedules like any other."""

# Two disjoint ranges, each with tens of thousands of addresses.
SERVICES: Final = "10.0.0.0/16"
PODS: Final = "10.64.0.0/16"
_ISSUER: Final = "https://kubernetes.default.svc.cluster.local"
_NEVER: Final = "87600h"
_NOWHERE: Final = "http://127.0.0.1:0"
_LOOPBACK_ONLY: Final = (
    "--bind-address=127.0.0.1",
    "--advertise-address=127.0.0.1",
    # Loopback addresses are not allowed as endpoints of the `kubernetes` Service.
    "--endpoint-reconciler-type=none",
    "--authorization-mode=RBAC",
)
# An API server does not accept both of these flags.
_AUTHORIZERS: Final = "--authorization-config="
_MODES: Final = "--authorization-mode="
# Simulated nodes send no heartbeats.
_NO_HEARTBEATS: Final = (f"--node-monitor-grace-period={_NEVER}",)


class Layout(NamedTuple):
    """The directory of a sandbox and the ports of its API server.

    Attributes:
        port: the port on this machine.
        inside: the port in the network of a real node; None: nodes are simulated.
    """

    directory: Path
    port: int
    inside: int | None = None

    @property
    def server(self) -> str:
        """The API server's address on this machine."""
        return f"https://127.0.0.1:{self.port}"

    @property
    def secure_port(self) -> int:
        """The port that the API server listens on."""
        return self.inside or self.port

    @property
    def server_of_components(self) -> str:
        """The API server's address for the other components."""
        return f"https://127.0.0.1:{self.secure_port}"

    def file(self, name: str) -> str:
        """Return the path of a file in the directory, for a command line."""
        return str(self.directory / name)


class Command(NamedTuple):
    """The name of a component and its complete command line."""

    component: str
    line: tuple[str, ...]


Flags = tuple[str, ...]


def commands(
    components: Components,
    layout: Layout,
    binaries: dict[str, Path],
    apiserver_flags: Flags = (),
    node_flags: Mapping[str, Flags] | None = None,
) -> list[Command]:
    """Return the command lines of `components`, in start order.

    Args:
        apiserver_flags: appended last, so that they override others.
        node_flags: flags of a real node's components, and the control plane's extra flags for
            it; None: nodes are simulated.
    """
    around = {APISERVER: _LOOPBACK_ONLY, CONTROLLER_MANAGER: _NO_HEARTBEATS}
    around |= (
        node_flags
        if node_flags is not None
        else {KWOK: simulating(Path(layout.file("kwok.kubeconfig")))}
    )
    flags = {
        ETCD: _etcd(layout),
        APISERVER: (*_apiserver(layout), *around.pop(APISERVER), *apiserver_flags),
        CONTROLLER_MANAGER: (*_controller_manager(layout), *around.pop(CONTROLLER_MANAGER)),
        SCHEDULER: _scheduler(layout),
        **around,
    }
    if any(flag.startswith(_AUTHORIZERS) for flag in apiserver_flags):
        flags[APISERVER] = tuple(f for f in flags[APISERVER] if not f.startswith(_MODES))
    return [Command(c, (str(binaries[c]), *flags[c])) for c in flags if c in components]


def _etcd(layout: Layout) -> tuple[str, ...]:
    clients, peers = _unix(layout, "etcd.sock"), _unix(layout, "etcd-peer.sock")
    return (
        "--name=sandbox",
        f"--data-dir={layout.file('etcd')}",
        f"--listen-client-urls={clients}",
        f"--listen-peer-urls={peers}",
        # etcd requires a host and port to advertise to peers; there are none.
        f"--advertise-client-urls={_NOWHERE}",
        f"--initial-advertise-peer-urls={_NOWHERE}",
        f"--initial-cluster=sandbox={_NOWHERE}",
        "--unsafe-no-fsync",
        "--quota-backend-bytes=4294967296",
        "--log-level=warn",
    )


def _apiserver(layout: Layout) -> tuple[str, ...]:
    return (
        f"--etcd-servers={_unix(layout, 'etcd.sock')}",
        f"--secure-port={layout.secure_port}",
        # The supervisor keeps the port reserved while the server is down.
        "--permit-port-sharing=true",
        f"--tls-cert-file={layout.file('apiserver.crt')}",
        f"--tls-private-key-file={layout.file('apiserver.key')}",
        f"--client-ca-file={layout.file('ca.crt')}",
        f"--token-auth-file={layout.file('tokens.csv')}",
        f"--service-account-issuer={_ISSUER}",
        f"--service-account-key-file={layout.file('service-account.pub')}",
        f"--service-account-signing-key-file={layout.file('service-account.key')}",
        f"--service-cluster-ip-range={SERVICES}",
        "--allow-privileged=true",
        "--max-requests-inflight=2000",
        "--max-mutating-requests-inflight=1000",
    )


def _controller_manager(layout: Layout) -> tuple[str, ...]:
    return (
        f"--kubeconfig={layout.file('kube-controller-manager.kubeconfig')}",
        "--leader-elect=false",
        "--secure-port=0",
        "--use-service-account-credentials=false",
        f"--service-account-private-key-file={layout.file('service-account.key')}",
        f"--root-ca-file={layout.file('ca.crt')}",
        f"--cluster-signing-cert-file={layout.file('ca.crt')}",
        f"--cluster-signing-key-file={layout.file('ca.key')}",
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
        "--concurrent-deployment-syncs=20",
        "--concurrent-replicaset-syncs=20",
        "--concurrent-namespace-syncs=20",
        "--concurrent-serviceaccount-token-syncs=20",
    )


def _scheduler(layout: Layout) -> tuple[str, ...]:
    return (
        f"--config={layout.file('kube-scheduler.yaml')}",
        "--secure-port=0",
        "--authentication-skip-lookup=true",
    )


def scheduler_configuration(layout: Layout) -> str:
    """Return the scheduler's configuration file, because the equivalent flags are deprecated."""
    return (
        "apiVersion: kubescheduler.config.k8s.io/v1\n"
        "kind: KubeSchedulerConfiguration\n"
        "clientConnection:\n"
        f"  kubeconfig: {layout.file('kube-scheduler.kubeconfig')}\n"
        "  qps: 500\n"
        "  burst: 1000\n"
        "leaderElection:\n"
        "  leaderElect: false\n"
        "profiles:\n"
        "- schedulerName: default-scheduler\n"
        f"- schedulerName: {BIN_PACKING}\n"
    )


def simulating(kubeconfig: Path, lease_seconds: int = 0) -> Flags:
    """Return the flags of a kwok that simulates all nodes of a cluster.

    Args:
        lease_seconds: the duration of the leases of nodes, without which the controller manager
            declares them dead, unless its flags forbid it; 0 for no leases.
    """
    return (
        f"--kubeconfig={kubeconfig}",
        f"--config={Path(__file__).with_name('kwok.yaml')}",
        "--manage-all-nodes=true",
        f"--node-lease-duration-seconds={lease_seconds}",
        f"--cidr={PODS}",
        "--node-ip=127.0.0.1",
        "--v=WARN",
    )


def _unix(layout: Layout, socket: str) -> str:
    return f"unix://{layout.file(socket)}"
