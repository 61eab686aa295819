"""Rows of a sink into nodes and relations of Neo4j, exactly once: `stepwise` says in which steps.

The statement of the user gets some rows at a time, by UNWIND; their values are parameters, never
text. The position of a partition is a node of the label `MainstemPosition`, changed in the same
transaction.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import pyarrow as pa

from mainstem.connect.targets.stepwise import Position, RowError, Stepwise
from mainstem.connect.targets.target import (
    GONE,
    Form,
    Poison,
    Shape,
    mismatch,
    refused,
    unreachable,
)
from mainstem.errors import MainstemError

GUARANTEE = "exactly once: nodes, relations and offsets change in one transaction of Neo4j"
KEYED = True

_WHAT = "Neo4j"
_CONNECT_SECONDS = 5.0
_STEP_SECONDS = 120.0
_ROWS = 1000
_UNWIND = "UNWIND $rows AS row "
_CONSTRAINT = (
    "CREATE CONSTRAINT mainstem_position IF NOT EXISTS"
    " FOR (p:MainstemPosition) REQUIRE p.id IS UNIQUE"
)
_LOOK_UP = "MATCH (p:MainstemPosition {id: $id}) RETURN p.next AS next, p.refused AS refused"
_NOTE = (
    "MERGE (p:MainstemPosition {id: $id})"
    " SET p.sink = $sink, p.topic = $topic, p.partition = $partition,"
    " p.next = $next, p.refused = $refused"
)
_OF_ROWS = (
    "Neo.ClientError.Schema.ConstraintValidationFailed",
    "Neo.ClientError.Statement.ArgumentError",
    "Neo.ClientError.Statement.ArithmeticError",
    "Neo.ClientError.Statement.EntityNotFound",
    "Neo.ClientError.Statement.PropertyNotFound",
    "Neo.ClientError.Statement.SemanticError",
    "Neo.ClientError.Statement.TypeError",
)
"""What Neo4j says because of the values in a row; that the statement is right, a plan has asked."""


def form(options: Mapping[str, Any]) -> Form:
    """Columns with their types."""
    return Form.COLUMNS


def check(options: Mapping[str, Any], shape: Shape) -> None:
    """Whether Neo4j answers, and understands the statements; nothing is run."""
    if shape.deletes and options["delete"] is None:
        advice = "Say what a deletion does: delete = 'MATCH (n:Order {id: row.id}) DETACH DELETE n'"
        raise mismatch(_WHAT, f'rows of the table "{shape.name}" are deleted, too', advice)
    if not shape.deletes and options["delete"] is not None:
        raise MainstemError(
            "INVALID_OPTION",
            option="delete",
            value=options["delete"],
            problem=f'rows of the stream "{shape.name}" are never deleted',
            advice="Leave the option out.",
        )
    with _told(), _driver(options) as driver, driver.session(**_session(options)) as session:
        for option in ("cypher", "delete"):
            if options[option] is not None:
                _explain(session, option, options[option])


def _explain(session: Any, option: str, statement: str) -> None:
    """Refuse a statement that Neo4j does not understand."""
    from neo4j.exceptions import ClientError

    try:
        session.run(f"EXPLAIN {_UNWIND}{statement}", rows=[]).consume()
    except ClientError as error:
        if not (error.code or "").startswith("Neo.ClientError.Statement."):
            raise
        raise MainstemError(
            "INVALID_OPTION",
            option=option,
            value=statement,
            problem=_short(error),
            advice="It follows UNWIND $rows AS row: MERGE (n:Order {id: row.id}) SET n += row",
        ) from None


def open_target(options: Mapping[str, Any], shape: Shape) -> Neo4jTarget:
    """The target for one task."""
    return Neo4jTarget(options, shape)


class Neo4jTarget(Stepwise):
    """One part of a batch: a transaction for each thousand rows."""

    def __init__(self, options: Mapping[str, Any], shape: Shape) -> None:
        super().__init__(shape)
        self._options = options
        self._names = [column.name for column in shape.columns]
        self._driver: Any = None
        self._session: Any = None

    def write(self, rows: pa.Table) -> Sequence[Poison]:
        """In pieces of a size that one transaction of Neo4j is good for."""
        pieces = (rows.slice(first, _ROWS) for first in range(0, rows.num_rows, _ROWS))
        return [poison for piece in pieces for poison in super(Neo4jTarget, self).write(piece)]

    def look_up(self, position: Position) -> None:
        """Connects the first time."""
        with _told():
            if self._driver is None:
                self._driver = _driver(self._options)
                self._session = self._driver.session(**_session(self._options))
                self._session.run(_CONSTRAINT).consume()
            found = self._session.run(_LOOK_UP, id=self._id(position)).data()
        for one in found:
            position.next = one["next"]
            position.refused = [(offset, cause) for offset, cause in json.loads(one["refused"])]

    def step(self, rows: pa.Table, position: Position) -> None:
        """One transaction."""
        from neo4j.exceptions import ClientError

        gone = rows.filter(rows[GONE])
        stay = rows.filter(pa.compute.invert(rows[GONE]))
        with _told():
            try:
                with self._session.begin_transaction(timeout=_STEP_SECONDS) as transaction:
                    self._run(transaction, self._options["delete"], gone)
                    self._run(transaction, self._options["cypher"], stay)
                    transaction.run(_NOTE, self._noted(position)).consume()
                    transaction.commit()
            except ClientError as error:
                if error.code not in _OF_ROWS:
                    raise
                raise RowError(_short(error)) from None

    def close(self) -> None:
        """Ends the connection, and with it a transaction that is not finished."""
        if self._session is not None:
            self._session.close()
        if self._driver is not None:
            self._driver.close()

    def _run(self, transaction: Any, statement: str | None, rows: pa.Table) -> None:
        if statement is None or not rows.num_rows:
            return
        given = [_value(row) for row in rows.select(self._names).to_pylist(maps_as_pydicts="lossy")]
        transaction.run(_UNWIND + statement, rows=given).consume()

    def _id(self, position: Position) -> str:
        assert self._part is not None
        return f"{self._part.sink}:{position.topic_id}:{position.partition}"

    def _noted(self, position: Position) -> dict[str, Any]:
        assert self._part is not None
        return {
            "id": self._id(position),
            "sink": self._part.sink,
            "topic": position.topic,
            "partition": position.partition,
            "next": position.next,
            "refused": json.dumps(position.refused),
        }


def _value(value: Any) -> Any:
    """A value as Neo4j has it: it has no decimals, which keep all their digits as a text."""
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, dict):
        return {name: _value(one) for name, one in value.items()}
    return [_value(one) for one in value] if isinstance(value, list) else value


def _session(options: Mapping[str, Any]) -> dict[str, Any]:
    return {} if options["database"] is None else {"database": options["database"]}


def _driver(options: Mapping[str, Any]) -> Any:
    """A driver that tries nothing twice: the flow does."""
    try:
        import neo4j
    except ImportError:
        problem = "the package neo4j is not installed"
        raise refused(_WHAT, problem, "Run: pip install 'mainstem[neo4j]'") from None
    auth = None if options["password"] is None else (options["user"], options["password"])
    try:
        return neo4j.GraphDatabase.driver(
            options["url"],
            auth=auth,
            user_agent="mainstem",
            connection_timeout=_CONNECT_SECONDS,
            connection_acquisition_timeout=2 * _CONNECT_SECONDS,
            max_connection_pool_size=1,
            notifications_min_severity="OFF",
        )
    except (ValueError, neo4j.exceptions.ConfigurationError) as error:
        raise refused(_WHAT, str(error), "Write for example neo4j://host:7687.") from None


@contextmanager
def _told() -> Iterator[None]:
    """The driver's errors as ours."""
    try:
        import neo4j.exceptions as problems
    except ImportError:
        yield
        return
    try:
        yield
    except problems.AuthError as error:
        raise refused(_WHAT, _short(error), "Correct user or password.") from None
    except (problems.ServiceUnavailable, problems.SessionExpired) as error:
        raise unreachable(_WHAT, _short(error)) from None
    except (problems.Neo4jError, problems.DriverError) as error:
        raise refused(_WHAT, _short(error)) from None


def _short(error: Exception) -> str:
    text = getattr(error, "message", None) or str(error)
    return (text.splitlines() or [type(error).__name__])[0][:300]
