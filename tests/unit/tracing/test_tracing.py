"""Spans are off by default, named after operations, and exported as the environment requests."""

import socket
import sys

import pytest

from pergola import tracing
from pergola.tracing import export
from pergola.tracing.export import TracingError, exported, is_requested

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


@pytest.mark.parametrize(
    ("path", "resource"),
    [
        ("/api/v1/namespaces", "namespaces"),
        ("/api/v1/namespaces/a", "namespaces"),
        ("/api/v1/namespaces/a/finalize", "namespaces/finalize"),
        ("/api/v1/namespaces/a/status", "namespaces/status"),
        ("/api/v1/namespaces/a/secrets", "secrets"),
        ("/api/v1/namespaces/a/secrets/b", "secrets"),
        ("/api/v1/namespaces/a/pods/b/log", "pods/log"),
        ("/api/v1/nodes/n/proxy/metrics", "nodes/proxy/metrics"),
        ("/apis/apps/v1/namespaces/a/deployments/b/status", "deployments/status"),
        ("/apis/rbac.authorization.k8s.io/v1/clusterroles/b", "clusterroles"),
        ("/apis/apps/v1", ""),
        ("/api", ""),
        ("/version", ""),
        ("/", ""),
    ],
)
def test_spans_of_requests_are_named_by_the_resource(path: str, resource: str) -> None:
    assert tracing.resource_of(path) == resource


@pytest.mark.parametrize(
    ("environment", "requested"),
    [
        ({}, False),
        ({ENDPOINT: ""}, False),
        ({ENDPOINT: "http://c:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/v1/traces"}, True),
        ({ENDPOINT: "http://c:4318", "OTEL_SDK_DISABLED": "true"}, False),
        ({ENDPOINT: "http://c:4318", "OTEL_TRACES_EXPORTER": "none"}, False),
        ({"OTEL_SERVICE_NAME": "pergola"}, False),
    ],
)
def test_an_endpoint_enables_the_export(environment: dict[str, str], requested: bool) -> None:
    assert is_requested(environment) is requested


def test_without_an_endpoint_nothing_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ENDPOINT, raising=False)
    with exported("test"):
        first, second = tracing.reconciliation("a", "b"), tracing.task("flow", "task")
        assert first is second
        assert tracing.api_request("GET", "/api/v1/pods", "host") is first
        assert tracing.cloud_request("ec2", "DescribeVpcs", "eu-west-1") is first
        assert tracing.headers() == {}


def test_the_error_about_the_missing_extra_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(ENDPOINT, "http://127.0.0.1:4318")
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(TracingError, match=r"pip install 'pergola\[otel\]'"), exported("test"):
        pass


@pytest.mark.timeout(60)
def test_a_silent_collector_does_not_delay_the_end_of_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv(ENDPOINT, f"http://127.0.0.1:{silent.getsockname()[1]}")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "3600")
        monkeypatch.setattr(export, "LAST_EXPORT_SECONDS", 0.1)
        with exported("test"), tracing.task("flow", "task"):
            pass
        connection, _ = silent.accept()
        # It stays open until the process ends: after its end, the exporter's thread would send
        # again, at random intervals, and change the state of `random` under property tests.
        connection.detach()
