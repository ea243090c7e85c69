"""The EnvoyFilters for a namespace's DestinationRules: spec 11 §7.3."""

from typing import Any

import pytest

from pergola.api.objects import JsonObject, Key
from pergola.resource_manager.controllers.istio_cluster_configuration.desired import (
    envoy_filters,
    filter_name,
    source_of,
)
from pergola.resource_manager.controllers.istio_cluster_configuration.seen import (
    SeenNamespace,
    digest,
    keep_filter,
    keep_namespace,
    keep_rule,
    keep_service,
    service_of,
)

HTTP2 = {
    "http2_protocol_options": {
        "initial_stream_window_size": 65536,
        "initial_connection_window_size": 1048576,
    }
}
OPTIONS = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
NAMESPACES = {
    "shoot": SeenNamespace("uid-of-shoot", is_ingress=False),
    "ingress-a": SeenNamespace("1", is_ingress=True),
    "ingress-b": SeenNamespace("2", is_ingress=True),
}


def rule(host: str = "api", policy: JsonObject | None = None, **spec: object) -> JsonObject:
    """Return a DestinationRule of the namespace shoot, exported to all."""
    spec = {"host": host, "exportTo": ["*"], "trafficPolicy": policy or {}, **spec}
    return {"metadata": {"name": "rule", "namespace": "shoot"}, "spec": spec}


def service(*ports: JsonObject, exported: str = "*", namespace: str = "shoot") -> JsonObject:
    """Return a Service, exported to all."""
    annotations = {"networking.istio.io/exportTo": exported}
    metadata = {"name": "api", "namespace": namespace, "annotations": annotations}
    return {"metadata": metadata, "spec": {"ports": [*ports] or [{"port": 443}]}}


def http(**settings: object) -> JsonObject:
    """Return a traffic policy with HTTP settings."""
    return {"connectionPool": {"http": settings}}


def filters(
    *rules: JsonObject, services: list[JsonObject] | None = None
) -> dict[str, list[dict[str, Any]]]:
    """Return the patches that each ingress namespace gets."""
    found = envoy_filters(
        "shoot",
        {f"{number}": keep_rule(obj) for number, obj in enumerate(rules)},
        {Key.of(obj): keep_service(obj) for obj in ([service()] if services is None else services)},
        NAMESPACES,
    )
    return {name: obj["spec"]["configPatches"] for name, obj in found.items()}


def values(*ports: JsonObject, policy: JsonObject | None = None) -> dict[str, dict[str, Any]]:
    """Return the patched values in ingress-a, by the name of the cluster."""
    patches = filters(rule(policy=policy), services=[service(*ports)])["ingress-a"]
    return {p["match"]["cluster"]["name"]: p["patch"]["value"] for p in patches}


def protocol(port: JsonObject, policy: JsonObject | None = None) -> str:
    """Return the field in which a port gets the options of HTTP/2; empty if it gets none."""
    (value,) = values(port, policy=policy).values()
    options = value.get("typed_extension_protocol_options", {}).get(OPTIONS, {})
    return next((field for field in options if field.endswith("_config")), "")


def test_an_http2_port_gets_an_envoy_filter() -> None:
    rules = {"rule": keep_rule(rule())}
    services = {Key("shoot", "api"): keep_service(service({"port": 443, "name": "http2-api"}))}
    found = envoy_filters("shoot", rules, services, NAMESPACES)
    assert set(found) == {"ingress-a", "ingress-b"}
    assert found["ingress-a"] == {
        "apiVersion": "networking.istio.io/v1alpha3",
        "kind": "EnvoyFilter",
        "metadata": {
            "name": "shoot-cluster-configuration",
            "namespace": "ingress-a",
            "labels": {"resources.gardener.cloud/managed-by": "istio-cluster-configuration"},
            "ownerReferences": [
                {
                    "apiVersion": "v1",
                    "kind": "Namespace",
                    "name": "shoot",
                    "uid": "uid-of-shoot",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "configPatches": [
                {
                    "applyTo": "CLUSTER",
                    "match": {
                        "context": "GATEWAY",
                        "cluster": {"name": "outbound|443||api.shoot.svc.cluster.local"},
                    },
                    "patch": {
                        "operation": "MERGE",
                        "value": {
                            "per_connection_buffer_limit_bytes": 32768,
                            "typed_extension_protocol_options": {
                                OPTIONS: {
                                    "@type": f"type.googleapis.com/{OPTIONS}",
                                    "common_http_protocol_options": {
                                        "max_connection_duration": "86400s"
                                    },
                                    "explicit_http_config": HTTP2,
                                }
                            },
                        },
                    },
                }
            ]
        },
    }


def test_each_port_has_its_cluster() -> None:
    assert list(values({"port": 443}, {"port": 80}, {"port": 53}, {"port": 53})) == [
        f"outbound|{port}||api.shoot.svc.cluster.local" for port in (443, 80, 53)
    ]


@pytest.mark.parametrize(
    ("port", "speaks"),
    [
        ({"appProtocol": "http2"}, True),
        ({"appProtocol": "grpc"}, True),
        ({"appProtocol": "grpc-web"}, True),
        ({"appProtocol": "kubernetes.io/h2c"}, True),
        ({"appProtocol": "GRPC"}, True),
        ({"appProtocol": "http"}, False),
        ({"appProtocol": "", "name": "http2"}, False),
        ({"name": "HTTP2-api"}, True),
        ({"name": "gRPC-Web1"}, True),
        ({"appProtocol": "http", "name": "http2"}, False),
        ({"name": "http2"}, True),
        ({"name": "http2-api"}, True),
        ({"name": "grpc-api"}, True),
        ({"name": "grpc-web"}, True),
        ({"name": "grpc-webby"}, True),
        ({"name": "http2api"}, False),
        ({"name": "https-grpc"}, False),
        ({}, False),
    ],
)
def test_ports_that_use_http2_are_recognized(port: JsonObject, speaks: bool) -> None:
    assert protocol({"port": 1, **port}) == ("explicit_http_config" if speaks else "")


@pytest.mark.parametrize(
    ("policy", "field"),
    [
        (http(h2UpgradePolicy="UPGRADE"), "explicit_http_config"),
        (http(h2UpgradePolicy="DO_NOT_UPGRADE"), ""),
        (http(h2UpgradePolicy="DEFAULT"), ""),
        (http(useClientProtocol=True), "use_downstream_protocol_config"),
        (http(useClientProtocol=False), ""),
        (http(useClientProtocol=True, h2UpgradePolicy="UPGRADE"), "use_downstream_protocol_config"),
    ],
)
def test_the_traffic_policy_can_request_http2(policy: JsonObject, field: str) -> None:
    assert protocol({"port": 1}, policy) == field


def test_port_settings_override_general_settings() -> None:
    of_port = {"port": {"number": 1}, **http(h2UpgradePolicy="UPGRADE")}
    policy = {**http(useClientProtocol=True), "portLevelSettings": [of_port]}
    assert protocol({"port": 1}, policy) == "explicit_http_config"
    assert protocol({"port": 2}, policy) == "use_downstream_protocol_config"


@pytest.mark.parametrize(
    "of_port", [{}, {"tls": {"mode": "SIMPLE"}}, http(), http(h2UpgradePolicy="DO_NOT_UPGRADE")]
)
def test_a_port_without_its_own_protocol_has_the_general_one(of_port: JsonObject) -> None:
    settings = [{"port": {"number": 1}, **of_port}]
    policy = {**http(useClientProtocol=True), "portLevelSettings": settings}
    assert protocol({"port": 1}, policy) == "use_downstream_protocol_config"


def test_the_first_settings_of_a_port_that_name_a_protocol_count() -> None:
    port = {"port": {"number": 1}}
    settings = [port, {**port, **http(h2UpgradePolicy="UPGRADE")}]
    settings.append({**port, **http(useClientProtocol=True)})
    assert protocol({"port": 1}, {"portLevelSettings": settings}) == "explicit_http_config"


@pytest.mark.parametrize(
    ("host", "service"),
    [
        ("api", Key("shoot", "api")),
        ("api.shoot.svc.cluster.local", Key("shoot", "api")),
        ("api.other.svc.cluster.local", Key("other", "api")),
        ("api.other", None),
        ("api.other.svc", None),
        ("api.other.svc.example.org", None),
        ("a.api.other.svc.cluster.local", None),
        ("*.other.svc.cluster.local", None),
        ("*", None),
        ("", None),
        (None, None),
    ],
)
def test_hosts_are_resolved_to_services(host: str | None, service: Key | None) -> None:
    assert service_of(host, "shoot") == service


def test_a_host_can_name_a_service_in_another_namespace() -> None:
    found = filters(rule("api.other.svc.cluster.local"), services=[service(namespace="other")])
    (patch,) = found["ingress-a"]
    assert patch["match"]["cluster"]["name"] == "outbound|443||api.other.svc.cluster.local"


@pytest.mark.parametrize(
    "obj",
    [
        rule(subsets=[{"name": "v1"}]),
        rule(workloadSelector={"matchLabels": {"a": "b"}}),
        rule("absent"),
    ],
)
def test_rules_without_effect_get_no_filter(obj: JsonObject) -> None:
    assert filters(obj) == {}


@pytest.mark.parametrize(
    ("of_rule", "of_service", "reached"),
    [
        (["*"], "*", "ab"),
        (["*"], "ingress-a", "a"),
        (["ingress-b"], "*", "b"),
        (["ingress-a", "ingress-b"], "ingress-b,elsewhere", "b"),
        (["ingress-a"], "ingress-b", ""),
        (["ingress-a", "ingress-b"], " ingress-a , ingress-b ", "ab"),
        (["."], "*", ""),
        (["*"], ".", ""),
        (["~"], "*", ""),
        (["ingress-a", "~"], "*", ""),
        (["~", "*"], "*", ""),
        (["*", "~"], "*", "ab"),
        (["*"], "ingress-a,~", ""),
        (["*"], "~", ""),
        (["*"], "", ""),
        ([], "*", ""),
        (None, "*", ""),
    ],
)
def test_filters_exist_only_where_rule_and_service_are_exported(
    of_rule: list[str] | None, of_service: str, reached: str
) -> None:
    found = filters(rule(exportTo=of_rule), services=[service(exported=of_service)])
    assert set(found) == {f"ingress-{letter}" for letter in reached}


def test_the_own_namespace_can_have_gateways() -> None:
    rules = {"rule": keep_rule(rule(exportTo=["."]))}
    services = {Key("shoot", "api"): keep_service(service(exported="."))}
    namespaces = {"shoot": SeenNamespace("1", is_ingress=True)}
    assert set(envoy_filters("shoot", rules, services, namespaces)) == {"shoot"}


def test_the_first_exported_rule_for_a_service_counts() -> None:
    elsewhere = rule(policy=http(useClientProtocol=True), exportTo=["ingress-b"])
    found = filters(elsewhere, rule(), rule(policy=http(h2UpgradePolicy="UPGRADE")))
    (here,), (there,) = found["ingress-a"], found["ingress-b"]
    assert "typed_extension_protocol_options" not in here["patch"]["value"]
    options = there["patch"]["value"]["typed_extension_protocol_options"][OPTIONS]
    assert "use_downstream_protocol_config" in options


def test_a_deleted_source_namespace_gets_nothing() -> None:
    rules = {"rule": keep_rule(rule())}
    services = {Key("shoot", "api"): keep_service(service())}
    namespaces = {"ingress-a": NAMESPACES["ingress-a"]}
    assert envoy_filters("shoot", rules, services, namespaces) == {}


@pytest.mark.parametrize(
    ("metadata", "is_ingress"),
    [
        ({"labels": {"gardener.cloud/role": "istio-ingress"}}, True),
        ({"labels": {"gardener.cloud/role": "istio-system"}}, False),
        ({"labels": {"handler.exposureclass.gardener.cloud/name": ""}}, True),
        ({}, False),
        (
            {
                "labels": {"gardener.cloud/role": "istio-ingress"},
                "deletionTimestamp": "2026-01-01T00:00:00Z",
            },
            False,
        ),
    ],
)
def test_namespaces_with_ingress_gateways_are_recognized(
    metadata: JsonObject, is_ingress: bool
) -> None:
    assert keep_namespace({"metadata": metadata}).is_ingress is is_ingress


def test_the_digest_covers_exactly_the_fields_that_we_write() -> None:
    desired = envoy_filters(
        "shoot",
        {"rule": keep_rule(rule())},
        {Key("shoot", "api"): keep_service(service())},
        NAMESPACES,
    )["ingress-a"]
    metadata = desired["metadata"]
    live = {
        **desired,
        "metadata": {
            **metadata,
            "uid": "1",
            "labels": {"other": "label", **metadata["labels"]},
            "annotations": {"a": "b"},
        },
    }
    assert keep_filter(live).digest == digest(desired)
    for edited in (
        {**live, "spec": {**live["spec"], "workloadSelector": {}}},
        {**live, "metadata": {**live["metadata"], "labels": {}}},
        {**live, "metadata": {**live["metadata"], "ownerReferences": []}},
    ):
        assert keep_filter(edited).digest != digest(desired)


def test_a_filter_s_name_contains_its_source() -> None:
    assert source_of(filter_name("shoot--a--b")) == "shoot--a--b"
    assert source_of("something-else") == ""
