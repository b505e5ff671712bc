"""Exports the spans and metrics of a run by OTLP over HTTP, with the SDK of OpenTelemetry.

The environment variables of OpenTelemetry configure the exporter, for example ``OTEL_EXPORTER_OTLP_ENDPOINT``. The
spans of requests have the attributes of the semantic conventions for generative models. No prompt and no answer is
exported.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from bestofn.builders.distribution import install_command
from bestofn.builders.errors import ConfigError
from bestofn.builders.records import JsonObject
from bestofn.builders.telemetry.spans import Attributes, Value, recorded_by

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Histogram, Meter, Observation
    from opentelemetry.trace import Span, StatusCode, Tracer

QUEUED_SPANS = 50_000  # spans that wait for their export; the SDK reports when it drops more
IN_HISTOGRAMS = ("gen_ai.request.model", "outcome", "verifier", "status", "language", "error.type")
"""Attributes of the histograms of durations; other attributes have too many values."""


@contextlib.contextmanager
def exporting(name: str, facts: JsonObject, metrics: Callable[[], JsonObject], every_s: float) -> Iterator[None]:
    """Export the spans and metrics of the block, below one root span with the name ``name``.

    ``facts`` are attributes of the resource. The values that ``metrics`` returns are sent every ``every_s`` seconds and
    at the end. Raises ``ConfigError`` if a package is missing.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise ConfigError(
            f"log.otel needs {error.name}, which is not installed. Run `{install_command('telemetry')}`."
        ) from error
    resource = Resource.create({"service.name": "bestofn", **_known(facts)})
    traces = TracerProvider(resource=resource)
    traces.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(), max_queue_size=QUEUED_SPANS))
    reader = PeriodicExportingMetricReader(OTLPMetricExporter(), export_interval_millis=max(every_s, 1.0) * 1000)
    meters = MeterProvider(resource=resource, metric_readers=[reader])
    try:
        tracer, meter = traces.get_tracer("bestofn"), meters.get_meter("bestofn")
        observe(meter, metrics)
        with tracer.start_as_current_span(name, record_exception=False, set_status_on_exception=False) as root:
            recorder = SpanRecorder(tracer, meter, root)
            with recorded_by(recorder), _failure_noted(root):
                yield
    finally:
        meters.shutdown()
        traces.shutdown()


class SpanRecorder:
    """Records spans as OpenTelemetry spans, and their durations in seconds as histograms ``bestofn.NAME.duration``.

    The parent of a span is the enclosing span in the same task. If there is none, the parent is ``root``.
    """

    def __init__(self, tracer: Tracer, meter: Meter, root: Span) -> None:
        self._tracer, self._meter, self._root = tracer, meter, root
        self._durations: dict[str, Histogram] = {}

    @contextlib.contextmanager
    def span(self, name: str, attributes: Attributes) -> Iterator[_Noted]:
        """Record the block as a span with the name ``name``."""
        from opentelemetry import trace

        parent = None if trace.get_current_span().get_span_context().is_valid else trace.set_span_in_context(self._root)
        started = time.perf_counter()
        with self._tracer.start_as_current_span(
            name, parent, attributes=_known(attributes), record_exception=False, set_status_on_exception=False
        ) as span:
            noted = _Noted(span, dict(_known(attributes)))
            try:
                with _failure_noted(noted):
                    yield noted
            finally:
                self._count(name, time.perf_counter() - started, noted.attributes)

    def _count(self, name: str, seconds: float, attributes: Mapping[str, Value]) -> None:
        if name not in self._durations:
            self._durations[name] = self._meter.create_histogram(f"bestofn.{name}.duration", "s")
        self._durations[name].record(seconds, {key: attributes[key] for key in IN_HISTOGRAMS if key in attributes})


class _Noted(NamedTuple):
    """A span of OpenTelemetry, with a copy of its attributes."""

    span: Span
    attributes: dict[str, Value]

    def note(self, attributes: Attributes) -> None:
        """Add attributes to the span; those whose value is None are left out."""
        self.attributes.update(_known(attributes))
        self.span.set_attributes(_known(attributes))

    def set_attribute(self, key: str, value: Value) -> None:
        """Add one attribute to the span."""
        self.note({key: value})

    def set_status(self, status: StatusCode) -> None:
        """Set the status of the span."""
        self.span.set_status(status)


@contextlib.contextmanager
def _failure_noted(span: Span | _Noted) -> Iterator[None]:
    """If the block raises an exception, record the type of the exception in ``span``.

    The text of the exception is not exported, because it may contain parts of an answer.
    """
    from opentelemetry.trace import StatusCode

    try:
        yield
    except BaseException as error:
        span.set_attribute("error.type", type(error).__name__)
        span.set_status(StatusCode.ERROR)
        raise


def _known(attributes: Attributes) -> dict[str, Value]:
    return {key: value for key, value in attributes.items() if value is not None}


Samples = Iterable[tuple[float, dict[str, str]]]


def observe(meter: Meter, metrics: Callable[[], JsonObject]) -> None:
    """Create the counters and gauges of a run. ``metrics`` returns their current values (``run.metrics``)."""
    counters: dict[str, Callable[[JsonObject], Samples]] = {
        "bestofn.requests": lambda now: _of_services(now, "attempts"),
        "bestofn.failures": lambda now: _by_cause(now, "failed"),
        "bestofn.retries": lambda now: _by_cause(now, "retried"),
        "bestofn.completions": lambda now: [(now["completions"], {})],
        "bestofn.errors": lambda now: [(now["errors"], {})],
        "bestofn.tokens": lambda now: _each(now["tokens"], "gen_ai.token.type"),
        "bestofn.cost_usd": lambda now: [(now["usd"], {})],
        "bestofn.queries": lambda now: _each(now["queries"], "stage"),
        "bestofn.verdicts": lambda now: _each(now["verdicts"], "outcome"),
    }
    gauges: dict[str, Callable[[JsonObject], Samples]] = {
        "bestofn.requests_in_flight": lambda now: _of_services(now, "in_flight"),
        "bestofn.requests_queued": lambda now: _of_services(now, "queued"),
        "bestofn.verification_queue": lambda now: [(now["verification_queue"], {})],
    }
    for name, samples in counters.items():
        meter.create_observable_counter(name, [_callback(metrics, samples)])
    for name, samples in gauges.items():
        meter.create_observable_gauge(name, [_callback(metrics, samples)])


def _callback(
    metrics: Callable[[], JsonObject], samples: Callable[[JsonObject], Samples]
) -> Callable[[CallbackOptions], list[Observation]]:
    from opentelemetry.metrics import Observation

    return lambda options: [Observation(value, attributes) for value, attributes in samples(metrics())]


def _each(counts: Mapping[str, float], key: str) -> Samples:
    return [(count, {key: name}) for name, count in counts.items()]


def _of_services(now: JsonObject, key: str) -> Samples:
    return [(state[key], {"service": state["service"]}) for state in now["services"]]


def _by_cause(now: JsonObject, key: str) -> Samples:
    return [
        (count, {"service": state["service"], "cause": cause})
        for state in now["services"]
        for cause, count in state[key].items()
    ]
