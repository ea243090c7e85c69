"""Export of a process's spans with OpenTelemetry's protocol (OTLP over HTTP).

It is configured with OpenTelemetry's standard variables; an endpoint in one of them enables it:

    OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318 pergola operator --config FILE
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from threading import Thread
from typing import TYPE_CHECKING, Final

from pergola import tracing

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_DISABLED: Final = "OTEL_SDK_DISABLED"
_EXPORTER: Final = "OTEL_TRACES_EXPORTER"
_PROTOCOL: Final = "OTEL_EXPORTER_OTLP_PROTOCOL"
_HTTP: Final = "http/protobuf"
LAST_EXPORT_SECONDS: Final = 3.0


class TracingError(Exception):
    """Spans cannot be exported as the environment requests."""


def is_requested(environment: Mapping[str, str]) -> bool:
    """Return whether the environment requests the export of spans."""
    if environment.get(_DISABLED, "").lower() == "true" or environment.get(_EXPORTER) == "none":
        return False
    return any(environment.get(name) for name in ENDPOINTS)


@contextmanager
def exported(service: str) -> Iterator[None]:
    """Export the spans of this process while the block lasts, if its environment requests that.

    Remaining spans have three seconds at the end.

    Args:
        service: The name of the process, unless `OTEL_SERVICE_NAME` sets another one.

    Raises:
        TracingError: OpenTelemetry's library is not installed, or another protocol is requested.
    """
    if not is_requested(os.environ):
        yield
        return
    protocol = os.environ.get(_PROTOCOL, _HTTP)
    if protocol != _HTTP:
        raise TracingError(f"{_PROTOCOL} is {protocol}, but spans are sent only with {_HTTP}")
    provider = _provider(service)
    tracing.record_with(_Tracer(provider))
    try:
        yield
    finally:
        tracing.record_with(None)
        _end(provider)


def _end(provider: "TracerProvider") -> None:
    """Export the rest, in a thread: the limit of `force_flush` does not end a request."""
    last = Thread(target=provider.shutdown, name="last-export", daemon=True)
    last.start()
    last.join(LAST_EXPORT_SECONDS)


def _provider(service: str) -> "TracerProvider":
    """Return a provider that sends spans to the endpoint in its own thread."""
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import SERVICE_NAME, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        named = next(name for name in ENDPOINTS if os.environ.get(name))
        raise TracingError(
            f"{named} is set, but spans need pergola[otel]: pip install 'pergola[otel]'"
        ) from error
    named_by_user = os.environ.get("OTEL_SERVICE_NAME")
    resource = Resource.create({} if named_by_user else {SERVICE_NAME: service})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


class _Tracer:
    """OpenTelemetry's tracer."""

    def __init__(self, provider: "TracerProvider") -> None:
        from opentelemetry.trace import SpanKind
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._tracer = provider.get_tracer("pergola")
        self._kinds = {True: SpanKind.CLIENT, False: SpanKind.INTERNAL}
        self._propagator = TraceContextTextMapPropagator()

    def span(
        self, name: str, attributes: tracing.Attributes, *, is_request: bool
    ) -> AbstractContextManager[tracing.Span]:
        """Record the block as a span."""
        return self._tracer.start_as_current_span(
            name, kind=self._kinds[is_request], attributes=attributes
        )

    def headers(self) -> dict[str, str]:
        """Return the header `traceparent` of the current span."""
        headers: dict[str, str] = {}
        self._propagator.inject(headers)
        return headers
