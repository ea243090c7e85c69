"""Hubble's user interface: a map of Services and their flows, in a browser."""

import hashlib
from typing import Final

from pergola.api.objects import JsonObject
from pergola.manifests import (
    KUBE_SYSTEM,
    LINUX,
    READ,
    SYSTEM_PRIORITY,
    Images,
    account,
    cluster_role,
    config_map_volume,
    empty_dir,
    env,
    mount,
    non_root,
    port,
    requests,
    restricted,
    rule,
    selector,
    service_account,
    service_port,
)
from pergola.manifests.labels import SYSTEM_COMPONENT, TO_API_SERVER, TO_DNS
from pergola.providers.networking.cilium.render import hubble_relay
from pergola.providers.networking.cilium.render.pods import (
    PART_OF,
    app,
    dual_stack_service,
    in_kube_system,
)
from pergola.providers.networking.cilium.values import Values

NAME: Final = "hubble-ui"
LABELS: Final = {"k8s-app": NAME}
CREDENTIALS: Final = "hubble-ui-basic-auth"
"""A Secret with a key `auth`, which users create; until then the Ingress refuses everyone."""

_CONFIG: Final = "hubble-ui-nginx"
_WEB_PORT: Final = 8081
_BACKEND_PORT: Final = 8090
_USER: Final = 1001

# A single page that routes unknown paths itself and queries its own server.
_NGINX: Final = f"""\
server {{
  listen {_WEB_PORT} default_server;
  listen [::]:{_WEB_PORT} default_server;
  root /app;

  location = /healthz {{
    access_log off;
    default_type text/plain;
    return 200 "well";
  }}
  location /api/ {{
    proxy_pass http://127.0.0.1:{_BACKEND_PORT};
    proxy_http_version 1.1;
    proxy_read_timeout 1h;
    proxy_buffering off;
    proxy_set_header Host $host;
  }}
  location / {{
    try_files $uri /index.html;
  }}
}}
"""


def user_interface(values: Values, image: Images) -> list[JsonObject]:
    """Return the Deployment, its configuration, identity, Service, Ingress and NetworkPolicy."""
    rules = [
        rule("", ["namespaces", "nodes", "pods", "services", "endpoints"], READ),
        rule("networking.k8s.io", ["networkpolicies"], READ),
        rule("apiextensions.k8s.io", ["customresourcedefinitions"], READ),
        rule("cilium.io", ["ciliumendpoints", "ciliumnetworkpolicies"], READ),
        rule("cilium.io", ["ciliumclusterwidenetworkpolicies"], READ),
    ]
    return [
        service_account(NAME, KUBE_SYSTEM),
        *cluster_role(NAME, rules, account(NAME, KUBE_SYSTEM), labels=PART_OF),
        in_kube_system("v1", "ConfigMap", _CONFIG, data={"nginx.conf": _NGINX}),
        _deployment(image),
        dual_stack_service(NAME, LABELS, service_port("http", 80, "http"), labels=app(NAME)),
        _ingress(values),
        _network_policy(),
    ]


def _ingress(values: Values) -> JsonObject:
    backend = {"service": {"name": NAME, "port": {"name": "http"}}}
    path = {"path": "/", "pathType": "Prefix", "backend": backend}
    rule: JsonObject = {"http": {"paths": [path]}}
    if values.ingress_domain:
        rule["host"] = f"{NAME}.{values.ingress_domain}"
    return in_kube_system(
        "networking.k8s.io/v1",
        "Ingress",
        NAME,
        labels=app(NAME),
        # Flows reveal the communication of all workloads, so protect them by a password.
        annotations={
            "nginx.ingress.kubernetes.io/auth-type": "basic",
            "nginx.ingress.kubernetes.io/auth-secret": CREDENTIALS,
            "nginx.ingress.kubernetes.io/auth-realm": "Hubble",
        },
        spec={"ingressClassName": "nginx", "rules": [rule]},
    )


def _network_policy() -> JsonObject:
    to_relay = {"podSelector": selector(hubble_relay.LABELS)}
    return in_kube_system(
        "networking.k8s.io/v1",
        "NetworkPolicy",
        "gardener.cloud--allow-hubble-ui",
        annotations={
            "gardener.cloud/description": (
                "Lets pods of kube-system open hubble-ui, and hubble-ui query hubble-relay."
            )
        },
        spec={
            "podSelector": selector(LABELS),
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [
                {
                    "from": [{"podSelector": {}}],
                    "ports": [{"port": _WEB_PORT, "protocol": "TCP"}],
                }
            ],
            "egress": [
                {
                    "to": [to_relay],
                    "ports": [{"port": hubble_relay.PORT, "protocol": "TCP"}],
                }
            ],
        },
    )


def _deployment(image: Images) -> JsonObject:
    labels = {**app(NAME), **SYSTEM_COMPONENT}
    checksum = hashlib.sha256(_NGINX.encode()).hexdigest()
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
                    "labels": {**labels, **TO_API_SERVER, **TO_DNS},
                    "annotations": {"checksum/configmap-hubble-ui": checksum},
                },
                "spec": _pod(image),
            },
        },
    )


def _pod(image: Images) -> JsonObject:
    return {
        "priorityClassName": SYSTEM_PRIORITY,
        "serviceAccountName": NAME,
        "automountServiceAccountToken": True,
        "nodeSelector": LINUX,
        "securityContext": non_root(_USER, fs_group=True),
        "containers": [_frontend(image), _backend(image)],
        "volumes": [config_map_volume("nginx", _CONFIG), empty_dir("tmp")],
    }


def _frontend(image: Images) -> JsonObject:
    probe: JsonObject = {"httpGet": {"path": "/healthz", "port": "http"}}
    return {
        "name": "frontend",
        "image": image("hubble-ui"),
        "imagePullPolicy": "IfNotPresent",
        "ports": [port("http", _WEB_PORT)],
        "livenessProbe": probe,
        "readinessProbe": probe,
        "resources": requests(cpu="10m", memory="64Mi"),
        "securityContext": restricted(),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            mount("nginx", "/etc/nginx/conf.d/default.conf", subPath="nginx.conf", readOnly=True),
            mount("tmp", "/tmp"),  # noqa: S108 - in the container
        ],
    }


def _backend(image: Images) -> JsonObject:
    return {
        "name": "backend",
        "image": image("hubble-ui-backend"),
        "imagePullPolicy": "IfNotPresent",
        "env": env(EVENTS_SERVER_PORT=str(_BACKEND_PORT), FLOWS_API_ADDR=f"{hubble_relay.NAME}:80"),
        "ports": [port("grpc", _BACKEND_PORT)],
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "grpc"}},
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": "grpc"}},
        "resources": requests(cpu="10m", memory="64Mi"),
        "securityContext": restricted(),
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
