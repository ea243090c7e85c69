"""Multus, the first CNI plugin: it gives pods networks beside Calico's (spec 40 §5.5)."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.providers.networking.calico.render.compose import (
    EVERYWHERE,
    LINUX,
    PRIVILEGED,
    RUNTIME_SECCOMP,
    SYSTEM_COMPONENT,
    Images,
    account,
    cluster_role,
    host_path,
    mount,
    obj,
    requests,
    rule,
    service_account,
)
from pergola.providers.networking.calico.render.crds import MULTUS, network_attachment_definition
from pergola.providers.networking.calico.values import Values

NAME: Final = "multus"
_BIN: Final = mount("cnibin", "/host/opt/cni/bin")
_NET: Final = mount("cni", "/host/etc/cni/net.d")


def multus_objects(values: Values, images: Images) -> list[JsonObject]:
    """Its objects; none if it is off."""
    if not values.multus:
        return []
    rules = [
        rule(MULTUS, ["network-attachment-definitions"], ["get", "list", "watch"]),
        rule("", ["pods"], ["get", "list", "watch"]),
        rule("", ["pods/status"], ["patch", "update"]),
        rule("events.k8s.io", ["events"], ["create", "patch", "update"]),
        rule("", ["events"], ["create", "patch", "update"]),
    ]
    return [
        network_attachment_definition(),
        service_account(NAME),
        *cluster_role(NAME, rules, account(NAME)),
        _daemon_set(values, images),
    ]


def _daemon_set(values: Values, images: Images) -> JsonObject:
    labels = {"k8s-app": NAME, **SYSTEM_COMPONENT}
    spec: JsonObject = {
        "selector": {"matchLabels": {"k8s-app": NAME}},
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}},
        "template": {"metadata": {"labels": labels}, "spec": _pod(values, images)},
    }
    return obj("apps/v1", "DaemonSet", NAME, labels=labels, spec=spec)


def _pod(values: Values, images: Images) -> JsonObject:
    return {
        "hostNetwork": True,
        "priorityClassName": "system-node-critical",
        "serviceAccountName": NAME,
        "automountServiceAccountToken": True,
        "terminationGracePeriodSeconds": 10,
        "nodeSelector": dict(LINUX),
        "tolerations": list(EVERYWHERE),
        "securityContext": RUNTIME_SECCOMP,
        "initContainers": [
            *([_cni_plugins(images)] if values.multus_cni_plugins else []),
            _install(images),
        ],
        "containers": [_container(images)],
        "volumes": [
            host_path("cni", "/etc/cni/net.d", "DirectoryOrCreate"),
            host_path("cnibin", "/opt/cni/bin", "DirectoryOrCreate"),
        ],
    }


def _cni_plugins(images: Images) -> JsonObject:
    return _copying(
        "install-cni-plugins",
        images("cni-plugins"),
        "cp -f /usr/src/plugins/bin/* /host/opt/cni/bin/",
    )


def _install(images: Images) -> JsonObject:
    command = "cp -f /usr/src/multus-cni/bin/multus /host/opt/cni/bin/multus"
    return _copying("install-multus-binary", images("multus-cni"), command)


def _copying(name: str, image: str, command: str) -> JsonObject:
    return {
        "name": name,
        "image": image,
        "command": ["sh", "-c", command],
        "resources": requests(cpu="10m", memory="15Mi"),
        "securityContext": PRIVILEGED,
        "volumeMounts": [_BIN],
    }


def _container(images: Images) -> JsonObject:
    return {
        "name": "kube-multus",
        "image": images("multus-cni"),
        "command": ["/thin_entrypoint"],
        "args": [
            "--multus-conf-file=auto",
            "--multus-autoconfig-dir=/host/etc/cni/net.d",
            "--cni-conf-dir=/host/etc/cni/net.d",
            "--skip-multus-binary-copy=true",
        ],
        "livenessProbe": {
            "exec": {"command": ["sh", "-c", "ls /host/etc/cni/net.d/00-multus.conf"]},
            "initialDelaySeconds": 60,
            "periodSeconds": 60,
        },
        "resources": requests(cpu="10m", memory="50Mi"),
        "securityContext": PRIVILEGED,
        "volumeMounts": [_NET, _BIN],
    }
