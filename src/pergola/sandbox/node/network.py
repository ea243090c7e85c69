"""The pod network: Calico's CNI plugin connects pods, and Felix enforces NetworkPolicies.

Pods share no bridge. Each has an interface on the node whose name both programs derive from the
pod's namespace and name, so that Felix finds the interface of each pod and filters there. The CNI
plugin lets a container start only after Felix has written the rules of its pod.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pergola.api.objects import JsonObject
from pergola.kube import yaml
from pergola.sandbox.components import FELIX, PODS, Flags, Layout
from pergola.sandbox.files import Identity
from pergola.sandbox.module import CALICO_CNI, CALICO_CRDS

# All kinds that Felix reads: it watches those that exist, and lists the others every five seconds.
_KINDS: Final = (
    "bgpconfigurations",
    "bgppeers",
    "clusterinformations",
    "felixconfigurations",
    "globalnetworkpolicies",
    "globalnetworksets",
    "hostendpoints",
    "ipamblocks",
    "ippools",
    "networkpolicies",
    "networksets",
    "stagedglobalnetworkpolicies",
    "stagedkubernetesnetworkpolicies",
    "stagednetworkpolicies",
    "tiers",
)
_CNI_KUBECONFIG: Final = f"{CALICO_CNI}.kubeconfig"
_FELIX_KUBECONFIG: Final = f"{FELIX}.kubeconfig"
_FELIX_SETTINGS: Final = f"{FELIX}.cfg"
IDENTITIES: Final = (
    Identity(_CNI_KUBECONFIG, "sandbox:cni-plugin", "system:authenticated"),
    Identity(_FELIX_KUBECONFIG, "sandbox:felix", "system:authenticated"),
)
# Pods send everything to this address, which Calico's CNI plugin hard-codes.
GATEWAY: Final = "169.254.1.1"
# The object without which the CNI plugin fails; Felix creates it.
INITIALIZED: Final = "/apis/crd.projectcalico.org/v1/clusterinformations/default"
_HEALTH_PORT: Final = 9099
_POLICY_PATIENCE: Final = 20  # seconds
# In this folder, Felix marks the pods whose rules are complete.
_STATUS: Final = "endpoint-status"


def readiness_path(node: str) -> str:
    """Return the API server's path to Felix's readiness on a node."""
    return f"/api/v1/nodes/http:{node}:{_HEALTH_PORT}/proxy/readiness"


def felix_flags(layout: Layout) -> Flags:
    """Return Felix's flags."""
    return (
        f"--kubeconfig={layout.file(_FELIX_KUBECONFIG)}",
        f"--config-file={layout.file(_FELIX_SETTINGS)}",
    )


def configurations(layout: Layout, node: str, address: str) -> dict[str, str]:
    """Return the configuration files of Felix and of the CNI plugins by name."""
    return {
        _FELIX_SETTINGS: _felix(layout, node, address),
        "cni/10-pods.conflist": _plugins(layout, node),
    }


def definitions(programs: Path) -> Iterator[JsonObject]:
    """Yield the definitions of Calico's kinds.

    Args:
        programs: the folder with all programs, and with Calico's definitions.
    """
    for kind in _KINDS:
        yield from _content(programs / CALICO_CRDS / f"crd.projectcalico.org_{kind}.yaml")


def permissions() -> Iterator[JsonObject]:
    """Yield the roles of both programs, and their bindings."""
    yield from _content(Path(__file__).with_name("network.yaml"))


def _content(file: Path) -> Iterator[JsonObject]:
    for document in yaml.parse_documents(file.read_text()):
        if isinstance(document.value, dict):
            yield document.value


def _plugins(layout: Layout, node: str) -> str:
    calico: JsonObject = {
        "type": CALICO_CNI,
        "datastore_type": "kubernetes",
        "nodename": node,
        "nodename_file_optional": True,
        "mtu": 1500,
        "log_level": "error",
        "log_file_path": layout.file("cni.log"),
        "ipam": {"type": "host-local", "ranges": [[{"subnet": PODS}]]},
        "policy": {"type": "k8s"},
        "kubernetes": {"kubeconfig": layout.file(_CNI_KUBECONFIG)},
        "policy_setup_timeout_seconds": _POLICY_PATIENCE,
        "endpoint_status_dir": layout.file(_STATUS),
    }
    ports: JsonObject = {
        "type": "portmap",
        "backend": "nftables",
        "capabilities": {"portMappings": True},
    }
    return json.dumps({"cniVersion": "1.0.0", "name": "pods", "plugins": [calico, ports]})


def _felix(layout: Layout, node: str, address: str) -> str:
    settings = {
        "DatastoreType": "kubernetes",
        "FelixHostname": node,
        "EndpointStatusPathPrefix": str(layout.directory),
        "NFTablesMode": "Enabled",
        # A refused client fails at once; a dropped packet would make it wait.
        "NftablesFilterDenyAction": "REJECT",
        # Pods use the API server and the kubelet, unless an egress policy forbids it.
        "DefaultEndpointToHostAction": "ACCEPT",
        "HealthEnabled": "true",
        "HealthHost": address,
        "HealthPort": str(_HEALTH_PORT),
        "IpInIpEnabled": "false",
        "Ipv6Support": "false",
        "LogFilePath": "none",
        # It warns every 30 seconds until it finds an interface; the plugin has its own setting.
        "MTUIfacePattern": "^lo$",
        "LogSeverityFile": "none",
        "LogSeveritySys": "none",
        "LogSeverityScreen": "WARNING",
        "UsageReportingEnabled": "false",
        "VXLANEnabled": "false",
        "XDPEnabled": "false",
    }
    return "".join(f"{name} = {value}\n" for name, value in settings.items())
