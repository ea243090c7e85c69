"""Plutono's configuration files for data sources and dashboards."""

from collections.abc import Mapping

from pergola.api.objects import JsonObject
from pergola.garden.components.observability.plutono.dashboards.panels import (
    GARDEN,
    LOGS,
    LONGTERM,
)
from pergola.garden.components.observability.vali import PORT as VALI_PORT
from pergola.garden.components.observability.vali import SERVICE as VALI_SERVICE
from pergola.garden.landscape import NAMESPACE
from pergola.kube.yaml import dump
from pergola.manifests import manifest


def data_sources(*, has_logs: bool) -> JsonObject:
    """Return the configuration file of data sources.

    Args:
        has_logs: Whether Vali keeps logs.
    """
    garden = _source(GARDEN, f"http://{GARDEN}:80", isDefault=True)
    sources = [garden, _source(LONGTERM, f"http://{LONGTERM}:81", isDefault=False)]
    if has_logs:
        url = f"http://{VALI_SERVICE}.{NAMESPACE}.svc:{VALI_PORT}"
        settings = {"maxLines": "5000"}
        sources.append({**_source(LOGS, url), "type": "vali", "jsonData": settings})
    graphite = {"name": "Graphite", "orgId": 1}
    return {"apiVersion": 1, "deleteDatasources": [graphite], "datasources": sources}


def _source(name: str, url: str, **settings: bool) -> JsonObject:
    return {
        "name": name,
        "type": "prometheus",
        "access": "proxy",
        "url": url,
        "basicAuth": False,
        "version": 1,
        "editable": False,
        "jsonData": {"timeInterval": "1m"},
        **settings,
    }


def dashboard_providers(labels: Mapping[str, str], folder: str) -> JsonObject:
    """Return the ConfigMap that names the directory with dashboards."""
    provider: JsonObject = {
        "name": "default",
        "orgId": 1,
        "folder": "",
        "type": "file",
        "disableDeletion": False,
        "editable": False,
        "options": {"path": folder},
    }
    return manifest(
        "v1",
        "ConfigMap",
        "plutono-dashboard-providers",
        namespace=NAMESPACE,
        labels=labels,
        data={"default.yaml": dump({"apiVersion": 1, "providers": [provider]})},
    )
