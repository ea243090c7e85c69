"""The container of the agent itself."""

from typing import Final

from pergola.api.objects import JsonObject, JsonValue
from pergola.manifests import Images, capable, env, host_port, requests
from pergola.providers.networking.cilium import ports
from pergola.providers.networking.cilium.render.agent_volumes import CLUSTER_MESH, mounts
from pergola.providers.networking.cilium.render.pods import (
    CONFIG_MOUNT,
    api_server_env,
    identity_env,
    local_probe,
)
from pergola.providers.networking.cilium.values import Values

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


def container(values: Values, image: Images) -> JsonObject:
    """Return the container."""
    return {
        "name": "cilium-agent",
        "image": image("cilium-agent"),
        "imagePullPolicy": "IfNotPresent",
        "command": ["cilium-agent"],
        "args": [f"--config-dir={CONFIG_MOUNT}"],
        "env": [*identity_env(), *_client_env(), *api_server_env(values)],
        "ports": [
            host_port("prometheus", ports.AGENT_METRICS),
            host_port("health", ports.AGENT_HEALTH),
            host_port("hubble-metrics", ports.HUBBLE_METRICS),
            host_port("peer-service", ports.HUBBLE),
        ],
        # A node with many endpoints restores them before it answers.
        "startupProbe": _probe(values, failureThreshold=300, periodSeconds=2),
        "livenessProbe": _probe(
            values, failureThreshold=10, periodSeconds=30, timeoutSeconds=5, alive=True
        ),
        "readinessProbe": _probe(values, failureThreshold=3, periodSeconds=30, timeoutSeconds=5),
        "lifecycle": {"preStop": {"exec": {"command": ["/cni-uninstall.sh"]}}},
        "resources": requests(cpu="100m", memory="200Mi"),
        # The default profile of runtimes refuses the system calls that load eBPF programs.
        "securityContext": capable(*_CAPABILITIES, escalates=True)
        | {"seccompProfile": {"type": "Unconfined"}},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts(values),
    }


def _client_env() -> list[JsonObject]:
    """Return backoff settings: agents back off for up to two minutes if the API server is away."""
    memory: JsonObject = {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1"}}
    return env(
        CILIUM_CLUSTERMESH_CONFIG=f"{CLUSTER_MESH}/",
        GOMEMLIMIT=memory,
        KUBE_CLIENT_BACKOFF_BASE="1",
        KUBE_CLIENT_BACKOFF_DURATION="120",
    )


def _probe(values: Values, *, alive: bool = False, **timing: JsonValue) -> JsonObject:
    probe = local_probe(values, ports.AGENT_HEALTH, **timing)
    headers = [{"name": "brief", "value": "true"}]
    if alive:
        # An agent that cannot reach the API server still serves its node.
        headers.append({"name": "require-k8s-connectivity", "value": "false"})
    probe["httpGet"]["httpHeaders"] = headers
    return probe
