"""One way to build the Spark session: jars, state store, checkpoint files, limits."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from mainstem.config import SparkSettings
from mainstem.engine.java import keep_known_classes

_STATE = "spark.sql.streaming.stateStore."
_STREAMING = "org.apache.spark.sql.execution.streaming."

_FIXED: Mapping[str, str] = {
    # Hadoop's own local file system forks a chmod per file: half the cost of a small batch
    "spark.hadoop.fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem",
    "spark.sql.streaming.checkpointFileManagerClass": _STREAMING
    + "checkpointing.FileSystemBasedCheckpointFileManager",
    # the state provider and format cannot be changed once a checkpoint exists
    _STATE + "providerClass": _STREAMING + "state.RocksDBStateStoreProvider",
    _STATE + "rocksdb.changelogCheckpointing.enabled": "true",
    _STATE + "checkpointFormatVersion": "2",
    "spark.sql.session.timeZone": "UTC",
    # a plan must split a replayed batch exactly as it did the first time
    "spark.sql.adaptive.enabled": "false",
    # a failed task may have committed its transaction: the flow restarts and looks
    "spark.task.maxFailures": "1",
    "spark.speculation": "false",
    "spark.sql.runSQLOnFiles": "false",
    "spark.sql.variable.substitute": "false",
    "spark.scheduler.mode": "FAIR",
    "spark.python.daemon.module": "mainstem.engine.daemon",
    "spark.python.factory.idleWorkerMaxPoolSize": "4",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    # each mention of a column would tell Java, in five calls, from where in Python it comes
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # a flow has some generated classes and a consumer for each partition that it reads. With the
    # defaults (100 and 64), thirty small flows compile and connect anew in each of their batches
    "spark.sql.codegen.cache.maxEntries": "2000",
    "spark.kafka.consumer.cache.capacity": "1024",
    # a consumer is some hundred kilobytes: those that no batch has used for a while go
    "spark.kafka.consumer.cache.timeout": "1m",
    "spark.kafka.consumer.cache.evictorThreadRunInterval": "20s",
    # nobody looks at the page of Spark, which would keep a thousand plans and their texts
    "spark.sql.ui.retainedExecutions": "10",
    "spark.sql.ui.explainMode": "simple",
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "10",
    "spark.ui.retainedTasks": "1000",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.sql.streaming.minBatchesToRetain": "20",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}

_AVRO_LIMITS = ("bytes", "string", "collectionItems")
_JVM_OPTIONS = (
    # Spark runs a regular expression over long Python errors; the default stack is too small
    "-Xss4m",
    "-XX:+UseParallelGC",
    # Spark's classes take more: with the default, all of the heap is collected twice at the start
    "-XX:MetaspaceSize=256m",
    # each query of each flow is code of its own; when the room for it is full, Java stops compiling
    "-XX:ReservedCodeCacheSize=512m",
    "-Duser.timezone=UTC",
    # nothing in a record can be longer than the record: what says so is a mistake or an attack, and
    # must not be taken for the size of an array
    *(f"-Dorg.apache.avro.limits.{what}.maxLength={16 << 20}" for what in _AVRO_LIMITS),
)


def open_session(
    settings: SparkSettings,
    *,
    jars: Sequence[Path],
    scratch: Path,
    log_configuration: Path | None = None,
    class_archive: Path | None = None,
    java_options: Sequence[str] = (),
) -> SparkSession:
    """The process's Spark session. `jars` may hold the bare file system, which must load first."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    # executors elsewhere are sent the jars; those of the driver's own JVM come with its class path
    here = settings.master.startswith("local[")
    first = [str(jar) for jar in jars if here or "bare-naked-local-fs" in jar.name]
    rest = [str(jar) for jar in jars if str(jar) not in first]
    java_options = [*_JVM_OPTIONS, *java_options]
    if log_configuration is not None:
        java_options.append(f"-Dlog4j2.configurationFile={log_configuration.as_uri()}")
    if class_archive is not None and class_archive.exists():
        java_options += [f"-XX:SharedArchiveFile={class_archive}", "-Xlog:cds*=off"]
    configuration = {
        **_FIXED,
        "spark.jars": ",".join(rest),
        "spark.driver.extraClassPath": os.pathsep.join(first),
        "spark.driver.extraJavaOptions": " ".join(f'"{option}"' for option in java_options),
        "spark.driver.memory": settings.memory,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": str(scratch / "spark-local"),
        "spark.sql.warehouse.dir": str(scratch / "spark-warehouse"),
        "spark.sql.shuffle.partitions": str(settings.shuffle_partitions),
        # else files are read in as many parts as there are slots, most of them without a row
        "spark.sql.files.minPartitionNum": str(settings.shuffle_partitions),
        **settings.options,
    }
    builder = SparkSession.builder.appName("mainstem").master(settings.master)
    for key, value in configuration.items():
        builder = builder.config(key, value)
    # PySpark repeats every analysis error there; ours reach the user through the catalogue
    for what in ("SQL", "DataFrame"):
        logging.getLogger(f"{what}QueryContextLogger").setLevel(logging.CRITICAL + 1)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("WARN")
    keep_known_classes()
    return session
