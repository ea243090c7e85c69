"""Plutono in the garden: the server, and two sidecars that load dashboards and data sources."""

import base64
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from pergola.api.objects import JsonObject, name_of
from pergola.bundle import make_unique
from pergola.garden.components import task_names
from pergola.garden.components.component import Component, Rendered
from pergola.garden.components.conventions import TO_DNS, TO_RUNTIME_API_SERVER, to_service
from pergola.garden.components.istio import EXPORTED, refused
from pergola.garden.components.observability.conventions import (
    application,
    exposed,
    host_credentials,
    managed,
)
from pergola.garden.components.observability.plutono.dashboards.catalog import dashboards
from pergola.garden.components.observability.plutono.provisioning import (
    dashboard_providers,
    data_sources,
)
from pergola.garden.components.observability.vali import PORT as VALI_PORT
from pergola.garden.components.observability.vali import SERVICE as VALI_SERVICE
from pergola.garden.components.observability.vali import absent as absent_vali
from pergola.garden.components.priority_classes import P100
from pergola.garden.components.removal import removable
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.garden.landscape.credentials import Credential
from pergola.kube.yaml import dump
from pergola.manifests import (
    READ,
    account,
    config_map_volume,
    empty_dir,
    env,
    manifest,
    mount,
    requests,
    role,
    rule,
    selector,
    service,
    service_account,
    service_port,
)
from pergola.secrets_manager import BasicAuth, Options

NAME: Final = "plutono"
PORT: Final = 3000

_HOST: Final = "plutono-garden"
_LABELS: Final = {"component": NAME}
_ALL_LABELS: Final = {**_LABELS, "role": "monitoring"}
_POD_LABELS: Final = {
    **_LABELS,
    **application(NAME),
    **TO_DNS,
    **TO_RUNTIME_API_SERVER,
    **to_service(VALI_SERVICE, VALI_PORT),
    **to_service("prometheus-aggregate", 9090),
    **to_service("prometheus-seed", 9090),
    **to_service("prometheus-garden", 9090),
    **to_service("prometheus-longterm", 9091),
}
_ADMIN: Final = "plutono-admin"
_MONTH: Final = timedelta(days=30)
_REFRESHER: Final = "plutono-data-refresher"
_ROLE: Final = "plutono-data-refresher"
_FOUND_BY: Final = "monitoring.gardener.cloud/garden"
_STORAGE: Final = "/var/lib/plutono"
_DASHBOARDS: Final = f"{_STORAGE}/dashboards"
_PROVISIONING: Final = "/etc/plutono/provisioning"
_DATA_SOURCES: Final = f"{_PROVISIONING}/datasources"
_CONFIG: Final = "/usr/local/etc/plutono"
_CONFIG_FILE: Final = "plutono.ini"
_ADMIN_PATH: Final = "/etc/data-refresher/plutono-admin"
_UNPRIVILEGED: Final = {"allowPrivilegeEscalation": False}


def credentials(landscape: Landscape) -> Iterator[Credential]:
    """Yield the password with which sidecars trigger reloads, and the certificate of the host."""
    yield Credential(BasicAuth(_ADMIN), Options(validity=_MONTH))
    yield from host_credentials(landscape, NAME, _HOST)


def render(landscape: Landscape) -> Rendered:
    """Return Plutono with its data sources and dashboards, and its host."""
    providers = make_unique(dashboard_providers(_LABELS, _DASHBOARDS))
    config = make_unique(_config(landscape))
    objects = (
        service_account(NAME, NAMESPACE, _LABELS),
        *role(_ROLE, NAMESPACE, _rules(), account(NAME, NAMESPACE), labels=_LABELS),
        providers,
        config,
        _data_sources(landscape),
        _deployment(landscape, name_of(providers), name_of(config)),
        _service(),
        *exposed(landscape, NAME, _HOST, _LABELS, PORT, refused("admin-endpoints", "/api/admin/")),
    )
    return Rendered(managed=(managed(NAME, *objects),), direct=(_dashboards(landscape),))


def _rules() -> list[JsonObject]:
    return [rule("", ["configmaps"], READ)]


def _has_logs(landscape: Landscape) -> bool:
    return absent_vali(landscape) is None


def _dashboards(landscape: Landscape) -> JsonObject:
    """Return the ConfigMap of dashboards, which is too large for a ManagedResource's Secret."""
    files = dashboards(has_logs=_has_logs(landscape))
    return _labelled_config_map("plutono-dashboards-garden", "dashboard", files)


def _data_sources(landscape: Landscape) -> JsonObject:
    files = {"datasources.yaml": dump(data_sources(has_logs=_has_logs(landscape)))}
    return _labelled_config_map("plutono-datasources", "datasource", files)


def _labelled_config_map(name: str, kind: str, files: dict[str, str]) -> JsonObject:
    labels = {**_LABELS, f"{kind}.{_FOUND_BY}": "true"}
    return manifest("v1", "ConfigMap", name, namespace=NAMESPACE, labels=labels, data=files)


def _config(landscape: Landscape) -> JsonObject:
    admin = landscape.credentials.current(_ADMIN).data
    lines = (
        b"[auth.basic]",
        b"enabled = true",
        b"[security]",
        b"admin_user = " + admin["username"],
        b"admin_password = " + admin["password"],
    )
    return manifest(
        "v1",
        "Secret",
        "plutono-config",
        namespace=NAMESPACE,
        labels=_LABELS,
        type="Opaque",
        data={_CONFIG_FILE: base64.b64encode(b"\n".join(lines) + b"\n").decode()},
    )


def _deployment(landscape: Landscape, providers: str, config: str) -> JsonObject:
    admin = landscape.credentials.name(_ADMIN)
    pod: JsonObject = {
        "priorityClassName": P100,
        "serviceAccountName": NAME,
        "containers": [
            _server(landscape),
            _refresher(landscape, "dashboard", _DASHBOARDS, mount("storage", _STORAGE)),
            _refresher(landscape, "datasource", _DATA_SOURCES, mount("datasources", _DATA_SOURCES)),
        ],
        "volumes": [
            config_map_volume("dashboard-providers", providers),
            {"name": "config", "secret": {"secretName": config}},
            {"name": "admin-user", "secret": {"secretName": admin}},
            empty_dir("storage", sizeLimit="100Mi"),
            empty_dir("datasources"),
        ],
    }
    return manifest(
        "apps/v1",
        "Deployment",
        NAME,
        namespace=NAMESPACE,
        labels=_ALL_LABELS,
        spec={
            "replicas": 1,
            "revisionHistoryLimit": 2,
            "selector": selector(_LABELS),
            "template": {"metadata": {"labels": _POD_LABELS}, "spec": pod},
        },
    )


def _server(landscape: Landscape) -> JsonObject:
    """Return the server; users who pass the gateway can see everything but administer nothing."""
    return {
        "name": NAME,
        "image": landscape.image(NAME),
        "imagePullPolicy": "IfNotPresent",
        "env": env(
            PL_AUTH_ANONYMOUS_ENABLED="true",
            PL_USERS_VIEWERS_CAN_EDIT="true",
            PL_DATE_FORMATS_DEFAULT_TIMEZONE="UTC",
            PL_AUTH_DISABLE_LOGIN_FORM="true",
            PL_AUTH_DISABLE_SIGNOUT_MENU="true",
            PL_ALERTING_ENABLED="false",
            PL_SNAPSHOTS_EXTERNAL_ENABLED="false",
            PL_PATHS_CONFIG=f"{_CONFIG}/{_CONFIG_FILE}",
        ),
        "ports": [{"name": "web", "containerPort": PORT}],
        "resources": requests(cpu="5m", memory="45Mi"),
        "securityContext": _UNPRIVILEGED,
        "volumeMounts": [
            mount("datasources", _DATA_SOURCES),
            mount("dashboard-providers", f"{_PROVISIONING}/dashboards"),
            mount("storage", _STORAGE),
            mount("config", _CONFIG),
        ],
    }


def _refresher(landscape: Landscape, kind: str, folder: str, target: JsonObject) -> JsonObject:
    """Return a sidecar that copies labelled ConfigMaps to files and triggers their reload."""
    command = ["python", "-u", "-m", "sidecar"]
    login = [f"--req-{part}-file={_ADMIN_PATH}/{part}" for part in ("username", "password")]
    reload_url = f"http://localhost:{PORT}/api/admin/provisioning/{kind}s/reload"
    return {
        "name": f"{kind}-refresher",
        "image": landscape.image(_REFRESHER),
        "imagePullPolicy": "IfNotPresent",
        "command": command + login,
        "env": env(
            LOG_LEVEL="INFO",
            RESOURCE="configmap",
            NAMESPACE=NAMESPACE,
            FOLDER=folder,
            LABEL=f"{kind}.{_FOUND_BY}",
            LABEL_VALUE="true",
            METHOD="WATCH",
            REQ_URL=reload_url,
            REQ_METHOD="POST",
        ),
        "resources": requests(cpu="5m", memory="85M"),
        "securityContext": _UNPRIVILEGED,
        "volumeMounts": [target, mount("admin-user", _ADMIN_PATH)],
    }


def _service() -> JsonObject:
    port = service_port("web", PORT)
    return service(NAME, NAMESPACE, _LABELS, port, labels=_ALL_LABELS, annotations=EXPORTED)


PLUTONO: Final = Component(
    name=NAME,
    deploy="Deploying Plutono",
    wait="Waiting until Plutono is ready",
    after=(task_names.INGRESS_PASSWORD,),
    credentials=credentials,
    render=render,
    removable=removable("ConfigMap plutono-dashboards-garden", managed=(NAME,)),
)
