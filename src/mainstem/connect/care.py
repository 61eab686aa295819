"""Looking after one connector: made, changed, stopped, restarted and removed as the catalog says.

Each step asks what is there and does the next thing that is missing, so it may be cut off anywhere
and be begun again, by this process or another.

To make one:
1. its secrets are written to their file. Crash: the file is there, and is written again, the same.
2. Connect checks the configuration, which changes nothing.
3. the topics of its own (heartbeats, history of tables, rows of a sink) are made, if there are
   none: Connect makes no topics.
4. Connect takes it, with the label of the source. Crash: it is there, and is found by its name.

To add tables to one:
1. it is stopped, so that no task with the old list of tables reads what is asked for next. Crash:
   it is stopped, and its configuration is still not the one that is wanted.
2. its configuration is changed; it says which tables were added, each with an id.
3. before it runs again, a snapshot of each is asked for, once for each id (`snapshots`).
4. it is resumed. Crash before: it is stopped, and what is asked for is not asked for twice.

To remove one, when the catalog has it no more, or has another source of that name:
1. it is stopped. Crash: it stays stopped, for it is wanted nowhere.
2. its offsets are reset: a source of the same name must not go on where this one was.
3. what it has left in its system (slot, publication) is removed. While that system does not answer
   this is tried again, until a person says that it is to be left there.
4. the topics of its own are removed.
5. Connect forgets it. Until then the label says all that is needed to go on with these steps.
6. its file of secrets is removed. Crash before: the next source of that name writes over it.
"""

from __future__ import annotations

import json
import logging
import re
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from mainstem.connect.carrier import LABEL, Around, Carrier, SourceState, Wanted
from mainstem.connect.client import ConnectClient, Connector, State
from mainstem.connect.debezium_common import NOTICES_TOPIC, SIGNALS_TOPIC, TABLES
from mainstem.connect.kept_secrets import KeptSecrets
from mainstem.connect.plugin_config import taken_records
from mainstem.connect.secrets import has_reference
from mainstem.connect.snapshots import Letters, Snapshots
from mainstem.connect.spec import Role
from mainstem.errors import MainstemError

_LOG = logging.getLogger(__name__)
_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 60.0
_STEADY_SECONDS = 120.0
"""One that ran for so long starts again with the shortest pause."""
_LOOK_SECONDS = 10.0
"""Time between two looks into the system of a source."""
_STUCK_SECONDS = 120.0
_SERVER_ERROR = 500
"""What is less is for the definition to put right."""
_SNAPSHOT_FAILED = "SNAPSHOT_FAILED"
_NO_SNAPSHOT = "none"
_ADDED = "mainstem.added"
"""In a configuration: tables that the connector did not begin with, and the ids of snapshots."""
_PASSING = ("CONNECT_BUSY", "CONNECT_UNREACHABLE")
"""Connect works at what it was asked for a moment ago, or is away, which the keeper tells."""


class Topics(Letters, Protocol):
    """What is needed of the log."""

    def make(self, topic: str, *, forever: bool) -> None:
        """A small topic of our own, if it is not there; else its records go after a while."""

    def remove(self, topic: str) -> None:
        """Harmless when it is not there."""

    def written(self, topics: Sequence[str]) -> int:
        """How many records these topics have taken so far."""

    def forget(self, topic: str, before: Mapping[int, int]) -> None:
        """Delete the records of some partitions that are before an offset."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What everyone who looks after a connector shares."""

    client: ConnectClient
    secrets: KeptSecrets
    carrier: Callable[[str], Carrier]
    """By the connector's name in CREATE SOURCE."""
    resolve: Callable[[Wanted], dict[str, Any]]
    """Values of the options of a source or sink, secrets filled in."""
    mask: Callable[[str], str]
    topics: Topics
    clients: Mapping[str, str] = field(default_factory=dict)
    """How Kafka is reached, for a plugin that does so itself."""
    clock: Callable[[], float] = time.monotonic


@dataclass(slots=True)
class _Pause:
    """Growing pauses between tries."""

    seconds: float = _FIRST_PAUSE
    until: float = 0.0

    def next(self, now: float) -> None:
        self.until = now + self.seconds
        self.seconds = min(self.seconds * 2, _LONGEST_PAUSE)

    def reset(self) -> None:
        self.seconds, self.until = _FIRST_PAUSE, 0.0


@dataclass(slots=True)
class _Progress:
    """The last sign that a connector reads, and what its system kept for it then."""

    sign: object
    held: int
    at: float


@dataclass(slots=True)
class Care:
    """One connector. One thread at a time calls `step`; any may read what it says."""

    name: str
    """In Connect."""
    at: Surroundings
    restarts: int = 0
    """Of its own accord, since this process began."""
    error: MainstemError | None = None
    """What is wrong now."""
    last_error: MainstemError | None = None
    last_error_at: float | None = None
    """Seconds since the epoch."""
    found: Connector | None = None
    wanted: Wanted | None = None
    system: SourceState | None = None
    """What the source's system said last."""
    _pause: _Pause = field(default_factory=_Pause)
    _running_since: float | None = None
    _looked: float | None = None
    _progress: _Progress | None = None
    _left: bool = False
    _tried: Wanted | None = None
    _snapshots: Snapshots | None = None

    def step(self, wanted: Wanted | None, found: Connector | None) -> None:
        """Do what is missing; what went wrong is kept in `error`, and tried again later."""
        if wanted != self._tried:
            self._pause.reset()  # what failed may be right now
        self.wanted = self._tried = wanted
        self.found = found
        if self.at.clock() < self._pause.until:
            return
        try:
            self._step(wanted, found)
        except MainstemError as error:
            if error.code not in _PASSING:
                self._note(error)
                self._pause.next(self.at.clock())

    def leave(self) -> None:
        """A person asks for it: what it left in its system stays there, when it is removed."""
        self._left = True
        self._pause.reset()

    def restart(self, *, only_failed: bool) -> None:
        """A person asks for it: at once."""
        self.at.client.restart(self.name, only_failed=only_failed)
        self._pause.reset()
        self._progress = None

    def offsets(self) -> list[dict[str, Any]]:
        """How far it has come: pairs of a `partition` of the source and an `offset` in it."""
        return self.at.client.offsets(self.name)

    def reset_offsets(self) -> None:
        """A person asks for it: when it runs again it begins from the beginning."""
        self.at.client.reset_offsets(self.name)

    def snapshot(self, tables: Sequence[str]) -> None:
        """A person asks for it: rows of these tables are read once more, while changes go on."""
        assert self.wanted is not None
        config, _ = self._config(self.wanted, self.found)
        if SIGNALS_TOPIC not in config:
            raise MainstemError("SNAPSHOT_IMPOSSIBLE", connector=self.wanted.connector)
        self._make_topics(self.wanted, config)
        snapshots = self._take_up(config)
        for table in tables:
            snapshots.ask(table, uuid.uuid4().hex, self.at.clock())

    def snapshots(self) -> Mapping[str, str]:
        """How snapshots of single tables are."""
        return {} if self._snapshots is None else self._snapshots.shown()

    def _step(self, wanted: Wanted | None, found: Connector | None) -> None:
        made_for = Wanted.from_config(found.config) if found is not None else None
        if found is not None and (wanted is None or not _same(made_for, wanted)):
            self._remove(found, made_for)
        elif wanted is None:
            self.error = None
        else:
            self._keep(wanted, found)

    # -- make, change, turn on and off

    def _keep(self, wanted: Wanted, found: Connector | None) -> None:
        client = self.at.client
        config, renewed = self._config(wanted, found)
        stopped = found is not None and found.own is not None and found.own.state is State.STOPPED
        if found is None:
            self._check(wanted, config)
            self._make_topics(wanted, config)
            client.create(self.name, config, stopped=wanted.paused)
            _LOG.info("connector of %s made", wanted.name)
            return
        if found.config != config:
            if config.get(_ADDED) != found.config.get(_ADDED) and (not stopped or found.tasks):
                client.stop(self.name)
                return  # its tasks end meanwhile; the next step goes on
            self._check(wanted, config)
            self._make_topics(wanted, config)
            client.configure(self.name, config)
            _LOG.info("connector of %s changed", wanted.name)
            return
        if renewed:
            client.restart(self.name, only_failed=False)
        if wanted.paused:
            self._running_since = self._progress = None
            if not stopped:
                client.stop(self.name)
            self.error = None
        elif stopped or (found.own is not None and found.own.state is State.PAUSED):
            self._look_after_snapshots(config)
            client.resume(self.name)
        else:
            self._watch(wanted, found)

    def _config(self, wanted: Wanted, found: Connector | None) -> tuple[dict[str, str], bool]:
        """The configuration, its secrets put away; and whether those are new."""
        options = {**self.at.resolve(wanted), **wanted.columns}
        secrets: dict[str, str] = {}

        def put_away(key: str, value: str) -> str:
            secrets[key] = value
            return self.at.secrets.reference(wanted.name, key)

        tables = list(wanted.tables)
        secret = frozenset(name for name, text in wanted.options.items() if has_reference(text))
        around = Around(self.name, self.at.clients, wanted.role, wanted.topics, secret)
        configure = self.at.carrier(wanted.connector).config
        config = configure(wanted.name, options, tables, put_away, around)
        renewed = self.at.secrets.write(wanted.name, secrets)
        config |= {"name": self.name, LABEL: wanted.label()}
        if options.get("snapshot") != _NO_SNAPSHOT and (added := _added(wanted, found)):
            config[_ADDED] = json.dumps(added, sort_keys=True)
        return config, renewed

    def _check(self, wanted: Wanted, config: Mapping[str, str]) -> None:
        complaints = self.at.client.validate(config)
        if complaints:
            problem = "; ".join(f"{c.field}: {c.problem}" for c in complaints)
            raise MainstemError("CONNECTOR_INVALID", name=wanted.name, problem=problem)

    def _make_topics(self, wanted: Wanted, config: Mapping[str, str]) -> None:
        for topic, forever in self.at.carrier(wanted.connector).topics(config).items():
            self.at.topics.make(topic, forever=forever)

    # -- snapshots

    def _look_after_snapshots(self, config: Mapping[str, str]) -> Snapshots | None:
        """Ask for those of added tables, and once more for what was forgotten."""
        if SIGNALS_TOPIC not in config:
            return None
        snapshots, now = self._take_up(config), self.at.clock()
        for table, id in json.loads(config.get(_ADDED, "{}")).items():
            snapshots.ask(table, id, now)
        snapshots.remind(now)
        return snapshots

    def _take_up(self, config: Mapping[str, str]) -> Snapshots:
        if self._snapshots is None:
            signals, notices = config[SIGNALS_TOPIC], config[NOTICES_TOPIC]
            source = config["topic.prefix"]
            self._snapshots = Snapshots(self.at.topics, source, signals, notices)
        self._snapshots.look(self.at.clock())
        return self._snapshots

    # -- watch

    def _watch(self, wanted: Wanted, found: Connector) -> None:
        now = self.at.clock()
        if found.failed or self._looked is None or now - self._looked >= _LOOK_SECONDS:
            self._look(wanted, now)
        if (lost := self._lost(wanted, now)) is not None:
            # started again, it might go on without what was lost
            raise self._failed(wanted, lost)
        if found.failed:
            self._running_since = None
            trace = found.failed[0].trace or "it did not say why"
            self._again(only_failed=True)
            raise self._failed(wanted, trace)
        if found.own is None or not found.tasks:
            return  # it has only just been made, or the worker has
        if all(task.state is State.RUNNING for task in found.tasks):
            if self._running_since is None:
                self._running_since = now
            if self._stuck(wanted, now):
                self._again(only_failed=False)
                raise MainstemError("CONNECTOR_STUCK", seconds=int(_STUCK_SECONDS))
            if now - self._running_since >= _STEADY_SECONDS:
                self._pause.reset()
            if self._looked == now:
                self._check_snapshots(found)
            elif self.error is None or self.error.code != _SNAPSHOT_FAILED:
                self.error = None

    def _check_snapshots(self, found: Connector) -> None:
        snapshots = self._look_after_snapshots(found.config)
        failed = snapshots.failed() if snapshots is not None else None
        if failed is not None:
            table, problem = failed
            raise MainstemError(_SNAPSHOT_FAILED, table=table, problem=problem)
        self.error = None

    def _again(self, *, only_failed: bool) -> None:
        self.at.client.restart(self.name, only_failed=only_failed)
        self.restarts += 1
        self._progress = None

    def _look(self, wanted: Wanted, now: float) -> SourceState | None:
        """Ask the system itself; that it does not answer is for its connector to say."""
        self._looked = now
        try:
            options = self.at.resolve(wanted)
            state = self.at.carrier(wanted.connector).state
            self.system = state(wanted.name, options, self.offsets)
            if wanted.role is Role.SINK:
                taken = taken_records(self.offsets())
                for topic in taken.keys() & wanted.topics:
                    self.at.topics.forget(topic, taken[topic])
        except MainstemError as error:
            self.system = None
            _LOG.info("%s could not be asked: %s", wanted.name, self.at.mask(error.message))
        return self.system

    def _lost(self, wanted: Wanted, now: float) -> str | None:
        """Why changes are lost. One that has read nothing yet has lost nothing, whatever its
        system says; and what that said before the first was read, says nothing of now.
        """
        if self.system is None or self.system.problem is None or not self.offsets():
            return None
        system = self._look(wanted, now)
        return system.problem if system is not None else None

    def _stuck(self, wanted: Wanted, now: float) -> bool:
        """True when nothing has been read for long, while the system keeps more and more."""
        if self.system is None or self._looked != now:
            return False
        try:
            written = self.at.topics.written(wanted.topics)
        except MainstemError:
            return False  # the log is away, which is no fault of the connector's
        sign = (self.system.confirmed, written)
        last = self._progress
        if last is None or last.sign != sign:
            self._progress = _Progress(sign, self.system.held_bytes, now)
            return False
        return now - last.at >= _STUCK_SECONDS and self.system.held_bytes > last.held

    # -- remove

    def _remove(self, found: Connector, made_for: Wanted | None) -> None:
        client = self.at.client
        if found.own is None or found.own.state is not State.STOPPED or found.tasks:
            client.stop(self.name)
            return  # its tasks end meanwhile; the next step goes on
        client.reset_offsets(self.name)
        if made_for is not None:
            carrier = self.at.carrier(made_for.connector)
            if not self._left:
                carrier.remove(made_for.name, self.at.resolve(made_for))
            for topic in carrier.topics(found.config):
                self.at.topics.remove(topic)
        client.delete(self.name)
        if made_for is not None:
            self.at.secrets.forget(made_for.name)
        self.found = self.system = self.error = self._snapshots = None
        self._left = False
        _LOG.info("connector %s removed", self.name)

    # -- what it says

    def _failed(self, wanted: Wanted, problem: str) -> MainstemError:
        return MainstemError(
            "CONNECTOR_FAILED", name=wanted.name, problem=self.at.mask(problem).rstrip(".")
        )

    def _note(self, error: MainstemError) -> None:
        if self.error is None or self.error.message != error.message:
            _LOG.warning("connector %s: %s", self.name, self.at.mask(error.message))
        if error.status < _SERVER_ERROR and self.wanted is not None:
            error.at(self.wanted.location)
        self.error = self.last_error = error
        self.last_error_at = time.time()


def _added(wanted: Wanted, found: Connector | None) -> dict[str, str]:
    """Tables that the connector did not begin with, each with the id of its snapshot.

    An id is made when a table comes that the connector, as it is, does not have; from then on it is
    in the connector's own configuration.
    """
    if found is None or TABLES not in found.config:
        return {}
    known: dict[str, str] = json.loads(found.config.get(_ADDED, "{}"))
    captured = found.config[TABLES].split(",")
    new = (table for table in wanted.tables if re.escape(table) not in captured)
    kept = {table: id for table, id in known.items() if table in wanted.tables}
    return kept | {table: uuid.uuid4().hex for table in new}


def _same(made_for: Wanted | None, wanted: Wanted) -> bool:
    return made_for is not None and made_for.identity == wanted.identity
