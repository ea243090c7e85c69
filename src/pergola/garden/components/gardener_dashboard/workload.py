"""The workload of the dashboard in the runtime cluster."""

from collections.abc import Iterator
from typing import Final

import orjson

from pergola.api.objects import JsonObject, JsonValue, name_of
from pergola.bundle import make_unique
from pergola.bundle.names import checksum
from pergola.garden.components import monitoring
from pergola.garden.components.api_server.part import (
    Part,
    mounted_config_map,
    mounted_secret,
)
from pergola.garden.components.conventions import GARDEN_SCRAPES, open_ports
from pergola.garden.components.gardener_dashboard.configuration import (
    TLS_PATH,
    configuration,
    login,
)
from pergola.garden.components.gardener_dashboard.settings import (
    METRICS_PORT,
    NAME,
    PORT,
    PROGRAM,
    dashboard_of,
)
from pergola.garden.components.gardener_program import autoscaler, budget, deployment
from pergola.garden.components.istio import EXPORTED
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.kube.yaml import dump
from pergola.manifests import (
    config_map_volume,
    env,
    from_pod,
    https_probe,
    manifest,
    port,
    requests,
    service,
    service_port,
)
from pergola.manifests.shoot_access import KUBECONFIG_PATH

CERTIFICATE: Final = f"{NAME}-server"
SESSION: Final = f"{NAME}-session-secret"

_GROUP_READABLE: Final = 0o640
_SECRETS: Final = f"/etc/{NAME}/secrets"
_CONFIG_PATH: Final = f"/etc/{NAME}/config"
_CONFIG_KEY: Final = "config.yaml"
_PUBLIC: Final = "/app/public"
_LOGIN_KEY: Final = "login-config.json"


def workload(landscape: Landscape) -> tuple[JsonObject, ...]:
    """Return the objects of the runtime cluster, without the routes.

    Raises:
        ReferenceMissing: An object that the settings name does not exist or lacks its key.
        OperatorError: The content of such an object is invalid.
    """
    config = make_unique(_config_map(landscape))
    return (
        config,
        _deployment(landscape, name_of(config)),
        budget(PROGRAM),
        _service(),
        _service_monitor(),
        autoscaler(PROGRAM, cpu="10m", memory="64Mi"),
    )


def _config_map(landscape: Landscape) -> JsonObject:
    return manifest(
        "v1",
        "ConfigMap",
        f"{NAME}-config",
        namespace=NAMESPACE,
        labels=PROGRAM.labels,
        data={
            _CONFIG_KEY: dump(configuration(landscape)),
            _LOGIN_KEY: orjson.dumps(login(landscape)).decode(),
        },
    )


def _deployment(landscape: Landscape, config: str) -> JsonObject:
    part = sum((*_own_files(landscape, config), *_named_files(landscape)), Part())
    container = {**_container(landscape), "volumeMounts": list(part.mounts)}
    return deployment(
        PROGRAM, landscape, container, part.volumes, annotations=_checksums(landscape)
    )


def _container(landscape: Landscape) -> JsonObject:
    timing = {"timeoutSeconds": 5, "successThreshold": 1, "failureThreshold": 6}
    liveness = {"tcpSocket": {"port": "https"}, "initialDelaySeconds": 15, "periodSeconds": 20}
    return {
        "image": landscape.image(NAME),
        "args": ["--optimize-for-size", "server.js"],
        "env": env(
            GARDENER_CONFIG=f"{_CONFIG_PATH}/{_CONFIG_KEY}",
            KUBECONFIG=KUBECONFIG_PATH,
            METRICS_PORT=str(METRICS_PORT),
            POD_NAME=from_pod("metadata.name"),
            POD_NAMESPACE=from_pod("metadata.namespace"),
        ),
        "ports": [port("https", PORT), port("metrics", METRICS_PORT)],
        "livenessProbe": {**liveness, **timing},
        "readinessProbe": https_probe(
            "/healthz", "https", initialDelaySeconds=5, periodSeconds=10, **timing
        ),
        "resources": requests(cpu="50m", memory="128Mi"),
    }


def _own_files(landscape: Landscape, config: str) -> Iterator[Part]:
    """Yield the mounts of generated files: session keys, configuration, certificate."""
    yield _session(landscape.credentials.name(SESSION), "sessionSecret", "")
    old = landscape.credentials.old(SESSION)
    if old is not None:
        yield _session(old.object_name, "sessionSecretPrevious", "-previous")
    yield _from_config_map(config, "config", _CONFIG_KEY, _CONFIG_PATH)
    yield _from_config_map(config, "login-config", _LOGIN_KEY, f"{_PUBLIC}/{_LOGIN_KEY}", sub=True)
    yield mounted_secret(
        f"{NAME}-tls",
        TLS_PATH,
        landscape.credentials.name(CERTIFICATE),
        mode=_GROUP_READABLE,
        read_only=True,
    )


def _session(secret: str, file: str, suffix: str) -> Part:
    volume = f"{NAME}-sessionsecret{suffix}"
    source = {
        "secretName": secret,
        "defaultMode": _GROUP_READABLE,
        "items": [{"key": "password", "path": file}],
    }
    path = f"{_SECRETS}/session/{file}"
    return Part(
        mounts=({"name": volume, "mountPath": path, "subPath": file},),
        volumes=({"name": volume, "secret": source},),
    )


def _from_config_map(config_map: str, name: str, key: str, path: str, *, sub: bool = False) -> Part:
    """Return the mount of one key, as a file in a directory or, with `sub`, as the path itself."""
    volume = f"{NAME}-{name}"
    mounted: JsonObject = {"name": volume, "mountPath": path, **({"subPath": key} if sub else {})}
    items: list[JsonValue] = [{"key": key, "path": key}]
    return Part(mounts=(mounted,), volumes=(config_map_volume(volume, config_map, items=items),))


def _named_files(landscape: Landscape) -> Iterator[Part]:
    """Yield the mounts of objects that the Garden names: OpenID and GitHub secrets, and logos."""
    settings = dashboard_of(landscape)
    if settings.oidc_config is not None:
        yield _named_secret("oidc", settings.oidc_config.secret_ref.name)
    if settings.git_hub is not None:
        yield _named_secret("github", settings.git_hub.secret_ref.name)
    if settings.assets_config_map_ref is not None:
        assets = settings.assets_config_map_ref.name
        yield mounted_config_map(f"{NAME}-assets", f"{_PUBLIC}/static/custom-assets", assets)


def _named_secret(name: str, secret: str) -> Part:
    return mounted_secret(f"{NAME}-{name}", f"{_SECRETS}/{name}", secret, mode=_GROUP_READABLE)


def _checksums(landscape: Landscape) -> dict[str, str]:
    """Return the annotation that replaces pods when the logos change."""
    reference = dashboard_of(landscape).assets_config_map_ref
    if reference is None:
        return {}
    digest = checksum(landscape.referenced("ConfigMap", reference.name))
    return {f"checksum-configmap-{reference.name}": digest}


def _service() -> JsonObject:
    return service(
        NAME,
        NAMESPACE,
        PROGRAM.labels,
        service_port("https", PORT),
        service_port("metrics", METRICS_PORT),
        labels=PROGRAM.labels,
        annotations={**EXPORTED, **open_ports(GARDEN_SCRAPES, METRICS_PORT)},
        sessionAffinity="ClientIP",
    )


def _service_monitor() -> JsonObject:
    scraped = monitoring.endpoint("metrics", targets=[monitoring.SERVICE_LABELS])
    return monitoring.service_monitor(monitoring.GARDEN, NAME, PROGRAM.labels, scraped)
