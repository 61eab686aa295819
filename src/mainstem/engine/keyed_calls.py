"""Calls of a stateful function: for each record with what is kept for its key, and for timers."""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import repeat
from typing import Any

import pyarrow as pa

from mainstem.definitions.model import Stateful
from mainstem.engine.function_rows import key_writer, record_maker
from mainstem.engine.function_values import converter, fitter, giver, inner_type, taker
from mainstem.engine.function_worker import (
    NOT_FITTING,
    USER_ERRORS,
    failed,
    load,
    problem_of,
)
from mainstem.engine.json_text import key_reader, key_text, reader, writer
from mainstem.keyed import State, Timer
from mainstem.log.state_store import Changes, Kept, StateStore
from mainstem.schemas.arrow_types import arrow_type
from mainstem.vocabulary import Column

_MOST_RINGS = 10_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Slot:
    """A key that the batch has to do with."""

    __slots__ = ("calls", "careful", "key", "state", "stored", "text", "timer")

    def __init__(self, key: Any, text: bytes, stored: Kept | None) -> None:
        self.key = key
        self.text = text
        self.stored = stored
        self.state: State[Any]
        self.timer: Timer
        self.calls: list[tuple[int | str, int]] = []
        """Which records the function was called for, or which timers, and at what time."""
        self.careful = False
        """True after a failure: from then on each call can be undone at once."""


class Caller:
    """Calls the function for the records of one batch and one partition of the state."""

    def __init__(
        self,
        stateful: Stateful,
        key: Sequence[Column],
        row_key: Sequence[str],
        store: StateStore,
        failed: Mapping[int, str],
    ) -> None:
        self._function = function = stateful.function
        self._timed = stateful.clock is not None
        self._store = store
        self._call = load(function)
        self._take = taker(function)
        self._row_type = arrow_type(function.returns)
        self._write_row = writer(function.returns)
        self._row_key = key_writer(function.returns, row_key)
        event, state = function.parameters
        hints = typing.get_type_hints(self._call)
        self._event = inner_type(hints[event.name])
        self._state_type = state.type
        self._write_state = writer(state.type)
        self._read_state = reader(state.type)
        self._fit_state = fitter(state.type)
        self._make_state = converter(typing.get_args(hints[state.name])[0])
        self._write_key = [writer(column.type) for column in key]
        self._read_key = key_reader(tuple(column.type for column in key))
        self._slots: dict[Any, Slot] = {}
        self._rows: list[Any] = []
        self._origins: list[int | None] = []
        """For each row the record that it was given for; None: a timer."""
        self._columns: list[Sequence[Any]] = []
        self._make: Callable[..., Any] = record_maker(self._event)
        self.failed = dict(failed)
        """Records that are left out, and why: given, and those for which the function raised."""

    def call(self, table: pa.Table, times: Sequence[int | None], reached: int, delay: int) -> int:
        """Calls the function for all records in order; gives the time that was reached.

        Before a record, the timers of its key ring that are due: `times` are those of the
        records, and each of them moves the time on to itself less `delay`.
        """
        fields = typing.get_type_hints(self._event).values()
        columns = [table.column(index) for index in range(table.num_columns)]
        self._columns = [giver(hint)(column) for hint, column in zip(fields, columns, strict=False)]
        count = len(self._columns)
        width = len(self._write_key)
        keys = [column.to_pylist() for column in columns[count : count + width]]
        singles = keys[0] if width == 1 else list(zip(*keys, strict=True))
        self._meet(singles)
        slots, timed, call, timer_is_due = self._slots, self._timed, self._called, self._is_due
        left_out = frozenset(self.failed)
        records: Iterable[tuple[Any, ...]] = zip(*self._columns, strict=True)
        if not self._columns:
            records = repeat((), len(singles))
        for index, (key, time, values) in enumerate(zip(singles, times, records, strict=True)):
            if time is not None and time - delay > reached:
                reached = time - delay
            slot = slots[key]
            if timed and slot.timer.times and timer_is_due(slot, reached):
                self._ring(slot, reached)
            if index not in left_out:
                call(slot, index, values, reached)
        return reached

    def ring(self, until: int) -> None:
        """Lets all timers ring that are due."""
        due = [self._read_key(text) for text in self._store.due(until)]
        self._meet([values[0] if len(values) == 1 else tuple(values) for values in due])
        for slot in list(self._slots.values()):
            if self._is_due(slot, until):
                self._ring(slot, until)

    def misfits(self) -> dict[int, str]:
        """Records for which a row was given that is not of the promised type, and why."""
        try:
            pa.array(self._rows, type=self._row_type)
        except NOT_FITTING:
            return self._find_misfits()
        return {}

    def outputs(self) -> list[tuple[bytes | None, bytes]]:
        """Key and value of all records to write, in order; call it when there are no misfits."""
        write, key = self._write_row, self._row_key
        return [(key(row), write(row).encode()) for row in self._rows]

    def changes(self) -> tuple[Changes, int]:
        """What is to be kept otherwise than before, and for how many keys something is kept."""
        found: dict[bytes, Kept] = {}
        count = self._store.keys
        fitted = []
        for slot in self._slots.values():
            plain, kept = self._kept(slot)
            fitted.append(plain)
            if kept != (slot.stored or Kept()):
                found[slot.text] = kept
                count += (slot.stored is None) - kept.empty
        try:
            pa.array(fitted, type=arrow_type(self._state_type))
        except NOT_FITTING as error:
            raise self._misfit(None, error) from None
        return found, count

    def _meet(self, keys: Sequence[Any]) -> None:
        """Takes what is kept for keys that the batch has not had to do with before."""
        single = len(self._write_key) == 1
        new = {
            key: key_text(self._write_key, (key,) if single else key)
            for key in dict.fromkeys(keys)
            if key not in self._slots
        }
        stored = self._store.get([*new.values()])
        for key, text in new.items():
            slot = self._slots[key] = Slot(key, text, stored.get(text))
            self._load(slot, slot.stored)

    def _kept(self, slot: Slot) -> tuple[Any, Kept]:
        """State and timers as they are now: plain, and as they would be stored."""
        value = slot.state.value
        plain = text = None
        if value is not None:
            try:
                plain = self._fit_state(value)
                text = self._write_state(plain).encode()
            except USER_ERRORS as error:
                raise self._misfit(slot, error) from None
        times = {name: _micros(at) for name, at in slot.timer.times.items()}
        due = times.pop("", None)
        return plain, Kept(text, due, tuple(sorted(times.items())))

    def _load(self, slot: Slot, kept: Kept | None) -> None:
        """State and timers as they were stored."""
        kept = kept or Kept()
        plain = None if kept.value is None else self._read_state(kept.value)
        make = self._make_state
        slot.state = State(plain if plain is None or make is None else make(plain), slot.key)
        due = None if kept.due is None else _EPOCH + kept.due * _MICROSECOND
        named = {name: _EPOCH + time * _MICROSECOND for name, time in kept.named}
        slot.timer = Timer(_EPOCH, due, named=named)

    def _is_due(self, slot: Slot, reached: int) -> bool:
        return any(_micros(at) <= reached for at in slot.timer.times.values())

    def _ring(self, slot: Slot, reached: int) -> None:
        """Calls the function for each timer that is due, the earliest first, as often as it is.

        A timer that is set anew must be later each time.
        """
        last: dict[str, datetime] = {}
        for _ in range(_MOST_RINGS):
            waiting = [
                (at, name)
                for name, at in slot.timer.times.items()
                if _micros(at) <= reached and (name not in last or at > last[name])
            ]
            if not waiting:
                return
            at, name = min(waiting)
            slot.timer.clear(name)
            last[name] = at
            try:
                self._run(slot, name, None, _micros(at))
            except USER_ERRORS as error:
                which = f' "{name}"' if name else ""
                where = f" when the timer{which} of {slot.key!r} rang"
                raise failed(self._function, error, {}, where) from None
            slot.calls.append((name, _micros(at)))

    def _called(self, slot: Slot, index: int, values: tuple[Any, ...], reached: int) -> None:
        before = self._kept(slot)[1] if slot.careful else None
        try:
            self._run(slot, index, values, reached)
        except USER_ERRORS as error:
            self.failed[index] = problem_of(error)
            if before is None:
                self._undo(slot)
            else:
                self._load(slot, before)
        else:
            slot.calls.append((index, reached))

    def _run(
        self, slot: Slot, cause: int | str, values: tuple[Any, ...] | None, reached: int
    ) -> None:
        """Calls the function for a record or, when the cause is a name, for a timer."""
        index, name = (None, cause) if isinstance(cause, str) else (cause, None)
        event = None if values is None else self._make(*values)
        if self._timed:
            slot.timer.now = _EPOCH + reached * _MICROSECOND
            slot.timer.name = name
            given = self._call(event, slot.state, slot.timer)
        else:
            given = self._call(event, slot.state)
        take = self._take
        rows = [take(row) for row in given]
        if rows:
            self._rows += rows
            self._origins += [index] * len(rows)

    def _undo(self, slot: Slot) -> None:
        """State and timers as they were before the call that failed, by calling anew."""
        rows, origins = self._rows, self._origins
        self._rows, self._origins = [], []
        slot.careful = True
        self._load(slot, slot.stored)
        try:
            for cause, reached in slot.calls:
                values = None
                if isinstance(cause, str):
                    slot.timer.clear(cause)
                else:
                    values = tuple(column[cause] for column in self._columns)
                self._run(slot, cause, values, reached)
        except USER_ERRORS as error:
            where = " when it was called again with the same records"
            raise failed(self._function, error, {}, where) from None
        self._rows, self._origins = rows, origins

    def _find_misfits(self) -> dict[int, str]:
        found: dict[int, str] = {}
        for row, origin in zip(self._rows, self._origins, strict=True):
            try:
                pa.array([row], type=self._row_type)
            except NOT_FITTING as single:
                if origin is None:
                    raise failed(self._function, single, {}) from None
                found[origin] = problem_of(single)
        return found

    def _misfit(self, slot: Slot | None, error: BaseException) -> Exception:
        whose = "" if slot is None else f" for the key {slot.key!r}"
        return failed(self._function, error, {}, f", what it keeps{whose} has not its type")


def _micros(at: datetime) -> int:
    return (at - _EPOCH) // _MICROSECOND
