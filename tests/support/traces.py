"""A collector of traces, which receives OpenTelemetry's protocol over HTTP."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1 import trace_pb2


class ReceivedSpan(NamedTuple):
    """A span that a process exported.

    Attributes:
        service: The name of the process.
        is_error: Whether an exception ended it.
    """

    service: str
    name: str
    id: bytes
    parent: bytes
    is_request: bool
    is_error: bool
    attributes: dict[str, str | int]


class TraceCollector:
    """The spans that arrived at an endpoint.

    Attributes:
        endpoint: The URL for `OTEL_EXPORTER_OTLP_ENDPOINT`.
    """

    def __init__(self) -> None:
        self.endpoint = ""
        self.spans: list[ReceivedSpan] = []

    def named(self, name: str) -> list[ReceivedSpan]:
        """Return the spans of this name."""
        return [span for span in self.spans if span.name == name]

    def children(self, parent: ReceivedSpan) -> list[ReceivedSpan]:
        """Return the spans whose parent this is."""
        return [span for span in self.spans if span.parent == parent.id]

    async def receive(self, request: web.Request) -> web.Response:
        """Accept one export."""
        export = ExportTraceServiceRequest.FromString(await request.read())
        for resource in export.resource_spans:
            service = str(_attributes(resource.resource.attributes)["service.name"])
            for scope in resource.scope_spans:
                self.spans += [_received(service, span) for span in scope.spans]
        return web.Response(content_type="application/x-protobuf")


@asynccontextmanager
async def trace_collector() -> AsyncIterator[TraceCollector]:
    """Collect traces until the block ends."""
    collector = TraceCollector()
    app = web.Application()
    app.router.add_post("/v1/traces", collector.receive)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0]
        collector.endpoint = f"http://{host}:{port}"
        yield collector
    finally:
        await runner.cleanup()


def _received(service: str, span: trace_pb2.Span) -> ReceivedSpan:
    return ReceivedSpan(
        service=service,
        name=span.name,
        id=span.span_id,
        parent=span.parent_span_id,
        is_request=span.kind == trace_pb2.Span.SPAN_KIND_CLIENT,
        is_error=span.status.code == trace_pb2.Status.STATUS_CODE_ERROR,
        attributes=_attributes(span.attributes),
    )


def _attributes(pairs: "list[KeyValue]") -> dict[str, str | int]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: AnyValue) -> str | int:
    return value.int_value if value.HasField("int_value") else value.string_value
