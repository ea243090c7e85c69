"""The configuration files of a node's programs."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from pergola.api.objects import JsonObject
from pergola.pki import Authority
from pergola.sandbox import directory
from pergola.sandbox.components import PODS, Layout
from pergola.sandbox.files import LIFETIME, Identity
from pergola.sandbox.node import network

NODE: Final = "node"
# The node's only address; pods get theirs from PODS.
NODE_ADDRESS: Final = "10.65.0.1"
CLUSTER_DNS: Final = "10.0.0.10"
CLUSTER_DOMAIN: Final = "cluster.local"
PAUSE_IMAGE: Final = "registry.k8s.io/pause:v1"
FRONT_PROXY: Final = "front-proxy-client"
# For Pergola's own components, which run in the node's network.
NODE_KUBECONFIG: Final = "node.kubeconfig"
IDENTITIES: Final = (
    Identity(NODE_KUBECONFIG, "pergola-sandbox", "system:masters"),
    Identity("kubelet.kubeconfig", f"system:node:{NODE}", "system:nodes"),
    Identity("kube-proxy.kubeconfig", "system:kube-proxy", "system:authenticated"),
    *network.IDENTITIES,
)
_MOST_PODS: Final = 250
_NO_LIMIT: Final = "0%"


def containerd(layout: Layout, runc: Path) -> str:
    """Return containerd's configuration: all files in the sandbox's directory, no registry."""
    return f"""\
version = 3
root = '{layout.file("containerd")}'
state = '/run/containerd'
disabled_plugins = [
  'io.containerd.nri.v1.nri',
  'io.containerd.internal.v1.restart',
  'io.containerd.internal.v1.tracing',
  'io.containerd.tracing.processor.v1.otlp',
]

[grpc]
  address = '{layout.file("containerd.sock")}'

[plugins.'io.containerd.internal.v1.opt']
  path = '{layout.file("containerd-opt")}'

[plugins.'io.containerd.cri.v1.images']
  snapshotter = 'overlayfs'
  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = '{PAUSE_IMAGE}'

[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true  # root in a container may lack the capability to lower it
  [plugins.'io.containerd.cri.v1.runtime'.containerd]
    default_runtime_name = 'runc'
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
      runtime_type = 'io.containerd.runc.v2'
      [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
        BinaryName = '{runc}'
        SystemdCgroup = false
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ['{layout.file("bin")}']
    conf_dir = '{layout.file("cni")}'
"""


def kubelet(layout: Layout) -> str:
    """Return the kubelet's configuration: all files in the sandbox's directory, no eviction."""
    never_full = ("nodefs.available", "nodefs.inodesFree", "imagefs.available")
    configuration: JsonObject = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": layout.file("ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": layout.file("kubelet.crt"),
        "tlsPrivateKeyFile": layout.file("kubelet.key"),
        "cgroupDriver": "cgroupfs",
        "failCgroupV1": False,
        "failSwapOn": False,
        "clusterDNS": [CLUSTER_DNS],
        "clusterDomain": CLUSTER_DOMAIN,
        "containerRuntimeEndpoint": f"unix://{layout.file('containerd.sock')}",
        "resolvConf": layout.file("resolv.conf"),
        "volumePluginDir": layout.file("volume-plugins"),
        "podLogsDir": layout.file("pod-logs"),
        "maxPods": _MOST_PODS,
        # The disk belongs to the machine and may be nearly full.
        "imageGCHighThresholdPercent": 100,
        "evictionHard": dict.fromkeys(never_full, _NO_LIMIT),
        "serializeImagePulls": False,
        "registryPullQPS": 0,
        "eventRecordQPS": 0,
        "nodeStatusUpdateFrequency": "10s",
        "syncFrequency": "10s",
        "shutdownGracePeriod": "0s",
    }
    return json.dumps(configuration)


def kube_proxy(layout: Layout) -> str:
    """Return kube-proxy's configuration."""
    configuration: JsonObject = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clusterCIDR": PODS,
        "hostnameOverride": NODE,
        "clientConnection": {"kubeconfig": layout.file("kube-proxy.kubeconfig")},
        # The limit is machine-wide and cannot be set from inside.
        "conntrack": {"maxPerCore": 0, "min": 0},
        "healthzBindAddress": "127.0.0.1:10256",
        "metricsBindAddress": "127.0.0.1:10249",
    }
    return json.dumps(configuration)


def write_all(layout: Layout, authority: Authority, runc: Path) -> None:
    """Write the configuration files and certificates of a node's programs."""
    now = datetime.now(UTC)
    front_proxy = Authority.create("pergola-sandbox-front-proxy", now, LIFETIME)
    pairs = {
        "kubelet": authority.issue_server(NODE, (NODE, NODE_ADDRESS), now, LIFETIME),
        "kubelet-client": authority.issue_client(
            "kube-apiserver-kubelet-client", ("system:masters",), now, LIFETIME
        ),
        "front-proxy-client": front_proxy.issue_client(FRONT_PROXY, (), now, LIFETIME),
    }
    contents: dict[str, bytes | str] = {
        "containerd.toml": containerd(layout, runc),
        "kubelet.yaml": kubelet(layout),
        "kube-proxy.yaml": kube_proxy(layout),
        "front-proxy-ca.crt": front_proxy.pair.public,
        # DNS for pods with the node's resolver: no server is reachable.
        "resolv.conf": "",
    }
    for name, pair in pairs.items():
        contents |= {f"{name}.crt": pair.public, f"{name}.key": pair.private}
    (layout.directory / "cni").mkdir()
    contents |= network.configurations(layout, NODE, NODE_ADDRESS)
    for name, content in contents.items():
        directory.write(layout.directory / name, content)
