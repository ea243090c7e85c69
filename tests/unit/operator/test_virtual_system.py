"""Namespaces and roles of the virtual cluster (spec 20 §16.1)."""

from pergola.api.objects import JsonObject, annotations_of, labels_of, map_at, maps_at, name_of
from pergola.garden.components.virtual_system import VIRTUAL_SYSTEM
from tests.support.garden import landscape


def objects(kind: str) -> dict[str, JsonObject]:
    (managed,) = VIRTUAL_SYSTEM.objects(landscape()).managed
    return {name_of(obj): obj for obj in managed.objects if obj["kind"] == kind}


def test_the_namespace_of_gardener_outlives_the_garden() -> None:
    namespaces = objects("Namespace")
    keeps = "resources.gardener.cloud/keep-object"
    assert annotations_of(namespaces["garden"])[keeps] == "true"
    assert keeps not in annotations_of(namespaces["gardener-system-public"])


def test_aggregated_roles_have_no_own_rules() -> None:
    for role in objects("ClusterRole").values():
        assert ("aggregationRule" in role) is not ("rules" in role)


def test_every_aggregated_role_selects_a_role() -> None:
    roles = objects("ClusterRole").values()
    selectors = [
        map_at(selector, "matchLabels").items()
        for role in roles
        for selector in maps_at(role, "aggregationRule", "clusterRoleSelectors")
    ]
    for desired in selectors:
        assert any(desired <= labels_of(role).items() for role in roles)


def test_administrators_get_no_wildcard_of_the_group_with_workload_identities() -> None:
    (rule,) = (
        rule
        for rule in maps_at(objects("ClusterRole")["gardener.cloud:admin"], "rules")
        if rule["apiGroups"] == ["security.gardener.cloud"]
    )
    assert rule["resources"] == ["credentialsbindings", "workloadidentities"]


def test_viewers_of_projects_never_read_secrets() -> None:
    role = objects("ClusterRole")["gardener.cloud:system:project-viewer-aggregation"]
    assert all("secrets" not in rule["resources"] for rule in maps_at(role, "rules"))


def test_users_may_create_projects_only_if_an_administrator_binds_the_role() -> None:
    name = "gardener.cloud:system:project-creation"
    assert name in objects("ClusterRole")
    assert name not in objects("ClusterRoleBinding")


def test_a_gardenlet_with_a_bootstrap_token_may_only_request_its_certificate() -> None:
    rules = maps_at(objects("ClusterRole")["gardener.cloud:system:seed-bootstrapper"], "rules")
    assert {group for rule in rules for group in rule["apiGroups"]} == {"certificates.k8s.io"}
