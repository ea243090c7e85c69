"""gardener-discovery-server: publishes the keys of Shoots and workload identities (spec 20 §16.7).

Cloud providers verify tokens with these keys, so the server's host name must never change.
"""

import base64
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

import orjson

from pergola.api.kinds import GARDENER_CORE
from pergola.api.objects import JsonObject, name_of
from pergola.api.operator_v1alpha1.gardener import DiscoveryServer
from pergola.bundle import make_unique
from pergola.garden.components import authorities, istio, monitoring, task_names, workload_identity
from pergola.garden.components.api_server.part import Part, mounted_secret
from pergola.garden.components.component import Component, Rendered
from pergola.garden.components.conventions import GARDEN_SCRAPES, open_ports
from pergola.garden.components.gardener_program import (
    SERVER,
    Program,
    autoscaler,
    budget,
    deployment,
    gardener_labels,
)
from pergola.garden.components.priority_classes import P200
from pergola.garden.components.virtual_access import access_secret
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.garden.landscape.credentials import Credential
from pergola.manifests import (
    READ,
    cluster_role,
    http_probe,
    manifest,
    port,
    requests,
    role,
    rule,
    service,
    service_port,
)
from pergola.manifests.shoot_access import KUBECONFIG_PATH
from pergola.secrets_manager import Certificate, Options, SigningCA

NAME: Final = "gardener-discovery-server"
PORT: Final = 10443
METRICS_PORT: Final = 8080
ISSUERS: Final = "gardener-system-shoot-issuer"
"""The namespace in the virtual cluster with Shoots' keys; gardener-apiserver creates it."""

_PROGRAM: Final = Program(
    name=NAME, labels=gardener_labels("discovery-server"), priority=P200, kind=SERVER
)
_HEALTH_PORT: Final = 8081
_CERTIFICATE: Final = f"{NAME}-tls"
_TWO_YEARS: Final = timedelta(days=730)
_OWNER_READABLE: Final = 0o400
_TLS_PATH: Final = f"/var/run/secrets/gardener.cloud/{NAME}/tls"
_IDENTITY_PATH: Final = f"/etc/{NAME}/garden/workload-identity"
_CONFIGURATION: Final = "openid-configuration.json"
_KEYS: Final = "jwks.json"
_ROLE: Final = "gardener.cloud:system:discovery-server"
_ISSUER: Final = "shoot-service-account-issuer"


def absent(landscape: Landscape) -> str | None:
    """Return why the Garden has no discovery server, or None if it has one."""
    if landscape.virtual.gardener.discovery_server is None:
        return "spec.virtualCluster.gardener.gardenerDiscoveryServer is not set"
    return None


def credentials(landscape: Landscape) -> Iterator[Credential]:
    """Yield its certificate, unless the Garden names one or there is a wildcard one."""
    settings = landscape.virtual.gardener.discovery_server
    if settings is None or settings.tls_secret_name or landscape.wildcard_certificate is not None:
        return
    hosts = (workload_identity.discovery_host(landscape),)
    config = Certificate(
        name=_CERTIFICATE, common_name=NAME, hosts=hosts, for_server=True, publish_ca=False
    )
    signed = Options(signed_by=SigningCA(authorities.GARDENER), validity=_TWO_YEARS)
    yield Credential(config, signed)


def render(landscape: Landscape) -> Rendered:
    """Return the workload, its routes and its permissions."""
    identities = make_unique(_identities(landscape))
    runtime = _PROGRAM.runtime(
        identities,
        _deployment(landscape, name_of(identities)),
        budget(_PROGRAM),
        _service(),
        _service_monitor(),
        autoscaler(_PROGRAM, cpu="10m", memory="64Mi"),
        *_exposure(landscape),
    )
    virtual = _PROGRAM.virtual(*_permissions(), _issuer(landscape))
    return Rendered(managed=(runtime, virtual), direct=(access_secret(NAME),))


def _identities(landscape: Landscape) -> JsonObject:
    """Return the Secret with the documents about workload identities that the server publishes."""
    documents = {
        _CONFIGURATION: workload_identity.openid_configuration(landscape),
        _KEYS: workload_identity.published_keys(landscape),
    }
    return manifest(
        "v1",
        "Secret",
        f"{NAME}-garden-workload-identity",
        namespace=NAMESPACE,
        labels=_PROGRAM.labels,
        type="Opaque",
        data={key: _encoded(orjson.dumps(content)) for key, content in documents.items()},
    )


def _deployment(landscape: Landscape, identities: str) -> JsonObject:
    certificate = _certificate(landscape, landscape.virtual.gardener.discovery_server)
    part = Part()
    for volume, path, secret in (
        (_CERTIFICATE, _TLS_PATH, certificate),
        ("garden-workload-identity", _IDENTITY_PATH, identities),
    ):
        part += mounted_secret(volume, path, secret, mode=_OWNER_READABLE, read_only=True)
    container = {**_container(landscape), "volumeMounts": list(part.mounts)}
    return deployment(_PROGRAM, landscape, container, part.volumes)


def _certificate(landscape: Landscape, settings: DiscoveryServer | None) -> str:
    if settings is not None and settings.tls_secret_name:
        return settings.tls_secret_name
    if landscape.wildcard_certificate is not None:
        return name_of(landscape.wildcard_certificate)
    return landscape.credentials.name(_CERTIFICATE)


def _container(landscape: Landscape) -> JsonObject:
    return {
        "image": landscape.image(NAME),
        "args": [
            f"--tls-cert-file={_TLS_PATH}/tls.crt",
            f"--tls-private-key-file={_TLS_PATH}/tls.key",
            f"--kubeconfig={KUBECONFIG_PATH}",
            f"--workload-identity-openid-configuration-file={_IDENTITY_PATH}/{_CONFIGURATION}",
            f"--workload-identity-jwks-file={_IDENTITY_PATH}/{_KEYS}",
        ],
        "ports": [
            port("https", PORT),
            port("metrics", METRICS_PORT),
            port("healthz", _HEALTH_PORT),
        ],
        "livenessProbe": _probe("/healthz", delay=15, period=20),
        "readinessProbe": _probe("/readyz", delay=5, period=10),
        "resources": requests(cpu="50m", memory="128Mi"),
    }


def _probe(path: str, delay: int, period: int) -> JsonObject:
    return http_probe(
        path,
        "healthz",
        initialDelaySeconds=delay,
        periodSeconds=period,
        timeoutSeconds=5,
        successThreshold=1,
        failureThreshold=3,
    )


def _service() -> JsonObject:
    return service(
        NAME,
        NAMESPACE,
        _PROGRAM.labels,
        service_port("https", PORT),
        service_port("metrics", METRICS_PORT),
        service_port("healthz", _HEALTH_PORT),
        labels=_PROGRAM.labels,
        annotations={**istio.EXPORTED, **open_ports(GARDEN_SCRAPES, METRICS_PORT)},
        sessionAffinity="ClientIP",
    )


def _service_monitor() -> JsonObject:
    scraped = monitoring.endpoint("metrics", targets=[monitoring.SERVICE_LABELS])
    return monitoring.service_monitor(monitoring.GARDEN, NAME, _PROGRAM.labels, scraped)


def _exposure(landscape: Landscape) -> tuple[JsonObject, ...]:
    """Return the objects that pass TLS connections from the gateway through to the server."""
    labels, hosts = _PROGRAM.labels, (workload_identity.discovery_host(landscape),)
    return (
        istio.gateway(NAME, labels, istio.tls_server(hosts)),
        istio.tls_route(NAME, labels, hosts, NAME, PORT),
        istio.destination_rule(NAME, labels, NAME),
    )


def _permissions() -> list[JsonObject]:
    account, labels = _PROGRAM.account(), _PROGRAM.labels
    everywhere = [
        rule(GARDENER_CORE, ["projects", "shoots"], READ),
        rule("", ["configmaps", "namespaces"], READ),
    ]
    keys = [rule("", ["secrets"], READ)]
    return [
        *cluster_role(_ROLE, everywhere, account, labels=labels),
        *role(_ROLE, ISSUERS, keys, account, labels=labels),
    ]


def _issuer(landscape: Landscape) -> JsonObject:
    """Return the Secret from which Gardener reads the host of Shoots' issuers."""
    host = workload_identity.discovery_host(landscape)
    return manifest(
        "v1",
        "Secret",
        _ISSUER,
        namespace=NAMESPACE,
        labels={**_PROGRAM.labels, "gardener.cloud/role": _ISSUER},
        data={"hostname": _encoded(host.encode())},
    )


def _encoded(value: bytes) -> str:
    return base64.b64encode(value).decode()


GARDENER_DISCOVERY_SERVER: Final = Component(
    name=NAME,
    deploy="Deploying Gardener Discovery Server",
    after=(task_names.GARDENER_API_SERVER_READY,),
    absent=absent,
    credentials=credentials,
    render=render,
    removable=_PROGRAM.removable(),
)
