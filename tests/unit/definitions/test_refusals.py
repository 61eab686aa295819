"""Texts that are refused: the code, and the place of the caret."""

import pytest

from mainstem.definitions.parse import parse, parse_one
from mainstem.errors import MainstemError

# one case a line: code, line:column, text (a bar begins a new line)
CASES = """
SQL_SYNTAX              1:1   CREAT STREAM s (a INT)
SQL_SYNTAX              1:8   CREATE STREM s (a INT)
SQL_SYNTAX              1:1   SELCT 1
SQL_SYNTAX              1:10  SELECT a FRM s
SQL_SYNTAX              1:17  SELECT a FROM s WHER a = 1
SQL_SYNTAX              1:17  SELECT a FROM s GRUP BY a
SQL_SYNTAX              2:3   SELECT a|  FRM s
SQL_SYNTAX              1:11  SELECT a, FROM s
SQL_SYNTAX              1:14  SELECT a FROM
SQL_SYNTAX              1:7   SELECT
SQL_SYNTAX              1:11  SELECT (a FROM s
SQL_SYNTAX              1:9   SELECT a)
SQL_SYNTAX              1:8   SELECT 'a FROM s
SQL_SYNTAX              1:8   SELECT `a FROM s
SQL_SYNTAX              1:8   SELECT /* a
SQL_SYNTAX              1:6   SHOW STREMS
SQL_SYNTAX              1:5   SHOW
SQL_SYNTAX              1:9   PAUSE x y
SQL_SYNTAX              1:16  CREATE STREAM s
SQL_SYNTAX              1:23  CREATE STREAM s (a INT
SQL_SYNTAX              1:25  CREATE STREAM s (a INT, )
SQL_SYNTAX              1:35  CREATE STREAM s (a INT) WITH (key 'a')
SQL_SYNTAX              1:37  CREATE STREAM s (a INT) WITH (key = a)
SQL_SYNTAX              1:40  CREATE STREAM s (a INT) WITH (key='a', key='a')
SQL_SYNTAX              1:20  CREATE STREAM s AS FROM x
SQL_SYNTAX              1:28  CREATE STREAM s (a DECIMAL(39))
SQL_SYNTAX              1:21  INSERT INTO s VALUES
SQL_SYNTAX              1:8   SELECT # FROM s
SQL_SYNTAX              1:13  SELECT a -- \\
ONE_STATEMENT_EXPECTED  1:11  SELECT 1; SELECT 2
RESERVED_NAME           1:15  CREATE STREAM select (a INT)
RESERVED_NAME           1:15  CREATE STREAM `Table` (a INT)
RESERVED_NAME           1:15  CREATE STREAM _mainstem.x (a INT)
RESERVED_NAME           1:15  CREATE STREAM _x (a INT)
RESERVED_NAME           1:15  CREATE STREAM parquet.x (a INT)
RESERVED_NAME           1:18  CREATE STREAM s (_key INT)
RESERVED_NAME           1:25  CREATE STREAM s (a INT, _TOPIC STRING)
INVALID_NAME            1:15  CREATE STREAM `a b` (a INT)
INVALID_NAME            1:15  CREATE STREAM a.b.c (a INT)
INVALID_NAME            1:15  CREATE STREAM `1a` (a INT)
DUPLICATE_COLUMN        1:25  CREATE STREAM s (a INT, A STRING)
DUPLICATE_COLUMN        1:33  CREATE STREAM s (a STRUCT<x:INT,X:INT>)
DUPLICATE_COLUMN        1:19  INSERT INTO s (a, A) VALUES (1, 2)
UNKNOWN_TYPE            1:20  CREATE STREAM s (a STRNG)
UNKNOWN_TYPE            1:34  CREATE STREAM s (a ARRAY<MAP<INT,TEXT>>)
UNKNOWN_TYPE            1:20  CREATE STREAM s (a INTERVAL)
UNKNOWN_OPTION          1:31  CREATE STREAM s (a INT) WITH (topc = 'x')
UNKNOWN_OPTION          1:31  CREATE STREAM s (a INT) WITH (latency = 'realtime')
UNKNOWN_OPTION          1:42  CREATE TABLE s (a INT PRIMARY KEY) WITH (event_time = 'a')
INVALID_OPTION          1:40  CREATE STREAM s (a INT) WITH (format = 'arvo')
NOT_SUPPORTED           1:1   CREATE STREAM s (a SMALLINT) WITH (format = 'protobuf')
INVALID_OPTION          1:55  CREATE STREAM s (a INT) WITH (key = 'a', key_format = 'csv')
INVALID_OPTION          1:55  CREATE STREAM s (a INT) WITH (key = 'a', key_format = 'avor')
NOT_SUPPORTED           1:1   CREATE STREAM s (a INT) WITH (key_format = 'avro')
NOT_SUPPORTED           1:1   CREATE STREAM s (a INT) WITH (key = 'a', key_format = 'raw')
NOT_SUPPORTED           1:1   CREATE STREAM s (a DOUBLE) WITH (key = 'a', key_format = 'json')
NOT_SUPPORTED           1:1   CREATE STREAM s (a SMALLINT) WITH (key = 'a', key_format = 'avro')
NOT_SUPPORTED           1:1   CREATE STREAM s (a TIMESTAMP_NTZ) WITH (format = 'protobuf')
NOT_SUPPORTED           1:1   CREATE STREAM s (a MAP<DATE, INT>) WITH (format = 'protobuf')
NOT_SUPPORTED           1:1   CREATE STREAM s (a ARRAY<ARRAY<INT>>) WITH (format = 'protobuf')
NOT_SUPPORTED           1:1   CREATE STREAM s (a MAP<INT, MAP<INT, INT>>) WITH (format = 'protobuf')
NOT_SUPPORTED           1:1   CREATE STREAM s (a_b INT, aB INT) WITH (format = 'protobuf')
NOT_SUPPORTED           1:1   CREATE STREAM s (`a b` INT) WITH (format = 'protobuf')
NOT_SUPPORTED           1:1   CREATE STREAM s (a INT) WITH (format = 'raw')
NOT_SUPPORTED           1:1   CREATE STREAM s (a STRING, b STRING) WITH (format = 'raw')
NOT_SUPPORTED           1:1   CREATE TABLE s (a STRING PRIMARY KEY) WITH (format = 'raw')
NOT_SUPPORTED           1:1   CREATE STREAM s (a STRUCT<b: INT>) WITH (format = 'csv')
NOT_SUPPORTED           1:1   CREATE STREAM s (a BINARY) WITH (format = 'csv')
NOT_SUPPORTED           1:1   CREATE STREAM s (a SMALLINT) WITH (format = 'avro')
NOT_SUPPORTED           1:1   CREATE STREAM s (a ARRAY<TINYINT>) WITH (format = 'avro')
NOT_SUPPORTED           1:1   CREATE STREAM s (a MAP<INT, INT>) WITH (format = 'avro')
NOT_SUPPORTED           1:1   CREATE STREAM s (`a b` INT) WITH (format = 'avro')
NOT_SUPPORTED           1:1   CREATE STREAM s (a STRUCT<`b-c`: INT>) WITH (format = 'avro')
INVALID_OPTION          1:43  CREATE STREAM s (a INT) WITH (delimiter = ';')
INVALID_OPTION          1:59  CREATE STREAM s (a INT) WITH (format = 'csv', delimiter = '"')
INVALID_OPTION          1:59  CREATE STREAM s (a INT) WITH (format = 'csv', delimiter = ';;')
INVALID_OPTION          1:39  CREATE STREAM s (a INT) WITH (topic = 'a b')
INVALID_OPTION          1:39  CREATE STREAM s (a INT) WITH (topic = '_mainstem.catalog')
INVALID_OPTION          1:44  CREATE STREAM s (a INT) WITH (event_time = 'a')
INVALID_OPTION          1:44  CREATE STREAM s (a INT) WITH (event_time = 'b')
INVALID_OPTION          1:43  CREATE STREAM s (a INT) WITH (watermark = '10 parsecs')
INVALID_OPTION          1:43  CREATE STREAM s (a INT) WITH (retention = '0 days')
INVALID_OPTION          1:44  CREATE STREAM s (a INT) WITH (partitions = 0)
INVALID_OPTION          1:37  CREATE STREAM s (a INT) WITH (key = 'a,')
INVALID_OPTION          1:33  CREATE STREAM s WITH (latency = 'fast') AS SELECT a FROM x
INVALID_OPTION          1:31  CREATE STREAM s WITH (start = 'now') AS SELECT a FROM x
KEY_NOT_A_COLUMN        1:37  CREATE STREAM s (a INT) WITH (key = 'b')
KEY_NOT_A_COLUMN        1:37  CREATE TABLE t (a INT, PRIMARY KEY (b))
MISSING_PRIMARY_KEY     1:14  CREATE TABLE t (a INT)
NOT_SUPPORTED           1:24  CREATE STREAM s (a INT PRIMARY KEY)
NOT_SUPPORTED           1:15  CREATE STREAM s (a INT) AS SELECT a FROM x
NOT_SUPPORTED           1:17  SELECT a FROM s EMIT FINAL
NOT_SUPPORTED           1:15  INSERT INTO s SELECT 1
SQL_NOT_ALLOWED         1:1   SET spark.x = 1
SQL_NOT_ALLOWED         1:1   ADD JAR 'x.jar'
SQL_NOT_ALLOWED         1:1   USE other
SQL_NOT_ALLOWED         1:1   FROM s SELECT a
SQL_NOT_ALLOWED         1:1   TABLE s
SQL_NOT_ALLOWED         1:8   CREATE FUNCTION f AS 'x'
SQL_NOT_ALLOWED         1:8   CREATE TEMPORARY VIEW v AS SELECT 1
SQL_NOT_ALLOWED         1:6   DROP VIEW v
"""

TABLE = [
    (code, place, text.replace("|", "\n"))
    for code, place, text in (line.split(None, 2) for line in CASES.strip().splitlines())
]


@pytest.mark.parametrize(("code", "place", "text"), TABLE)
def test_refused_at_its_place(code, place, text):
    with pytest.raises(MainstemError) as caught:
        parse_one(text, "file.sql")
    error = caught.value
    assert error.code == code
    assert (str(error.location)) == f"file.sql:{place}"
    assert error.location.snippet == text.splitlines()[error.location.line - 1]
    assert error.render()


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("CREAT STREAM s (a INT)", "CREATE"),
        ("CREATE STREM s (a INT)", "STREAM"),
        ("SELCT 1", "SELECT"),
        ("SELECT a FRM s", "FROM"),
        ("SHOW STREMS", "STREAMS"),
        ("CREATE STREAM s (a STRNG)", "STRING"),
        ("CREATE STREAM s (a TEXT)", "STRING"),
        ("CREATE STREAM s (a INT) WITH (topc = 'x')", "topic"),
        ("SELECT uper(a) FROM s", "upper"),
    ],
)
def test_misspelt_words_get_a_suggestion(text, meant):
    with pytest.raises(MainstemError) as caught:
        parse_one(text)
    assert f'"{meant}"' in caught.value.params["suggestion"]


def test_places_count_from_the_beginning_of_the_file():
    with pytest.raises(MainstemError) as caught:
        parse("PAUSE x;\r\n\r\n  SELECT a,\r\n  reflect('x') FROM s", "f")
    assert str(caught.value.location) == "f:4:3"
    assert caught.value.location.snippet == "  reflect('x') FROM s"


@pytest.mark.parametrize(
    "text", ["SELECT " + "(" * 5000, "SELECT " + "-" * 3 + "1", "x" * 1_000_001, "SELECT 1" * 2000]
)
def test_monstrous_texts_get_an_answer(text):
    try:
        parse(text)
    except MainstemError as error:
        assert error.location is not None
