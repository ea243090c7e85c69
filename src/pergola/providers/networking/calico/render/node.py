"""The DaemonSet `calico-node` and the Services of its metrics (spec 40 §5.5)."""

from typing import Final

from pergola.api.objects import JsonObject, JsonValue
from pergola.manifests import (
    KUBE_SYSTEM,
    LINUX,
    ON_EVERY_NODE,
    PRIVILEGED,
    RUNTIME_DEFAULT,
    Images,
    exec_probe,
    host_path,
    manifest,
    mount,
    port,
    selector,
    service,
    service_port,
)
from pergola.manifests.labels import CRITICAL_COMPONENT, SYSTEM_COMPONENT
from pergola.providers.networking.calico.render.conventions import (
    EGRESS,
    ENDPOINT_OVERRIDE,
    EVERYWHERE,
    preserved,
)
from pergola.providers.networking.calico.render.node_environment import (
    FELIX_METRICS,
    node_environment,
)
from pergola.providers.networking.calico.render.node_helpers import (
    BIRD_METRICS,
    NODE_USER,
    exports_bird,
    init_containers,
    sidecars,
)
from pergola.providers.networking.calico.values import Values

NAME: Final = "calico-node"
_REQUESTS: Final = {"cpu": "250m", "memory": "100Mi"}


def daemon_set(values: Values, images: Images, checksum: str) -> JsonObject:
    """Return the DaemonSet; a change of the ConfigMap restarts its pods."""
    labels = {"k8s-app": NAME, **SYSTEM_COMPONENT, **CRITICAL_COMPONENT}
    spec: JsonObject = {
        "revisionHistoryLimit": 2,
        "selector": selector({"k8s-app": NAME}),
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}},
        "template": {
            "metadata": {
                "labels": {**labels, **EGRESS},
                "annotations": {"checksum/configmap-calico": checksum},
            },
            "spec": _pod(values, images),
        },
    }
    return manifest(
        "apps/v1",
        "DaemonSet",
        NAME,
        namespace=KUBE_SYSTEM,
        labels=labels,
        annotations=preserved(values.auto_scaling),
        spec=spec,
    )


def monitoring_services(values: Values) -> list[JsonObject]:
    """Return the Services whose endpoints are scraped."""
    return [
        _metrics("felix", FELIX_METRICS),
        *([_metrics("bird", BIRD_METRICS)] if exports_bird(values) else []),
    ]


def _metrics(of: str, number: int) -> JsonObject:
    return service(
        f"calico-{of}-monitoring",
        KUBE_SYSTEM,
        {"k8s-app": NAME},
        service_port("metrics", number),
    )


def _pod(values: Values, images: Images) -> JsonObject:
    return {
        "hostNetwork": True,
        "priorityClassName": ON_EVERY_NODE,
        "serviceAccountName": NAME,
        "automountServiceAccountToken": True,
        "terminationGracePeriodSeconds": 0,
        "nodeSelector": dict(LINUX),
        "tolerations": list(EVERYWHERE),
        "securityContext": {"seccompProfile": RUNTIME_DEFAULT},
        "initContainers": init_containers(values, images),
        "containers": [_container(values, images), *sidecars(values, images)],
        "volumes": _volumes(values),
    }


def _container(values: Values, images: Images) -> JsonObject:
    return {
        "name": NAME,
        "image": images("calico-node"),
        "envFrom": list(ENDPOINT_OVERRIDE),
        "env": node_environment(values),
        "ports": [port("metrics", FELIX_METRICS)],
        "livenessProbe": _probe(values, "live", initialDelaySeconds=10, failureThreshold=6),
        "readinessProbe": _probe(values, "ready"),
        "resources": {"requests": _requests(values)},
        "securityContext": _security(values),
        "lifecycle": {"preStop": {"exec": {"command": ["/bin/calico-node", "-shutdown"]}}},
        "volumeMounts": _mounts(values),
    }


def _requests(values: Values) -> dict[str, JsonValue]:
    is_given = values.auto_scaling in ("static", "vpa")
    return {**_REQUESTS, **(values.resources.get("node", {}) if is_given else {})}


def _probe(values: Values, of: str, **more: JsonValue) -> JsonObject:
    flags = [f"-felix-{of}", *([f"-bird-{of}"] if values.backend == "bird" else [])]
    command = ["/bin/calico-node", *flags]
    return exec_probe(*command, periodSeconds=10, timeoutSeconds=10, **more)


def _security(values: Values) -> JsonObject:
    if not values.non_privileged:
        return PRIVILEGED
    return {
        "privileged": False,
        "allowPrivilegeEscalation": True,  # its programs have file capabilities
        "runAsNonRoot": True,
        "runAsUser": NODE_USER,
        "runAsGroup": 0,
        "capabilities": {"drop": ["ALL"], "add": ["NET_ADMIN", "NET_BIND_SERVICE", "NET_RAW"]},
    }


def _mounts(values: Values) -> list[JsonObject]:
    return [
        mount("cni-net-dir", "/host/etc/cni/net.d"),
        mount("lib-modules", "/lib/modules", readOnly=True),
        mount("xtables-lock", "/run/xtables.lock"),
        mount("var-run-calico", "/var/run/calico"),
        mount("var-lib-calico", "/var/lib/calico"),
        mount("policysync", "/var/run/nodeagent"),
        mount("cni-log-dir", "/var/log/calico/cni", readOnly=True),
        *([mount("bpffs", "/sys/fs/bpf")] if values.ebpf else []),
    ]


def _volumes(values: Values) -> list[JsonObject]:
    return [
        host_path("lib-modules", "/lib/modules"),
        host_path("var-run-calico", "/var/run/calico", "DirectoryOrCreate"),
        host_path("var-lib-calico", "/var/lib/calico", "DirectoryOrCreate"),
        host_path("xtables-lock", "/run/xtables.lock", "FileOrCreate"),
        host_path("cni-bin-dir", "/opt/cni/bin", "DirectoryOrCreate"),
        host_path("cni-net-dir", "/etc/cni/net.d"),
        host_path("cni-log-dir", "/var/log/calico/cni"),
        host_path("policysync", "/var/run/nodeagent", "DirectoryOrCreate"),
        *(_bpf_volumes() if values.ebpf else []),
    ]


def _bpf_volumes() -> list[JsonObject]:
    return [
        host_path("sys-fs", "/sys/fs/", "DirectoryOrCreate"),
        host_path("bpffs", "/sys/fs/bpf", "Directory"),
        host_path("nodeproc", "/proc"),
    ]
