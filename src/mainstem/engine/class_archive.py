"""Makes the archives of classes: `python -m mainstem.engine.class_archive`, once a machine.

It starts Spark, lets it run small flows of all kinds, and ends it: Java writes down the classes
that it has loaded. The same for the broker, before that.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession

from mainstem.config import SparkSettings, load_project
from mainstem.engine.session import open_session
from mainstem.engine.warm_up import warm_up
from mainstem.local.broker_archive import write_broker_archive
from mainstem.local.class_archive import broker_archive, class_archive, make_once
from mainstem.local.jars import SparkJars, jars, spark_jars
from mainstem.local.java import Java, find_java, home_for_spark
from mainstem.local.stack import Stack
from mainstem.log.admin import Admin
from mainstem.log.connection import Connection
from mainstem.log.engine_topics import ensure_engine_topics
from mainstem.testing.driver import Driver, Event

_PIPELINE = """
CREATE STREAM clicks (k STRING, n BIGINT, price DECIMAL(10,2), at TIMESTAMP)
  WITH (key = 'k', event_time = 'at', watermark = '10 seconds');
CREATE TABLE names (k STRING PRIMARY KEY, name STRING);
CREATE STREAM named AS
  SELECT c.k, c.n, c.price, upper(t.name) AS name FROM clicks c JOIN names t ON c.k = t.k
  WHERE c.n > 0;
CREATE TABLE totals AS SELECT k, count(*) AS n, sum(price) AS price FROM clicks GROUP BY k;
CREATE TABLE minutes AS
  SELECT k, window.start AS minute, count(*) AS n FROM clicks
  GROUP BY k, window(_event_time, '1 minute');
CREATE STREAM pairs AS
  SELECT a.k, a.n, b.n AS other FROM clicks a JOIN clicks b ON a.k = b.k
    AND b._event_time BETWEEN a._event_time AND a._event_time + INTERVAL 1 SECOND;
CREATE TABLE named_totals AS
  SELECT t.k, t.n, x.name FROM totals t JOIN names x ON t.k = x.k;
"""


def main() -> int:
    """Makes the archives that are not there; 1 when Java has not written one."""
    os.nice(19)
    # it does not live long enough for better code; which classes are archived is the same
    os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")
    java, broker, spark = find_java(), jars("broker", quiet=True), spark_jars(quiet=True)
    made = make_once(
        broker_archive(java, broker),
        lambda part, folder: write_broker_archive(java, broker, part, folder),
    )
    made &= make_once(
        class_archive(java, spark), lambda part, folder: _write(java, spark, part, folder)
    )
    return 0 if made else 1


def _write(java: Java, artifacts: SparkJars, part: Path, folder: Path) -> bool:
    os.environ["JAVA_HOME"] = str(home_for_spark(java, folder))
    spark = open_session(
        SparkSettings(),
        jars=[*artifacts.jars, artifacts.bare_fs],
        scratch=folder,
        java_options=(f"-XX:ArchiveClassesAtExit={part}", "-Xlog:cds*=off"),
    )
    warm_up(spark)
    (folder / "mainstem.toml").write_text('name = "classes"\n')
    with Stack(load_project(folder), parts={"broker"}) as stack:
        _flows(spark, Connection(stack.endpoints.bootstrap_servers), folder)
    spark.stop()
    gateway = SparkContext._gateway
    gateway.shutdown()  # type: ignore[union-attr]
    process = gateway.proc  # type: ignore[union-attr]
    process.stdin.close()
    return process.wait() == 0 and part.exists()


def _flows(spark: SparkSession, connection: Connection, folder: Path) -> None:
    """All kinds of flow, in two micro-batches: the second one finds what the first one kept."""
    admin = Admin(connection)
    ensure_engine_topics(admin, 1, connection.max_record_bytes)
    driver = Driver(spark, connection, admin, folder / "flows")
    driver.apply(_PIPELINE)
    for number in range(2):
        driver.send([Event("names", {"k": "a", "name": "A"}), *_clicks(number)])
        driver.run()
    driver.close()
    admin.close()


def _clicks(minute: int) -> Iterator[Event]:
    for second in range(10):
        at = f"2026-01-01T00:{minute:02}:{second:02}.000000Z"
        yield Event("clicks", {"k": "a", "n": second, "price": 1.5, "at": at})


if __name__ == "__main__":
    sys.exit(main())
