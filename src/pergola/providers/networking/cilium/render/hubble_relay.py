"""Hubble's relay: it asks the agents of all nodes for the flows that they see."""

import hashlib
from typing import Final

from pergola.api.objects import JsonObject
from pergola.kube.yaml_writer import dump
from pergola.providers.networking.cilium import ports
from pergola.providers.networking.cilium.render import hubble_certificates as certificates
from pergola.providers.networking.cilium.render.parts import (
    LINUX,
    NAMESPACE,
    RUNTIME_DEFAULT,
    SYSTEM_COMPONENT,
    SYSTEM_PRIORITY,
    TO_DNS,
    Images,
    app,
    config_map_volume,
    mount,
    obj,
    requests,
    secret_item,
    service_account,
    service_port,
    unprivileged,
)

NAME: Final = "hubble-relay"
PORT: Final = 4245
LABELS: Final = {"k8s-app": NAME}
_CONFIG: Final = "hubble-relay-config"
_PEERS: Final = "hubble-peer"
_TLS: Final = "/var/lib/hubble-relay/tls"
_NOBODY: Final = 65532


def relay(image: Images) -> list[JsonObject]:
    """The Deployment with its configuration, Services and NetworkPolicy."""
    text = dump(_settings())
    return [
        service_account(NAME),
        obj("v1", "ConfigMap", _CONFIG, data={"config.yaml": text}),
        _deployment(image, hashlib.sha256(text.encode()).hexdigest()),
        _service(NAME, LABELS, service_port("grpc", 80, "grpc")),
        _peers(),
        _network_policy(),
    ]


def _settings() -> JsonObject:
    return {
        "cluster-name": "default",
        "peer-service": f"{_PEERS}.{NAMESPACE}.svc.cluster.local.:443",
        "listen-address": f":{PORT}",
        "gops": False,
        "tls-hubble-client-cert-file": f"{_TLS}/client.crt",
        "tls-hubble-client-key-file": f"{_TLS}/client.key",
        "tls-hubble-server-ca-files": f"{_TLS}/hubble-server-ca.crt",
        "disable-server-tls": True,
    }


def _service(name: str, selector: dict[str, str], port: JsonObject, **more: str) -> JsonObject:
    return obj(
        "v1",
        "Service",
        name,
        labels=app(name),
        spec={
            "type": "ClusterIP",
            "ipFamilyPolicy": "PreferDualStack",
            "selector": dict(selector),
            "ports": [port],
            **more,
        },
    )


def _peers() -> JsonObject:
    """The agent of the same node knows the others."""
    port = service_port("peer-service", 443, ports.HUBBLE)
    return _service(_PEERS, {"k8s-app": "cilium"}, port, internalTrafficPolicy="Local")


def _network_policy() -> JsonObject:
    from_ui = {"podSelector": {"matchLabels": {"k8s-app": "hubble-ui"}}}
    return obj(
        "networking.k8s.io/v1",
        "NetworkPolicy",
        "gardener.cloud--allow-hubble-relay",
        annotations={
            "gardener.cloud/description": (
                "Lets hubble-relay ask the agents of all nodes, and hubble-ui ask hubble-relay."
            )
        },
        spec={
            "podSelector": {"matchLabels": dict(LABELS)},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"from": [from_ui], "ports": [{"port": PORT, "protocol": "TCP"}]}],
            "egress": [
                {
                    "ports": [
                        {"port": ports.HUBBLE, "protocol": "TCP"},
                        {"port": 443, "protocol": "TCP"},
                    ]
                }
            ],
        },
    )


def _deployment(image: Images, checksum: str) -> JsonObject:
    labels = {**app(NAME), **SYSTEM_COMPONENT}
    return obj(
        "apps/v1",
        "Deployment",
        NAME,
        labels=labels,
        spec={
            "replicas": 1,
            "revisionHistoryLimit": 2,
            "selector": {"matchLabels": dict(LABELS)},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}},
            "template": {
                "metadata": {
                    "labels": labels | TO_DNS,
                    "annotations": {"checksum/configmap-hubble-relay": checksum},
                },
                "spec": _pod(image),
            },
        },
    )


def _pod(image: Images) -> JsonObject:
    return {
        "priorityClassName": SYSTEM_PRIORITY,
        "serviceAccountName": NAME,
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 1,
        "nodeSelector": LINUX,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _NOBODY,
            "runAsGroup": _NOBODY,
            "fsGroup": _NOBODY,
            "seccompProfile": RUNTIME_DEFAULT,
        },
        "containers": [_container(image)],
        "volumes": [
            config_map_volume("config", _CONFIG),
            {"name": "tls", "projected": {"defaultMode": 0o440, "sources": [_tls()]}},
        ],
    }


def _tls() -> JsonObject:
    items = {"tls.crt": "client.crt", "tls.key": "client.key", "ca.crt": "hubble-server-ca.crt"}
    source = secret_item(certificates.RELAY_CLIENT, items)
    # Without a certificate it would not come back, so it waits for the Job instead.
    del source["secret"]["optional"]
    return source


def _container(image: Images) -> JsonObject:
    probe: JsonObject = {"grpc": {"port": 4222}, "timeoutSeconds": 3, "periodSeconds": 10}
    return {
        "name": NAME,
        "image": image(NAME),
        "imagePullPolicy": "IfNotPresent",
        "command": ["hubble-relay"],
        "args": ["serve"],
        "ports": [{"name": "grpc", "containerPort": PORT, "protocol": "TCP"}],
        "startupProbe": {**probe, "failureThreshold": 20, "initialDelaySeconds": 10},
        "livenessProbe": {**probe, "failureThreshold": 12},
        "readinessProbe": probe,
        "resources": requests("10m", "64Mi"),
        "securityContext": unprivileged(),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            mount("config", "/etc/hubble-relay", readOnly=True),
            mount("tls", _TLS, readOnly=True),
        ],
    }
