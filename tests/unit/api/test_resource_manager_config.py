from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.api.objects import JsonObject, JsonValue
from pergola.api.resource_manager_config import (
    API_VERSION,
    KIND,
    ConfigurationInvalid,
    Loaded,
    ResourceManagerConfiguration,
    configuration_from,
)
from pergola.api.schema import Finding, schema_of

MINIMAL: JsonObject = {
    "apiVersion": API_VERSION,
    "kind": KIND,
    "leaderElection": {"resourceNamespace": "garden"},
}


def at(path: str, value: Any) -> JsonObject:
    """Return the smallest valid configuration, with `value` at `path`."""
    *parents, last = path.split(".")
    config: JsonObject = {**MINIMAL, "leaderElection": dict(MINIMAL["leaderElection"])}
    here = config
    for step in parents:
        here = here.setdefault(step, {})
    here[last] = value
    return config


def load(path: str, value: Any) -> Loaded:
    return configuration_from(at(path, value))


def problems(value: JsonValue) -> list[str]:
    with pytest.raises(ConfigurationInvalid) as caught:
        configuration_from(value)
    return [str(finding) for finding in caught.value.findings]


# Must hold, spec 10 §3.3 (B20), §13.4; spec 11 §2.5, §8; spec 12 §1.5


def test_all_invalid_paths_are_reported_at_once() -> None:
    wrong = {
        **MINIMAL,
        "logLevel": "loud",
        "server": {"metrics": {"port": -1}},
        "leaderElection": {},
        "controllers": {
            "clusterID": "a:b",
            "managedResources": {"concurrentSyncs": 0, "syncPeriod": "1s"},
            "health": {"syncPeriod": 60},
        },
    }

    with pytest.raises(ConfigurationInvalid) as caught:
        configuration_from(wrong, source="config.yaml")

    assert str(caught.value).splitlines() == [
        "config.yaml is invalid:",
        "  server.metrics.port: must be at least 0",
        '  logLevel: must be one of "debug", "error", "info"',
        "  controllers.managedResources.concurrentSyncs: must be at least 1",
        "  controllers.health.syncPeriod: must be a string, not an integer",
        "  leaderElection.resourceNamespace: is required while leaderElect is true",
        '  controllers.clusterID: must not contain ":", which ends the id in origins of objects',
        "  controllers.managedResources.syncPeriod: must be at least 15s",
    ]


def test_a_single_problem_is_reported_in_one_sentence() -> None:
    with pytest.raises(ConfigurationInvalid) as caught:
        configuration_from(at("controllers.health.syncPeriod", "1s"), source="config.yaml")

    assert str(caught.value) == (
        "config.yaml is invalid: controllers.health.syncPeriod: must be at least 15s"
    )


def test_an_empty_resource_class_is_rejected() -> None:
    assert problems(at("controllers.resourceClass", "")) == [
        "controllers.resourceClass: must not be empty"
    ]


def test_leader_election_needs_a_namespace_only_if_enabled() -> None:
    config = {"apiVersion": API_VERSION, "kind": KIND}

    assert problems({**config, "leaderElection": {"leaderElect": True}}) == [
        "leaderElection.resourceNamespace: is required while leaderElect is true"
    ]
    off = configuration_from({**config, "leaderElection": {"leaderElect": False}})
    assert not off.config.leader_election.leader_elect


def test_shards_are_off_unless_the_file_names_a_ring() -> None:
    assert configuration_from(MINIMAL).config.sharding.controller_ring == ""
    config = load("sharding.controllerRing", "resource-manager").config
    assert config.sharding.controller_ring == "resource-manager"


@pytest.mark.parametrize("name", ["Ring", "a.b", "x" * 64])
def test_the_name_of_a_ring_is_part_of_a_label(name: str) -> None:
    assert problems(at("sharding.controllerRing", name)) == [
        "sharding.controllerRing: must be the name of a ControllerRing, with at most 63 characters"
    ]


def test_shards_need_leader_election_for_unsharded_work() -> None:
    config = at("sharding.controllerRing", "resource-manager")

    assert problems({**config, "leaderElection": {"leaderElect": False}}) == [
        "sharding.controllerRing: needs leaderElection.leaderElect, since a leader runs the rest"
    ]


@pytest.mark.parametrize("spelling", ["managedResources", "managedResource"])
def test_the_managed_by_label_is_read_under_either_spelling(spelling: str) -> None:
    loaded = load(f"controllers.{spelling}.managedByLabelValue", "foo")

    assert loaded.config.controllers.managed_resources.managed_by_label_value == "foo"
    assert loaded.warnings == []


def test_a_cluster_id_with_a_colon_is_rejected() -> None:
    [problem] = problems(at("controllers.clusterID", "a:b"))

    assert problem.startswith("controllers.clusterID: ")
    for fine in ("", "a", "<cluster>", "<default>"):
        assert load("controllers.clusterID", fine).config.controllers.cluster_id == fine


@pytest.mark.parametrize(("controller", "webhook"), [(True, False), (False, True)])
def test_the_token_invalidator_is_enabled_completely_or_not_at_all(
    controller: bool, webhook: bool
) -> None:
    config = {
        **MINIMAL,
        "controllers": {"tokenInvalidator": {"enabled": controller}},
        "webhooks": {"tokenInvalidator": {"enabled": webhook}},
    }

    assert problems(config) == [
        (
            "controllers.tokenInvalidator: forbidden: "
            "controller and webhook must both be enabled or both disabled"
        )
    ]


def test_a_projected_token_must_be_valid_for_ten_minutes() -> None:
    mount = {"enabled": True, "expirationSeconds": 599}

    assert problems(at("webhooks.projectedTokenMount", mount)) == [
        "webhooks.projectedTokenMount.expirationSeconds: must be at least 600"
    ]
    load("webhooks.projectedTokenMount", {"enabled": True, "expirationSeconds": 600})
    load("webhooks.projectedTokenMount", {"enabled": False, "expirationSeconds": 599})


def test_a_negative_qps_means_no_limit() -> None:
    load("sourceClientConnection", {"qps": -1})
    assert problems(at("sourceClientConnection", {"burst": -1})) == [
        "sourceClientConnection.burst: must be at least 0"
    ]


def test_burst_is_a_number_of_32_bits_as_in_the_original() -> None:
    load("sourceClientConnection", {"burst": 2**31 - 1})
    assert problems(at("sourceClientConnection", {"burst": 2**31})) == [
        "sourceClientConnection.burst: must be at most 2147483647"
    ]


# Defaults


def test_unset_fields_get_the_documented_defaults() -> None:
    config = configuration_from(MINIMAL).config

    source = config.source_client_connection
    assert (source.kubeconfig, source.namespaces) == ("", [])
    assert (source.qps, source.burst) == (None, None)
    assert source.cache_resync_period == timedelta(hours=24)
    assert config.target_client_connection is None
    election = config.leader_election
    assert election.leader_elect
    assert [
        span.total_seconds()
        for span in (election.lease_duration, election.renew_deadline, election.retry_period)
    ] == [15, 10, 2]
    assert (election.resource_lock, election.resource_name) == (
        "leases",
        "gardener-resource-manager",
    )
    ports = (config.server.webhooks, config.server.health_probes, config.server.metrics)
    assert [(server.bind_address, server.port) for server in ports] == [
        ("", 9449),
        ("", 8081),
        ("", 8080),
    ]
    assert (config.log_level, config.log_format) == ("info", "json")
    assert not config.debugging.enable_profiling
    controllers = config.controllers
    assert (controllers.cluster_id, controllers.resource_class) == ("", "resources")
    assert controllers.cache_sync_timeout == timedelta(minutes=2)
    resources = controllers.managed_resources
    assert (resources.concurrent_syncs, resources.sync_period) == (5, timedelta(minutes=1))
    assert (resources.always_update, resources.managed_by_label_value) == (False, "gardener")
    assert controllers.health.concurrent_syncs == 5
    assert controllers.health.sync_period == timedelta(minutes=1)
    assert (controllers.secret.concurrent_syncs, controllers.secret.mode) == (5, "Protect")


WHEN_ENABLED = [
    ("controllers.garbageCollector", "syncPeriod", "1h0m0s"),
    ("controllers.garbageCollector", "minimumAge", "10m0s"),
    ("controllers.csrApprover", "concurrentSyncs", 1),
    ("controllers.networkPolicy", "concurrentSyncs", 5),
    ("controllers.tokenRequestor", "concurrentSyncs", 5),
    ("controllers.tokenRequestor", "class", "shoot"),
    ("controllers.tokenRequestor", "audiences", ["gardener"]),
    ("controllers.nodeCriticalComponents", "concurrentSyncs", 5),
    ("controllers.nodeCriticalComponents", "backoff", "10s"),
    ("controllers.nodeCriticalComponents", "criticalNamespaces", ["kube-system"]),
    ("controllers.nodeAgentReconciliationDelay", "minDelay", "0s"),
    ("controllers.nodeAgentReconciliationDelay", "maxDelay", "5m0s"),
    ("controllers.istioClusterConfiguration", "concurrentSyncs", 5),
    ("webhooks.podSchedulerName", "schedulerName", "default-scheduler"),
    ("webhooks.projectedTokenMount", "expirationSeconds", 43200),
]


def setting(config: ResourceManagerConfiguration, path: str, name: str) -> JsonValue:
    here: JsonObject = config.to_json()
    for step in path.split("."):
        here = here.get(step, {})
    value: JsonValue = here.get(name)
    return value


@pytest.mark.parametrize(("path", "name", "default"), WHEN_ENABLED)
def test_a_block_gets_defaults_only_if_enabled(path: str, name: str, default: JsonValue) -> None:
    assert setting(load(path, {"enabled": True}).config, path, name) == default
    assert setting(load(path, {"enabled": False}).config, path, name) is None


@pytest.mark.parametrize(
    ("path", "name", "explicit"),
    [
        ("controllers.garbageCollector", "syncPeriod", "12h0m0s"),
        ("controllers.csrApprover", "concurrentSyncs", 7),
        ("controllers.networkPolicy", "concurrentSyncs", 20),
        ("controllers.tokenRequestor", "class", "*"),
        ("controllers.tokenRequestor", "audiences", []),
        ("controllers.tokenRequestor", "serviceAccountNamespace", "garden"),
        ("controllers.nodeCriticalComponents", "backoff", "1m0s"),
        ("controllers.nodeCriticalComponents", "criticalNamespaces", ["a", "b"]),
        ("controllers.nodeAgentReconciliationDelay", "maxDelay", "1s"),
        ("webhooks.podSchedulerName", "schedulerName", "bin-packing"),
        ("webhooks.projectedTokenMount", "expirationSeconds", 600),
    ],
)
def test_an_explicit_value_is_never_overwritten(path: str, name: str, explicit: JsonValue) -> None:
    config = load(path, {"enabled": True, name: explicit}).config

    assert setting(config, path, name) == explicit


def test_an_empty_audience_is_reported() -> None:
    problem = problems(
        at("controllers.tokenRequestor", {"enabled": True, "audiences": ["gardener", ""]})
    )

    assert problem == ["controllers.tokenRequestor.audiences[1]: must not be empty"]


def test_a_disabled_controller_has_no_workers() -> None:
    off = load("controllers.networkPolicy", {"concurrentSyncs": 3}).config.controllers
    on = load("controllers.networkPolicy", {"enabled": True}).config.controllers

    assert (off.network_policy.workers, on.network_policy.workers) == (0, 5)


def test_the_namespaces_of_both_fields_are_joined() -> None:
    both = {"namespace": "c", "namespaces": ["a", "b", "a"]}

    config = load("sourceClientConnection", both).config

    assert config.source_client_connection.namespaces == ["a", "b", "c"]


@pytest.mark.parametrize(
    "connection", [{}, {"namespace": ""}, {"namespaces": []}, {"namespaces": ["", "a"]}]
)
def test_all_namespaces_are_selected_by_default(connection: JsonObject) -> None:
    config = load("targetClientConnection", connection).config

    assert config.target_client_connection is not None
    assert config.target_client_connection.namespaces == []


# Validation, row by row


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("sourceClientConnection.burst", -1),
        ("sourceClientConnection.cacheResyncPeriod", "9s"),
        ("targetClientConnection.cacheResyncPeriod", "9s"),
        ("leaderElection.leaseDuration", "10s"),
        ("leaderElection.renewDeadline", "2.4s"),
        ("leaderElection.retryPeriod", "-1s"),
        ("leaderElection.resourceLock", "configmaps"),
        ("server.webhooks.port", 65536),
        ("server.healthProbes.port", -1),
        ("server.metrics.port", -1),
        ("logLevel", "warning"),
        ("logFormat", "xml"),
        ("controllers.cacheSyncTimeout", "2 m"),
        ("controllers.managedResources.concurrentSyncs", 0),
        ("controllers.managedResources.syncPeriod", "14s"),
        ("controllers.managedResources.managedByLabelValue", ""),
        ("controllers.managedResources.managedByLabelValue", "no label value"),
        ("controllers.health.concurrentSyncs", 0),
        ("controllers.health.syncPeriod", "14s"),
        ("controllers.secret.concurrentSyncs", 0),
        ("controllers.secret.mode", "Off"),
        ("webhooks.highAvailabilityConfig.defaultNotReadyTolerationSeconds", -1),
        ("webhooks.highAvailabilityConfig.defaultUnreachableTolerationSeconds", -1),
    ],
)
def test_a_value_out_of_range_is_reported_with_its_path(path: str, value: JsonValue) -> None:
    [problem] = problems(at(path, value))

    assert problem.startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("path", "name", "value"),
    [
        ("controllers.garbageCollector", "syncPeriod", "14s"),
        ("controllers.garbageCollector", "minimumAge", "-1s"),
        ("controllers.csrApprover", "concurrentSyncs", 0),
        ("controllers.csrApprover", "machineNamespace", ""),
        ("controllers.networkPolicy", "concurrentSyncs", 0),
        ("controllers.tokenRequestor", "concurrentSyncs", 0),
        ("controllers.tokenRequestor", "class", ""),
        ("controllers.tokenRequestor", "serviceAccountNamespace", "a/b"),
        ("controllers.nodeCriticalComponents", "concurrentSyncs", -1),
        ("controllers.nodeCriticalComponents", "backoff", "0s"),
        ("controllers.nodeCriticalComponents", "criticalNamespaces", []),
        ("controllers.nodeAgentReconciliationDelay", "minDelay", "6m"),
        ("controllers.nodeAgentReconciliationDelay", "minDelay", "-1s"),
        ("controllers.istioClusterConfiguration", "concurrentSyncs", 0),
        ("webhooks.kubernetesServiceHost", "host", ""),
        ("webhooks.nodeAgentAuthorizer", "machineNamespace", ""),
        ("webhooks.podSchedulerName", "schedulerName", ""),
        ("webhooks.projectedTokenMount", "expirationSeconds", 0),
    ],
)
def test_settings_are_validated_only_in_enabled_blocks(
    path: str, name: str, value: JsonValue
) -> None:
    [problem] = problems(at(path, {"enabled": True, name: value}))

    assert problem.startswith(f"{path}.{name}: ")
    load(path, {"enabled": False, name: value})


def test_selectors_and_tolerations_are_checked() -> None:
    bad = {"matchExpressions": [{"key": "a", "operator": "In"}]}
    config = {
        **MINIMAL,
        "controllers": {
            "networkPolicy": {
                "enabled": True,
                "namespaceSelectors": [{}, bad],
                "ingressControllerSelector": {"podSelector": bad},
            }
        },
        "webhooks": {
            "systemComponentsConfig": {
                "nodeSelector": {"a b": "c"},
                "podTolerations": [{"operator": "Exists"}, {"key": "a", "tolerationSeconds": 1}],
            }
        },
    }

    assert [problem.partition(":")[0] for problem in problems(config)] == [
        "controllers.networkPolicy.namespaceSelectors[1].matchExpressions[0].values",
        "controllers.networkPolicy.ingressControllerSelector.namespace",
        "controllers.networkPolicy.ingressControllerSelector.podSelector.matchExpressions[0].values",
        "webhooks.systemComponentsConfig.nodeSelector[a b]",
        "webhooks.systemComponentsConfig.podTolerations[1].effect",
    ]


def test_fields_of_disabled_leader_election_are_not_validated() -> None:
    election = {"leaderElect": False, "leaseDuration": "1s", "resourceLock": "", "retryPeriod": "0"}

    load("leaderElection", election)


@pytest.mark.parametrize("value", [None, [], "text", 3])
def test_a_file_that_is_not_a_map_is_refused(value: JsonValue) -> None:
    assert problems(value) == ["must be a map"]


def test_a_file_of_another_kind_is_refused() -> None:
    assert problems({"apiVersion": "v1", "kind": "ConfigMap", "data": 1}) == [
        f'apiVersion: must be "{API_VERSION}"',
        f'kind: must be "{KIND}"',
    ]
    assert problems({}) == [f'apiVersion: must be "{API_VERSION}"', f'kind: must be "{KIND}"']


def test_an_empty_block_counts_as_absent() -> None:
    config = {**MINIMAL, "controllers": None, "webhooks": {"podSchedulerName": None}}

    assert configuration_from(config).config == configuration_from(MINIMAL).config


# Unknown fields


def test_an_unknown_field_is_a_warning_with_its_path() -> None:
    loaded = load("controllers", {"clusterId": "a", "shiny": {"new": True}})

    assert loaded.config.controllers.cluster_id == ""
    assert loaded.warnings == [
        'controllers.clusterId: is not a known field and has no effect; did you mean "clusterID"?',
        "controllers.shiny: is not a known field and has no effect",
    ]


def test_findings_after_an_invalid_list_item_keep_their_index() -> None:
    selectors = [{"matchExpressions": [{"key": "a"}]}, {"matchLabels": {"a b": "c"}}]
    policy = {"enabled": True, "namespaceSelectors": selectors}

    found = problems(at("controllers.networkPolicy", policy))

    assert found[0] == (
        "controllers.networkPolicy.namespaceSelectors[0].matchExpressions[0].operator: is required"
    )
    assert not any("namespaceSelectors[0].matchLabels" in problem for problem in found)


# Anything


JUNK: st.SearchStrategy[JsonValue] = st.sampled_from(
    [None, True, 0, -1, 1.5, "", "1s", "5m", "a b", "Exists", [], {}, [{}]]
)
OFF: JsonObject = {
    "apiVersion": API_VERSION,
    "kind": KIND,
    "leaderElection": {"leaderElect": False},
}


def values_of(schema: JsonObject) -> st.SearchStrategy[JsonValue]:
    """Return a strategy for values of a schema, valid or not: objects have some known fields."""
    if "properties" in schema:
        fields = {name: values_of(entry) for name, entry in schema["properties"].items()}
        return JUNK | st.lists(st.sampled_from(sorted(fields)), max_size=3, unique=True).flatmap(
            lambda chosen: st.fixed_dictionaries({name: fields[name] for name in chosen})
        )
    if "items" in schema:
        return JUNK | st.lists(values_of(schema["items"]), max_size=3)
    if "enum" in schema:
        return JUNK | st.sampled_from(schema["enum"])
    return JUNK


@given(values_of(schema_of(ResourceManagerConfiguration)))
def test_any_file_results_in_a_configuration_or_in_findings(
    value: JsonValue,
) -> None:
    file = OFF | (value if isinstance(value, dict) else {})
    findings: tuple[Finding, ...] = ()
    config: ResourceManagerConfiguration | None = None
    try:
        config = configuration_from({**file, "apiVersion": API_VERSION, "kind": KIND}).config
    except ConfigurationInvalid as error:
        findings = error.findings

    assert (config is None) == bool(findings)


@pytest.mark.parametrize(
    ("own", "tls", "path"),
    [
        ({"namespace": "No Name"}, {}, "server.webhooks.selfSigned.namespace"),
        ({"url": "http://x"}, {}, "server.webhooks.selfSigned.url"),
        ({}, {"serverCertDir": "/certs"}, "server.webhooks.selfSigned.enabled"),
        ({"installation": "shoot"}, {}, "server.webhooks.selfSigned.installation"),
    ],
)
def test_self_signed_certificates_need_a_secret_and_exclude_mounted_ones(
    own: JsonObject, tls: JsonObject, path: str
) -> None:
    server = {"selfSigned": {"enabled": True, **own}, "tls": tls}
    (problem,) = problems(at("server.webhooks", server))
    assert problem.startswith(path)


def test_certificates_are_mounted_by_default() -> None:
    config = load("server.webhooks", {"tls": {"serverCertDir": "/certs"}}).config
    assert not config.server.webhooks.self_signed.enabled
