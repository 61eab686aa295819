"""Numbers for Prometheus: what the flows and views report, and what the gateway itself does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from starlette.types import Scope

from mainstem.views.observe import ViewProgress

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
LOOKUP_PATH = "/v1/tables/{name}/rows"

_FLOW_GAUGES = {
    "lag_records": ("lag_records", "Records that the flow has not read yet"),
    "lag_seconds": ("lag_seconds", "Age of the oldest record that the flow has not read yet"),
    "input_rate": ("input_records_per_second", "Records that the flow reads in a second"),
    "process_rate": ("processed_records_per_second", "Records that the flow could take on"),
    "batch_seconds": ("batch_seconds", "Time that the last micro-batch took"),
    "state_rows": ("state_rows", "Rows in the flow's state"),
    "state_bytes": ("state_bytes", "Bytes of the flow's state"),
    "late_waiting": ("late_waiting", "Late records that APPLY LATE would take in"),
}
_FLOW_COUNTERS = {
    "rows_in_total": ("rows_in", "Records read"),
    "rows_out_total": ("rows_out", "Records written"),
    "quarantined": ("quarantined", "Records set aside because they could not be decoded"),
    "late_dropped": ("late_dropped", "Records that came behind the watermark"),
    "restarts": ("restarts", "Restarts after a failure"),
}


class Metrics:
    """The gateway's registry. Labels are few: flow, view, object, rule, and a request's route."""

    def __init__(
        self,
        flows: Callable[[], dict[str, dict[str, Any]]],
        views: Callable[[], Iterable[ViewProgress]],
        held: Callable[[], Mapping[str, int]] = dict,
        rules: Callable[[], Iterable[Mapping[str, Any]]] = tuple,
        connectors: Callable[[], Iterable[Mapping[str, Any]]] = tuple,
    ) -> None:
        self._registry = CollectorRegistry()
        self._seconds = Histogram(
            "mainstem_http_request_seconds",
            "Time from a request to the end of its answer",
            ("method", "route"),
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._requests = Counter(
            "mainstem_http_requests",
            "Requests answered",
            ("method", "route", "status"),
            registry=self._registry,
        )
        self._children: dict[tuple[str, str, int], tuple[Histogram, Counter]] = {}
        self._registry.register(_Platform(flows, views, held, rules, connectors))

    def request(self, scope: Scope, status: int, seconds: float) -> None:
        """Count one request."""
        key = (scope["method"], _route(scope), status)
        children = self._children.get(key)
        if children is None:
            method, route, _ = key
            children = (
                self._seconds.labels(method, route),
                self._requests.labels(method, route, str(status)),
            )
            self._children[key] = children
        children[0].observe(seconds)
        children[1].inc()

    def render(self) -> bytes:
        """All numbers in Prometheus' text format."""
        return generate_latest(self._registry)


def _route(scope: Scope) -> str:
    # the path itself would make a label per name
    route = scope.get("route")
    return getattr(route, "path", None) or ("other" if route is None else str(route))


class _Platform(Collector):
    def __init__(
        self,
        flows: Callable[[], dict[str, dict[str, Any]]],
        views: Callable[[], Iterable[ViewProgress]],
        held: Callable[[], Mapping[str, int]],
        rules: Callable[[], Iterable[Mapping[str, Any]]],
        connectors: Callable[[], Iterable[Mapping[str, Any]]],
    ) -> None:
        self._flows = flows
        self._views = views
        self._held = held
        self._rules = rules
        self._connectors = connectors

    def collect(self) -> Iterator[Metric]:
        """What the status topic and the views say at this moment."""
        flows = self._flows()
        up = GaugeMetricFamily("mainstem_flow_up", "1 while the flow runs", labels=["flow"])
        for name, status in flows.items():
            up.add_metric([name], float(status.get("state") in ("running", "idle", "starting")))
        yield up
        for field, (metric, text) in _FLOW_GAUGES.items():
            family = GaugeMetricFamily(f"mainstem_flow_{metric}", text, labels=["flow"])
            yield _filled(family, flows, field)
        for field, (metric, text) in _FLOW_COUNTERS.items():
            counter = CounterMetricFamily(f"mainstem_flow_{metric}", text, labels=["flow"])
            yield _filled(counter, flows, field)
        lag = GaugeMetricFamily(
            "mainstem_view_lag_records", "Records that the view does not hold yet", labels=["view"]
        )
        aside = CounterMetricFamily(
            "mainstem_view_quarantined", "Records that could not become rows", labels=["view"]
        )
        for view in self._views():
            lag.add_metric([view.name], float(view.lag_records))
            aside.add_metric([view.name], float(view.quarantined))
        yield lag
        yield aside
        held = GaugeMetricFamily(
            "mainstem_quarantine_held", "Records held in quarantine", labels=["object"]
        )
        for name, count in self._held().items():
            held.add_metric([name], float(count))
        yield held
        broken = CounterMetricFamily(
            "mainstem_rule_broken",
            "Records that broke a rule",
            labels=["object", "rule", "on_violation"],
        )
        for rule in self._rules():
            if rule["records"] is not None:
                labels = [rule["object"], rule["name"], rule["on_violation"]]
                broken.add_metric(labels, float(rule["records"]))
        yield broken
        yield from _of_connectors(list(self._connectors()))


def _of_connectors(connectors: list[Mapping[str, Any]]) -> Iterator[Metric]:
    up = GaugeMetricFamily(
        "mainstem_connector_up", "1 while the connector captures", labels=["connector"]
    )
    restarts = CounterMetricFamily(
        "mainstem_connector_restarts", "Restarts after a failure", labels=["connector"]
    )
    held = GaugeMetricFamily(
        "mainstem_connector_held_bytes",
        "What the source's system keeps because it was not captured yet",
        labels=["connector"],
    )
    taken, aside, lost = (
        CounterMetricFamily(f"mainstem_source_{name}", text, labels=["source"])
        for name, text in (
            ("records", "Records that a source of gateway or engine has written"),
            ("quarantined", "What came to it and went to the quarantine"),
            ("lost", "What came to it and is nowhere"),
        )
    )
    for connector in connectors:
        label = [connector["name"]]
        if connector.get("runs_in") in ("gateway", "engine"):
            taken.add_metric(label, float(connector["records"]))
            aside.add_metric(label, float(connector["quarantined"]))
            lost.add_metric(label, float(connector["lost"]))
        up.add_metric(label, float(connector["state"] in ("running", "starting")))
        restarts.add_metric(label, float(connector["restarts"]))
        if connector["held_bytes"] is not None:
            held.add_metric(label, float(connector["held_bytes"]))
    yield from (up, restarts, held, taken, aside, lost)


def _filled(family: Any, flows: dict[str, dict[str, Any]], field: str) -> Metric:
    for name, status in flows.items():
        value = status.get(field)
        if isinstance(value, (int, float)):
            family.add_metric([name], float(value))
    filled: Metric = family
    return filled
