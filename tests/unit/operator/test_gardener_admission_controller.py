"""gardener-admission-controller (spec 20 §16.3)."""

import pytest

from pergola.api.objects import JsonObject, annotations_of, map_at, maps_at, name_of
from pergola.garden.components.component import Target
from pergola.garden.components.gardener_admission_controller import (
    GARDENER_ADMISSION_CONTROLLER,
    configuration,
)
from tests.support.garden import landscape

LIMITS: JsonObject = {
    "limits": [
        {
            "apiGroups": ["core.gardener.cloud"],
            "apiVersions": ["*"],
            "resources": ["shoots"],
            "size": "100k",
        }
    ],
    "unrestrictedSubjects": [{"kind": "User", "name": "admin"}],
    "operationMode": "log",
}


def limited() -> JsonObject:
    settings = {"gardenerAdmissionController": {"resourceAdmissionConfiguration": LIMITS}}
    return {"spec": {"virtualCluster": {"gardener": settings}}}


def webhooks(*patches: JsonObject) -> dict[str, JsonObject]:
    rendered = GARDENER_ADMISSION_CONTROLLER.objects(landscape(*patches))
    return {
        str(webhook["name"]): webhook
        for managed in rendered.managed
        for obj in managed.objects
        for webhook in maps_at(obj, "webhooks")
    }


def test_sizes_are_checked_only_if_the_garden_limits_them() -> None:
    name = "validate-resource-size.gardener.cloud"
    assert name not in webhooks()
    (rule,) = maps_at(webhooks(limited())[name], "rules")
    assert rule == {
        "operations": ["CREATE", "UPDATE"],
        "apiGroups": ["core.gardener.cloud"],
        "apiVersions": ["*"],
        "resources": ["shoots"],
    }


def test_size_limits_are_passed_to_the_program() -> None:
    server = map_at(configuration(landscape(limited())), "server")
    assert server["resourceAdmissionConfiguration"] == LIMITS
    assert "resourceAdmissionConfiguration" not in map_at(configuration(landscape()), "server")


def test_the_api_server_reaches_every_webhook_through_the_runtime_cluster() -> None:
    for webhook in webhooks(limited()).values():
        client = map_at(webhook, "clientConfig")
        assert str(client["url"]).startswith("https://gardener-admission-controller.garden/")
        assert "service" not in client


def test_webhooks_of_an_older_version_exclude_resources_that_it_does_not_know() -> None:
    mutated = []
    for version in ("v1.130.0", "v1.150.0"):
        rendered = GARDENER_ADMISSION_CONTROLLER.objects(landscape(gardener_version=version))
        (obj,) = (
            obj
            for managed in rendered.managed
            for obj in managed.objects
            if obj["kind"] == "MutatingWebhookConfiguration"
        )
        rules = maps_at(maps_at(obj, "webhooks")[0], "rules")
        mutated.append([rule["resources"] for rule in rules])
    assert mutated == [[["secrets"]], [["secrets"], ["internalsecrets"]]]


def test_every_webhook_fails_closed_and_in_time() -> None:
    for webhook in webhooks(limited()).values():
        assert (webhook["failurePolicy"], webhook["timeoutSeconds"]) == ("Fail", 10)


def test_its_certificate_is_signed_by_the_new_authority_at_once() -> None:
    (credential,) = GARDENER_ADMISSION_CONTROLLER.credentials(landscape())
    signed_by = credential.options.signed_by
    assert signed_by is not None
    assert (signed_by.name, signed_by.use.name) == ("ca-gardener", "CURRENT")


def test_webhooks_are_open_to_api_servers_and_metrics_to_prometheus() -> None:
    rendered = GARDENER_ADMISSION_CONTROLLER.objects(landscape())
    (service,) = (
        obj
        for managed in rendered.managed
        if managed.target is Target.RUNTIME
        for obj in managed.objects
        if obj["kind"] == "Service"
    )
    prefix = "networking.resources.gardener.cloud/from-all"
    assert annotations_of(service) == {
        f"{prefix}-garden-scrape-targets-allowed-ports": '[{"protocol":"TCP","port":2723}]',
        f"{prefix}-webhook-targets-allowed-ports": '[{"protocol":"TCP","port":2719}]',
    }
    assert name_of(service) == "gardener-admission-controller"


@pytest.mark.parametrize(
    ("version", "distribution"), [("1.33.4", "PreferClose"), ("1.34.0", "PreferSameZone")]
)
def test_clients_prefer_their_own_zone_if_the_garden_enables_it(
    version: str, distribution: str
) -> None:
    patch: JsonObject = {
        "spec": {
            "runtimeCluster": {"settings": {"topologyAwareRouting": {"enabled": True}}},
            "virtualCluster": {"controlPlane": {"highAvailability": {}}},
        }
    }
    distributions = [
        map_at(obj, "spec").get("trafficDistribution")
        for of in (landscape(), landscape(patch, runtime_version=version))
        for managed in GARDENER_ADMISSION_CONTROLLER.objects(of).managed
        for obj in managed.objects
        if obj["kind"] == "Service"
    ]
    assert distributions == [None, distribution]
