"""The ConfigMap `calico-config` of calico-node and the CNI plugin (spec 40 §5.5)."""

import hashlib
import json
from typing import Final

import orjson

from pergola.api.objects import JsonObject
from pergola.manifests import KUBE_SYSTEM, manifest
from pergola.providers.networking.calico.values import Values

NAME: Final = "calico-config"
CONFLIST: Final = "10-calico.conflist"

_MTU: Final = "__CNI_MTU__"


def calico_config(values: Values) -> JsonObject:
    """Return the ConfigMap; the CNI installer replaces the words between double underscores."""
    data = {
        "typha_service_name": "calico-typha" if values.typha else "none",
        "calico_backend": values.backend,
        "veth_mtu": values.veth_mtu,
        "cni_network_config": _text(cni_network_config(values)),
    }
    return manifest("v1", "ConfigMap", NAME, namespace=KUBE_SYSTEM, data=data)


def _text(config: JsonObject) -> str:
    """Return the template; the installer replaces words as they stand, and an MTU is a number."""
    return json.dumps(config, indent=2).replace(f'"{_MTU}"', _MTU)


def checksum(config: JsonObject) -> str:
    """Return a hash of the ConfigMap, so that a change of it restarts pods."""
    return hashlib.sha256(orjson.dumps(config, option=orjson.OPT_SORT_KEYS)).hexdigest()


def cni_network_config(values: Values) -> JsonObject:
    """Return the chain of plugins that creates the interfaces of pods."""
    calico: JsonObject = {
        "type": "calico",
        "log_level": "info",
        "log_file_path": "/var/log/calico/cni/cni.log",
        "datastore_type": "kubernetes",
        "nodename": "__KUBERNETES_NODE_NAME__",
        "mtu": _MTU,
        "ipam": _ipam(values),
        "policy": {"type": "k8s"},
        "kubernetes": {"kubeconfig": "__KUBECONFIG_FILEPATH__"},
    }
    ports: JsonObject = {"type": "portmap", "snat": True, "capabilities": {"portMappings": True}}
    return {"name": "k8s-pod-network", "cniVersion": "0.3.1", "plugins": [calico, ports]}


def _ipam(values: Values) -> JsonObject:
    ipam = values.ipam
    if ipam.type == "calico-ipam":
        pools = {"assign_ipv4": values.ipv4, "assign_ipv6": values.ipv6}
        return {"type": ipam.type} | {
            name: "true" if pool else "false" for name, pool in pools.items()
        }
    if ipam.ranges:
        return {"type": ipam.type, "ranges": [[{"subnet": subnet}] for subnet in ipam.ranges]}
    return {"type": ipam.type, "subnet": ipam.subnet}
