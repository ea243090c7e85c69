"""Hubble's relay, which collects the flows that the agents of all nodes observe."""

import hashlib
from typing import Final

from pergola.api.objects import JsonObject
from pergola.kube.yaml_writer import dump
from pergola.manifests import (
    KUBE_SYSTEM,
    LINUX,
    SYSTEM_PRIORITY,
    Images,
    config_map_volume,
    mount,
    non_root,
    projected,
    requests,
    restricted,
    secret_files,
    selector,
    service_account,
    service_port,
)
from pergola.manifests.labels import SYSTEM_COMPONENT, TO_DNS
from pergola.providers.networking.cilium import ports
from pergola.providers.networking.cilium.render import hubble_certificates as certificates
from pergola.providers.networking.cilium.render.pods import (
    PART_OF,
    app,
    dual_stack_service,
    in_kube_system,
)

NAME: Final = "hubble-relay"
PORT: Final = 4245
LABELS: Final = {"k8s-app": NAME}
_CONFIG: Final = "hubble-relay-config"
_PEERS: Final = "hubble-peer"
_TLS: Final = "/var/lib/hubble-relay/tls"
_TLS_FILES: Final = {
    "tls.crt": "client.crt",
    "tls.key": "client.key",
    "ca.crt": "hubble-server-ca.crt",
}
_USER: Final = 65532


def relay(image: Images) -> list[JsonObject]:
    """Return the Deployment, its configuration, Services and NetworkPolicy."""
    text = dump(_settings())
    return [
        service_account(NAME, KUBE_SYSTEM),
        in_kube_system("v1", "ConfigMap", _CONFIG, data={"config.yaml": text}),
        _deployment(image, hashlib.sha256(text.encode()).hexdigest()),
        dual_stack_service(NAME, LABELS, service_port("grpc", 80, "grpc"), labels=app(NAME)),
        _peers(),
        _network_policy(),
    ]


def _settings() -> JsonObject:
    return {
        "cluster-name": "default",
        "peer-service": f"{_PEERS}.{KUBE_SYSTEM}.svc.cluster.local.:443",
        "listen-address": f":{PORT}",
        "gops": False,
        "tls-hubble-client-cert-file": f"{_TLS}/client.crt",
        "tls-hubble-client-key-file": f"{_TLS}/client.key",
        "tls-hubble-server-ca-files": f"{_TLS}/hubble-server-ca.crt",
        "disable-server-tls": True,
    }


def _peers() -> JsonObject:
    """Return the Service of the agent on the same node, which lists its peers."""
    return dual_stack_service(
        _PEERS,
        {"k8s-app": "cilium"},
        service_port("peer-service", 443, ports.HUBBLE),
        labels={"k8s-app": "cilium", "app.kubernetes.io/name": _PEERS, **PART_OF},
        internalTrafficPolicy="Local",
    )


def _network_policy() -> JsonObject:
    from_ui = {"podSelector": {"matchLabels": {"k8s-app": "hubble-ui"}}}
    return in_kube_system(
        "networking.k8s.io/v1",
        "NetworkPolicy",
        "gardener.cloud--allow-hubble-relay",
        annotations={
            "gardener.cloud/description": (
                "Lets hubble-relay query the agents of all nodes, and hubble-ui query hubble-relay."
            )
        },
        spec={
            "podSelector": selector(LABELS),
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
    return in_kube_system(
        "apps/v1",
        "Deployment",
        NAME,
        labels=labels,
        spec={
            "replicas": 1,
            "revisionHistoryLimit": 2,
            "selector": selector(LABELS),
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
        "securityContext": non_root(_USER, fs_group=True),
        "containers": [_container(image)],
        "volumes": [
            config_map_volume("config", _CONFIG),
            # Not optional: a relay without a certificate would not retry.
            projected("tls", secret_files(certificates.RELAY_CLIENT, _TLS_FILES), mode=0o440),
        ],
    }


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
        "resources": requests(cpu="10m", memory="150Mi"),
        "securityContext": restricted(),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            mount("config", "/etc/hubble-relay", readOnly=True),
            mount("tls", _TLS, readOnly=True),
        ],
    }
