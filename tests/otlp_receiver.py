"""A receiver of OpenTelemetry on loopback: keeps the spans and the last metrics that the SDK sends by OTLP/HTTP."""

from __future__ import annotations

import gzip
from contextlib import AbstractAsyncContextManager
from typing import Any

from aiohttp import web

from tests.server_thread import ServerThread, listening_app


class OtlpReceiver(ServerThread):
    """Context manager that receives spans and metrics at ``url``.

    ``spans`` are protobuf messages. ``values`` maps the name of a metric to its last data points.
    """

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.values: dict[str, list[Any]] = {}
        self.resources: list[dict[str, Any]] = []

    def listening(self) -> AbstractAsyncContextManager[int]:
        return listening_app(web.post("/v1/traces", self._traces), web.post("/v1/metrics", self._metrics))

    async def _traces(self, request: web.Request) -> web.Response:
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        for resource in ExportTraceServiceRequest.FromString(await _body(request)).resource_spans:
            self.resources.append(attributes(resource.resource))
            self.spans += [span for scope in resource.scope_spans for span in scope.spans]
        return web.Response()

    async def _metrics(self, request: web.Request) -> web.Response:
        from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

        for resource in ExportMetricsServiceRequest.FromString(await _body(request)).resource_metrics:
            for metric in (one for scope in resource.scope_metrics for one in scope.metrics):
                self.values[metric.name] = list(getattr(metric, str(metric.WhichOneof("data"))).data_points)
        return web.Response()

    def named(self, name: str) -> list[Any]:
        """Return the spans with this name."""
        return [span for span in self.spans if span.name == name]

    def counts(self, metric: str, label: str) -> dict[str, float]:
        """Return the last values of a counter: value of the attribute ``label`` -> count. A missing attribute is ""."""
        return {attributes(point).get(label, ""): point.as_double or point.as_int for point in self.values[metric]}


def attributes(message: Any) -> dict[str, Any]:
    """Return the attributes of a span, a data point or a resource as a dict."""
    return {one.key: getattr(one.value, str(one.value.WhichOneof("value"))) for one in message.attributes}


async def _body(request: web.Request) -> bytes:
    data = await request.read()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
