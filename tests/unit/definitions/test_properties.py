"""Properties that hold for any text: layout does not matter, and nothing falls over."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from mainstem.catalog.fingerprint import fingerprint
from mainstem.definitions.keywords import words
from mainstem.definitions.lexer import Source, T
from mainstem.definitions.parse import parse, parse_one
from mainstem.errors import MainstemError

STATEMENTS = [
    "CREATE STREAM c (user STRING, at TIMESTAMP, d DECIMAL(10,2), s STRUCT<x:ARRAY<INT>>)"
    " WITH (topic = 'web.c', key = 'user', event_time = 'at', watermark = '1 minute')",
    "CREATE TABLE v AS SELECT Page, window.start AS Minute, count(*) AS n FROM c"
    " WHERE at IS NOT NULL AND page LIKE 'it''s;%' GROUP BY Page, window(at, '1 minute')",
    "CREATE STREAM b AS WITH x AS (SELECT a, `b c`, cast(d AS DECIMAL(10, 2)) AS e FROM shop.c)"
    " SELECT x.a, CASE WHEN e > 1.5 THEN TRUE ELSE FALSE END AS f, struct(a AS Foo) AS g FROM x",
    "CREATE STREAM b AS SELECT transform(arr, x -> x + 1L) AS y, date'2026-01-01' AS z,"
    " a -> 'q' AS w, m['k'][0].z AS q, interval 3 days + at AS p FROM c WHERE NOT a <=> NULL",
]
KEYWORDS = words(
    """
    CREATE STREAM TABLE WITH AS SELECT FROM WHERE GROUP BY AND NOT NULL IS LIKE CASE WHEN THEN ELSE
    END TRUE FALSE STRING TIMESTAMP DECIMAL STRUCT ARRAY INT CAST COUNT INTERVAL
    """
)
LAYOUT = st.sampled_from([" ", "\n", "\t ", "\r\n  ", " /* a; ' */ ", ' -- b; "\n', "\n\n"])


@st.composite
def reformatted(draw):
    text = draw(st.sampled_from(STATEMENTS))
    (tokens,) = Source(text).statements()
    pieces = []
    for before, token in zip((None, *tokens), tokens, strict=False):
        touching = before is not None and before.end == token.start
        strings = touching and token.kind is T.STRING and before.kind is T.STRING
        prefix = touching and token.kind is T.STRING and before.kind is T.WORD
        operator = touching and token.kind is T.SYMBOL and before.kind is T.SYMBOL
        brackets = operator and (token.text in "()[]<>." or before.text in "()[]<>.")
        if before is not None and not strings and (not operator or brackets) and not prefix:
            joined = touching and draw(st.booleans())
            generic = operator and {token.text, before.text} & {"<", ">", "="}
            pieces.append("" if joined or generic else draw(LAYOUT))
        word = token.text
        if token.upper in KEYWORDS:
            word = draw(st.sampled_from([word.lower(), word.upper(), word.title()]))
        pieces.append(word)
    return text, draw(LAYOUT) + "".join(pieces) + draw(st.sampled_from(["", ";", " -- end"]))


@settings(max_examples=150, deadline=None)
@given(reformatted())
def test_layout_comments_and_keyword_case_do_not_count(pair):
    before, after = (parse_one(text).definition for text in pair)
    assert fingerprint(before, []) == fingerprint(after, [])
    if before.query is not None:
        assert before.query.canonical == after.query.canonical


def test_what_matters_does_count():
    queries = [
        "SELECT a FROM s",
        "SELECT A FROM s",
        "SELECT a AS b FROM s",
        "SELECT a AS B FROM s",
        "SELECT a FROM s WHERE b = 'x'",
        "SELECT a FROM s WHERE b = 'X'",
        "SELECT a FROM s WHERE b = ' x'",
        "SELECT struct(a AS x) AS c FROM s",
        "SELECT struct(a AS X) AS c FROM s",
        "SELECT `a` FROM s",
    ]
    assert len({parse_one(query).query.canonical for query in queries}) == len(queries)


FRAGMENTS = st.sampled_from(
    sorted(
        words(
            """
            SELECT FROM WHERE GROUP BY AS WITH CREATE STREAM TABLE VALUES INSERT INTO OVER window
            ( ) [ ] { } , . ; : ? ' " ` -- /* */ \\ $ @ = < > <= -> :: + - * / % ! ~ a b s t 1 2.5
            'x' "y" `z` reflect EMIT CHANGES DISTINCT JOIN ON LATERAL VIEW explode cast date_trunc
            CASE WHEN END struct INTERVAL DAY HAVING ORDER LIMIT UNION ALL PRIMARY KEY STRING ARRAY
            DROP SHOW PAUSE EXPLAIN count map any
            """
        )
    )
)


@settings(max_examples=400, deadline=None)
@given(st.one_of(st.text(max_size=60), st.lists(FRAGMENTS, max_size=14).map(" ".join)))
@example("SELECT map(a) FROM s")
@example("\ud800")
@example("SELECT '\\")
def test_any_text_gets_statements_or_an_error_of_ours(text):
    for candidate in (text, f"SELECT {text}", f"CREATE TABLE t AS SELECT {text} FROM s GROUP BY a"):
        try:
            parse(candidate)
        except MainstemError as error:
            assert error.location is not None
            lines = candidate.replace("\r\n", "\n").replace("\r", "\n").split("\n")
            assert error.location.line <= len(lines)
            assert error.location.snippet in candidate


@given(st.lists(st.sampled_from(["SELECT 1", "PAUSE x", "SHOW TABLES"]), max_size=5))
def test_as_many_statements_as_were_written(statements):
    text = " ;-- ;\n /* ; */".join(statements)
    assert len(parse(text)) == len(statements)
