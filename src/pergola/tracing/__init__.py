"""Spans of work for OpenTelemetry; nothing is recorded unless the process exports spans.

    with reconciliation("garden", key):
        ...

`pergola.tracing.export` enables spans for a process. Until then, each function here returns at once
without computing any attributes.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Final, Protocol

Attributes = Mapping[str, str | int]


class Span(Protocol):
    """The span of the work in a block."""

    def set_attribute(self, key: str, value: str | int) -> None:
        """Add or replace an attribute."""
        ...


class Tracer(Protocol):
    """A recorder of spans."""

    def span(
        self, name: str, attributes: Attributes, *, is_request: bool
    ) -> AbstractContextManager[Span]:
        """Record the block as a span; an exception in the block marks it as failed.

        Args:
            is_request: whether the block sends a request to another process and awaits its answer.
        """
        ...

    def headers(self) -> dict[str, str]:
        """Return the headers that make a request part of the current span."""
        ...


class _Unrecorded:
    def set_attribute(self, key: str, value: str | int) -> None:
        pass


_OFF: Final[nullcontext[Span]] = nullcontext(_Unrecorded())
_tracer: Tracer | None = None


def record_with(tracer: Tracer | None) -> None:
    """Record the spans of this process with a tracer; None stops recording."""
    global _tracer  # noqa: PLW0603 - a process has one tracer, as it has one log
    _tracer = tracer


def reconciliation(controller: str, key: object) -> AbstractContextManager[Span]:
    """Return the span of one run of a controller for one key."""
    if _tracer is None:
        return _OFF
    attributes = {"pergola.controller": controller, "pergola.object": str(key)}
    return _tracer.span(f"reconcile {controller}", attributes, is_request=False)


def task(flow: str, name: str) -> AbstractContextManager[Span]:
    """Return the span of one task of a flow, including all its attempts."""
    if _tracer is None:
        return _OFF
    return _tracer.span(name, {"pergola.flow": flow}, is_request=False)


def api_request(method: str, path: str, host: str) -> AbstractContextManager[Span]:
    """Return the span of one request to an API server.

    Args:
        path: The path of the URL; spans are named after the resource in it.
        host: The host and port of the server.
    """
    if _tracer is None:
        return _OFF
    attributes = {"http.request.method": method, "url.path": path, "server.address": host}
    name = " ".join(filter(None, (method, resource_of(path))))
    return _tracer.span(name, attributes, is_request=True)


def cloud_request(service: str, operation: str, region: str) -> AbstractContextManager[Span]:
    """Return the span of one request to AWS."""
    if _tracer is None:
        return _OFF
    attributes = {
        "rpc.system": "aws-api",
        "rpc.service": service,
        "rpc.method": operation,
        "cloud.region": region,
    }
    return _tracer.span(f"{service}.{operation}", attributes, is_request=True)


def headers() -> dict[str, str]:
    """Return the headers that make a request part of the current span."""
    return {} if _tracer is None else _tracer.headers()


def resource_of(path: str) -> str:
    """Return the resource that a path of the Kubernetes API addresses, or an empty text.

    It includes a subresource: `deployments/status`.
    """
    parts = path.strip("/").split("/")
    # /api/VERSION/… or /apis/GROUP/VERSION/…
    rest = parts[2:] if parts[0] == "api" else parts[3:] if parts[0] == "apis" else []
    # Two parts address the Namespace itself; a third is a resource in it, or a subresource.
    if len(rest) > 2 and rest[0] == "namespaces" and rest[2] not in ("status", "finalize"):
        rest = rest[2:]
    return "/".join([*rest[:1], *rest[2:]])
