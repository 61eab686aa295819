"""Makes the archives of classes: `python -m mainstem.engine.class_archive`, once a machine.

It starts Spark, lets it do a little of all that flows do, and ends it: Java writes down the classes
that it has loaded. The same for the broker, before that.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from mainstem.config import SparkSettings
from mainstem.engine.session import open_session
from mainstem.engine.warm_up import warm_up
from mainstem.local.broker_archive import write_broker_archive
from mainstem.local.class_archive import broker_archive, class_archive, make_once
from mainstem.local.jars import SparkJars, jars, spark_jars
from mainstem.local.java import Java, find_java, home_for_spark


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
    _stream(spark, folder)
    spark.stop()
    gateway = SparkContext._gateway
    gateway.shutdown()  # type: ignore[union-attr]
    process = gateway.proc  # type: ignore[union-attr]
    process.stdin.close()
    return process.wait() == 0 and part.exists()


def _stream(spark: SparkSession, folder: Path) -> None:
    """A micro-batch with state."""

    def write(rows: DataFrame, _: int) -> None:
        rows.toArrow()

    rate = spark.readStream.format("rate").option("rowsPerSecond", 10).load()
    counted = rate.withWatermark("timestamp", "1 second").groupBy("value").count()
    query = (
        counted.writeStream.outputMode("update")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .foreachBatch(write)
        .start()
    )
    query.processAllAvailable()
    query.stop()


if __name__ == "__main__":
    sys.exit(main())
