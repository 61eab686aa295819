"""The backfills of an engine: started, stopped and handed over as the catalog says."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from mainstem.catalog.backfill import appended, handed_over, topic_beside
from mainstem.catalog.entry import Catalog, CatalogRecord, Entry
from mainstem.crash import crash_point
from mainstem.definitions.model import Definition
from mainstem.engine.backfill import BackfillFlow
from mainstem.engine.flow import Flow, FlowServices
from mainstem.engine.status import FlowState
from mainstem.engine.take_over import is_pending
from mainstem.errors import MainstemError
from mainstem.vocabulary import BACKFILL_PREFIX

_LOG = logging.getLogger(__name__)

WriteCatalog = Callable[[Mapping[str, CatalogRecord | None], int], object]
"""Writes changes of the catalog, if it is still at a revision."""


@dataclass(slots=True)
class _Running:
    entry: Entry
    inputs: tuple[Definition, ...]
    flow: BackfillFlow
    holding: bool = False
    """True while the live flow is held, so that this one gets to where it is."""


class Backfills:
    """Belongs to the runner, and is used by its thread only."""

    def __init__(self, services: FlowServices, write_catalog: WriteCatalog) -> None:
        self._services = services
        self._write_catalog = write_catalog
        self._running: dict[str, _Running] = {}
        self._swept = False

    @property
    def flows(self) -> Iterable[Flow]:
        """The flows of all backfills."""
        return [running.flow for running in self._running.values()]

    def reconcile(self, wanted: Mapping[str, tuple[Entry, tuple[Definition, ...]]]) -> None:
        """Starts and stops backfills until they are what the entries, by name, ask for."""
        self._sweep(entry for entry, _ in wanted.values())
        for name, running in list(self._running.items()):
            entry, inputs = wanted.get(name, (None, ()))
            if entry is None or not _asks_for(entry, running.entry):
                self._end(self._running.pop(name), entry)
            elif (entry.fingerprint, entry.backfill, entry.definition, inputs) != (
                running.entry.fingerprint,
                running.entry.backfill,
                running.entry.definition,
                running.inputs,
            ):
                running.flow.stop()
                del self._running[name]
        for name, (entry, inputs) in wanted.items():
            if entry.backfill is None or not entry.backfill.active or name in self._running:
                continue
            flow = BackfillFlow(entry, inputs, self._services)
            self._running[name] = _Running(entry, inputs, flow)
            if flow.entry.paused:
                flow.stop(FlowState.PAUSED)
            else:
                flow.start()

    def hand_over(self, catalog: Catalog, flows: Mapping[str, Flow]) -> None:
        """Ends backfills that are there: a table goes on with what its own has computed, and a
        stream has all that was to be added.
        """
        for name, live in flows.items():
            running, entry = self._running.get(name), catalog.get(name)
            if running is None or entry is None or not _asks_for(entry, running.entry):
                live.release()
                live.status.backfill = live.handing_over
                continue
            live.status.backfill = running.flow.progress()
            if entry.backfill is not None and entry.backfill.end is not None:
                ready, after = running.flow.finished and running.flow.hold(), appended(entry)
            else:
                ready, after = self._held(running, live), handed_over(entry)
            if not ready:
                continue
            crash_point("backfill-held", running.flow.entry.flow_id, 0)
            try:
                self._write_catalog({name: after}, catalog.revision)
            except MainstemError as error:
                _LOG.info("backfill of %s: %s", name, error.message)  # the next tick tries again
            else:
                crash_point("backfill-switched", running.flow.entry.flow_id, 0)
                _LOG.info("backfill of %s: done", name)

    def stop(self) -> None:
        """Stops all, to go on later."""
        for running in self._running.values():
            running.flow.stop()

    def _held(self, running: _Running, live: Flow) -> bool:
        """True when both are held, and the backfill has read all that the live flow has."""
        backfill = running.flow
        if live.status.state is FlowState.RETRYING and not live.running:
            # the target of a sink fails, and gets another one
            return backfill.caught_up and backfill.hold()
        if not backfill.running or not live.running:
            backfill.release()
            live.release()
            running.holding = False
            return False
        if not running.holding:
            running.holding = backfill.caught_up
        if not running.holding or not live.hold():
            return False
        return backfill.has_reached(live.status.positions) and backfill.hold()

    def _end(self, running: _Running, entry: Entry | None) -> None:
        running.flow.stop()
        if entry is not None and entry.generation == running.flow.entry.generation:
            return  # handed over
        try:
            running.flow.discard()
        except MainstemError as error:
            _LOG.warning("%s", error)  # the next start of the engine sweeps it away

    def _sweep(self, entries: Iterable[Entry]) -> None:
        """Deletes, once, topics of backfills that ended while no engine was running."""
        if self._swept:
            return
        admin, checkpoints = self._services.admin, self._services.checkpoints
        kept = {
            topic_beside(entry.definition.topic, entry.newest_generation)
            for entry in entries
            if (entry.backfill is not None and entry.backfill.active)
            or is_pending(entry, checkpoints)
        }
        for info in admin.topics(internal=True):
            if info.name.startswith(BACKFILL_PREFIX) and info.name not in kept:
                admin.delete_topic(info.name)
        self._swept = True


def _asks_for(entry: Entry, running: Entry) -> bool:
    """True when the entry wants the backfill that runs."""
    assert running.backfill is not None
    wanted = entry.backfill
    return wanted is not None and wanted.active and wanted.generation == running.backfill.generation
