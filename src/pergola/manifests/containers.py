"""Parts of containers: environment, ports, probes, resources and privileges."""

from typing import Final

from pergola.api.objects import JsonObject, JsonValue

RUNTIME_DEFAULT: Final[JsonObject] = {"type": "RuntimeDefault"}
"""The seccomp profile of the container runtime."""

PRIVILEGED: Final[JsonObject] = {"privileged": True}
"""The security context of a container with all rights on its node."""


def env(**variables: JsonValue) -> list[JsonObject]:
    """Return environment variables: text becomes a value, a map a source, None no variable."""
    return [_variable(name, value) for name, value in variables.items() if value is not None]


def from_pod(path: str) -> JsonObject:
    """Return the source of a variable with the value of a field of the pod."""
    return {"fieldRef": {"fieldPath": path}}


def from_config_map(name: str, key: str, *, optional: bool = False) -> JsonObject:
    """Return the source of a variable with the value of a ConfigMap key."""
    reference: JsonObject = {"name": name, "key": key}
    return {"configMapKeyRef": reference | ({"optional": True} if optional else {})}


def flag(value: bool) -> str:
    """Return a boolean in the spelling of environment variables and settings."""
    return "true" if value else "false"


def port(name: str, number: int, protocol: str = "TCP") -> JsonObject:
    """Return a port in the network of the pod."""
    return {"name": name, "containerPort": number, "protocol": protocol}


def host_port(name: str, number: int, protocol: str = "TCP") -> JsonObject:
    """Return a port in the network of the node."""
    return {**port(name, number, protocol), "hostPort": number}


def http_probe(
    path: str, number: int | str, *, host: str | None = None, **timing: JsonValue
) -> JsonObject:
    """Return a probe over HTTP, with timing such as `periodSeconds=10`."""
    get: JsonObject = {"path": path, "port": number, "scheme": "HTTP"}
    return {"httpGet": get | ({"host": host} if host is not None else {}), **timing}


def https_probe(path: str, number: int | str, **timing: JsonValue) -> JsonObject:
    """Return a probe over HTTPS that does not check the certificate."""
    return {"httpGet": {"path": path, "port": number, "scheme": "HTTPS"}, **timing}


def exec_probe(*command: str, **timing: JsonValue) -> JsonObject:
    """Return a probe that runs a program in the container."""
    return {"exec": {"command": list(command)}, **timing}


def requests(**amounts: JsonValue) -> JsonObject:
    """Return resource requests, such as `cpu="10m"`, without limits."""
    return {"requests": dict(amounts)}


def restricted(*, read_only_root: bool = True) -> JsonObject:
    """Return the security context of a container that needs no access to its node."""
    context: JsonObject = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    return context | ({"readOnlyRootFilesystem": True} if read_only_root else {})


def capable(*capabilities: str, escalates: bool = False) -> JsonObject:
    """Return the security context of root on the node, restricted to these capabilities.

    Args:
        escalates: whether escalation stays allowed. Kubernetes does not allow denying it to a
            container with CAP_SYS_ADMIN.
    """
    added: JsonObject = {"add": list(capabilities)} if capabilities else {}
    context: JsonObject = {
        "runAsUser": 0,
        "capabilities": {**added, "drop": ["ALL"]},
        "seLinuxOptions": {"level": "s0", "type": "spc_t"},
    }
    return context if escalates else context | {"allowPrivilegeEscalation": False}


def _variable(name: str, value: JsonValue) -> JsonObject:
    if isinstance(value, dict):
        return {"name": name, "valueFrom": value}
    return {"name": name, "value": value}
