"""The init containers and sidecars of calico-node (spec 40 §5.5)."""

from functools import cache
from importlib.resources import files
from typing import Final

from pergola.api.objects import JsonObject
from pergola.manifests import (
    PRIVILEGED,
    Images,
    capable,
    env,
    exec_probe,
    flag,
    from_config_map,
    from_pod,
    http_probe,
    mount,
    port,
    requests,
    restricted,
)
from pergola.providers.networking.calico.render import config_map
from pergola.providers.networking.calico.render.conventions import ENDPOINT_OVERRIDE
from pergola.providers.networking.calico.render.node_environment import api_server, node_address
from pergola.providers.networking.calico.values import Values

BIRD_METRICS: Final = 9094
NODE_USER: Final = 999
_NET_ADMIN: Final = capable("NET_ADMIN", "NET_RAW")
_ALIVE: Final = "[ $(($(date +%s) - $(cat /tmp/alive))) -lt 180 ]"


def init_containers(values: Values, images: Images) -> list[JsonObject]:
    """Return the init containers, in their order."""
    return [
        *([_cleanup_routes(values, images)] if values.overlay is False else []),
        _log_mtu(images),
        _install_cni(values, images),
        *([_ebpf_bootstrap(values, images)] if values.ebpf else []),
        *([_hostpath_init(images)] if values.non_privileged else []),
    ]


def sidecars(values: Values, images: Images) -> list[JsonObject]:
    """Return the sidecars."""
    return [
        *([_network_condition(values, images)] if values.backend != "none" else []),
        *([_snat_to_upstream_dns(values, images)] if values.snat_to_upstream_dns else []),
        *([_bird_exporter(values, images)] if exports_bird(values) else []),
    ]


def exports_bird(values: Values) -> bool:
    """Return whether BIRD exports metrics; reading its socket requires privileges."""
    return values.bird_exporter and not values.non_privileged


@cache
def script(name: str) -> str:
    """Return a shell script of this package."""
    return files(__package__).joinpath("scripts", f"{name}.sh").read_text()


def _cleanup_routes(values: Values, images: Images) -> JsonObject:
    return {
        "name": "cleanup-routes",
        "image": images("calico-node"),
        "command": ["sh", "-c", script("cleanup_routes")],
        "env": env(CALICO_BACKEND=values.backend),
        "resources": requests(cpu="5m", memory="16Mi"),
        "securityContext": _NET_ADMIN,
    }


def _log_mtu(images: Images) -> JsonObject:
    return {
        "name": "log-mtu-issues",
        "image": images("calico-node"),
        "command": ["/bin/sh", "-c", script("iptables") + script("log_mtu")],
        "resources": requests(cpu="5m", memory="16Mi"),
        "securityContext": _NET_ADMIN,
        "volumeMounts": [mount("xtables-lock", "/run/xtables.lock")],
    }


def _install_cni(values: Values, images: Images) -> JsonObject:
    return {
        "name": "install-cni",
        "image": images("calico-cni"),
        "command": ["/opt/cni/bin/install"],
        "envFrom": list(ENDPOINT_OVERRIDE),
        "env": [
            *api_server(values),
            *env(
                CNI_CONF_NAME=config_map.CONFLIST,
                CNI_NETWORK_CONFIG=from_config_map(config_map.NAME, "cni_network_config"),
                KUBERNETES_NODE_NAME=from_pod("spec.nodeName"),
                CNI_MTU=from_config_map(config_map.NAME, "veth_mtu"),
                SLEEP="false",
            ),
        ],
        "resources": requests(cpu="10m", memory="32Mi"),
        "securityContext": PRIVILEGED,
        "volumeMounts": [
            mount("cni-bin-dir", "/host/secondary-bin-dir"),
            mount("cni-net-dir", "/host/etc/cni/net.d"),
        ],
    }


def _ebpf_bootstrap(values: Values, images: Images) -> JsonObject:
    return {
        "name": "ebpf-bootstrap",
        "image": images("calico-node"),
        "command": ["calico-node", "-init", "-best-effort"],
        **({"env": address} if (address := api_server(values)) else {}),
        "resources": requests(cpu="10m", memory="32Mi"),
        "securityContext": PRIVILEGED,
        "volumeMounts": [
            mount("sys-fs", "/sys/fs", mountPropagation="Bidirectional"),
            mount("var-run-calico", "/var/run/calico", mountPropagation="Bidirectional"),
            mount("nodeproc", "/nodeproc", readOnly=True),
        ],
    }


def _hostpath_init(images: Images) -> JsonObject:
    return {
        "name": "hostpath-init",
        "image": images("calico-node"),
        "command": ["sh", "-c", "calico-node -hostpath-init"],
        "env": env(NODE_USER_ID=str(NODE_USER)),
        "resources": requests(cpu="10m", memory="32Mi"),
        "securityContext": {**PRIVILEGED, "runAsUser": 0},
        "volumeMounts": [
            mount("var-run-calico", "/var/run"),
            mount("var-lib-calico", "/var/lib"),
        ],
    }


def _network_condition(values: Values, images: Images) -> JsonObject:
    return {
        "name": "network-unavailable-condition-ensurer",
        "image": images("calico-node"),
        "command": ["/bin/bash", "-c", script("network_condition")],
        "envFrom": list(ENDPOINT_OVERRIDE),
        "env": [
            *api_server(values),
            *env(
                DATASTORE_TYPE="kubernetes",
                CALICO_NETWORKING_BACKEND=from_config_map(config_map.NAME, "calico_backend"),
                NO_DEFAULT_POOLS="true",
                NODENAME=from_pod("spec.nodeName"),
            ),
            *node_address(values),
        ],
        "livenessProbe": _alive_probe(),
        "resources": requests(cpu="2m", memory="20Mi"),
        "securityContext": restricted(read_only_root=False),
    }


def _snat_to_upstream_dns(values: Values, images: Images) -> JsonObject:
    return {
        "name": "add-snat-rule-to-upstream-dns",
        "image": images("calico-node"),
        "command": ["/bin/sh", "-c", script("iptables") + script("snat_to_upstream_dns")],
        "env": env(
            POD_CIDR_V4=values.ipv4.cidr if values.ipv4 else None,
            POD_CIDR_V6=values.ipv6.cidr if values.ipv6 else None,
        ),
        "livenessProbe": _alive_probe(),
        "resources": requests(cpu="2m", memory="20Mi"),
        "securityContext": _NET_ADMIN,
        "volumeMounts": [mount("xtables-lock", "/run/xtables.lock")],
    }


def _bird_exporter(values: Values, images: Images) -> JsonObject:
    return {
        "name": "bird-exporter",
        "image": images("bird-exporter"),
        "args": [
            "-format.new=true",
            "-bird.v2=false",  # calico-node runs two BIRDs of version 1
            "-bird.socket=/var/run/calico/bird.ctl",
            f"-bird.ipv6={flag(values.ipv6 is not None)}",
            "-bird6.socket=/var/run/calico/bird6.ctl",
            f"-web.listen-address=:{BIRD_METRICS}",
        ],
        "ports": [port("bird-metrics", BIRD_METRICS)],
        "livenessProbe": http_probe("/", BIRD_METRICS, periodSeconds=30),
        "resources": requests(cpu="10m", memory="32Mi"),
        "securityContext": {**restricted(read_only_root=False), "runAsUser": 0},
        "volumeMounts": [mount("var-run-calico", "/var/run/calico", readOnly=True)],
    }


def _alive_probe() -> JsonObject:
    """Return a probe of the file to which the scripts write the time in each round."""
    return exec_probe("sh", "-c", _ALIVE, initialDelaySeconds=30, periodSeconds=60)
