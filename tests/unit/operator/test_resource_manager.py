"""The two resource managers (spec 20 §13, §14)."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from pergola.api.objects import JsonObject, map_at, maps_at, name_of
from pergola.api.resource_manager_config import configuration_from
from pergola.garden.components.component import Rendered
from pergola.garden.components.resource_manager import runtime, virtual
from pergola.garden.components.resource_manager.configuration import for_runtime, for_virtual
from pergola.garden.landscape import Landscape, NodeTolerations
from pergola.garden.landscape.credentials import Credentials
from pergola.secrets_manager import ClientKubeconfig
from tests.support.garden import landscape

ONE_ZONE: JsonObject = {"spec": {"runtimeCluster": {"provider": {"zones": ["a"]}}}}


def of_kind(rendered: Rendered, kind: str) -> JsonObject:
    [found] = [obj for obj in rendered.direct if obj["kind"] == kind]
    return found


def pod(rendered: Rendered) -> JsonObject:
    return map_at(of_kind(rendered, "Deployment"), "spec", "template", "spec")


@pytest.mark.parametrize("render", [for_runtime, for_virtual])
def test_a_configuration_is_valid_and_has_no_unknown_field(
    render: Callable[[Landscape, str], JsonObject],
) -> None:
    loaded = configuration_from(render(landscape(), "gardener-resource-manager"))
    assert loaded.warnings == []


def test_the_runtime_resource_manager_only_serves_its_own_class() -> None:
    config = configuration_from(for_runtime(landscape(), "name")).config
    assert config.controllers.resource_class == "seed"
    assert config.controllers.garbage_collector.enabled
    assert config.controllers.istio_cluster_configuration.enabled


def test_namespaces_of_the_operators_configuration_get_network_policies_too() -> None:
    mine = {"matchLabels": {"team": "a"}}
    controllers = for_runtime(landscape(network_policy_selectors=(mine,)), "name")["controllers"]
    assert controllers["networkPolicy"]["namespaceSelectors"][-1] == mine


def test_tolerations_of_unreachable_nodes_are_passed_on() -> None:
    chosen = landscape(node_tolerations=NodeTolerations(not_ready=60))
    settings = for_runtime(chosen, "name")["webhooks"]["highAvailabilityConfig"]
    assert settings == {"enabled": True, "defaultNotReadyTolerationSeconds": 60}


def test_enabled_webhooks_are_registered_with_the_authority_of_the_runtime_cluster() -> None:
    rendered = runtime.render(landscape())
    mutating = of_kind(rendered, "MutatingWebhookConfiguration")
    assert [entry["name"].partition(".")[0] for entry in mutating["webhooks"]] == [
        "projected-token-mount",
        "high-availability-config",
        "pod-kube-apiserver-load-balancing",
        "pod-virtual-garden-kube-apiserver-load-balancing",
        "vpa-in-place-updates",
    ]
    assert {entry["clientConfig"]["caBundle"] for entry in mutating["webhooks"]} == {"YnVuZGxl"}
    assert of_kind(rendered, "ValidatingWebhookConfiguration")


def test_system_components_are_scheduled_only_in_a_self_hosted_shoot() -> None:
    def names(built: Landscape) -> list[str]:
        config = of_kind(runtime.render(built), "MutatingWebhookConfiguration")
        return [entry["name"].partition(".")[0] for entry in config["webhooks"]]

    assert "system-components-config" not in names(landscape())
    assert "system-components-config" in names(landscape(is_self_hosted=True))


def test_pods_are_spread_over_zones_only_if_there_are_several() -> None:
    def keys(*patches: JsonObject) -> list[str]:
        spread = maps_at(pod(runtime.render(landscape(*patches))), "topologySpreadConstraints")
        return [constraint["topologyKey"] for constraint in spread]

    assert keys() == ["kubernetes.io/hostname", "topology.kubernetes.io/zone"]
    assert keys(ONE_ZONE) == ["kubernetes.io/hostname"]


def test_the_virtual_resource_manager_has_no_controllers_for_nodes() -> None:
    config = configuration_from(for_virtual(landscape(), "name")).config
    assert not config.controllers.csr_approver.enabled
    assert not config.controllers.node_critical_components.enabled
    assert not config.webhooks.high_availability_config.enabled


def test_it_manages_the_namespaces_of_gardener_and_of_the_garden_spec() -> None:
    more: JsonObject = {"gardenerResourceManager": {"additionalTargetNamespaces": ["a", "garden"]}}
    chosen = landscape({"spec": {"virtualCluster": {"gardener": more}}})
    assert for_virtual(chosen, "name")["targetClientConnection"]["namespaces"] == [
        "garden",
        "kube-system",
        "gardener-system-shoot-issuer",
        "gardener-system-public",
        "a",
    ]


def test_it_has_no_permissions_outside_its_namespace_in_the_runtime_cluster() -> None:
    kinds = {obj["kind"] for obj in virtual.render(landscape()).direct}
    assert "Role" in kinds
    assert "ClusterRole" not in kinds


def test_the_two_autoscalers_have_different_names() -> None:
    names = [
        name_of(of_kind(each.render(landscape()), "VerticalPodAutoscaler"))
        for each in (runtime, virtual)
    ]
    assert names == [
        "gardener-resource-manager-vpa",
        "virtual-garden-gardener-resource-manager-vpa",
    ]


def test_the_certificate_of_the_bootstrap_is_valid_for_ten_minutes() -> None:
    _, credential = virtual.bootstrap_credentials(landscape())
    assert isinstance(credential.config, ClientKubeconfig)
    assert credential.config.groups == ("system:masters",)
    assert credential.options.validity == timedelta(minutes=10)


def test_only_the_bootstrap_mounts_the_bootstrap_certificate() -> None:
    built = landscape()
    with_certificate = built.with_credentials(
        Credentials(
            {**built.credentials.generated, virtual.BOOTSTRAP: built.credentials.generated["ca"]}
        )
    )
    name = built.credentials.name("ca")
    first = pod(virtual.render_bootstrap(with_certificate))
    assert name in [map_at(volume, "secret").get("secretName") for volume in first["volumes"]]
    assert virtual.render(with_certificate) == virtual.render(built)
