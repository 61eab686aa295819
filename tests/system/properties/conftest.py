"""Queries and data by chance, from a seed, in SQL that Spark and DuckDB understand alike."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

# name -> kind of value; `id` is never null and never comes twice in a table
COLUMNS = {"id": "n", "g": "n", "n": "n", "d": "d", "b": "b", "t": "t", "ts": "ts"}
TYPES = {"n": "INT", "d": "DECIMAL(10,2)", "b": "BOOLEAN", "t": "STRING", "ts": "TIMESTAMP"}
TEXTS = ("", " ", "a", "A", "aé", "ÜBER", "雪 x", "🙂", "it's", "%_", "null", "\\", '"')
BEGIN = datetime(2026, 3, 29)  # noqa: DTZ001 - as DuckDB takes it
STREAMS, TABLES, FIXED = ("s", "r"), ("p", "q"), "f"


@dataclass(frozen=True)
class Question:
    """One query: the statement of ours that makes the object, and DuckDB's text."""

    name: str
    ours: str
    theirs: str


@dataclass(frozen=True)
class Change:
    """A record for a stream or a table; without a row it is a delete."""

    to: str
    id: int
    row: dict[str, Any] | None


@dataclass
class Chance:
    """Makes everything from one seed."""

    random: random.Random
    scope: dict[str, str] = field(default_factory=dict)
    """What can be named in an expression, and its kind."""

    # -- data

    def change(self, to: str, number: int) -> Change:
        table = to not in STREAMS
        key = self.random.randrange(12) if table else number
        gone = table and to != FIXED and self.random.random() < 0.2
        return Change(to, key, None if gone else self._row(key))

    def _row(self, key: int) -> dict[str, Any]:
        one = self.random
        row = {
            "id": key,
            "g": one.randrange(4),
            "n": one.randint(-100, 100),
            "d": Decimal(one.randint(-99_999, 99_999)).scaleb(-2),
            "b": one.random() < 0.5,
            "t": one.choice(TEXTS),
            "ts": BEGIN + timedelta(seconds=one.randrange(7200), microseconds=one.randrange(3)),
        }
        return {k: None if k != "id" and one.random() < 0.15 else v for k, v in row.items()}

    # -- expressions

    def value(self, kind: str, depth: int = 2) -> str:
        names = [name for name, of in self.scope.items() if of == kind]
        if depth == 0 or self.random.random() < 0.2:
            literal = self._literal(kind)
            return self.random.choice([*names, *names, literal]) if names else literal
        one, other = self.value(kind, depth - 1), self.value(kind, depth - 1)
        shared = (
            f"coalesce({one}, {other})",
            f"CASE WHEN {self.condition(depth - 1)} THEN {one} ELSE {other} END",
        )
        return self.random.choice([*shared, *self._own(kind, one, other, depth - 1)])

    def condition(self, depth: int = 1) -> str:
        kind = self.random.choice(("n", "n", "d", "t", "ts"))
        one, other = self.value(kind, min(depth, 1)), self.value(kind, min(depth, 1))
        tests = [
            f"{one} {self.random.choice(('<', '<=', '=', '<>', '>', '>='))} {other}",
            f"{one} IS {self.random.choice(('', 'NOT '))}NULL",
            f"{one} BETWEEN {other} AND {self._literal(kind)}",
            f"{one} {self.random.choice(('', 'NOT '))}IN ({other}, {self._literal(kind)})",
            self.value("b", 0),
        ]
        if kind == "t":
            tests.append(f"{one} LIKE '%{self.random.choice('aéx雪 ')}%'")
        if depth > 0:
            pair = (self.condition(depth - 1), self.condition(depth - 1))
            tests += [f"({pair[0]} AND {pair[1]})", f"({pair[0]} OR {pair[1]})", f"NOT ({pair[0]})"]
        return self.random.choice(tests)

    def aggregate(self) -> str:
        n, d, t = self.value("n", 1), self.value("d", 1), self.value("t", 1)
        return self.random.choice(
            [
                "count(*)",
                f"count({t})",
                f"sum({n})",
                f"sum({d})",
                f"avg({n})",
                f"min({t})",
                f"max({t})",
                f"max({d})",
                f"min({self.value('ts', 0)})",
                f"bool_or({self.condition(0)})",
                f"count(*) FILTER (WHERE {self.condition(0)})",
                f"sum({n}) FILTER (WHERE {self.condition(0)})",
            ]
        )

    def _literal(self, kind: str) -> str:
        match kind:
            case "n":
                return str(self.random.randint(-20, 20))
            case "d":
                return f"CAST({self.random.randint(-999, 999)} AS DECIMAL(10,2))"
            case "b":
                return self.random.choice(("true", "false"))
            case "ts":
                at = BEGIN + timedelta(minutes=self.random.randrange(120))
                return f"CAST('{at}' AS TIMESTAMP)"
            case _:
                text = self.random.choice([t for t in TEXTS if t.isalnum() or not t.strip()])
                return f"'{text}'"

    def _own(self, kind: str, one: str, other: str, depth: int) -> list[str]:
        match kind:
            case "n":
                text = self.value("t", depth)
                more = [f"length({text})", f"abs({one})", f"{one} % 7", f"greatest({one}, {other})"]
                return [f"({one} + {other})", f"({one} - {other})", *more]
            case "d":
                return [f"({one} - {other})", f"round({one}, 1)", f"least({one}, {other})"]
            case "b":
                return [f"({self.condition(depth)})"]
            case "ts":
                return [f"date_trunc('hour', {one})", f"greatest({one}, {other})"]
            case _:
                number = self.value("n", depth)
                more = [f"CAST({number} AS STRING)", f"substring({one}, 1, 2)", f"trim({one})"]
                return [f"({one} || {other})", f"lower({one})", f"replace({one}, 'a', 'b')", *more]

    # -- queries

    def question(self, number: int) -> Question:
        """One query of a random shape; the shapes take turns."""
        shapes = (
            self._stateless,
            self._grouped,
            self._over_tables,
            self._joined,
            self._windowed,
            self._tables_joined,
            self._distinct,
            self._tables_grouped,
            self._union,
            self._enriched,
            self._ranked,
        )
        return shapes[number % len(shapes)](f"x{number}")

    def _see(self, *names: str) -> None:
        self.scope = {
            f"{name}.{column}" if name else column: kind
            for name in names
            for column, kind in COLUMNS.items()
        }

    def _some(self, most: int = 4) -> list[str]:
        kinds = self.random.choices(tuple(TYPES), k=self.random.randint(1, most))
        return [f"{self.value(kind)} AS c{i}" for i, kind in enumerate(kinds)]

    def _column(self, kind: str) -> str:
        """A column, or an expression of one: a number in GROUP BY would be a place."""
        name = self.random.choice([name for name, of in self.scope.items() if of == kind])
        other = self._literal(kind)
        return self.random.choice((name, name, f"coalesce({name}, {other})"))

    def _where(self) -> str:
        return f" WHERE {self.condition()}" if self.random.random() < 0.7 else ""

    def _both(self, name: str, kind: str, text: str, key: str = "") -> Question:
        options = f" WITH (key = '{key}')" if key else ""
        return Question(name, f"CREATE {kind} {name}{options} AS {text};", text)

    def _stateless(self, name: str) -> Question:
        self._see("")
        inner = f"SELECT {', '.join(['id', 'g', *self._some()])} FROM s{self._where()}"
        return self._both(name, "STREAM", f"SELECT * FROM ({inner}) i WHERE g < 3 OR g IS NULL")

    def _union(self, name: str) -> Question:
        self._see("")
        columns = f"{self.value('n')} AS a, {self.value('t')} AS c, {self.value('d')} AS e"
        other = f"{self.value('n')}, {self.value('t')}, {self.value('d')}"
        text = f"SELECT {columns} FROM s{self._where()} UNION ALL SELECT {other} FROM r"
        return self._both(name, "STREAM", text)

    def _distinct(self, name: str) -> Question:
        self._see("")
        text = f"SELECT DISTINCT g, {self.value('n', 1)} % 5 AS a, b FROM r{self._where()}"
        return self._both(name, "STREAM", text)

    def _joined(self, name: str) -> Question:
        self._see("s", "r")
        more = f" AND {self.condition(0)}" if self.random.random() < 0.5 else ""
        text = f"SELECT s.id AS one, r.id AS other, {', '.join(self._some())}"
        return self._both(name, "STREAM", f"{text} FROM s JOIN r ON s.g = r.g AND s.b = r.b{more}")

    def _enriched(self, name: str) -> Question:
        self._see("s", "f")
        left = self.random.choice(("", "LEFT "))
        text = f"SELECT s.id, {', '.join(self._some())} FROM s {left}JOIN f ON s.g = f.id"
        return self._both(name, "STREAM", text + self._where())

    def _grouped(self, name: str) -> Question:
        self._see("")
        return self._groups(name, "s")

    def _tables_grouped(self, name: str) -> Question:
        self._see("p", "q")
        of = self.random.choice(("", "LEFT ", "FULL "))
        distinct = f"count(DISTINCT {self.value('n', 1)})"
        return self._groups(name, f"p {of}JOIN q ON p.g = q.g", distinct)

    def _groups(self, name: str, source: str, *more: str) -> Question:
        by = [self._column(self.random.choice(("n", "t"))), self._column("b")]
        columns = [f"{expression} AS k{i}" for i, expression in enumerate(by)]
        made = [self.aggregate() for _ in range(self.random.randint(1, 3))] + [*more]
        columns += [f"{expression} AS a{i}" for i, expression in enumerate(made)]
        having = self.random.choice(("", f" HAVING count(*) > {self.random.randint(1, 4)}"))
        head = f"SELECT {', '.join(columns)} FROM {source}{self._where()} GROUP BY "
        ours = f"CREATE TABLE {name} AS {head}{', '.join(by)}{having};"
        return Question(name, ours, f"{head}k0, k1{having}")

    def _windowed(self, name: str) -> Question:
        self._see("")
        test, made = self.condition(), self.aggregate()
        columns = f"g AS k, {made} AS a FROM s WHERE ({test})"
        ours = f"SELECT window.start AS w, {columns} GROUP BY g, window(ts, '10 minutes')"
        bucket = "time_bucket(INTERVAL 10 minutes, ts)"
        theirs = f"SELECT {bucket} AS w, {columns} AND ts IS NOT NULL GROUP BY g, {bucket}"
        return Question(name, f"CREATE TABLE {name} AS {ours};", theirs)

    def _over_tables(self, name: str) -> Question:
        self._see("")
        columns = ["id", *self._some()]
        test = self.random.choice(
            (
                "g IN (SELECT g FROM q WHERE b)",
                "EXISTS (SELECT 1 FROM q WHERE q.g = p.g AND q.n < p.n)",
                "n >= (SELECT avg(n) FROM q)",
                "id NOT IN (SELECT id FROM q)",
            )
        )
        return self._both(name, "TABLE", f"SELECT {', '.join(columns)} FROM p WHERE {test}", "id")

    def _tables_joined(self, name: str) -> Question:
        self._see("p", "q")
        of = self.random.choice(("", "LEFT ", "RIGHT ", "FULL "))
        text = f"SELECT p.id AS one, q.id AS other, {', '.join(self._some())}"
        text += f" FROM p {of}JOIN q ON p.g = q.g{self._where()}"
        return self._both(name, "TABLE", text, "one, other")

    def _ranked(self, name: str) -> Question:
        self._see("")
        rows = f"SELECT id, g, n FROM p UNION SELECT id + 100, g, {self.value('n')} FROM q"
        order = "(PARTITION BY g ORDER BY id)"
        over = f"row_number() OVER {order} AS place, sum(n) OVER {order} AS total"
        text = f"WITH rows_of_both AS ({rows}) SELECT id, g, n, {over} FROM rows_of_both"
        return self._both(name, "TABLE", text, "id, g, n")


@pytest.fixture
def chance(seed: int, first: int) -> Chance:
    """For the queries from the first of them on."""
    return Chance(random.Random(f"properties {seed} {first}"))
