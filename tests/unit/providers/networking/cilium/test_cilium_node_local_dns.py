"""Node-local DNS with cilium: spec 40 §6.5."""

from typing import Final

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.api.objects import JsonObject
from pergola.providers.networking.cilium.node_local_dns import (
    adapt_config_map,
    adapt_core_file,
    adapt_daemon_set,
    webhook,
)
from tests.support.reviews import answer, patched, review_of

CORE_FILE: Final = """\
cluster.local:53 {
    errors
    bind 169.254.20.10 100.64.0.10
    health 169.254.20.10:8099
    forward . 100.64.0.10 {
            force_tcp
    }
    }
.:53 {
    bind 169.254.20.10
    prometheus :9253
    }
"""
ADAPTED: Final = """\
cluster.local:53 {
    errors
    bind 0.0.0.0
    health :8099
    forward . 100.64.0.10 {
            force_tcp
    }
    }
.:53 {
    bind 0.0.0.0
    prometheus :9253
    }
"""


def config_map(name: str = "node-local-dns-abc123", **metadata: object) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "kube-system", **metadata},
        "data": {"Corefile": CORE_FILE, "other": "bind this"},
    }


def daemon_set(name: str = "node-local-dns", **metadata: object) -> JsonObject:
    cache = {
        "name": "node-cache",
        "args": ["-localip", "169.254.20.10", "-conf", "/etc/Corefile", "-setupiptables=true"],
        "livenessProbe": {"httpGet": {"host": "169.254.20.10", "path": "/health", "port": 8099}},
    }
    adapter = {
        "name": "coredns-config-adapter",
        "args": ["-inputDir=/in", "-bind=bind 169.254.1.1"],
    }
    pod = {
        "hostNetwork": True,
        "containers": [cache, {"name": "sidecar", "args": ["-setupiptables=true"]}],
        "initContainers": [adapter, {"name": "other", "args": ["-bind=bind 169.254.1.1"]}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": "kube-system", **metadata},
        "spec": {"template": {"spec": pod}},
    }


def test_a_corefile_listens_on_all_addresses() -> None:
    assert adapt_core_file(CORE_FILE) == ADAPTED


def test_a_config_map_keeps_its_other_keys() -> None:
    assert adapt_config_map(config_map())["data"] == {"Corefile": ADAPTED, "other": "bind this"}


def test_a_daemon_set_leaves_the_host_network() -> None:
    pod = adapt_daemon_set(daemon_set())["spec"]["template"]["spec"]
    cache, sidecar = pod["containers"]
    adapter, other = pod["initContainers"]

    assert pod["hostNetwork"] is False
    assert cache["args"] == [
        "-localip",
        "169.254.20.10",
        "-conf",
        "/etc/Corefile",
        "-skipteardown=true",
        "-setupinterface=false",
        "-setupiptables=false",
    ]
    assert cache["livenessProbe"] == {"httpGet": {"path": "/health", "port": 8099}}
    assert adapter["args"] == ["-inputDir=/in", "-bind=bind 0.0.0.0"]
    assert sidecar["args"] == ["-setupiptables=true"]
    assert other["args"] == ["-bind=bind 169.254.1.1"]


@pytest.mark.parametrize(
    ("adapt", "obj"),
    [
        (adapt_config_map, config_map(deletionTimestamp="2026-01-01T00:00:00Z")),
        (adapt_daemon_set, daemon_set(deletionTimestamp="2026-01-01T00:00:00Z")),
        (adapt_config_map, config_map("coredns")),
        (adapt_daemon_set, daemon_set("calico-node")),
        (adapt_config_map, {"metadata": {"name": "node-local-dns-x"}, "data": {"Corefile": 1}}),
        (adapt_config_map, {"metadata": {"name": "node-local-dns-x"}}),
        (adapt_daemon_set, {"metadata": {"name": "node-local-dns"}, "spec": {"template": 7}}),
    ],
)
def test_other_and_deleted_objects_are_unchanged(adapt, obj: JsonObject) -> None:  # type: ignore[no-untyped-def]
    assert adapt(obj) is obj


def test_adapting_twice_changes_nothing_and_the_original_is_not_modified() -> None:
    for adapt, make in ((adapt_config_map, config_map), (adapt_daemon_set, daemon_set)):
        original = make()
        once = adapt(original)
        assert adapt(once) == once
        assert orjson.dumps(original) == orjson.dumps(make())


@given(st.lists(st.sampled_from(["bind 1.2.3.4", "health 1.2.3.4:80 {", "  x", "\tbind a b", "}"])))
def test_adapting_a_corefile_twice_changes_nothing(lines: list[str]) -> None:
    once = adapt_core_file("\n".join(lines))

    assert adapt_core_file(once) == once
    assert len(once.splitlines()) == len("\n".join(lines).splitlines())


async def test_the_webhook_changes_objects_by_name() -> None:
    handler = webhook().handler
    for obj, adapt in ((config_map(), adapt_config_map), (daemon_set(), adapt_daemon_set)):
        verdict = await answer(handler, review_of(obj))
        assert patched(obj, verdict) == adapt(obj)
    other = config_map("coredns")
    assert patched(other, await answer(handler, review_of(other))) == other


def test_the_webhook_receives_node_local_dns_in_kube_system_and_fails_closed() -> None:
    found = webhook()

    assert found.of_shoots
    assert found.registration.failure_policy == "Fail"
    assert found.registration.object_selector == {"matchLabels": {"k8s-app": "node-local-dns"}}
    assert found.registration.namespace_selector == {
        "matchLabels": {"kubernetes.io/metadata.name": "kube-system"}
    }
    resources = {rule.resources for rule in found.registration.rules}
    assert resources == {("configmaps",), ("daemonsets",)}
