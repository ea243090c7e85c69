"""The builders of Kubernetes objects."""

import pergola.manifests
from pergola.manifests import (
    account,
    capable,
    cluster_role,
    disruption_budget,
    env,
    from_pod,
    manifest,
    restricted,
    role,
    rule,
    secret_files,
    service,
    service_port,
    token_mount,
    token_volume,
)


def test_an_object_without_a_namespace_is_cluster_scoped() -> None:
    assert manifest("v1", "Namespace", "web", labels={}) == {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "web"},
    }


def test_environment_variables_are_values_sources_or_left_out() -> None:
    assert env(LEVEL="info", NODE=from_pod("spec.nodeName"), PROXY=None) == [
        {"name": "LEVEL", "value": "info"},
        {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
    ]


def test_a_role_and_its_binding_have_one_name() -> None:
    subject = account("web", "shop")
    rules = [rule("", ["secrets"], ["get"], ["token"])]

    made, binding = role("reader", "shop", rules, subject)

    assert made["metadata"] == binding["metadata"] == {"name": "reader", "namespace": "shop"}
    assert binding["roleRef"]["kind"] == made["kind"] == "Role"
    assert binding["subjects"] == [subject]
    assert made["rules"][0]["resourceNames"] == ["token"]
    assert all("namespace" not in obj["metadata"] for obj in cluster_role("reader", rules))


def test_other_spec_fields_do_not_replace_selector_and_ports_of_a_service() -> None:
    made = service("web", "shop", {"app": "web"}, service_port("http", 80), clusterIP="None")

    assert made["spec"] == {
        "type": "ClusterIP",
        "clusterIP": "None",
        "selector": {"app": "web"},
        "ports": [{"name": "http", "port": 80, "protocol": "TCP", "targetPort": 80}],
    }


def test_a_disruption_budget_selects_pods_with_its_labels() -> None:
    made = disruption_budget("web", "shop", {"app": "web"})

    assert made["metadata"]["labels"] == {"app": "web"}
    assert made["spec"]["selector"] == {"matchLabels": {"app": "web"}}


def test_all_privileges_are_dropped_unless_requested() -> None:
    for context in (restricted(), capable("NET_ADMIN")):
        assert context["allowPrivilegeEscalation"] is False
        assert context["capabilities"]["drop"] == ["ALL"]
    assert "allowPrivilegeEscalation" not in capable("SYS_ADMIN", escalates=True)


def test_a_token_is_mounted_where_client_libraries_look_for_it() -> None:
    assert token_mount()["name"] == token_volume()["name"]
    assert token_mount()["mountPath"] == "/var/run/secrets/kubernetes.io/serviceaccount"


def test_a_secret_is_required_unless_it_is_optional() -> None:
    assert "optional" not in secret_files("certs", {"tls.crt": "server.crt"})["secret"]
    assert secret_files("certs", {}, optional=True)["secret"]["optional"] is True


def test_the_table_of_contents_is_sorted_and_complete() -> None:
    names = pergola.manifests.__all__

    assert names == sorted(names, key=lambda name: (not name.isupper(), name[0].islower(), name))
    assert all(hasattr(pergola.manifests, name) for name in names)
