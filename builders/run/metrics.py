"""The metrics of a running build as a record of plain data, and as text in the format of Prometheus.

The state of each service comes from its limiter (``Limiter.state``). Written by ``builders.run.run_log``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TypedDict

from bestofn.builders.records import JsonObject
from bestofn.builders.run.progress import Progress
from bestofn.builders.sampling.attempt_counts import ServiceState

TOKENS = {"input": "prompt", "output": "completion"}  # kind of tokens -> how the ledger calls them


class Metrics(TypedDict):
    """The state of a run. Counts are totals since the start of the process.

    ``queries_completed_before`` counts the queries that earlier commands completed. ``verification_queue`` counts
    queries that are sampled and not yet verified. ``error_share`` is the share of the requested completions that ended
    in an error. ``tokens`` are counted by kind: ``input`` and ``output``.
    """

    time: str
    seconds: float
    queries_completed_before: int
    queries: Mapping[str, int]
    verification_queue: int
    verdicts: Mapping[str, int]
    completions: int
    errors: int
    tokens: Mapping[str, int]
    error_share: float
    usd: float
    usd_per_hour: float
    services: Sequence[ServiceState]


class MetricsSource:
    """Makes the metrics of one run. ``stages`` are the names of its stages, in order."""

    def __init__(self, progress: Progress, stages: Sequence[str]) -> None:
        self._progress = progress
        self._stages = stages
        self._started = time.monotonic()

    def metrics(self, spending: JsonObject, services: Sequence[ServiceState]) -> Metrics:
        """Return the present metrics. ``spending`` has the counts of ``Ledger.totals``."""
        seconds = time.monotonic() - self._started
        queries = {stage: self._progress.rows[stage] for stage in self._stages}
        errors, completions = int(spending.get("errors", 0)), int(spending.get("completions", 0))
        usd = float(spending.get("usd", 0.0))
        return {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "seconds": round(seconds, 3),
            "queries_completed_before": self._progress.skipped,
            "queries": queries,
            "verification_queue": max(0, queries.get("generate", 0) - queries.get("verify", 0)),
            "verdicts": dict(self._progress.outcomes),
            "completions": completions,
            "errors": errors,
            "tokens": {kind: int(spending.get(f"{name}_tokens", 0)) for kind, name in TOKENS.items()},
            "error_share": round(errors / max(errors + completions, 1), 6),
            "usd": round(usd, 6),
            "usd_per_hour": round(usd / max(seconds, 1e-9) * 3600, 6),
            "services": services,
        }


def prometheus_text(metrics: Metrics) -> str:
    """Return ``metrics`` in the text format of Prometheus, for example for the textfile collector of node_exporter."""
    return "".join(f"{line}\n" for line in _lines(metrics))


Sample = tuple[Mapping[str, str], float]


def _lines(metrics: Metrics) -> Iterator[str]:
    services = metrics["services"]
    by_service = [({"service": state["service"]}, state) for state in services]
    families: list[tuple[str, str, str, list[Sample]]] = [
        ("queries_total", "counter", "Queries done, by stage", _each("stage", metrics["queries"])),
        ("verification_queue", "gauge", "Queries that wait for their verdicts", [({}, metrics["verification_queue"])]),
        ("verdicts_total", "counter", "Candidates, by outcome", _each("outcome", metrics["verdicts"])),
        ("completions_total", "counter", "Completions received", [({}, metrics["completions"])]),
        ("errors_total", "counter", "Requested completions that ended in an error", [({}, metrics["errors"])]),
        (
            "tokens_total",
            "counter",
            "Tokens of prompts (input) and of completions (output)",
            _each("kind", metrics["tokens"]),
        ),
        ("error_share", "gauge", "Errors divided by errors and completions", [({}, metrics["error_share"])]),
        ("cost_usd_total", "counter", "Cost in dollars", [({}, metrics["usd"])]),
        ("cost_usd_per_hour", "gauge", "Cost in dollars per hour", [({}, metrics["usd_per_hour"])]),
        ("requests_in_flight", "gauge", "Requests in flight", [(of, one["in_flight"]) for of, one in by_service]),
        ("requests_queued", "gauge", "Requests that wait to be sent", [(of, one["queued"]) for of, one in by_service]),
        (
            "window",
            "gauge",
            "Requests that may be in flight at present",
            [(of, one["window"]) for of, one in by_service],
        ),
        ("attempts_total", "counter", "Requests sent", [(of, one["attempts"]) for of, one in by_service]),
        (
            "rate_limited_share",
            "gauge",
            "Share of the requests that were answered with the status 429",
            [(of, one["rate_limited_share"]) for of, one in by_service],
        ),
        ("failures_total", "counter", "Failed requests, by cause", _by_cause(services, "failed")),
        ("retries_total", "counter", "Failed requests that were sent again, by cause", _by_cause(services, "retried")),
        ("latency_seconds", "gauge", "Quantiles of the last 1,000 successful requests", _latencies(services)),
    ]
    for name, kind, help_text, samples in families:
        if samples:
            yield f"# HELP bestofn_{name} {help_text}."
            yield f"# TYPE bestofn_{name} {kind}"
            for labels, value in samples:
                yield f"bestofn_{name}{_labels(labels)} {float(value)!r}"


def _each(label: str, counts: Mapping[str, int]) -> list[Sample]:
    return [({label: name}, count) for name, count in counts.items()]


def _by_cause(services: Sequence[ServiceState], key: str) -> list[Sample]:
    return [
        ({"service": state["service"], "cause": cause}, count)
        for state in services
        for cause, count in (state["failed"] if key == "failed" else state["retried"]).items()
    ]


def _latencies(services: Sequence[ServiceState]) -> list[Sample]:
    return [
        ({"service": state["service"], "quantile": quantile}, seconds)
        for state in services
        for quantile, seconds in state["latency_s"].items()
    ]


def _labels(labels: Mapping[str, str]) -> str:
    def escaped(value: str) -> str:
        return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")

    pairs = ",".join(f'{name}="{escaped(value)}"' for name, value in labels.items())
    return f"{{{pairs}}}" if pairs else ""
