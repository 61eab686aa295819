"""Which output columns of a query identify its groups: they become a table's primary key.

A grouping expression is represented by an output column that is that expression, or a field of
it when it is a window: `window.start` names the window as well as the window itself does.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from mainstem.definitions.dialect import MainstemDialect, Parsed
from mainstem.definitions.relations import source_of

COUNT_WINDOW = "count_window"
_WINDOWS = ("window", "session_window", COUNT_WINDOW)


@dataclass(frozen=True, slots=True)
class Output:
    """One output column; `name` is empty when Spark makes it up, `group` is what it represents."""

    name: str
    group: str | None


@dataclass(frozen=True, slots=True)
class Shape:
    """The output columns as far as the text tells, and all grouping expressions."""

    outputs: tuple[Output, ...] = ()
    groups: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    """Names in GROUP BY that were taken for aliases of the SELECT list."""

    @property
    def keys(self) -> tuple[Output, ...]:
        """The output columns that represent a grouping expression."""
        return tuple(out for out in self.outputs if out.group is not None)

    @property
    def missing(self) -> tuple[str, ...]:
        """Grouping expressions that no named output column represents."""
        shown = {out.group for out in self.keys if out.name}
        return tuple(group for group in self.groups if group not in shown)


def many_groupings(tree: exp.Expr) -> bool:
    """True when a GROUP BY does not list its columns one by one: ALL, CUBE, ROLLUP, SETS."""
    return any(
        group.args.get("all") or group.find(exp.Cube, exp.Rollup, exp.GroupingSets)
        for group in tree.find_all(exp.Group)
    )


def shape_of(parsed: Parsed) -> Shape:
    """The shape of the whole query."""
    return _shape(parsed.tree)


def _shape(node: exp.Expr) -> Shape:
    while isinstance(node, (exp.Subquery, exp.CTE)):
        node = node.this
    if not isinstance(node, exp.Select):
        return Shape()
    if node.args.get("group"):
        return _grouped(node)
    return _projected(node, _source_shape(node))


def _source_shape(select: exp.Select) -> Shape:
    """The shape of what stands behind FROM; a stream or a table has none."""
    source = source_of(select)
    return _shape(source) if source is not None else Shape()


def _projected(select: exp.Select, inner: Shape) -> Shape:
    """A SELECT without GROUP BY hands on the groups of what it reads."""
    known = {out.name.lower(): out.group for out in inner.outputs if out.name}
    outputs: list[Output] = []
    for projection in select.expressions:
        if projection.is_star:
            outputs += inner.outputs
            continue
        column = projection.unalias()
        group = None
        if isinstance(column, exp.Column):
            group = known.get(column.name.lower())
            if column.table.lower() in _WINDOWS:
                group = known.get(column.table.lower())
        outputs.append(Output(_output_name(projection), group))
    return Shape(tuple(outputs), inner.groups, inner.aliases)


def _grouped(select: exp.Select) -> Shape:
    sources = _source_names(select)
    groups: dict[str, str] = {}  # normal form -> as written
    windows: dict[str, str] = {}  # window, session_window or count_window -> normal form
    aliases: list[str] = []
    for written in select.args["group"].expressions:
        expression = meant(select, written.unalias(), aliases)
        normal = _normal(expression, sources)
        groups[normal] = written.sql(dialect=MainstemDialect)
        if _function(expression) in _WINDOWS:
            windows[_function(expression)] = normal
    outputs = []
    for projection in select.expressions:
        expression = projection.unalias()
        normal = _normal(expression, sources)
        window = windows.get(_window_of(expression))
        group = groups[normal] if normal in groups else groups[window] if window else None
        outputs.append(Output(_output_name(projection), group))
    return Shape(tuple(outputs), tuple(groups.values()), tuple(aliases))


def meant(select: exp.Select, written: exp.Expr, aliases: list[str]) -> exp.Expr:
    """The expression that a position or an alias in GROUP BY stands for."""
    if isinstance(written, exp.Literal) and not written.is_string:
        position = int(written.this) if written.this.isdigit() else 0
        if 1 <= position <= len(select.expressions):
            chosen: exp.Expr = select.expressions[position - 1]
            return chosen.unalias()
    if isinstance(written, exp.Column) and not written.table:
        wanted = written.name.lower()
        for projection in select.expressions:
            if isinstance(projection, exp.Alias) and projection.alias.lower() == wanted:
                columns = {c.name.lower() for c in projection.this.find_all(exp.Column)}
                # Spark prefers an input column to an alias: `upper(a) AS a ... GROUP BY a`.
                if wanted not in columns:
                    aliases.append(projection.alias)
                    return projection.unalias()
    return written


def _source_names(select: exp.Select) -> set[str]:
    clause = select.args.get("from_")
    parts = [clause.this] if clause else []
    parts += [join.this for join in select.args.get("joins") or ()]
    return {part.alias_or_name.lower() for part in parts}


def _normal(expression: exp.Expr, sources: set[str]) -> str:
    """A form in which equal expressions are equal texts: no qualifiers, one case, no comments."""
    expression = expression.copy()
    for column in expression.find_all(exp.Column):
        if column.table.lower() in sources:
            for part in ("table", "db", "catalog"):
                column.set(part, None)
    for identifier in expression.find_all(exp.Identifier):
        identifier.set("this", identifier.name.lower())
        identifier.set("quoted", False)
    for call in expression.find_all(exp.Anonymous):
        call.set("this", call.name.lower())
    return expression.sql(dialect=MainstemDialect, comments=False)


def _function(expression: exp.Expr) -> str:
    return expression.name.lower() if isinstance(expression, exp.Anonymous) else ""


def _window_of(expression: exp.Expr) -> str:
    """The kind of window when the expression is one, a field of one, or its time."""
    if isinstance(expression, exp.Dot):
        expression = expression.this
    if isinstance(expression, exp.Column):
        name = expression.table or expression.name
        return name.lower() if name.lower() in _WINDOWS else ""
    name = _function(expression)
    if name == "window_time" and len(expression.expressions) == 1:
        return _window_of(expression.expressions[0])
    return name if name in _WINDOWS else ""


def _output_name(projection: exp.Expr) -> str:
    name: str = projection.alias_or_name
    if isinstance(projection, (exp.Alias, exp.Column)):
        return name
    if isinstance(projection, exp.Dot):
        return str(projection.expression.name)
    function = _function(projection)
    return function if function in _WINDOWS else ""
