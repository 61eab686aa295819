"""Words of the language: which cannot be names, and which a misspelt word may have meant."""

from __future__ import annotations

import difflib

from mainstem.definitions.lexer import T, Token


def words(text: str) -> frozenset[str]:
    """The words of a list that is written as running text."""
    return frozenset(text.split())


STATEMENT_WORDS = (
    "CREATE",
    "INSERT",
    "DROP",
    "PAUSE",
    "RESUME",
    "APPLY",
    "BACKFILL",
    "SHOW",
    "DESCRIBE",
    "EXPLAIN",
    "SELECT",
    "WITH",
)
"""Words that a statement can begin with."""

RESERVED = words(
    """
    ALL AND ANTI ANY AS ASC BETWEEN BY CASE CAST CREATE CROSS DESC DESCRIBE DISTINCT DROP ELSE EMIT
    END EXCEPT EXISTS EXPLAIN FALSE FETCH FOR FROM FULL GRANT GROUP HAVING IF IN INNER INSERT
    INTERSECT INTERVAL INTO IS JOIN KEY LATERAL LEFT LIKE LIMIT MINUS NATURAL NOT NULL OFFSET ON OR
    ORDER OUTER OVER PAUSE PRIMARY QUALIFY REPLACE RESUME RIGHT SELECT SEMI SET SHOW SOME STREAM
    STREAMS TABLE TABLES THEN TO TOPIC TOPICS TRUE UNION UNIQUE UPDATE USING VALUES WHEN WHERE
    WINDOW WITH
    """
)
"""Words that cannot be the name of a stream or a table."""

_SUGGESTED = (RESERVED | {"CHANGES", "CASCADE", "FLOWS", "TRANSFORM"}) - {"FOR"}

SYNTAX_WORDS = words(
    """
    ALL AND ANTI AS ASC BETWEEN BY CASE CROSS CUBE DESC DISTINCT ELSE END ESCAPE EXCEPT EXISTS
    FILTER FROM FULL GROUP HAVING IN INNER INTERSECT INTERVAL IS JOIN LATERAL LIMIT MINUS NOT OFFSET
    ON OR ORDER OUTER OVER PIVOT QUALIFY ROLLUP SELECT SEMI SETS TABLESAMPLE THEN UNION UNPIVOT
    USING VALUES WHEN WHERE WITH
    DEC NUMERIC VARCHAR CHARACTER
    """
)
"""Words that may stand before a bracket without calling a function."""


def near_keyword(token: Token) -> str:
    """`Did you mean` for a word that looks like a misspelt keyword, else nothing."""
    word = token.upper
    if token.kind is not T.WORD or len(word) < 3 or word in _SUGGESTED:
        return ""
    alike = [known for known in sorted(_SUGGESTED) if abs(len(known) - len(word)) <= 1]
    near = difflib.get_close_matches(word, alike, n=1, cutoff=0.7)
    return f' Did you mean "{near[0]}"?' if near else ""
