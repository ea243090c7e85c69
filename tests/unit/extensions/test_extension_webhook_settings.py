"""The URLs of webhooks in each mode, and invalid declarations."""

import pytest

from pergola.admission.review import allowed
from pergola.admission.webhook import Webhook, endpoints
from pergola.extensions.webhooks.clouds import AZURE
from pergola.extensions.webhooks.declare import WebhookError, enabled
from pergola.extensions.webhooks.network_mutator import network_mutator
from pergola.extensions.webhooks.objects_mutator import shoot_objects_mutator
from pergola.extensions.webhooks.settings import Mode, WebhookSettings
from pergola.extensions.webhooks.shoot_mutator import KUBE_PROXY_OFF, shoot_mutator
from pergola.extensions.webhooks.shoot_registration import shoot_configurations
from pergola.runtime.metrics import Metrics

NETWORK = network_mutator("provider-azure", "azure", AZURE)
SHOOT = shoot_mutator("provider-azure", [KUBE_PROXY_OFF], network="cilium")


@pytest.mark.parametrize(
    ("mode", "url", "expected"),
    [
        (
            "service",
            "",
            {
                "service": {
                    "name": "gardener-extension-x",
                    "namespace": "ext",
                    "path": "/p",
                    "port": 443,
                }
            },
        ),
        ("url", "hooks.example.org:9443", {"url": "https://hooks.example.org:9443/p"}),
        ("url", "https://hooks.example.org/", {"url": "https://hooks.example.org/p"}),
        ("url-service", "", {"url": "https://gardener-extension-x.ext:443/p"}),
    ],
)
def test_each_mode_has_its_own_url(mode: Mode, url: str, expected: dict[str, object]) -> None:
    settings = WebhookSettings(mode=mode, url=url, namespace="ext")
    assert settings.endpoint("x")("/p") == expected


def test_shoots_use_a_url_even_if_the_seed_uses_the_service() -> None:
    settings = WebhookSettings(namespace="ext", service_port=8443)
    assert settings.shoot_endpoint("x")("/p") == {"url": "https://gardener-extension-x.ext:8443/p"}


def test_the_certificate_is_for_the_service_and_the_host_of_the_url() -> None:
    hosts = WebhookSettings(mode="url", url="10.0.0.1:443", namespace="ext").hosts("x")
    assert "gardener-extension-x.ext.svc" in hosts
    assert hosts[-1] == "10.0.0.1"


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"mode": "proxy", "namespace": "ext"}, "must be one of service, url, url-service"),
        ({"mode": "url", "namespace": "ext"}, "needs --webhook-config-url"),
        ({}, "--webhook-config-namespace is not set"),
    ],
)
def test_invalid_settings_are_reported_in_one_sentence(wrong: dict[str, str], text: str) -> None:
    with pytest.raises(WebhookError, match=text):
        WebhookSettings(**wrong)  # type: ignore[arg-type] # as a command line would give them


def test_webhooks_are_disabled_by_the_first_part_of_their_name() -> None:
    assert enabled([NETWORK, SHOOT], {"network"}) == [SHOOT]
    assert list(endpoints(enabled([NETWORK, SHOOT], ()), Metrics())) == [
        "/network",
        "/webhooks/mutate",
    ]


def test_the_error_about_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(WebhookError, match="netwrok, but the webhooks are mutator, network"):
        enabled([NETWORK, SHOOT], {"netwrok"})


@pytest.mark.parametrize(
    ("other", "text"),
    [
        (NETWORK, "2 webhooks have the name network.azure.extensions.gardener.cloud"),
        (network_mutator("provider-x", "x", AZURE), "2 webhooks have the path /network"),
    ],
)
def test_names_and_paths_are_unique(other: Webhook, text: str) -> None:
    with pytest.raises(WebhookError, match=text):
        enabled([NETWORK, other], ())


def test_only_webhooks_of_shoots_are_registered_in_shoots() -> None:
    inside = shoot_objects_mutator("networking-x", "dns", [])
    endpoint = WebhookSettings(namespace="ext").shoot_endpoint("networking-x")
    webhooks = [NETWORK, inside]
    [found] = shoot_configurations("networking-x", webhooks, endpoint, b"ca")
    assert found["metadata"]["name"] == "gardener-extension-networking-x-shoot"
    assert found["metadata"]["labels"] == {
        "remediation.webhook.shoot.gardener.cloud/exclude": "true"
    }
    [entry] = found["webhooks"]
    assert entry["clientConfig"] == {
        "url": "https://gardener-extension-networking-x.ext:443/dns",
        "caBundle": "Y2E=",
    }
    assert [found] == shoot_configurations("networking-x", webhooks, endpoint, b"ca")


def test_a_webhook_declares_its_cluster() -> None:
    plain = Webhook(registration=NETWORK.registration, handler=lambda _: allowed())
    assert not plain.of_shoots
    assert plain.short_name == "network"
