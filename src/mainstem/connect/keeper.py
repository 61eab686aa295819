"""Keeps the connectors of Kafka Connect in step with the sources of the catalog: a thread.

It holds nothing that must not be lost: what is wanted stands in the catalog, what is there in
Connect, and each look compares the two. So it does not matter when it looks or where it dies; what
a crash in the middle of a change leaves is said in `care`. Two keepers do the same things, and
Connect refuses the second of them.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor

from mainstem.connect.care import Care, Surroundings
from mainstem.connect.carrier import Wanted
from mainstem.connect.client import Connector
from mainstem.connect.local_worker import Worker, WorkerWord
from mainstem.errors import MainstemError, did_you_mean

_LOG = logging.getLogger(__name__)
_LOOK_SECONDS = 1.0
_PATIENCE_SECONDS = 5.0
_THREADS = 8


class Keeper:
    """A thread that looks, and some that work: one source that does not answer delays no other.

    `sources` gives what the catalog wants, by name in small letters; it may raise any error of
    ours.
    """

    def __init__(
        self,
        project: str,
        sources: Callable[[], Mapping[str, Wanted]],
        at: Surroundings,
        worker: Worker,
    ) -> None:
        self._prefix = f"mainstem.{project}."
        self._sources = sources
        self._at = at
        self._worker = worker
        self._cares: dict[str, Care] = {}
        """By the name of the source."""
        self._jobs: dict[str, Future[None]] = {}
        self.problem: MainstemError | None = None
        """Why Connect could not be asked, when there was something to ask."""
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="connector")
        self._thread = threading.Thread(target=self._run, name="connectors", daemon=True)

    # -- life

    def start(self) -> None:
        """Begin; returns at once."""
        self._thread.start()

    def close(self) -> None:
        """End; safe to call twice, and before `start`. Work that waits for others is left."""
        self._stop.set()
        self._pool.shutdown(wait=False, cancel_futures=True)
        if self._thread.is_alive():
            self._thread.join(_PATIENCE_SECONDS)
        self._at.client.close()

    def _run(self) -> None:
        while not self._stop.wait(_LOOK_SECONDS):
            try:
                self.look()
            except Exception:  # noqa: BLE001 - the next look must come
                _LOG.exception("looking after connectors failed; it goes on")

    # -- one look

    def look(self) -> None:
        """Compare, and let be done what is missing."""
        try:
            sources = self._sources()
        except MainstemError:
            return  # the catalog cannot be read now
        if not self._needed(sources):
            self._cares.clear()
            self.problem = None
            return
        for name, source in sources.items():
            self._care(name).wanted = source  # to be seen, though nothing can be done yet
        idle = all(job.done() for job in self._jobs.values())
        try:
            found = self._found()
        except MainstemError as error:
            for care in self._cares.values():
                care.found = None
            self._tell(error)
            return
        self._tell(None)
        for name in {**sources, **found}:
            self._submit(name, sources.get(name), found.get(name))
        for name in self._cares.keys() - sources.keys() - found.keys():
            if name not in self._jobs or self._jobs[name].done():
                del self._cares[name]
                self._at.secrets.forget(name)  # of one that Connect has refused, too
        if not sources and not found and idle:
            self._worker.want(())

    def _needed(self, sources: Mapping[str, Wanted]) -> bool:
        """Whether Connect is needed; then it is asked for.

        What was asked for before may have left connectors, and it takes Connect to remove them: so
        it is asked for until it has said itself that there are none.
        """
        plugins = {self._at.carrier(source.connector).plugin for source in sources.values()}
        before = self._worker.wanted()
        if plugins - before:
            self._worker.want(plugins | before)
        return bool(plugins | before)

    def _found(self) -> dict[str, Connector]:
        """Connectors of this project, by the name of the source."""
        return {
            name.removeprefix(self._prefix): connector
            for name, connector in self._at.client.connectors().items()
            if name.startswith(self._prefix)
        }

    def _care(self, name: str) -> Care:
        return self._cares.setdefault(name, Care(f"{self._prefix}{name}", self._at))

    def _submit(self, name: str, wanted: Wanted | None, found: Connector | None) -> None:
        job = self._jobs.get(name)
        if job is not None and not job.done():
            return
        care = self._care(name)
        self._jobs[name] = self._pool.submit(self._work, care, wanted, found)

    def _work(self, care: Care, wanted: Wanted | None, found: Connector | None) -> None:
        try:
            care.step(wanted, found)
        except Exception:  # noqa: BLE001 - the next step must come
            _LOG.exception("looking after the connector %s failed; it goes on", care.name)

    def _tell(self, error: MainstemError | None) -> None:
        if error is not None and self.problem is None:
            _LOG.info("waiting for Kafka Connect: %s", error.message)
        self.problem = error

    # -- what people see and ask

    @property
    def url(self) -> str:
        """Where Kafka Connect is."""
        return self._at.client.url

    @property
    def worker(self) -> WorkerWord:
        """What has become of the worker."""
        return self._worker.word()

    def cares(self) -> dict[str, Care]:
        """All connectors, those too that are being removed, by the name of the source."""
        return dict(sorted(self._cares.items()))

    def care(self, name: str) -> Care:
        """That of one source; CONNECTOR_UNKNOWN when there is none."""
        found = self._cares.get(name.lower())
        if found is None:
            near = did_you_mean(name, list(self._cares))
            raise MainstemError("CONNECTOR_UNKNOWN", name=name, suggestion=near)
        return found
