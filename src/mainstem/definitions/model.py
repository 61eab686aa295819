"""The frozen model that definitions become, and the statements that a text holds.

A `Definition` is what the catalog keeps. Before resolving, a derived definition has no columns;
`resolve` (with the engine's analysis) fills them in.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

from mainstem.definitions.patterns import TopicPattern, is_pattern, parse_pattern
from mainstem.definitions.transforms import Transform
from mainstem.vocabulary import Column, SourceLocation


class Kind(StrEnum):
    """What a definition makes: an append-only stream, a table with a primary key, or a source."""

    STREAM = "stream"
    TABLE = "table"
    SOURCE = "source"
    """A system outside that streams and tables come from; it has neither columns nor a topic."""


class Lane(StrEnum):
    """How a flow runs: in micro-batches, exactly once, or in Spark's real-time mode."""

    MICRO_BATCH = "micro-batch"
    REAL_TIME = "realtime"


class Format(StrEnum):
    """How the value of a record holds its columns."""

    JSON = "json"
    AVRO = "avro"
    """With a schema of the registry, whose id stands before the value."""
    JSON_SCHEMA = "json_schema"
    """JSON behind the id of a schema of the registry, which has to let it through."""
    PROTOBUF = "protobuf"
    """With a schema of the registry, whose id and the message's place in it stand before it."""
    CSV = "csv"
    RAW = "raw"
    """The value is the only column, a text or bytes."""
    DEBEZIUM = "debezium"
    """A change of a row as Debezium writes it, with its own schema. Nobody writes that down."""

    @property
    def registered(self) -> bool:
        """True when a schema of the registry says what a value holds."""
        return self in (Format.AVRO, Format.JSON_SCHEMA, Format.PROTOBUF)


class SubjectStrategy(StrEnum):
    """Under which subject of the registry the schemas of a topic's records are."""

    TOPIC_NAME = "topic_name"
    """`<topic>-value`: one for all records of a topic."""
    RECORD_NAME = "record_name"
    """The record's own name, in whichever topic it is."""
    TOPIC_RECORD_NAME = "topic_record_name"
    """`<topic>-<name of the record>`."""


class FlowKind(StrEnum):
    """How a derived object comes about, told by what its query reads."""

    STREAM = "stream"
    """Streams only: Spark keeps what it has to remember."""
    ENRICH = "enrich"
    """Streams joined to tables as they are now."""
    TABLE = "table"
    """Tables only: the query is asked again when they change, and the differences are written."""


class Flavour(StrEnum):
    """How a Python function is called and what it gives."""

    SCALAR = "scalar"
    """Once per row, plain Python values."""
    VECTORISED = "vectorised"
    """Once per batch of rows, Arrow arrays in and out."""
    TABLE = "table"
    """Once per row; gives rows."""
    AGGREGATE = "aggregate"
    """Once per group, Arrow arrays in, one value out."""
    STATEFUL = "stateful"
    """Once per record, with what is kept for its key; makes a stream, and no SQL calls it."""
    EVENT = "event"
    """Once per record or batch of records, for what it does; no SQL calls it."""
    PIPELINE = "pipeline"
    """With the whole of its inputs as DataFrames; gives a DataFrame. Makes a stream or a table."""
    SINK = "sink"
    """Once per micro-batch, with its rows as a DataFrame, for what it does."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a Python function; `type` is Spark's short form."""

    name: str
    type: str
    nullable: bool = False
    """False: the function is not called with NULL, and the result is NULL (no row, no call)."""
    optional: bool = False
    """True when it has a default, so that a call may leave it out."""


@dataclass(frozen=True, slots=True)
class FunctionDefinition:
    """A Python function of the project, read from its source text, never run to be read."""

    name: str
    flavour: Flavour
    parameters: tuple[Parameter, ...]
    returns: str
    """Spark's short form; a struct of the columns for a table function."""
    nullable: bool
    """True when it may return None."""
    source: str
    """The lines of the file that it needs, at their places; workers make a module of them."""
    location: SourceLocation
    version: str
    """A hash of what the function does: comments, layout and other functions do not count."""

    @property
    def signature(self) -> str:
        """The function as a plan shows it: `score(text string, limit bigint) -> double`."""
        parameters = ", ".join(f"{p.name} {p.type}" for p in self.parameters)
        return f"{self.name}({parameters}) -> {self.returns}"

    @property
    def fewest(self) -> int:
        """How many arguments a call must give, at least one."""
        return max(1, sum(not parameter.optional for parameter in self.parameters))


class TimerClock(StrEnum):
    """By which time the timers of a stateful function ring."""

    EVENT = "event"
    """The time of the records: as late as the stream's watermark says."""
    WALL = "wall"


@dataclass(frozen=True, slots=True)
class Stateful:
    """How a stream is made by a Python function that keeps state per key."""

    function: FunctionDefinition
    """Its parameters are the record and the state; it returns the struct of the rows."""
    key: tuple[str, ...]
    """Columns of the input."""
    clock: TimerClock | None
    """None when the function takes no timer."""


@dataclass(frozen=True, slots=True)
class Handler:
    """How a Python function is called for the events of a stream."""

    function: FunctionDefinition
    """Its parameters are the record and, if it wants that, the record's id; it returns the struct
    of the rows, or None (`nullable`): then each record leaves a receipt."""
    batch: bool
    """True: called with lists."""
    tries: int
    """So often before a record goes to the quarantine; 0: without end."""
    pause: float
    """Seconds between the first try and the second; twice as long before each further one."""
    most: int
    """Records that are taken in at once: what may be called again after a crash."""


@dataclass(frozen=True, slots=True)
class Query:
    """The SELECT of a derived definition, or the Python function in place of one."""

    text: str
    """As written, handed to Spark unchanged; ends before the semicolon."""
    canonical: str
    """Without comments and layout: two queries with equal canonical text are the same query."""
    inputs: tuple[str, ...]
    """Names of the streams and tables that it reads, in order of first mention."""
    location: SourceLocation
    """Where `text` begins."""
    aggregates: bool = False
    """True when it groups or aggregates."""
    joins: bool = False
    """True when it joins what it reads, to itself or to each other."""
    distinct: bool = False
    """True for SELECT DISTINCT; not for one inside the query."""
    group_keys: tuple[str, ...] = ()
    """Output names of the grouping columns, in the order of the SELECT list."""
    columns_read: tuple[str, ...] = ()
    """Lower-case names of all columns that it mentions; `*` when it takes all."""
    functions: tuple[FunctionDefinition, ...] = ()
    """The Python functions that it calls, by name: a flow runs with the version it was made for."""
    python: FunctionDefinition | None = None
    """The function whose text this is, if it is no SELECT: it takes the inputs in their order. What
    it groups, joins and reads is known when the engine has called it (`Analyser.inspect`)."""
    mentioned: tuple[str, ...] = ()
    """Of a Python function: the inputs as often as its plan reads them, in that order."""
    row_key: tuple[str, ...] | None = None
    """Of a Python function: the columns that tell its rows apart; None: the plan does not say."""

    def seen_as(self, other: Query) -> Query:
        """The query with what is known of the same one in another layout."""
        return replace(
            self,
            aggregates=other.aggregates,
            joins=other.joins,
            distinct=other.distinct,
            mentioned=other.mentioned,
            row_key=other.row_key,
        )


@dataclass(frozen=True, slots=True)
class Connection:
    """A system outside: the connector that talks to it, and what it is told."""

    connector: str
    options: tuple[tuple[str, str], ...]
    """As written, in that order; secrets are references."""
    beside: int | None = None
    """Of a sink that is built anew: the generation whose rows go to a place beside the target."""


class OnViolation(StrEnum):
    """What becomes of a record that breaks a rule."""

    QUARANTINE = "quarantine"
    """It is kept whole in the quarantine."""
    DROP = "drop"
    """It is counted, and kept nowhere but in its topic."""
    FAIL = "fail"
    """Whoever reads it stops before it."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What every record of a declared object has to keep to: a constraint."""

    name: str
    condition: Query
    """`SELECT condition`, over the columns; broken when it is false, not when it is NULL."""
    action: OnViolation = OnViolation.QUARANTINE

    @property
    def text(self) -> str:
        """The condition as written."""
        return self.condition.text.removeprefix("SELECT ")

    @property
    def location(self) -> SourceLocation:
        """Where the condition begins."""
        start = self.condition.location
        return replace(start, column=start.column + len("SELECT "))

    @property
    def shown(self) -> str:
        """The condition on one line."""
        commented = "--" in self.text or "/*" in self.text
        text = self.condition.canonical.removeprefix("SELECT ") if commented else self.text
        return " ".join(text.split())


@dataclass(frozen=True, slots=True)
class Index:
    """Columns of a served table that rows are found by, beside its key."""

    name: str
    table: str
    columns: tuple[str, ...]
    location: SourceLocation = field(compare=False)


@dataclass(frozen=True, slots=True)
class Definition:
    """A stream or a table, declared (with columns) or derived (with a query); or a source."""

    name: str
    kind: Kind
    topic: str
    """Its topic; of a wildcard stream the pattern, which no topic can be called."""
    location: SourceLocation
    text: str
    """The whole statement as written."""
    columns: tuple[Column, ...] = ()
    key: tuple[str, ...] = ()
    """A table's primary key; a stream's key columns, possibly none."""
    query: Query | None = None
    format: Format = Format.JSON
    delimiter: str | None = None
    """Between the columns of a CSV value; None: a comma."""
    record: str | None = None
    """The name that its records have in their schema: of a topic with records of several names,
    only these are its own. None: all records of the topic."""
    subject_strategy: SubjectStrategy = SubjectStrategy.TOPIC_NAME
    key_format: Format | None = None
    """How a record's key holds the key's columns; None: as a text, or JSON where that will not do.
    """
    of_keys: bool = False
    """True where keys are read and written like values (`keys`). Nobody writes that down."""
    event_time: str | None = None
    """Column that carries the event time; None means the record's own time stamp."""
    time: Query | None = None
    """`SELECT expression`, when the event time is that of the record's columns, or of the batch."""
    max_ahead: str | None = None
    """How long after its own time stamp a record's event time may be, or `forever`; None: a day."""
    max_behind: str | None = None
    """How long before it, or `forever`; None: back to 1971."""
    idle_timeout: str | None = None
    """How long a stream may be quiet until its time goes on with the clock; None: it waits."""
    watermark: str | None = None
    """How late a record may be, as a Spark interval such as `10 minutes`; None: no watermark."""
    partitions: int | None = None
    retention: str | None = None
    """An interval, or `forever`; None: the broker's default."""
    lane: Lane = Lane.MICRO_BATCH
    trigger: str | None = None
    """Least time between two micro-batches, such as `1 second`; None: the default."""
    start: str = "earliest"
    """Where a new flow begins in its inputs: `earliest`, `latest`, or, of a sink, at a time."""
    until: str | None = None
    """Offsets before which a flow leaves off, by topic and partition as JSON; None: it goes on.
    Nobody writes that down: it is so for the backfill of a stream."""
    final: bool = False
    """EMIT FINAL: a row is written once, when its window closes; else at every change."""
    deduplicate: tuple[str, ...] = ()
    """Columns by which a derived stream leaves out records that came before."""
    within: str | None = None
    """How far apart in event time two such records may be; None: however far."""
    stateful: Stateful | None = None
    """The Python function that makes the rows from those of the query."""
    handler: Handler | None = None
    """The Python function that is called for the rows of the query."""
    sink: FunctionDefinition | None = None
    """The Python function that is called with the rows of each micro-batch."""
    target: Connection | None = None
    """Where the rows of the query are written to; the topic has a receipt for each batch."""
    captures: Connection | None = None
    """Of a source: where its streams and tables come from."""
    transforms: tuple[Transform, ...] = ()
    """What is done to each row between a source or sink and the system outside, in order."""
    source: str | None = None
    """The source that this object came with, and goes with. If there is a query, the object is the
    table of the rows as they are now, by the changes that the query reads."""
    rules: tuple[Rule, ...] = ()
    """Of a declared object: what its records have to keep to."""
    indexes: tuple[Index, ...] = ()
    """Of a table; of a source, those of the tables that come with it."""
    pii: tuple[str, ...] = ()
    """Columns that are marked as personal data; what is derived from them is told by `personal`."""
    comment: str | None = None
    follows: bool = False
    """True when its columns grow by themselves: those of a declared stream with the versions of its
    subject in the registry, those of a derived object with an input of which it takes all."""

    @property
    def processing_time(self) -> bool:
        """True when the event time is that of the batch which reads the record."""
        return self.time is not None and not self.time.columns_read

    @property
    def made_by(self) -> FunctionDefinition | None:
        """The Python function that is called for the records of the input, if that is how."""
        how = self.stateful or self.handler
        return self.sink if how is None else how.function

    @property
    def is_sink(self) -> bool:
        """True when its rows go elsewhere, and its topic has receipts."""
        return self.sink is not None or self.target is not None

    @property
    def noun(self) -> str:
        """What it is, in a word: stream, table, source or sink."""
        return "sink" if self.is_sink else self.kind.value

    @property
    def derived(self) -> bool:
        """True when a flow of the engine produces it."""
        return self.query is not None

    @property
    def pattern(self) -> TopicPattern | None:
        """Which topics a wildcard stream reads; None for all that has a topic of its own."""
        return parse_pattern(self.topic) if is_pattern(self.topic) else None

    @property
    def value_columns(self) -> tuple[Column, ...]:
        """The columns that a record's value carries: all but the named parts of a pattern."""
        pattern = self.pattern
        named = pattern.places if pattern else ()
        return tuple(column for column in self.columns if column.name not in named)

    @property
    def keys(self) -> Definition | None:
        """What the records' keys hold, as if they were values; None when no format is said."""
        if self.key_format is None:
            return None
        columns = tuple(column for name in self.key if (column := self.column(name)) is not None)
        return replace(
            self,
            name=f"{self.name}_key",
            columns=columns,
            key=(),
            format=self.key_format,
            delimiter=None,
            record=None,
            subject_strategy=SubjectStrategy.TOPIC_NAME,
            key_format=None,
            of_keys=True,
            follows=False,
        )

    def reads(self, topic: str) -> bool:
        """True when records of the topic are records of this object."""
        pattern = self.pattern
        return topic == self.topic if pattern is None else pattern.matches(topic)

    def column(self, name: str) -> Column | None:
        """The column of that name; case does not matter."""
        return next((c for c in self.columns if c.name.lower() == name.lower()), None)


# -- statements, each with the place where it begins


@dataclass(frozen=True, slots=True)
class Create:
    """CREATE [OR REPLACE] STREAM | TABLE | SOURCE | SINK [IF NOT EXISTS] ..."""

    definition: Definition
    or_replace: bool = False
    if_not_exists: bool = False

    @property
    def location(self) -> SourceLocation:
        """Where the statement begins."""
        return self.definition.location


@dataclass(frozen=True, slots=True)
class CreateIndex:
    """CREATE INDEX [IF NOT EXISTS] [name] ON table (columns)."""

    index: Index
    if_not_exists: bool = False

    @property
    def location(self) -> SourceLocation:
        """Where the statement begins."""
        return self.index.location


@dataclass(frozen=True, slots=True)
class DropIndex:
    """DROP INDEX [IF EXISTS] name."""

    name: str
    location: SourceLocation
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class InsertValues:
    """INSERT INTO name [(columns)] VALUES (...), ...; `values` is the text from VALUES on."""

    name: str
    columns: tuple[str, ...]
    values: str
    location: SourceLocation


@dataclass(frozen=True, slots=True)
class Drop:
    """DROP STREAM | TABLE | SOURCE | SINK [IF EXISTS] name [CASCADE]."""

    name: str
    location: SourceLocation
    kind: Kind | None = None
    if_exists: bool = False
    cascade: bool = False
    sink: bool = False
    """True: a stream that is a sink, and no other."""

    @property
    def wanted(self) -> str:
        """What is dropped, in a word."""
        return "sink" if self.sink else "object" if self.kind is None else self.kind.value


@dataclass(frozen=True, slots=True)
class Pause:
    """PAUSE name."""

    name: str
    location: SourceLocation


@dataclass(frozen=True, slots=True)
class Resume:
    """RESUME name."""

    name: str
    location: SourceLocation


@dataclass(frozen=True, slots=True)
class ApplyLate:
    """APPLY LATE name."""

    name: str
    location: SourceLocation


@dataclass(frozen=True, slots=True)
class StartBackfill:
    """BACKFILL name [FROM BEGINNING | FROM 'time'] [RATE number]."""

    name: str
    location: SourceLocation
    since: str | None = None
    """A time; None: the beginning."""
    rate: int | None = None
    """Most records a second; None: as many as can be."""


class Listing(StrEnum):
    """What SHOW can list."""

    STREAMS = "streams"
    TABLES = "tables"
    TOPICS = "topics"
    FLOWS = "flows"
    FUNCTIONS = "functions"
    BACKFILLS = "backfills"
    SOURCES = "sources"
    SINKS = "sinks"
    CONNECTORS = "connectors"
    INDEXES = "indexes"


@dataclass(frozen=True, slots=True)
class Show:
    """SHOW and one of `Listing`."""

    what: Listing
    location: SourceLocation


@dataclass(frozen=True, slots=True)
class Describe:
    """DESCRIBE name."""

    name: str
    location: SourceLocation


@dataclass(frozen=True, slots=True)
class DescribeConnector:
    """DESCRIBE CONNECTOR 'name'."""

    name: str
    location: SourceLocation


@dataclass(frozen=True, slots=True)
class Moment:
    """AS OF: a time at which a table is looked at, or offsets of its topic."""

    location: SourceLocation
    time: str | None = None
    """SQL text of a constant."""
    offsets: tuple[tuple[int, int], ...] = ()
    """Partition, and the offset before which its records count; of others, none do."""


@dataclass(frozen=True, slots=True)
class Select:
    """A query: pull over tables, history over streams, or push with EMIT CHANGES."""

    query: Query
    location: SourceLocation
    emit_changes: bool = False
    parameters: tuple[str, ...] = field(default=())
    moments: tuple[Moment, ...] = ()
    """AS OF: for each mention of a table, in the order of `relations`, when it is looked at; none:
    as they are now."""


@dataclass(frozen=True, slots=True)
class ExplainRow:
    """EXPLAIN ROW name WHERE condition: which events are behind a row of a table."""

    query: Query
    """SELECT * FROM name WHERE condition."""
    location: SourceLocation


@dataclass(frozen=True, slots=True)
class Explain:
    """EXPLAIN name, or EXPLAIN SELECT ... / CREATE ..."""

    target: str | Select | Create
    location: SourceLocation


Statement = (
    Create
    | CreateIndex
    | DropIndex
    | InsertValues
    | Drop
    | Pause
    | Resume
    | ApplyLate
    | StartBackfill
    | Show
    | Describe
    | DescribeConnector
    | Select
    | Explain
    | ExplainRow
)
