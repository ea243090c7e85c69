"""The custom resources from which fluent-operator generates fluent-bit's configuration.

Filters apply in the order of their names.
"""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.garden.components.observability.opentelemetry_collector import (
    PORT as COLLECTOR_PORT,
)
from pergola.garden.components.observability.opentelemetry_collector import (
    SERVICE as COLLECTOR,
)
from pergola.garden.landscape import NAMESPACE
from pergola.manifests import manifest

API: Final = "fluentbit.fluent.io/v1alpha2"
SELECTED: Final = {"fluentbit.gardener/type": "seed"}
"""The labels that add a resource to the configuration."""
STATE: Final = "/var/fluentbit"
"""The directory on the node with fluent-bit's read positions and unsent logs."""

_RETRIES: Final = {
    "RetryEnabled": "true",
    "RetryInitialInterval": "1s",
    "RetryMaxInterval": "5m",
    "RetryMaxElapsedTime": "15m",
}
_BATCHES: Final = {
    "DQueSync": "false",
    "DQueBatchProcessorMaxQueueSize": "15000",
    "DQueBatchProcessorMaxBatchSize": "500",
    "DQueBatchProcessorExportTimeout": "15m",
    "DQueBatchProcessorExportInterval": "1s",
}


def cluster_filter(name: str, match: str, *filters: JsonObject) -> JsonObject:
    """Return a ClusterFilter for all logs whose tag matches."""
    return _resource("ClusterFilter", name, {"match": match, "filters": list(filters)})


def cluster_input(name: str, spec: JsonObject) -> JsonObject:
    """Return a ClusterInput, a source of logs."""
    return _resource("ClusterInput", name, spec)


def cluster_parser(name: str, spec: JsonObject) -> JsonObject:
    """Return a ClusterParser, which splits lines into fields."""
    return _resource("ClusterParser", name, spec)


def to_collector(name: str, match: str, **settings: str) -> JsonObject:
    """Return the ClusterOutput that sends logs whose tag matches to the garden's collector.

    Unsent logs are queued in a directory of the node and survive restarts of fluent-bit.

    Args:
        settings: Extra settings of the plugin.
    """
    lines = {
        "Name": "gardener",
        "Match": match,
        "LogLevel": "info",
        "SeedType": "otlp_grpc",
        "Endpoint": f"{COLLECTOR}.{NAMESPACE}.svc.cluster.local:{COLLECTOR_PORT}",
        "Insecure": "true",
        "Timeout": "15m",
        "HostnameValue": "${NODE_NAME}",
        **settings,
        "DQueDir": f"{STATE}/dque",
        "DQueName": name,
        **_BATCHES,
        **_RETRIES,
    }
    config = "".join(f"{key} {value}\n" for key, value in lines.items())
    return _resource("ClusterOutput", name, {"customPlugin": {"config": config}})


def _resource(kind: str, name: str, spec: JsonObject) -> JsonObject:
    return manifest(API, kind, name, labels=SELECTED, spec=spec)
