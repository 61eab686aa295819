"""Which records a query over history reads: those that its own conditions let through, or more.

Each bound of the text (`definitions.bounds`) becomes offsets only where that is sure to leave out
nothing but records that fail it:

- `_offset` and `_partition` say it themselves.
- `_timestamp` from below: the log tells the first offset whose time is not earlier. All records
  before it are earlier, whatever the order of the times.
- `_timestamp` from above: not used. Times need not rise within a partition: producers set them,
  and the brokers' own clocks may go back. Behind a record that is too late there may be one that
  is not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from mainstem.definitions.bounds import Bound, Mention, Side, bounds
from mainstem.definitions.model import Definition, Query
from mainstem.log.admin import Admin
from mainstem.vocabulary import Offsets

_TIME = "_timestamp"

Constants = Callable[[Bound], int | None]
"""What the constant of a bound is: milliseconds for a time; None when it cannot be told."""
FirstAt = Callable[[int], Mapping[str, Offsets]]
"""By topic, the first offsets with that time (in milliseconds) or a later one; else the ends."""


@dataclass(frozen=True, slots=True)
class Extent:
    """The part of one stream's log that a query reads."""

    start: Mapping[str, Offsets]
    end: Mapping[str, Offsets]
    of: int
    """Records of the stream in all, transaction markers with them."""

    @property
    def records(self) -> int:
        """How many are read."""
        return _size(self.start, self.end)


def extents(
    session: SparkSession, query: Query, inputs: Sequence[Definition], admin: Admin
) -> dict[str, Extent]:
    """The extent of each input of a query, by its name."""
    told = bounds(query)

    def constant(bound: Bound) -> int | None:
        return _evaluated(session, bound)

    found = {}
    for source in inputs:
        topics = admin.topics_of(source)
        begin, end = admin.all_begin_offsets(topics), admin.all_end_offsets(topics)
        begin = {topic: offsets for topic, offsets in begin.items() if topic in end}
        end = {topic: end[topic] for topic in begin}

        def first_at(milliseconds: int, ends: Mapping[str, Offsets] = end) -> Mapping[str, Offsets]:
            return admin.all_offsets_at(milliseconds, ends)

        mentions = told.get(source.name.lower(), ())
        found[source.name] = narrowed(begin, end, mentions, constant, first_at)
    return found


def narrowed(
    begin: Mapping[str, Offsets],
    end: Mapping[str, Offsets],
    mentions: Sequence[Mention],
    constant: Constants,
    first_at: FirstAt,
) -> Extent:
    """What is read of a log from `begin` to `end`: all that one of the mentions can see."""
    ranges = [_seen(begin, end, mention, constant, first_at) for mention in mentions]
    if not ranges:
        return Extent(begin, end, _size(begin, end))
    start: dict[str, dict[int, int]] = {}
    stop: dict[str, dict[int, int]] = {}
    for topic, partitions in begin.items():
        for partition in partitions:
            spans = [seen[topic, partition] for seen in ranges]
            spans = [span for span in spans if span[0] < span[1]]
            last = end[topic][partition]
            start.setdefault(topic, {})[partition] = min((s for s, _ in spans), default=last)
            stop.setdefault(topic, {})[partition] = max((e for _, e in spans), default=last)
    return Extent(start, stop, _size(begin, end))


def _seen(
    begin: Mapping[str, Offsets],
    end: Mapping[str, Offsets],
    mention: Mention,
    constant: Constants,
    first_at: FirstAt,
) -> dict[tuple[str, int], tuple[int, int]]:
    """By topic and partition, from where to where one mention can see."""
    spans = {(t, p): (o, end[t][p]) for t, offsets in begin.items() for p, o in offsets.items()}
    for bound in mention:
        value = constant(bound)
        if value is None:
            continue
        least, most = _range(bound, value)
        match bound.column:
            case "_timestamp":
                # no time, -1, and before 1970: the log takes such numbers for something else
                firsts = first_at(least) if least is not None and least > 0 else {}
                spans = {
                    (t, p): (max(first, firsts.get(t, {}).get(p, first)), last)
                    for (t, p), (first, last) in spans.items()
                }
            case "_offset":
                spans = {
                    place: (
                        first if least is None else max(first, least),
                        last if most is None else min(last, most + 1),
                    )
                    for place, (first, last) in spans.items()
                }
            case _:
                spans = {
                    (t, p): (first, last)
                    if (least is None or p >= least) and (most is None or p <= most)
                    else (first, first)
                    for (t, p), (first, last) in spans.items()
                }
    return spans


def _range(bound: Bound, value: int) -> tuple[int | None, int | None]:
    """The least and the most whole number that meets a bound. None: there is none."""
    match bound.side:
        case Side.LEAST:
            return value, None
        case Side.ABOVE:
            # a time was rounded down to milliseconds
            return value if bound.column == _TIME else value + 1, None
        case Side.MOST:
            return None, value
        case Side.BELOW:
            return None, value - 1
        case Side.EQUAL:
            return value, value


def _evaluated(session: SparkSession, bound: Bound) -> int | None:
    """The constant as Spark works it out, in the query's own session."""
    # the text holds literals and a few functions only
    text = f"({bound.constant})"
    if bound.column == _TIME:
        text = f"unix_millis(CAST({text} AS TIMESTAMP))"
    try:
        value = session.sql(f"SELECT {text} AS value").collect()[0].value
    except PySparkException:
        return None  # the query itself will say what is wrong
    # other numbers are compared by rules of their own
    return value if type(value) is int else None


def _size(start: Mapping[str, Offsets], end: Mapping[str, Offsets]) -> int:
    return sum(
        max(0, offset - start[topic][partition])
        for topic, offsets in end.items()
        for partition, offset in offsets.items()
    )
