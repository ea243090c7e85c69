"""The programs of a node and their flags."""

from pathlib import Path
from typing import Final

from pergola.sandbox.components import (
    APISERVER,
    CONTAINERD,
    CONTROLLER_MANAGER,
    FELIX,
    IMAGE_PROVIDER,
    KUBE_PROXY,
    KUBELET,
    LOAD_BALANCER,
    Flags,
    Layout,
)
from pergola.sandbox.module import CALICO_CNI, CALICO_CRDS, CNI_PLUGINS, CTR, RUNC, SHIM
from pergola.sandbox.node import network
from pergola.sandbox.node.configuration import FRONT_PROXY, NODE, NODE_ADDRESS, NODE_KUBECONFIG

# Programs that the components run.
TOOLS: Final = (SHIM, RUNC, CTR, CALICO_CNI, CALICO_CRDS, *CNI_PLUGINS)
_LABELS: Final = ("topology.kubernetes.io/region=local", "topology.kubernetes.io/zone=local-a")


def flags(layout: Layout) -> dict[str, Flags]:
    """Return the flags of a node's programs, and the control plane's extra flags."""
    own = (str(layout.directory), layout.file(NODE_KUBECONFIG))
    return {
        APISERVER: _apiserver(layout),
        CONTROLLER_MANAGER: (),
        CONTAINERD: (f"--config={layout.file('containerd.toml')}", "--log-level=warn"),
        KUBELET: _kubelet(layout),
        KUBE_PROXY: (f"--config={layout.file('kube-proxy.yaml')}",),
        FELIX: network.felix_flags(layout),
        IMAGE_PROVIDER: ("-m", "pergola.sandbox.node.image_provider", *own),
        LOAD_BALANCER: ("-m", "pergola.sandbox.node.load_balancer", *own),
    }


def _apiserver(layout: Layout) -> Flags:
    """Return flags that let pods reach it, and let it reach the kubelet and aggregated APIs."""
    return (
        "--bind-address=0.0.0.0",  # of the node's network namespace
        f"--advertise-address={NODE_ADDRESS}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        f"--kubelet-certificate-authority={layout.file('ca.crt')}",
        f"--kubelet-client-certificate={layout.file('kubelet-client.crt')}",
        f"--kubelet-client-key={layout.file('kubelet-client.key')}",
        "--kubelet-preferred-address-types=InternalIP",
        f"--requestheader-client-ca-file={layout.file('front-proxy-ca.crt')}",
        f"--requestheader-allowed-names={FRONT_PROXY}",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-username-headers=X-Remote-User",
        f"--proxy-client-cert-file={layout.file('front-proxy-client.crt')}",
        f"--proxy-client-key-file={layout.file('front-proxy-client.key')}",
    )


def _kubelet(layout: Layout) -> Flags:
    return (
        f"--config={layout.file('kubelet.yaml')}",
        f"--kubeconfig={layout.file('kubelet.kubeconfig')}",
        f"--root-dir={layout.file('kubelet')}",
        f"--hostname-override={NODE}",
        f"--node-ip={NODE_ADDRESS}",
        f"--node-labels={','.join(_LABELS)}",
    )


def link_programs(layout: Layout, programs: dict[str, Path]) -> None:
    """Link all programs into one folder, so that they find each other."""
    folder = Path(layout.file("bin"))
    folder.mkdir()
    for name, program in programs.items():
        (folder / name).symlink_to(program)
