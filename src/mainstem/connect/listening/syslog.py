"""The source `syslog` at work: sockets, lines, batches, the log. One thread with an event loop.

Syslog has no acknowledgements. A line goes these ways, and a crash of the gateway means:

1. In a buffer of the system. UDP: it is lost; TCP: too, the sender cannot know it.
2. In the intake, or in the batch that is being written, which both are bounded: it is lost.
3. In the log, before that is known here: it is there, once. Only when the log did not answer in
   time is the batch written again, and then its lines may be there twice.

While the log does not answer, the intake fills up: TCP senders wait, and of datagrams the system
keeps as many as its buffer holds and counts the others, which are then reported as lost. A stop
that is asked for hands over all that was read before it returns.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from zoneinfo import ZoneInfo

from mainstem.connect.listening.datagrams import Datagrams
from mainstem.connect.listening.intake import Intake, Line
from mainstem.connect.listening.options import address_of
from mainstem.connect.listening.running import Log, Task, Told
from mainstem.connect.listening.syslog_connections import Connections
from mainstem.connect.listening.syslog_records import SyslogRecords
from mainstem.errors import MainstemError

_BATCH = 5_000
_WATCH_SECONDS = 1.0
_RETRY_SECONDS = 1.0
_LONGEST_RETRY_SECONDS = 30.0
_LOUD_SECONDS = 60.0
"""How long a loss is shown as what is wrong now."""
_PATIENCE_SECONDS = 10.0
"""How long a stop waits for a log that does not answer."""


class Syslog:
    """A `RunningSource`."""

    def __init__(self, task: Task, log: Log) -> None:
        options = task.options
        self.told = Told(task.name)
        self._name = task.name
        self._topic = task.stream.topic
        self._log = log
        self._host, self._port = address_of(options["listen"])
        self._protocols: tuple[str, ...] = options["protocols"]
        self._records = SyslogRecords(
            task.stream.name,
            task.stream.topic,
            ZoneInfo(options["timezone"]),
            options["charset"],
            log.connection.max_record_bytes,
        )
        self._stopping = asyncio.Event()
        self._intake = Intake()
        self._connections = Connections(self._intake, options["max_bytes"])
        self._datagrams: Datagrams | None = None
        self._dropped = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name=f"syslog-{task.name}", daemon=True)

    # -- life

    def start(self) -> None:
        """Begin to listen; while the port cannot be had, it is tried again."""
        self._loop = asyncio.new_event_loop()
        self._thread.start()

    def stop(self) -> None:
        """End: what has been read is in the log, if that answers."""
        if self._loop is None:
            return
        with suppress(RuntimeError):  # it has ended before
            self._loop.call_soon_threadsafe(self._stop)
        self._thread.join()

    def _stop(self) -> None:
        self._stopping.set()
        self._intake.wake()

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=self._own_loop) as runner:
                runner.run(self._serve())
        except Exception:  # noqa: BLE001 - nobody waits for this thread
            self.told.ended()

    def _own_loop(self) -> asyncio.AbstractEventLoop:
        assert self._loop is not None, "it was not started"
        return self._loop

    async def _serve(self) -> None:
        if not await self._listen():
            return
        self._tell()
        self.told.running()
        writing = asyncio.create_task(self._write())
        watching = asyncio.create_task(self._watch())
        await self._stopping.wait()
        self._tell()
        watching.cancel()
        if self._datagrams is not None:
            self._datagrams.close()
        await self._connections.close()
        self._intake.wake()
        await writing

    # -- listen

    async def _listen(self) -> bool:
        """True when it listens, False when it is to stop."""
        pause = _RETRY_SECONDS
        while not self._stopping.is_set():
            try:
                await self._bind()
            except OSError as error:
                await self._connections.close()
                self.told.failed(
                    MainstemError(
                        "LISTEN_FAILED",
                        address=f"{self._host}:{self._port}",
                        problem=(error.strerror or str(error)).lower(),
                    )
                )
                await self._sleep(pause)
                pause = min(2 * pause, _LONGEST_RETRY_SECONDS)
            else:
                return True
        return False

    async def _bind(self) -> None:
        if "tcp" in self._protocols:
            await self._connections.listen(self._host, self._port)
        if "udp" in self._protocols:
            self._datagrams = Datagrams(self._host, self._port, self._intake)
            self._datagrams.begin()

    # -- write

    async def _write(self) -> None:
        while True:
            batch = self._intake.take(_BATCH)
            if batch:
                await self._deliver(batch)
            elif self._stopping.is_set():
                return
            else:
                await self._intake.some()

    async def _deliver(self, batch: list[Line]) -> None:
        records, refused = await asyncio.to_thread(self._records.make, batch)
        pause, waited = _RETRY_SECONDS, 0.0
        while True:
            try:
                await asyncio.to_thread(self._log.sender.send, self._topic, records)
            except MainstemError as error:
                if self._stopping.is_set() and error.code == "UNKNOWN_TOPIC":
                    return  # the source was dropped, and its stream with it
                self.told.failed(error)
            else:
                break
            if self._stopping.is_set() and waited >= _PATIENCE_SECONDS:
                self._lose(len(batch), "the log does not take them, and the source has to stop")
                return
            await asyncio.sleep(pause)
            waited += pause
            pause = min(2 * pause, _LONGEST_RETRY_SECONDS)
        self.told.records += len(records) - refused
        self.told.quarantined += refused
        if self.told.state != "running":
            self.told.running()

    # -- watch

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_WATCH_SECONDS)
            self._tell()

    def _tell(self) -> None:
        """Say how things are; what the system has thrown away meanwhile is said loudly."""
        self.told.detail = {
            "address": f"{self._host}:{self._port}",
            "protocols": list(self._protocols),
            "connections": len(self._connections),
            "refused_connections": self._connections.refused,
            "waiting": len(self._intake),
        }
        if self._datagrams is not None:
            dropped = self._datagrams.dropped()
            if dropped > self._dropped:
                problem = "datagrams came faster than they could be taken"
                self._lose(dropped - self._dropped, problem)
            self._dropped = dropped
        self.told.calm_after(_LOUD_SECONDS)

    def _lose(self, count: int, problem: str) -> None:
        self.told.lost += count
        self.told.warned(
            MainstemError("LINES_LOST", name=self._name, count=self.told.lost, problem=problem)
        )

    async def _sleep(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), seconds)
