"""The server that protects hosts of the garden with a password (spec 20 §12.3, §16.8).

The ingress gateway makes it authorize every request to such a host. It reads a host's password from
the file named after the first label of the host.
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from pergola.api.kinds import ENVOY_FILTER
from pergola.api.objects import JsonObject
from pergola.garden.components import authorities, istio
from pergola.garden.components.component import Component, Managed, Rendered
from pergola.garden.components.conventions import open_to_namespaces
from pergola.garden.components.observability.alertmanager import ALERTMANAGER
from pergola.garden.components.observability.conventions import CREDENTIAL, host
from pergola.garden.components.observability.plutono.component import PLUTONO
from pergola.garden.components.observability.prometheus_garden.component import PROMETHEUS_GARDEN
from pergola.garden.components.observability.prometheus_longterm import (
    PROMETHEUS_LONGTERM,
)
from pergola.garden.components.priority_classes import P100
from pergola.garden.components.service_mesh.gateway import LISTENER
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.garden.landscape.credentials import Credential
from pergola.manifests import (
    manifest,
    mount,
    non_root,
    requests,
    restricted,
    selector,
    service,
    service_port,
    target_reference,
    vertical_pod_autoscaler,
)
from pergola.secrets_manager import Certificate, Options, SigningCA

NAME: Final = istio.BASIC_AUTH_SERVER
PORT: Final = 10000
HOSTS: Final = ("alertmanager-garden", "plutono-garden", "prometheus-garden", "prometheus-longterm")
"""The first DNS labels of all hosts that require a password."""

_IMAGE: Final = "istio-basic-auth-server"
_LABELS: Final = {"app": NAME}
_USER: Final = 65532
_VALIDITY: Final = timedelta(days=15)
_TLS_VOLUME: Final = "tls-server-certificate"
_SECRETS: Final = "secrets"
_TYPE: Final = "type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthz"


def credentials(landscape: Landscape) -> Iterator[Credential]:
    """Yield the certificate of the server."""
    del landscape
    hosts = authorities.service_hosts(NAME, NAMESPACE)
    config = Certificate(
        name=NAME, common_name=istio.service_host(NAME), hosts=hosts, for_server=True
    )
    options = Options(signed_by=SigningCA(authorities.BASIC_AUTH), validity=_VALIDITY)
    yield Credential(config, options)


def render(landscape: Landscape) -> Rendered:
    """Return the server, and the filter through which the gateway calls it."""
    bundle = landscape.credentials.bundle(authorities.BASIC_AUTH)
    authority = istio.authority(bundle.object_name, _LABELS, bundle)
    tls = istio.verified(authority["metadata"]["name"], istio.service_host(NAME))
    objects = (
        _deployment(landscape),
        _service(),
        istio.spreading_rule(NAME, _LABELS, NAME, tls),
        authority,
        _filter(landscape),
        vertical_pod_autoscaler(
            NAME, NAMESPACE, target_reference("Deployment", NAME), _IMAGE, labels=_LABELS
        ),
    )
    return Rendered(managed=(Managed(name=NAME, objects=objects),))


def _service() -> JsonObject:
    ingress = {"matchLabels": {"gardener.cloud/role": "istio-ingress"}}
    return service(
        NAME,
        NAMESPACE,
        _LABELS,
        service_port("grpc", PORT),
        annotations={**istio.EXPORTED, **open_to_namespaces(ingress)},
    )


def _deployment(landscape: Landscape) -> JsonObject:
    pod = {
        "priorityClassName": P100,
        "automountServiceAccountToken": False,
        "securityContext": non_root(_USER, fs_group=True),
        "containers": [_container(landscape)],
        "volumes": _volumes(landscape),
    }
    return manifest(
        "apps/v1",
        "Deployment",
        NAME,
        namespace=NAMESPACE,
        labels=_LABELS,
        spec={
            "replicas": 1,
            "revisionHistoryLimit": 2,
            "selector": selector(_LABELS),
            "template": {"metadata": {"labels": _LABELS}, "spec": pod},
        },
    )


def _container(landscape: Landscape) -> JsonObject:
    probe = {
        "tcpSocket": {"port": PORT},
        "failureThreshold": 2,
        "periodSeconds": 10,
        "successThreshold": 1,
        "timeoutSeconds": 5,
    }
    return {
        "name": _IMAGE,
        "image": landscape.image(_IMAGE),
        "imagePullPolicy": "IfNotPresent",
        "args": ["--grpc-reflection"],
        "ports": [{"name": "grpc", "containerPort": PORT}],
        "livenessProbe": probe,
        "readinessProbe": probe,
        "resources": requests(cpu="5m", memory="16Mi"),
        "securityContext": restricted(),
        "volumeMounts": [
            mount(_TLS_VOLUME, "/tls", readOnly=True),
            # One mount per file: the server rejects a directory that contains anything else.
            *(mount(_SECRETS, f"/secrets/{name}", subPath=name, readOnly=True) for name in HOSTS),
        ],
    }


def _volumes(landscape: Landscape) -> list[JsonObject]:
    files = [{"key": "auth", "path": name} for name in HOSTS]
    return [
        {"name": _TLS_VOLUME, "secret": {"secretName": landscape.credentials.name(NAME)}},
        {
            "name": _SECRETS,
            "secret": {"secretName": landscape.credentials.name(CREDENTIAL), "items": files},
        },
    ]


def _filter(landscape: Landscape) -> JsonObject:
    """Return the EnvoyFilter that makes the server authorize requests to these hosts only."""
    server = f"outbound|{PORT}||{istio.service_host(NAME)}"
    config: JsonObject = {
        "@type": _TYPE,
        "transport_api_version": "V3",
        "grpc_service": {"timeout": "2s", "envoy_grpc": {"cluster_name": server}},
    }
    asked = [_patch(host(landscape, name), config) for name in HOSTS]
    return manifest(
        ENVOY_FILTER.api_version,
        ENVOY_FILTER.kind,
        f"{NAMESPACE}-{NAME}",
        namespace=istio.INGRESS_NAMESPACE,
        spec={"workloadSelector": {"labels": istio.INGRESS_PODS}, "configPatches": asked},
    )


def _patch(name: str, config: JsonObject) -> JsonObject:
    manager = {"name": "envoy.filters.network.http_connection_manager"}
    chain = {"filter": manager, "sni": name}
    return {
        "applyTo": "HTTP_FILTER",
        "match": {
            "context": "GATEWAY",
            "listener": {"portNumber": LISTENER, "filterChain": chain},
        },
        "patch": {
            "operation": "INSERT_BEFORE",
            "filterClass": "AUTHZ",
            "value": {"name": "envoy.filters.http.ext_authz", "typed_config": config},
        },
    }


BASIC_AUTH_SERVER: Final = Component(
    name=NAME,
    deploy="Deploying istio-basic-auth-server",
    after=(
        ALERTMANAGER.ready,
        PROMETHEUS_GARDEN.ready,
        PROMETHEUS_LONGTERM.ready,
        PLUTONO.ready,
    ),
    credentials=credentials,
    render=render,
    limit=120.0,
)
