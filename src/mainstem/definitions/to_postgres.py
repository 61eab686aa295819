"""A query over tables in PostgreSQL's words: same dialect for the user, another for the store.

PostgreSQL folds the case of unquoted names and Spark ignores case, so each name is looked up here
and written in quotes as the catalog spells it. Columns that are not scalar are jsonb there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope, traverse_scope

from mainstem.definitions.calls import place_of_call
from mainstem.definitions.dialect import Parsed
from mainstem.definitions.model import Definition, Kind, Query, Select
from mainstem.definitions.places import place_in
from mainstem.definitions.query import count_windows, reparse
from mainstem.definitions.relations import relations, table_name
from mainstem.definitions.resolve import unknown_relation
from mainstem.definitions.types import struct_fields
from mainstem.errors import MainstemError, did_you_mean
from mainstem.vocabulary import METADATA_COLUMNS, Column

RECORDS = "r"
"""Alias of the record set that a push query's conditions speak of."""
EVERY_ROW = "TRUE"
"""The condition of a push query without one."""

_MARK = re.compile("\0(\\w*)\0")
"""Where a parameter stands while the text is made: no text of a user holds this character."""
_CASTS = {
    "tinyint": "smallint",
    "smallint": "smallint",
    "int": "int",
    "bigint": "bigint",
    "float": "real",
    "double": "double precision",
    "boolean": "boolean",
    "date": "date",
    "timestamp": "timestamptz",
    "timestamp_ntz": "timestamp",
}
"""PostgreSQL's types for scalars inside jsonb; all others stay jsonb."""


def to_postgres(select: Select, definitions: Mapping[str, Definition]) -> str:
    """The query for PostgreSQL. `definitions` are the objects by lower-case name.

    Parameters become `%s` and `%(name)s`; a query that has some writes `%` as `%%`.
    """
    translation = _Translation(select.query, definitions)
    translation.run()
    return _sql(translation.parsed.tree, select)


def push_condition(select: Select, definition: Definition) -> tuple[str, str]:
    """SELECT list and WHERE condition of a push query, over a record set with the alias `r`."""
    translation = _Translation(select.query, {definition.name.lower(): definition}, RECORDS)
    translation.run()
    tree = translation.parsed.tree
    where = tree.args.get("where")
    projection = ", ".join(_sql(part, select) for part in tree.args["expressions"])
    return projection, _sql(where.this, select) if where else EVERY_ROW


def _sql(tree: exp.Expr, select: Select) -> str:
    for placeholder in list(tree.find_all(exp.Placeholder)):
        placeholder.replace(exp.Var(this=f"\0{placeholder.text('this')}\0"))
    try:
        text = tree.sql(dialect="postgres", identify=True, comments=False)
    except (SqlglotError, ValueError) as error:
        raise MainstemError(
            "INVALID_QUERY", location=select.query.location, problem=str(error).splitlines()[0]
        ) from None
    if select.parameters:
        text = text.replace("%", "%%")
    return _MARK.sub(lambda m: f"%({m[1]})s" if m[1] else "%s", text)


class _Translation:
    """One query on its way; names are replaced in its tree, inner queries first."""

    def __init__(
        self, query: Query, definitions: Mapping[str, Definition], alias: str = ""
    ) -> None:
        self.query = query
        self.definitions = definitions
        self.alias = alias
        self.parsed: Parsed = reparse(query)
        self.outputs: dict[int, list[Column]] = {}
        """Output columns of the queries done so far, by identity of their node."""

    def run(self) -> None:
        """Replace all names."""
        tree = self.parsed.tree
        for function in self.query.functions:
            raise MainstemError(
                "NOT_SUPPORTED",
                location=place_in(self.query, place_of_call(self.parsed, function)),
                what=f'the Python function "{function.name}"',
                where="a query that PostgreSQL answers",
                advice="Make a stream or a table whose query calls it, and read that.",
            )
        for call in count_windows(self.parsed):
            raise MainstemError(
                "NOT_SUPPORTED",
                location=place_in(self.query, call.start),
                what="count_window",
                where="a query over tables",
                advice="Count the events of a stream instead.",
            )
        if tree.find(exp.Lateral):
            raise self._unsupported("LATERAL")
        self._replace_tables()
        for scope in traverse_scope(tree):
            if isinstance(scope.expression, exp.Select):
                self._select(scope, scope.expression)
            elif isinstance(scope.expression, exp.SetOperation):
                self._set_operation(scope.expression)

    def _set_operation(self, operation: exp.SetOperation) -> None:
        """It has the column names of its left side; ORDER BY behind it speaks of those."""
        columns = self.outputs.get(id(operation.left.unnest()), [])
        self.outputs[id(operation)] = columns
        order = operation.args.get("order")
        for column in list(order.find_all(exp.Column)) if order else []:
            found = [c for c in columns if c.name.lower() == column.name.lower()]
            if not found:
                raise self._unknown(column, column.name, {"": columns})
            column.this.set("this", found[0].name)

    def _replace_tables(self) -> None:
        """Tables get their one quoted name and an alias; names of relations one case."""
        found = list(relations(self.parsed.tree))
        dotted = {table_name(table).lower() for table in found if table.db}
        for column in self.parsed.tree.find_all(exp.Column):
            if f"{column.db}.{column.table}".lower() in dotted:
                column.set("db", None)
        for alias in self.parsed.tree.find_all(exp.TableAlias):
            if alias.this is not None:
                alias.this.set("this", alias.name.lower())
        for table in list(self.parsed.tree.find_all(exp.Table)):
            if not any(table is relation for relation in found):
                table.this.set("this", table.name.lower())  # the name of a WITH query
                continue
            name = table_name(table)
            definition = self.definitions.get(name.lower())
            if definition is None:
                known = (d.name for d in self.definitions.values())
                raise unknown_relation(self.query, name, known)
            alias_name = self.alias or table.alias or table.name.rpartition(".")[2].lower()
            if self.alias:
                self._requalify(table, alias_name)
            table.set("db", None)
            table.set("this", exp.to_identifier(definition.name, quoted=True))
            table.set("alias", exp.TableAlias(this=exp.to_identifier(alias_name, quoted=True)))

    def _requalify(self, table: exp.Table, alias: str) -> None:
        """Columns that name the relation name the record set instead."""
        names = {(table.alias or table.name.rpartition(".")[2]).lower()}
        for column in self.parsed.tree.find_all(exp.Column):
            if column.table.lower() in names:
                column.args["table"].set("this", alias)

    def _select(self, scope: Scope, select: exp.Select) -> None:
        visible = self._visible(scope)
        projections: list[exp.Expr] = []
        for projection in select.expressions:
            projections += self._expanded(projection, visible)
        select.set("expressions", projections)
        aliases = {p.alias.lower(): p.alias for p in projections if isinstance(p, exp.Alias)}
        for column in list(select.find_all(exp.Column)):
            if column.find_ancestor(exp.Select) is select:
                self._column(column, visible, aliases, scope)
        self._brackets(select)
        self._arrays(select)
        self.outputs[id(select)] = [self._output(p) for p in select.expressions]

    def _visible(self, scope: Scope) -> dict[str, list[Column]]:
        """The columns behind FROM, by alias."""
        return {
            name.lower(): self._columns_of(source)
            for name, (_, source) in scope.selected_sources.items()
        }

    def _columns_of(self, source: exp.Expr | Scope) -> list[Column]:
        if isinstance(source, Scope):
            return self.outputs.get(id(source.expression), [])
        definition = self.definitions.get(source.name.lower())
        return list(definition.columns) if definition else []

    def _expanded(self, projection: exp.Expr, visible: dict[str, list[Column]]) -> list[exp.Expr]:
        """A projection, or the columns that a star stands for."""
        if not projection.is_star or not isinstance(projection, (exp.Star, exp.Column)):
            return [projection]
        star = projection if isinstance(projection, exp.Star) else projection.this
        left_out = {e.name.lower() for e in star.args.get("except_") or ()}
        if star.args.get("replace") or star.args.get("rename"):
            raise self._unsupported("* REPLACE")
        wanted = projection.table.lower() if isinstance(projection, exp.Column) else ""
        if wanted and wanted not in visible:
            raise self._unknown(projection, wanted, visible)
        return [
            exp.column(column.name, table=name or None, quoted=True)
            for name, columns in visible.items()
            if not wanted or name == wanted
            for column in columns
            if column.name.lower() not in left_out
        ]

    def _column(
        self,
        column: exp.Column,
        visible: dict[str, list[Column]],
        aliases: dict[str, str],
        scope: Scope,
    ) -> None:
        """Write a column as its source spells it; fields of a struct become jsonb paths."""
        parts = [part.name for part in column.parts]
        if len(parts) == 1 and not self._found(parts, visible) and parts[0].lower() in aliases:
            column.this.set("this", aliases[parts[0].lower()])
            return
        found: list[tuple[str, Column, list[str]]] = []
        around: Scope | None = scope
        while around is not None and not found:  # a subquery sees the columns around it
            found = self._found(parts, visible if around is scope else self._visible(around))
            around = around.parent
        if not found:
            raise self._unknown(column, parts[0], visible, aliases)
        source, known, fields = found[0]
        if len(found) > 1 and len(parts) == 1:
            source = ""  # PostgreSQL says that it is ambiguous, or merges it with USING
        exact = exp.column(known.name, table=source or None, quoted=True)
        node = self._field(exact, known.type, fields) if fields else exact
        named = isinstance(column.parent, exp.Select) and column.arg_key == "expressions"
        if named and fields:
            node = exp.alias_(node, parts[-1], quoted=True)
        column.replace(node)

    def _found(
        self, parts: list[str], visible: dict[str, list[Column]]
    ) -> list[tuple[str, Column, list[str]]]:
        """Source, column and fields that a dotted name may mean."""
        qualifier = parts[0].lower() if len(parts) > 1 and parts[0].lower() in visible else ""
        name, *fields = parts[1:] if qualifier else parts
        return [
            (source, known, fields)
            for source, columns in visible.items()
            if not qualifier or source == qualifier
            for known in self._with_metadata(source, columns)
            if known.name.lower() == name.lower()
        ]

    def _with_metadata(self, source: str, columns: list[Column]) -> list[Column]:
        """Streams have metadata columns, too; only push queries meet streams here."""
        streams = [d for d in self.definitions.values() if d.kind is Kind.STREAM]
        if source == self.alias and streams:
            return columns + [Column(name, type_) for name, type_ in METADATA_COLUMNS.items()]
        return columns

    def _field(self, column: exp.Expr, type_: str, fields: list[str]) -> exp.Expr:
        path = []
        for field in fields:
            name, type_ = struct_fields(type_).get(field.lower(), (field, "string"))
            path.append(name)
        return _json_path(column, path, type_)

    def _brackets(self, select: exp.Select) -> None:
        """`tags[0]`, `labels['x']` and `items[0].name` on jsonb columns."""
        for bracket in list(select.find_all(exp.Bracket)):
            keys = bracket.expressions
            if isinstance(bracket.this, exp.Column) and all(k.is_string or k.is_int for k in keys):
                type_ = self._type_of(bracket.this)
                element = type_.removeprefix("array<").removeprefix("map<string,").removesuffix(">")
                offset = bracket.args.get("offset") or 0
                path = [k.name if k.is_string else str(int(k.name) - offset) for k in keys]
                whole: exp.Expr = bracket
                while isinstance(whole.parent, exp.Dot) and whole.arg_key == "this":
                    whole = whole.parent
                    field = whole.expression.name
                    name, element = struct_fields(element).get(field.lower(), (field, "string"))
                    path.append(name)
                found = _json_path(bracket.this, path, element)
                named = isinstance(whole.parent, exp.Select) and whole.arg_key == "expressions"
                if named and whole is not bracket:
                    found = exp.alias_(found, path[-1], quoted=True)
                whole.replace(found)

    def _arrays(self, select: exp.Select) -> None:
        """`array_contains(tags, 'x')` and `size(tags)` on jsonb columns."""
        for call in list(select.find_all(exp.ArrayContains, exp.ArraySize)):
            column = call.this
            type_ = self._type_of(column) if isinstance(column, exp.Column) else ""
            if not type_.startswith("array<"):
                continue
            if isinstance(call, exp.ArraySize):
                size = exp.Anonymous(this="jsonb_array_length", expressions=[column.copy()])
                call.replace(size)
                continue
            element = _CASTS.get(type_.removeprefix("array<").removesuffix(">"), "text")
            value = exp.cast(call.expression.copy(), exp.DataType.build(element, "postgres"))
            wanted = exp.Anonymous(this="to_jsonb", expressions=[value])
            call.replace(
                exp.Paren(this=exp.ArrayContainsAll(this=column.copy(), expression=wanted))
            )

    def _type_of(self, column: exp.Column) -> str:
        types = [
            known.type
            for definition in self.definitions.values()
            for known in definition.columns
            if known.name == column.name
        ]
        return types[0] if types else ""

    def _output(self, projection: exp.Expr) -> Column:
        inner = projection.unalias()
        type_ = self._type_of(inner) if isinstance(inner, exp.Column) else ""
        return Column(projection.alias_or_name, type_)

    def _unknown(
        self,
        column: exp.Expr,
        name: str,
        visible: dict[str, list[Column]],
        aliases: Mapping[str, str] | None = None,
    ) -> MainstemError:
        known = [c.name for columns in visible.values() for c in columns]
        return MainstemError(
            "UNKNOWN_COLUMN",
            location=place_in(self.query, self.parsed.place(column)),
            column=name,
            known=", ".join(known),
            suggestion=did_you_mean(name, [*known, *(aliases or {}).values()]),
        )

    def _unsupported(self, what: str) -> MainstemError:
        return MainstemError(
            "NOT_SUPPORTED",
            location=self.query.location,
            what=what,
            where="a query over tables",
            advice="Ask for the column itself, and take it apart in your program.",
        )


def _json_path(column: exp.Expr, path: list[str], type_: str) -> exp.Expr:
    """The value at a path in a jsonb column, as a scalar of PostgreSQL when it is one."""
    arguments = [column.copy(), *(exp.Literal.string(step) for step in path)]
    if type_ == "string":
        return exp.Anonymous(this="jsonb_extract_path_text", expressions=arguments)
    cast_to = "numeric" if type_.startswith("decimal") else _CASTS.get(type_)
    if cast_to is None:
        return exp.Anonymous(this="jsonb_extract_path", expressions=arguments)
    text = exp.Anonymous(this="jsonb_extract_path_text", expressions=arguments)
    return exp.cast(text, exp.DataType.build(cast_to, dialect="postgres"))
