"""Members of consumer groups whose clients speak HTTP.

A member is a Kafka consumer that this gateway keeps for a client: the broker gives it partitions as
it does to any other, and hands them over when it is gone. It is gone when the client deletes it or
is silent for longer than the member's session, and ten seconds after a gateway has died. What was
not committed comes again, to whoever has the partition then.

Their number is bounded, and so is what each fetches ahead. They have threads of their own: all of
them may wait for records while the rest of the gateway goes on.
"""

from __future__ import annotations

import asyncio
import logging
import re
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import ParamSpec, TypeVar

from mainstem.errors import MainstemError
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.log.consumer import GroupConsumer
from mainstem.vocabulary import Record, group_of

_LOG = logging.getLogger(__name__)
P = ParamSpec("P")
T = TypeVar("T")
Positions = Mapping[tuple[str, int], int]

MOST_MEMBERS = 64
LONGEST_WAIT_SECONDS = 30.0
_NAME = re.compile(r"[A-Za-z0-9._-]{1,200}")
_STEP_SECONDS = 0.25
_LOOK_SECONDS = 1.0
_TUNING = {
    "queued.max.messages.kbytes": 4096,
    "queued.min.messages": 1000,
    "fetch.max.bytes": 4 * 1024 * 1024,
}


@dataclass(frozen=True, slots=True)
class Batch:
    """What a member was given at once."""

    number: int
    records: Sequence[Record]


@dataclass
class Member:
    """One member, and when its client was last heard of."""

    group: str
    name: str
    consumer: GroupConsumer
    session_seconds: float
    auto_commit: bool = False
    form: str = ""
    """How its client wants records, if that was said at the beginning."""
    topics: tuple[str, ...] = ()
    heard: float = field(default_factory=time.monotonic)
    last: Batch = field(default_factory=lambda: Batch(0, ()))
    lock: threading.Lock = field(default_factory=threading.Lock)
    gone: bool = False

    def wrong(self, problem: str) -> MainstemError:
        """What it is asked for cannot be done now."""
        return MainstemError("GROUP_STATE", member=self.name, group=self.group, problem=problem)


class Members:
    """The members of this gateway. Methods block, and may be called from any thread."""

    def __init__(self, connection: Connection, admin: Admin, most: int = MOST_MEMBERS) -> None:
        self._connection = connection
        self._admin = admin
        self._most = most
        self._members: dict[tuple[str, str], Member] = {}
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(most + 4, thread_name_prefix="member")
        self._stop = threading.Event()
        self._watch: threading.Thread | None = None

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do something of this in a thread of its own."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, lambda: work(*args, **kwargs))

    # -- life

    def create(
        self,
        group: str,
        name: str | None = None,
        *,
        topics: Sequence[str] = (),
        start: str = "earliest",
        session_seconds: float = 60.0,
        auto_commit: bool = False,
        form: str = "",
    ) -> Member:
        """A new member; it joins its group with the first request for records."""
        check_group(group)
        name = name or uuid.uuid4().hex[:12]
        if _NAME.fullmatch(name) is None:
            problem = "a member's name has 1 to 200 letters, digits, dots, dashes and underscores"
            raise MainstemError("BAD_REQUEST", problem=problem)
        self._check_topics(topics)
        with self._lock:
            if (group, name) in self._members:
                raise MainstemError("MEMBER_EXISTS", group=group, member=name)
            if len(self._members) >= self._most:
                raise MainstemError("TOO_MANY_MEMBERS", limit=self._most)
            consumer = GroupConsumer(self._connection, group, topics, start, _TUNING)
            made = Member(group, name, consumer, session_seconds, auto_commit, form, tuple(topics))
            self._members[group, name] = made
            if self._watch is None:
                self._watch = threading.Thread(target=self._watching, name="members", daemon=True)
                self._watch.start()
        return made

    def get(self, group: str, name: str) -> Member:
        """A member that is there; its client was heard of."""
        with self._lock:
            member = self._members.get((group, name))
        if member is None:
            raise MainstemError("MEMBER_UNKNOWN", group=group, member=name)
        member.heard = time.monotonic()
        return member

    def of_group(self, group: str) -> list[Member]:
        """Those of a group."""
        with self._lock:
            return [member for (of, _), member in self._members.items() if of == group]

    def delete(self, group: str, name: str) -> None:
        """The member leaves its group: others get its partitions at once."""
        self._end(self.get(group, name))

    def stop(self) -> None:
        """Wait for records no longer."""
        self._stop.set()

    def close(self) -> None:
        """All leave; safe to call twice."""
        self._stop.set()
        for member in list(self._members.values()):
            self._end(member)
        self._threads.shutdown(wait=False)

    # -- what a member does

    def subscribe(self, member: Member, topics: Sequence[str]) -> None:
        """Read these topics, and no others; none: give all partitions back."""
        self._check_topics(topics)
        with member.lock:
            self._check_there(member)
            member.consumer.subscribe(topics)
            member.topics = tuple(topics)
            member.last = Batch(member.last.number, ())

    def records(
        self, member: Member, limit: int, wait_seconds: float, batch: int | None = None
    ) -> Batch:
        """The next records, as soon as there are some; none when nothing comes in time.

        Asked for the number of the last batch once more, it gives that once more: its answer may
        have been lost on the way.
        """
        if not member.topics:
            raise member.wrong("it has no topics yet: subscribe first")
        with member.lock:
            self._check_there(member)
            if batch is not None and batch == member.last.number:
                return member.last
            if batch is not None and batch != member.last.number + 1:
                raise member.wrong(f"its next batch is {member.last.number + 1}")
            if member.auto_commit:
                self._committing(member, member.consumer.commit)
            deadline = time.monotonic() + wait_seconds
            while True:
                left = deadline - time.monotonic()
                found = member.consumer.poll(limit, max(0.0, min(left, _STEP_SECONDS)))
                if found or left <= 0 or member.gone or self._stop.is_set():
                    break
            member.heard = time.monotonic()
            member.last = Batch(member.last.number + 1, found)
            return member.last

    def commit(
        self, member: Member, positions: Positions | None = None
    ) -> dict[tuple[str, int], int]:
        """Commit behind all that was handed out, or what is given; what was committed."""
        with member.lock:
            self._check_there(member)
            if positions is None:
                positions = member.consumer.positions()
            else:
                self._check_assigned(member, positions)
            self._committing(member, lambda: member.consumer.commit_at(positions))
        return dict(positions)

    def seek(self, member: Member, positions: Positions) -> None:
        """Go on at these offsets."""
        with member.lock:
            self._check_there(member)
            self._check_assigned(member, positions)
            member.last = Batch(member.last.number, ())
            for (topic, partition), offset in positions.items():
                try:
                    member.consumer.seek(topic, partition, offset)
                except MainstemError as error:
                    raise _state(member, error) from None

    def seek_all(
        self,
        member: Member,
        find: Callable[[Admin, str], Mapping[int, int]],
        places: Sequence[tuple[str, int]] | None = None,
    ) -> dict[tuple[str, int], int]:
        """Go on at what `find` says of each topic, in some partitions or all that it has."""
        wanted = self.assigned(member) if places is None else places
        found = {topic: find(self._admin, topic) for topic in {topic for topic, _ in wanted}}
        positions = {(t, p): found[t][p] for t, p in wanted if p in found[t]}
        self.seek(member, positions)
        return positions

    def assigned(self, member: Member) -> list[tuple[str, int]]:
        """The partitions that it has now."""
        with member.lock:
            self._check_there(member)
            return _assigned(member)

    def committed(
        self, member: Member, places: Sequence[tuple[str, int]]
    ) -> dict[tuple[str, int], int]:
        """What its group has committed of some partitions."""
        with member.lock:
            self._check_there(member)
            return member.consumer.committed(places)

    # -- inside

    def _check_topics(self, topics: Sequence[str]) -> None:
        for topic in topics:
            self._admin.metadata_of(topic)  # UNKNOWN_TOPIC when it is not there

    def _check_there(self, member: Member) -> None:
        if member.gone:
            raise MainstemError("MEMBER_UNKNOWN", group=member.group, member=member.name)

    def _check_assigned(self, member: Member, positions: Positions) -> None:
        missing = sorted(positions.keys() - set(_assigned(member)))
        if missing:
            topic, partition = missing[0]
            raise member.wrong(f"partition {partition} of {topic} is not one of its own")

    def _committing(self, member: Member, commit: Callable[[], None]) -> None:
        try:
            commit()
        except MainstemError as error:
            raise _state(member, error) from None

    def _end(self, member: Member) -> None:
        member.gone = True
        with member.lock:
            with self._lock:
                self._members.pop((member.group, member.name), None)
            member.consumer.close()

    def _watching(self) -> None:
        while not self._stop.wait(_LOOK_SECONDS):
            now = time.monotonic()
            with self._lock:
                silent = [
                    member
                    for member in self._members.values()
                    if now - member.heard > member.session_seconds and not member.lock.locked()
                ]
            for member in silent:
                _LOG.info("member %s of group %s is silent: ended", member.name, member.group)
                self._end(member)


def check_group(group: str) -> None:
    """Refuse groups that are not for clients."""
    if _NAME.fullmatch(group) is None:
        problem = "a group's name has 1 to 200 letters, digits, dots, dashes and underscores"
        raise MainstemError("BAD_REQUEST", problem=problem)
    if group.startswith((group_of(""), "_")):
        raise MainstemError("NAME_RESERVED", what="group", name=group)


def _assigned(member: Member) -> list[tuple[str, int]]:
    return sorted((t, p) for t, ps in member.consumer.assignment().items() for p in ps)


def _state(member: Member, error: MainstemError) -> MainstemError:
    """Kafka refuses what does not fit the state of the group."""
    if error.code != "LOG_FAILED":
        return error
    return member.wrong(str(error.params.get("problem", "")))
