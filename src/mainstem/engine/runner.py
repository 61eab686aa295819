"""The engine's loop: makes the running flows what the catalog says, and reports how they do."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

from mainstem import __version__
from mainstem.catalog.entry import Catalog, Entry
from mainstem.definitions.following import takes_all
from mainstem.definitions.model import Definition
from mainstem.engine.flow import Flow, FlowServices
from mainstem.engine.hand_over import Backfills, WriteCatalog
from mainstem.engine.keyed import forget_state
from mainstem.engine.sources.source import source_flows
from mainstem.engine.status import FlowState, iso
from mainstem.errors import MainstemError
from mainstem.log.compacted import StateLog
from mainstem.vocabulary import group_of

_LOG = logging.getLogger(__name__)
_TICK_SECONDS = 0.5
_MEASURE_EVERY_TICKS = 4
_HEARTBEAT_SECONDS = 4.0
ENGINE_KEY = "engine"


class Background:
    """Short pieces of work, one after the other, in one thread; a failure is logged."""

    def __init__(self) -> None:
        self._work: queue.Queue[Callable[[], None] | None] = queue.Queue()
        self._thread = threading.Thread(target=self._run, name="background", daemon=True)
        self._thread.start()

    def __call__(self, work: Callable[[], None]) -> None:
        """Takes a piece of work; returns at once."""
        self._work.put(work)

    def close(self) -> None:
        """Finishes what was given."""
        self._work.put(None)
        self._thread.join(10)

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            try:
                work()
            except MainstemError as error:
                _LOG.warning("%s", error)
            except Exception:  # noqa: BLE001 - the next piece of work must not suffer
                _LOG.exception("background work failed")


class Runner:
    """Reconciles flows with the catalog. `run` is the engine's main loop; `wake` may be called
    from any thread when the catalog has changed.
    """

    def __init__(
        self,
        services: FlowServices,
        catalog: Callable[[], Catalog],
        statuses: StateLog[dict[str, Any]],
        write_catalog: WriteCatalog,
    ) -> None:
        self._services = services
        self._catalog = catalog
        self._statuses = statuses
        self._flows: dict[str, Flow] = {}
        self._backfills = Backfills(services, write_catalog)
        self._woken = threading.Event()
        self._published: dict[str, dict[str, Any]] = {}
        self._started_at = services.clock.now()
        self._beat_at = 0.0

    def wake(self) -> None:
        """Makes the loop look at the catalog at once."""
        self._woken.set()

    def run(self, stop: threading.Event) -> None:
        """Runs until `stop` is set, then stops every flow."""
        ticks = 0
        while not stop.is_set():
            try:
                self._beat()
                catalog = self.reconcile()
                for flow in (*self._flows.values(), *self._backfills.flows):
                    flow.tick()
                if ticks % _MEASURE_EVERY_TICKS == 0:
                    self._measure()
                # by the catalog that the flows were started for: a newer one stops some of them
                self._backfills.hand_over(catalog, self._flows)
                self._publish()
            except MainstemError as error:
                _LOG.warning("%s", error)
            except Exception:  # noqa: BLE001 - flows must go on, whatever it was
                _LOG.exception("the engine's loop failed; it goes on")
            ticks += 1
            self._woken.wait(_TICK_SECONDS)
            self._woken.clear()
        self._backfills.stop()
        for flow in self._flows.values():
            flow.stop()

    def reconcile(self) -> Catalog:
        """Starts, stops and restarts flows until they are what the catalog asks for; gives it."""
        catalog = self._catalog()
        flows = (*catalog.flows(), *source_flows(catalog))
        wanted = {entry.name.lower(): entry for entry in flows}
        self._backfills.reconcile({n: (e, _inputs(e, catalog)) for n, e in wanted.items()})
        for name in [n for n in self._flows if n not in wanted]:
            self._remove(self._flows.pop(name))
        # all that change end before the first begins again: one that reads what another writes
        # would pass over the columns that this one has gained
        for name, flow in list(self._flows.items()):
            entry = wanted[name]
            if _same_run(flow, entry, _inputs(entry, catalog)):
                flow.entry = entry
                continue
            goes_on = flow.entry.generation == entry.generation
            self._end(self._flows.pop(name), goes_on=goes_on)
            if entry.definition.stateful is None:
                self._forget_state(flow.entry.definition)
        for name, entry in wanted.items():
            if name in self._flows:
                continue
            flow = Flow(entry, _inputs(entry, catalog), self._services)
            self._flows[name] = flow
            if entry.paused:
                flow.stop(FlowState.PAUSED)
            else:
                flow.start()
            self._beat()  # many flows take long to start, and that is no silence
        return catalog

    def _end(self, flow: Flow, *, goes_on: bool = False) -> None:
        flow.stop()
        if goes_on:
            return  # what it has read was judged by the rules that it had, and is not judged again
        for source in flow.inputs:
            self._services.keeper.forget(source)

    def _remove(self, flow: Flow) -> None:
        self._end(flow)
        self._services.checkpoints.delete(flow.checkpoint)
        self._services.in_background(
            lambda: self._services.admin.delete_group(group_of(flow.entry.name))
        )
        self._forget_state(flow.entry.definition)
        self._published.pop(flow.entry.name, None)
        self._statuses.write({flow.entry.name: None}, wait=False)

    def _forget_state(self, definition: Definition) -> None:
        """Deletes what a stateful function has kept. If that fails, a new flow of it empties it."""
        if definition.stateful is None:
            return
        try:
            forget_state(definition, self._services.spark, self._services.admin)
        except MainstemError as error:
            _LOG.warning("%s", error)

    def _measure(self) -> None:
        self._services.ledger.refresh()
        ends_of = cache(self._services.ends_of)  # many flows may read the same stream
        for flow in (*self._flows.values(), *self._backfills.flows):
            flow.measure(ends_of)

    def _beat(self) -> None:
        """Says that the engine lives, unless it said so a moment ago."""
        now = self._services.clock.now()
        if now - self._beat_at < _HEARTBEAT_SECONDS:
            return
        self._beat_at = now
        word = {
            "state": "running",
            "version": __version__,
            "started_at": iso(self._started_at),
            "updated_at": iso(now),
        }
        self._statuses.write({ENGINE_KEY: word}, wait=False)

    def _publish(self) -> None:
        now = self._services.clock.now()
        changes: dict[str, dict[str, Any] | None] = {}
        for flow in self._flows.values():
            status = flow.status.to_json(now)
            comparable = {k: v for k, v in status.items() if k != "updated_at"}
            if comparable != self._published.get(flow.entry.name):
                self._published[flow.entry.name] = comparable
                changes[flow.entry.name] = status
        if changes:
            self._statuses.write(changes, wait=False)


def _inputs(entry: Entry, catalog: Catalog) -> tuple[Definition, ...]:
    query = entry.definition.query
    names = query.inputs if query is not None else ()
    found = (catalog.get(name) for name in names)
    sources = (source.definition for source in found if source is not None)
    # whoever does not take all columns need not wait for new ones
    follows = takes_all(entry.definition)
    return tuple(replace(source, follows=source.follows and follows) for source in sources)


def _same_run(flow: Flow, entry: Entry, inputs: tuple[Definition, ...]) -> bool:
    """True when the running flow already does what the entry asks for.

    Of its inputs the fingerprint knows all that matters to it, but for the idle time-out.
    """
    return (
        flow.entry.fingerprint == entry.fingerprint
        and flow.entry.generation == entry.generation
        and flow.entry.paused == entry.paused
        and (entry.definition.captures is None or flow.entry.definition == entry.definition)
        and flow.entry.definition.trigger == entry.definition.trigger
        and [i.idle_timeout for i in flow.inputs] == [i.idle_timeout for i in inputs]
    )
