"""Makes the archive of Spark's classes: `python -m mainstem.engine.class_archive`, once a machine.

It starts Spark, lets it do a little of all that flows do, and ends it: Java writes down the classes
that it has loaded. Killed in the middle it leaves a part that nobody reads; two at a time make one.
Java trusts an archive's length, so the part gets its name when all of it is on the disk.
"""

from __future__ import annotations

import fcntl
import os
import sys
import tempfile
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from mainstem.config import SparkSettings
from mainstem.engine.session import open_session
from mainstem.engine.warm_up import warm_up
from mainstem.local.class_archive import class_archive, failed_mark, to_be_made
from mainstem.local.jars import SparkJars, spark_jars
from mainstem.local.java import find_java, home_for_spark


def main() -> int:
    """Makes the archive unless it is there; 1 when Java has not written it."""
    os.nice(19)
    artifacts, java = spark_jars(quiet=True), find_java()
    archive = class_archive(java, artifacts)
    archive.parent.mkdir(parents=True, exist_ok=True)
    with archive.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return 0  # somebody is at it
        if not to_be_made(archive):
            return 0
        part = archive.with_suffix(".part")
        with tempfile.TemporaryDirectory(prefix="mainstem-classes-") as folder:
            os.environ["JAVA_HOME"] = str(home_for_spark(java, Path(folder)))
            written = _write(part, artifacts, Path(folder))
        if not written:
            failed_mark(archive).touch()
            return 1
        with part.open("rb") as file:
            os.fsync(file)
        part.replace(archive)
    return 0


def _write(part: Path, artifacts: SparkJars, folder: Path) -> bool:
    part.unlink(missing_ok=True)
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
    java = gateway.proc  # type: ignore[union-attr]
    java.stdin.close()
    return java.wait() == 0 and part.exists()


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
