"""blackbox-exporter in the garden."""

from typing import Final

from pergola.api.objects import JsonObject, name_of
from pergola.bundle import make_unique
from pergola.garden.components import authorities
from pergola.garden.components.component import Component, Rendered
from pergola.garden.components.conventions import (
    GARDEN_SCRAPES,
    TO_DNS,
    TO_PRIVATE_NETWORKS,
    TO_PUBLIC_NETWORKS,
    open_ports,
    to_service,
)
from pergola.garden.components.monitoring import ACCESS
from pergola.garden.components.observability.blackbox_exporter.probes import (
    ACCESS_PATH,
    BUNDLE,
    CA_PATH,
    NAME,
    PORT,
    modules,
    probes,
    scrape,
)
from pergola.garden.components.observability.conventions import managed
from pergola.garden.components.observability.prometheus_garden.component import (
    DEPLOY as PROMETHEUS_DEPLOYED,
)
from pergola.garden.components.priority_classes import P100
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.kube.yaml import dump
from pergola.manifests import (
    RUNTIME_DEFAULT,
    config_map_volume,
    disruption_budget,
    manifest,
    mount,
    port,
    projected,
    requests,
    secret_files,
    selector,
    service,
    service_account,
    target_reference,
    vertical_pod_autoscaler,
)
from pergola.manifests.labels import HIGH_AVAILABILITY

_LABELS: Final = {"app": NAME, "gardener.cloud/role": "monitoring"}
_PODS: Final = {"app": NAME}
_ORIGIN: Final = {"origin": "gardener"}
_POD_LABELS: Final = {
    **_LABELS,
    **_ORIGIN,
    **TO_DNS,
    **TO_PUBLIC_NETWORKS,
    **TO_PRIVATE_NETWORKS,
    **to_service("gardener-apiserver", 8443),
    **to_service("gardener-discovery-server", 8081),
    **to_service("all-istio-ingresses-istio-ingressgateway", 9443),
}
_CONFIG_VOLUME: Final = "blackbox-exporter-config"
_CONFIG_PATH: Final = "/etc/blackbox_exporter"
_FILE: Final = "blackbox.yaml"
_ACCESS_VOLUME: Final = "cluster-access"
_CA_VOLUME: Final = "gardener-ca"
_READABLE: Final = 0o644
_USER: Final = 65534


def render(landscape: Landscape) -> Rendered:
    """Return the exporter, and the scrapes through which Prometheus runs its probes."""
    config = make_unique(_config_map(landscape))
    objects = (
        service_account(NAME, NAMESPACE, {**_LABELS, **_ORIGIN}),
        config,
        _deployment(landscape, name_of(config)),
        _service(),
        disruption_budget(NAME, NAMESPACE, _PODS, _LABELS),
        _autoscaler(),
        *(scrape(probe) for probe in probes(landscape)),
    )
    return Rendered(managed=(managed(NAME, *objects),))


def _config_map(landscape: Landscape) -> JsonObject:
    return manifest(
        "v1",
        "ConfigMap",
        _CONFIG_VOLUME,
        namespace=NAMESPACE,
        labels={"app": "prometheus", "role": "monitoring"},
        data={_FILE: dump({"modules": modules(landscape)})},
    )


def _deployment(landscape: Landscape, config: str) -> JsonObject:
    return manifest(
        "apps/v1",
        "Deployment",
        NAME,
        namespace=NAMESPACE,
        labels={**_LABELS, **_ORIGIN, HIGH_AVAILABILITY: "server"},
        spec={
            "replicas": 1,
            "revisionHistoryLimit": 2,
            "selector": selector(_PODS),
            "template": {"metadata": {"labels": _POD_LABELS}, "spec": _pod(landscape, config)},
        },
    )


def _pod(landscape: Landscape, config: str) -> JsonObject:
    return {
        "priorityClassName": P100,
        "serviceAccountName": NAME,
        "dnsConfig": {"options": [{"name": "ndots", "value": "3"}]},
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "fsGroup": _USER,
            "supplementalGroups": [1],
            "seccompProfile": RUNTIME_DEFAULT,
        },
        "containers": [_container(landscape)],
        "volumes": _volumes(landscape, config),
    }


def _container(landscape: Landscape) -> JsonObject:
    return {
        "name": NAME,
        "image": landscape.image(NAME),
        "imagePullPolicy": "IfNotPresent",
        "args": [f"--config.file={_CONFIG_PATH}/{_FILE}", "--log.level=debug"],
        "ports": [port("probe", PORT)],
        "resources": requests(memory="15M"),
        "securityContext": {"allowPrivilegeEscalation": False},
        "volumeMounts": [
            mount(_CONFIG_VOLUME, _CONFIG_PATH),
            mount(_ACCESS_VOLUME, ACCESS_PATH),
            mount(_CA_VOLUME, CA_PATH),
        ],
    }


def _volumes(landscape: Landscape, config: str) -> list[JsonObject]:
    cluster = landscape.credentials.bundle_name(authorities.CLUSTER)
    gardener = landscape.credentials.bundle_name(authorities.GARDENER)
    return [
        config_map_volume(_CONFIG_VOLUME, config),
        projected(
            _ACCESS_VOLUME,
            secret_files(cluster, {BUNDLE: BUNDLE}),
            secret_files(ACCESS, {"token": "token"}),
            mode=_READABLE,
        ),
        {"name": _CA_VOLUME, "secret": {"secretName": gardener}},
    ]


def _service() -> JsonObject:
    opened = open_ports(GARDEN_SCRAPES, PORT)
    probe: JsonObject = {"name": "probe", "port": PORT, "protocol": "TCP"}
    return service(NAME, NAMESPACE, _PODS, probe, labels=_PODS, annotations=opened)


def _autoscaler() -> JsonObject:
    target = target_reference("Deployment", NAME)
    return vertical_pod_autoscaler(NAME, NAMESPACE, target, NAME, resources=["memory"])


BLACKBOX_EXPORTER: Final = Component(
    name=NAME,
    deploy="Deploying blackbox-exporter",
    after=("Waiting until Kubernetes API server rolled out", PROMETHEUS_DEPLOYED),
    render=render,
)
