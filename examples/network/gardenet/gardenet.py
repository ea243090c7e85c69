"""A network extension in one file, as docs/tutorials/network-extension.md builds it."""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Final

import orjson
from msgspec import field

from pergola.api.field_errors import Cause, forbidden, invalid, unsupported
from pergola.api.ip_ranges import is_network
from pergola.api.objects import JsonObject
from pergola.api.schema.declare import Value
from pergola.extensions import Shoot
from pergola.providers.networking.plugin import NetworkPlugin, Plan, Rendered

NODE: Final = "gardenet-node"
CONFIG: Final = "gardenet-config"
IMAGE: Final = "registry.k8s.io/e2e-test-images/agnhost:2.53"
"""Stands in for the agent, because gardenet does not exist; it only reports that it is ready."""
PORT: Final = 9199


class Ipam(Value):
    """How pods get their addresses."""

    cidr: str = "usePodCIDR"
    """The range of addresses: a CIDR, or `usePodCIDR` for the pod range of the node."""
    type: str = "host-local"
    """The IPAM plugin; only `host-local` is supported."""


class NetworkConfig(Value):
    """`providerConfig` of a Network of type gardenet."""

    gardenet_custom_config_field: str = ""
    """A setting that only gardenet has."""
    ipam: Ipam = field(default_factory=Ipam)
    """How pods get their addresses."""


class Gardenet(NetworkPlugin[NetworkConfig]):
    """Installs the network gardenet in a Shoot."""

    type = "gardenet"
    name = "networking-gardenet"
    config = NetworkConfig

    def check(self, config: NetworkConfig, families: Sequence[str]) -> Iterator[Cause]:
        """Yield one finding for each invalid value."""
        if config.ipam.type != "host-local":
            yield unsupported("ipam.type", config.ipam.type, ["host-local"])
        if config.ipam.cidr != "usePodCIDR" and not is_network(config.ipam.cidr):
            yield invalid("ipam.cidr", config.ipam.cidr, "must be usePodCIDR or a CIDR")

    def check_shoot(self, config: NetworkConfig, shoot: Shoot) -> Iterator[Cause]:
        """Require kube-proxy, because gardenet does not route Services."""
        if not shoot.kube_proxy_enabled:
            yield forbidden(
                "spec.kubernetes.kubeProxy.enabled",
                "Disabling kube-proxy is forbidden in conjunction with gardenet, "
                "which cannot route Services",
            )

    def render(self, plan: Plan[NetworkConfig]) -> Rendered:
        """Return a ConfigMap, and the DaemonSet that reads it."""
        config = config_map(plan)
        return Rendered(shoot=[config, daemon_set(checksum_of(config))])


def config_map(plan: Plan[NetworkConfig]) -> JsonObject:
    """Return the ConfigMap with the settings of the agents."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": CONFIG, "namespace": "kube-system"},
        "data": {
            "podCIDR": plan.pod_range,
            "serviceCIDR": plan.service_range,
            "ipFamilies": ",".join(plan.families),
            "customField": plan.config.gardenet_custom_config_field,
            "ipamCIDR": plan.config.ipam.cidr,
        },
    }


def daemon_set(checksum: str) -> JsonObject:
    """Return the DaemonSet that runs an agent on each node."""
    labels = {"app": NODE, "gardener.cloud/role": "system-component"}
    # Gardener keeps pods that need the network off a node until this pod is ready.
    critical = {**labels, "node.gardener.cloud/critical-component": "true"}
    template = {
        "metadata": {"labels": critical, "annotations": {"checksum/configmap-gardenet": checksum}},
        "spec": pod_spec(),
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": NODE, "namespace": "kube-system", "labels": labels},
        "spec": {
            "selector": {"matchLabels": {"app": NODE}},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}},
            "template": template,
        },
    }


def pod_spec() -> JsonObject:
    """Return a pod that tolerates all taints and starts before pods that need a network."""
    return {
        "hostNetwork": True,
        "priorityClassName": "system-node-critical",
        "automountServiceAccountToken": False,
        "tolerations": [
            {"operator": "Exists", "effect": "NoSchedule"},
            {"operator": "Exists", "effect": "NoExecute"},
        ],
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65534,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [
            {
                "name": "agent",
                "image": IMAGE,
                "args": ["netexec", f"--http-port={PORT}", "--udp-port=-1"],
                "readinessProbe": {"httpGet": {"path": "/healthz", "port": PORT}},
                "resources": {
                    "requests": {"cpu": "10m", "memory": "16Mi"},
                    "limits": {"memory": "64Mi"},
                },
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "readOnlyRootFilesystem": True,
                    "capabilities": {"drop": ["ALL"]},
                },
                "volumeMounts": [{"name": "config", "mountPath": "/etc/gardenet"}],
            }
        ],
        "volumes": [{"name": "config", "configMap": {"name": CONFIG}}],
    }


def checksum_of(config: JsonObject) -> str:
    """Return a checksum that changes with the content of the ConfigMap."""
    return hashlib.sha256(orjson.dumps(config["data"], option=orjson.OPT_SORT_KEYS)).hexdigest()
