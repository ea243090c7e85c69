"""Multus, a CNI plugin in front of Calico that gives pods extra networks (spec 40 §5.5)."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.manifests import (
    KUBE_SYSTEM,
    LINUX,
    ON_EVERY_NODE,
    PRIVILEGED,
    RUNTIME_DEFAULT,
    Images,
    account,
    cluster_role,
    env,
    from_pod,
    host_path,
    manifest,
    mount,
    requests,
    rule,
    selector,
    service_account,
)
from pergola.manifests.labels import CRITICAL_COMPONENT, SYSTEM_COMPONENT
from pergola.providers.networking.calico.render.config_map import CONFLIST
from pergola.providers.networking.calico.render.conventions import EGRESS, EVERYWHERE
from pergola.providers.networking.calico.render.crds import MULTUS, network_attachment_definition
from pergola.providers.networking.calico.values import Values

NAME: Final = "multus"
_COPY: Final = """\
for plugin in /usr/src/plugins/bin/*; do
  case "${plugin##*/}" in
    host-local | loopback | portmap | tuning) ;; # Calico installs its own
    *) cp -f "$plugin" /host/opt/cni/bin/ ;;
  esac
done"""
_CONF: Final = "/host/etc/cni/net.d"
_BIN: Final = mount("cnibin", "/host/opt/cni/bin")
_NET: Final = mount("cni", _CONF)


def multus_objects(values: Values, images: Images) -> list[JsonObject]:
    """Return its objects; none if it is disabled."""
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
        service_account(NAME, KUBE_SYSTEM),
        *cluster_role(NAME, rules, account(NAME, KUBE_SYSTEM)),
        _daemon_set(values, images),
    ]


def _daemon_set(values: Values, images: Images) -> JsonObject:
    labels = {"k8s-app": NAME, **SYSTEM_COMPONENT, **CRITICAL_COMPONENT}
    to_cluster = {key: value for key, value in EGRESS.items() if "public" not in key}
    spec: JsonObject = {
        "revisionHistoryLimit": 2,
        "selector": selector({"k8s-app": NAME}),
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}},
        "template": {
            "metadata": {"labels": {**labels, **to_cluster}},
            "spec": _pod(values, images),
        },
    }
    return manifest("apps/v1", "DaemonSet", NAME, namespace=KUBE_SYSTEM, labels=labels, spec=spec)


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
        "initContainers": [
            _install(images),
            *([_cni_plugins(images)] if values.multus_cni_plugins else []),
        ],
        "containers": [_container(images)],
        "volumes": [
            host_path("cni", "/etc/cni/net.d"),
            host_path("cnibin", "/opt/cni/bin"),
        ],
    }


def _cni_plugins(images: Images) -> JsonObject:
    return _installer(
        "install-cni-plugins",
        images("cni-plugins"),
        command=["sh", "-c", _COPY],
    )


def _install(images: Images) -> JsonObject:
    return _installer(
        "install-multus-cni",
        images("multus-cni"),
        command=["/install_multus"],
        args=["--type", "thin"],
    )


def _installer(name: str, image: str, **run: list[str]) -> JsonObject:
    return {
        "name": name,
        "image": image,
        **run,
        "resources": requests(cpu="10m", memory="15Mi"),
        "securityContext": PRIVILEGED,
        "volumeMounts": [_BIN],
    }


def _container(images: Images) -> JsonObject:
    return {
        "name": NAME,
        "image": images("multus-cni"),
        "command": ["/thin_entrypoint"],
        "args": [
            "--cleanup-config-on-exit",
            "--cni-bin-dir=/host/opt/cni/bin",
            f"--cni-conf-dir={_CONF}",
            "--cni-version=0.3.1",
            f"--multus-autoconfig-dir={_CONF}",
            "--multus-cni-conf-dir=/etc/cni/multus/net.d",
            "--multus-conf-file=auto",
            "--multus-log-file=/var/log/multus.log",
            "--multus-log-level=error",
            "--multus-log-to-stderr=true",
            f"--multus-master-cni-file-name={CONFLIST}",
            f"--readiness-indicator-file=/etc/cni/net.d/{CONFLIST}",
        ],
        "env": env(MULTUS_NODE_NAME=from_pod("spec.nodeName")),
        "livenessProbe": {
            "exec": {"command": ["sh", "-c", f"ls {_CONF}/00-multus.conf"]},
            "initialDelaySeconds": 60,
            "periodSeconds": 60,
        },
        "resources": requests(cpu="100m", memory="200Mi"),
        "securityContext": PRIVILEGED,
        "volumeMounts": [_NET, _BIN],
    }
