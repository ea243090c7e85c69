"""Every server of webhooks can demand client certificates."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pergola.admission.serving import WebhookServer
from pergola.api.objects import JsonObject
from pergola.api.operator_config import configuration_from
from pergola.api.operator_config.v1alpha1 import API_VERSION, KIND
from pergola.extensions.options import options_from
from pergola.extensions.webhooks.serving import ExtensionWebhooks
from pergola.kube.client import Client
from pergola.operator.serving import WebhookServing
from pergola.operator.webhooks.catalog import Dependencies
from pergola.operator.webhooks.lookups import ClusterLookups
from pergola.runtime.clock import SystemClock
from pergola.runtime.metrics import Metrics
from tests.support.cluster_config import cluster_config

CA = "/etc/client-ca.crt"


def operator(client: Client, ca: str) -> WebhookServer:
    """Return the server of an operator with this authority in its configuration file."""
    webhooks: JsonObject = {"tls": {"clientCAFile": ca}}
    file: JsonObject = {"apiVersion": API_VERSION, "kind": KIND, "server": {"webhooks": webhooks}}
    dependencies = Dependencies(ClusterLookups(client), SystemClock())
    return WebhookServing(configuration_from(file).config, client, dependencies, Metrics())


def extension(client: Client, ca: str) -> WebhookServer:
    """Return the server of an extension with this authority in its options."""
    settings = options_from(None, {"webhookConfigClientCAFile": ca}, "extension").webhooks
    assert settings is not None
    return ExtensionWebhooks(client, "networking-test", [], settings, Metrics())


@pytest.mark.parametrize("server", [operator, extension])
@pytest.mark.parametrize(("ca", "expected"), [(CA, Path(CA)), ("", None)])
async def test_every_server_of_webhooks_can_demand_certificates_of_its_clients(
    server: Callable[[Client, str], WebhookServer], ca: str, expected: Path | None
) -> None:
    async with Client.connect(cluster_config()) as client:
        # The server keeps its address and files private.
        assert server(client, ca)._listening.client_ca == expected
