"""What a query must pass before it goes anywhere: it only reads, and it reads only our objects.

Any SQL that reaches Spark unchecked is code execution. Two independent looks are taken:

1. at the tokens: no name before a bracket that is not on the list of functions, no variable
   substitution, no script, however the parser would read it;
2. at the syntax tree: only SELECT-shaped nodes, only known clauses, and behind FROM only plain
   names, which are looked up among our objects later.
"""

from __future__ import annotations

from sqlglot import exp

from mainstem.definitions.calls import check_call, own_calls, own_function
from mainstem.definitions.dialect import Parsed
from mainstem.definitions.functions import functions, why_not
from mainstem.definitions.keywords import SYNTAX_WORDS, words
from mainstem.definitions.lexer import T, Token
from mainstem.definitions.model import Flavour
from mainstem.definitions.names import foreign_name, plain_name
from mainstem.definitions.relations import table_name

_BARE_FUNCTIONS = frozenset({"CURRENT_USER", "SESSION_USER", "CURRENT_CATALOG", "CURRENT_DATABASE"})
"""Functions that Spark calls without brackets."""

_CLAUSES: dict[type[exp.Expr], frozenset[str]] = {
    exp.Select: words(
        """
        with_ expressions distinct from_ joins laterals where group having qualify windows order
        sort limit offset
        """
    ),
    exp.Table: frozenset({"this", "db", "alias", "joins", "laterals"}),
    exp.Subquery: frozenset({"this", "alias", "with_", "joins", "laterals", "order", "limit"}),
    exp.With: frozenset({"expressions"}),
    exp.CTE: frozenset({"this", "alias"}),
}
"""The parts that each kind of node may have; anything else is refused by name."""

_FORBIDDEN = (
    exp.DDL,
    exp.DML,
    exp.Command,
    exp.Into,
    exp.QueryTransform,
    exp.Hint,
    exp.Parameter,
    exp.SessionParameter,
    exp.TableSample,
    exp.Pivot,
    exp.MatchRecognize,
    exp.Set,
    exp.Use,
    exp.Cache,
    exp.Uncache,
    exp.Describe,
)

_ADVICE = "A query is one SELECT over streams and tables."


def guard(parsed: Parsed, *, definition: bool) -> None:
    """Refuse what is not a plain query; `definition` refuses random functions, too."""
    _guard_tokens(parsed, definition=definition)
    tree = parsed.tree
    shaped = isinstance(tree, (exp.Select, exp.SetOperation, exp.Subquery))
    if not shaped or parsed.tokens[0].upper not in ("SELECT", "WITH", "("):
        raise _not_allowed(parsed, f"a statement with {parsed.tokens[0].text}", parsed.start)
    _guard_tree(parsed)


def guard_values(parsed: Parsed) -> None:
    """Refuse a VALUES list with more in it than literals and function calls."""
    _guard_tokens(parsed, definition=False)
    for token, function in own_calls(parsed):
        raise parsed.error(
            "NOT_SUPPORTED",
            token.start,
            what=f'the Python function "{function.name}"',
            where="INSERT",
            advice="Give the value itself, or call the function in a query over the stream.",
        )
    for node in parsed.tree.walk():
        if isinstance(node, (exp.Query, exp.Table)) and not isinstance(node, exp.Values):
            raise _not_allowed(
                parsed, "a query inside VALUES", parsed.place(node), "Give the values themselves."
            )
    if not isinstance(parsed.tree, exp.Values):
        raise _not_allowed(parsed, "anything but a VALUES list", parsed.start)


def _guard_tokens(parsed: Parsed, *, definition: bool) -> None:
    tokens = parsed.tokens
    # Spark replaces ${...} in the text before it parses it, inside strings and comments, too.
    dollar = parsed.text.find("${")
    if dollar >= 0:
        raise _not_allowed(
            parsed, "${...}", parsed.start + dollar, "Write concat('$', '{') for the characters."
        )
    named = _names_with_column_lists(parsed)
    for index, token in enumerate(tokens):
        before = tokens[index - 1] if index else None
        after = tokens[index + 1] if index + 1 < len(tokens) else None
        if token.kind is T.SYMBOL and token.text in "$@{}":
            raise _not_allowed(parsed, f'"{token.text}"', token.start)
        if token.upper == "USING" and (after is None or after.text != "("):
            raise _not_allowed(parsed, "a script (USING ...)", token.start)
        if token.kind is T.SYMBOL and token.text == "|" and after and after.text == ">":
            raise parsed.error(
                "NOT_SUPPORTED",
                token.start,
                what="the pipe syntax |>",
                where="queries",
                advice="Write the query as SELECT ... FROM ...",
            )
        if token.upper in _BARE_FUNCTIONS and not (before and before.text == "."):
            _refuse_function(parsed, token, token.text, definition)
        if after is not None and after.text == "(" and token.kind in (T.WORD, T.QUOTED):
            _guard_call(parsed, token, before, named, definition)


def _guard_call(
    parsed: Parsed, token: Token, before: Token | None, named: frozenset[str], definition: bool
) -> None:
    """A name before a bracket: a keyword, a name with a column list, or an allowed function."""
    name = token.name
    if token.upper in SYNTAX_WORDS:
        return
    if before is not None and before.text == ".":
        raise parsed.error("FUNCTION_NOT_ALLOWED", token.start, name=f"...{name}", suggestion="")
    if name.upper() == "IDENTIFIER":
        raise _not_allowed(parsed, "IDENTIFIER(...)", token.start, "Write the name itself.")
    own = own_function(parsed, token)
    if name.lower() in named and name.lower() not in functions().refused:
        if own is not None:
            raise _not_allowed(
                parsed,
                f'the alias "{name}"',
                token.start,
                "It is the name of a Python function; use another.",
            )
        return
    if own is not None:
        check_call(parsed, token, before, own)
        return
    _refuse_function(parsed, token, name, definition)


def _refuse_function(parsed: Parsed, token: Token, name: str, definition: bool) -> None:
    reason = why_not(name, definition=definition)
    if reason is not None and not _may_be_own(parsed, name):
        raise parsed.error("FUNCTION_NOT_ALLOWED", token.start, name=name, suggestion=reason)


def _may_be_own(parsed: Parsed, name: str) -> bool:
    """True for a name that can be a Python function, when the reader does not know those."""
    known = functions()
    listed = name.lower() in known.random or name.lower() in known.refused
    return parsed.source.functions is None and name.isascii() and not listed


def _names_with_column_lists(parsed: Parsed) -> frozenset[str]:
    """Aliases such as `t` in `AS t(a, b)` and `WITH t(a) AS ...`, in lower case."""
    return frozenset(
        alias.name.lower() for alias in parsed.tree.find_all(exp.TableAlias) if alias.columns
    )


def _guard_tree(parsed: Parsed) -> None:
    for node in parsed.tree.walk():
        if isinstance(node, _FORBIDDEN):
            raise _not_allowed(parsed, type(node).__name__.upper(), parsed.place(node))
        allowed = _CLAUSES.get(type(node))
        if allowed is not None:
            for part, value in node.args.items():
                if value and part not in allowed:
                    raise _not_allowed(
                        parsed, f"the clause {part.strip('_').upper()}", parsed.place(node)
                    )
        if isinstance(node, exp.Values):
            raise _not_allowed(
                parsed, "VALUES in a query", parsed.place(node), "Read a stream or a table."
            )
        if isinstance(node, exp.Table):
            _guard_table(parsed, node)


def _guard_table(parsed: Parsed, table: exp.Table) -> None:
    """Behind FROM stands a plain name, or a function that makes rows of a column."""
    if isinstance(table.this, exp.Func):
        name = parsed.spelling(table.this).lower()
        own = (parsed.source.functions or {}).get(name)
        if own is not None and own.flavour is Flavour.TABLE:
            return
        if name not in functions().generators and not _may_be_own(parsed, name):
            raise _not_allowed(
                parsed, "a function behind FROM", parsed.place(table), "Name a stream or a table."
            )
        return
    name = table_name(table)
    if not plain_name(name) or foreign_name(name):
        raise _not_allowed(
            parsed,
            f'"{name}" as a table',
            parsed.place(table),
            "Name a stream or a table; files and other catalogs cannot be read.",
        )


def _not_allowed(parsed: Parsed, what: str, offset: int, advice: str = _ADVICE) -> Exception:
    return parsed.error("SQL_NOT_ALLOWED", offset, what=what, advice=advice)
