"""The agent: a DaemonSet that gives every node its network."""

from typing import Final

from pergola.api.objects import JsonObject, JsonValue
from pergola.providers.networking.cilium import config_map, label_filter, ports
from pergola.providers.networking.cilium.render import agent_init, checksums
from pergola.providers.networking.cilium.render.parts import (
    CRITICAL_COMPONENT,
    LINUX,
    ON_EVERY_NODE,
    RUNTIME_DEFAULT,
    Images,
    api_server_env,
    app,
    capable,
    config_map_volume,
    env_of_pod,
    host_path,
    host_port,
    http_probe,
    loopback,
    mount,
    obj,
    requests,
    secret_item,
    service_port,
)
from pergola.providers.networking.cilium.render.snat import sidecars
from pergola.providers.networking.cilium.values import Values

NAME: Final = "cilium"
SELECTOR: Final = {"k8s-app": "cilium"}
ENVOY_SOCKETS: Final = "/var/run/cilium/envoy/sockets"
_CAPABILITIES: Final = (
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "IPC_LOCK",
    "KILL",
    "NET_ADMIN",
    "NET_RAW",
    "SETGID",
    "SETUID",
    "SYS_ADMIN",
    "SYS_MODULE",
    "SYS_RESOURCE",
)


def agent(values: Values, image: Images, sums: dict[str, str]) -> JsonObject:
    """The DaemonSet.

    Args:
        sums: annotations of the pods that change with their configuration.
    """
    labels = {**app("cilium"), "app.kubernetes.io/name": "cilium-agent", **CRITICAL_COMPONENT}
    template: JsonObject = {
        "metadata": {"labels": labels, "annotations": _annotations(values, sums)},
        "spec": _pod(values, image),
    }
    return obj(
        "apps/v1",
        "DaemonSet",
        NAME,
        labels=labels,
        spec={
            "selector": {"matchLabels": dict(SELECTOR)},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}},
            "template": template,
        },
    )


def hubble_metrics() -> JsonObject:
    """Return the headless Service of the agents' metrics of flows, as scrapers find it."""
    port = service_port("hubble-metrics", ports.HUBBLE_METRICS, "hubble-metrics")
    return obj(
        "v1",
        "Service",
        "hubble-metrics",
        labels={"k8s-app": "hubble"},
        annotations={
            "prometheus.io/scrape": "true",
            "prometheus.io/port": str(ports.HUBBLE_METRICS),
        },
        spec={
            "type": "ClusterIP",
            "clusterIP": "None",
            "selector": dict(SELECTOR),
            "ports": [port],
        },
    )


def _annotations(values: Values, sums: dict[str, str]) -> dict[str, str]:
    metrics = {"networking.extensions.gardener.cloud/hubble-metrics": "true"}
    return {**sums, **(metrics if values.hubble else {})}


def _pod(values: Values, image: Images) -> JsonObject:
    return {
        "hostNetwork": True,
        "dnsPolicy": "ClusterFirstWithHostNet",
        "restartPolicy": "Always",
        "priorityClassName": "system-node-critical",
        "serviceAccountName": NAME,
        "automountServiceAccountToken": True,
        "terminationGracePeriodSeconds": 1,
        "nodeSelector": LINUX,
        "tolerations": list(ON_EVERY_NODE),
        "affinity": _one_per_node(),
        "securityContext": {
            "seccompProfile": RUNTIME_DEFAULT,
            "appArmorProfile": {"type": "Unconfined"},
        },
        "initContainers": agent_init.containers(values, image),
        "containers": [_container(values, image), *sidecars(values, image)],
        "volumes": _volumes(values),
    }


def _one_per_node() -> JsonObject:
    """Two agents on one node would fight for it, as during an update from another DaemonSet."""
    term: JsonObject = {
        "labelSelector": {"matchLabels": dict(SELECTOR)},
        "topologyKey": "kubernetes.io/hostname",
    }
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def _container(values: Values, image: Images) -> JsonObject:
    return {
        "name": "cilium-agent",
        "image": image("cilium-agent"),
        "imagePullPolicy": "IfNotPresent",
        "command": ["cilium-agent"],
        "args": ["--config-dir=/tmp/cilium/config-map"],
        "env": [
            env_of_pod("K8S_NODE_NAME", "spec.nodeName"),
            env_of_pod("CILIUM_K8S_NAMESPACE", "metadata.namespace"),
            *api_server_env(values),
        ],
        "ports": [
            host_port("prometheus", ports.AGENT_METRICS),
            host_port("health", ports.AGENT_HEALTH),
            host_port("hubble-metrics", ports.HUBBLE_METRICS),
            host_port("peer-service", ports.HUBBLE),
        ],
        "startupProbe": _probe(values, failureThreshold=105, periodSeconds=2),
        "livenessProbe": _probe(
            values, failureThreshold=10, periodSeconds=30, timeoutSeconds=5, alive=True
        ),
        "readinessProbe": _probe(values, failureThreshold=3, periodSeconds=30, timeoutSeconds=5),
        "lifecycle": {"preStop": {"exec": {"command": ["/cni-uninstall.sh"]}}},
        "resources": requests("100m", "200Mi"),
        # The default profile of runtimes keeps eBPF programs from being loaded.
        "securityContext": capable(*_CAPABILITIES, escalates=True)
        | {"seccompProfile": {"type": "Unconfined"}},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": _mounts(values),
    }


def _probe(values: Values, *, alive: bool = False, **timing: JsonValue) -> JsonObject:
    probe = http_probe("/healthz", ports.AGENT_HEALTH, host=loopback(values), **timing)
    headers = [{"name": "brief", "value": "true"}]
    if alive:
        # An agent that cannot reach the API server still serves its node.
        headers.append({"name": "require-k8s-connectivity", "value": "false"})
    probe["httpGet"]["httpHeaders"] = headers
    return probe


def _mounts(values: Values) -> list[JsonObject]:
    mounts = [
        mount("bpf-maps", "/sys/fs/bpf", mountPropagation="HostToContainer"),
        mount("cilium-cgroup", "/run/cilium/cgroupv2"),
        mount("cilium-run", "/var/run/cilium"),
        mount("cilium-netns", "/var/run/cilium/netns", mountPropagation="HostToContainer"),
        mount("envoy-sockets", ENVOY_SOCKETS),
        mount("etc-cni-netd", "/host/etc/cni/net.d"),
        mount("host-proc-sys-net", "/host/proc/sys/net"),
        mount("host-proc-sys-kernel", "/host/proc/sys/kernel"),
        mount("lib-modules", "/lib/modules", readOnly=True),
        mount("xtables-lock", "/run/xtables.lock"),
        mount("tmp", "/tmp"),  # noqa: S108 - in the container
        mount("label-prefix", label_filter.MOUNT, readOnly=True),
    ]
    if values.hubble:
        mounts.append(mount("hubble-tls", config_map.HUBBLE_TLS, readOnly=True))
    return mounts


def _volumes(values: Values) -> list[JsonObject]:
    volumes = [
        {"name": "tmp", "emptyDir": {}},
        host_path("bpf-maps", "/sys/fs/bpf", "DirectoryOrCreate"),
        host_path("cilium-cgroup", "/run/cilium/cgroupv2", "DirectoryOrCreate"),
        host_path("cilium-run", "/var/run/cilium", "DirectoryOrCreate"),
        host_path("cilium-netns", "/var/run/netns", "DirectoryOrCreate"),
        host_path("envoy-sockets", ENVOY_SOCKETS, "DirectoryOrCreate"),
        host_path("cni-path", "/opt/cni/bin", "DirectoryOrCreate"),
        host_path("etc-cni-netd", "/etc/cni/net.d", "DirectoryOrCreate"),
        host_path("host-proc", "/proc", "Directory"),
        host_path("host-proc-sys-net", "/proc/sys/net", "Directory"),
        host_path("host-proc-sys-kernel", "/proc/sys/kernel", "Directory"),
        host_path("lib-modules", "/lib/modules"),
        host_path("xtables-lock", "/run/xtables.lock", "FileOrCreate"),
        config_map_volume("label-prefix", label_filter.NAME, defaultMode=0o444),
    ]
    return [*volumes, _hubble_tls()] if values.hubble else volumes


def _hubble_tls() -> JsonObject:
    sources = [
        secret_item(
            "hubble-server-certs",
            {"tls.crt": "server.crt", "tls.key": "server.key", "ca.crt": "client-ca.crt"},
        )
    ]
    return {"name": "hubble-tls", "projected": {"defaultMode": 0o400, "sources": sources}}


def pod_checksums(cilium_config: JsonObject, label_prefixes: JsonObject) -> dict[str, str]:
    """The annotations by which a change of configuration makes the agents start again."""
    return {
        checksums.CILIUM: checksums.checksum(cilium_config),
        checksums.LABEL_PREFIX: checksums.checksum(label_prefixes),
    }
