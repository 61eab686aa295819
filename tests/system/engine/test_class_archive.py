"""Java takes the archive of Spark's classes."""

from __future__ import annotations

import subprocess

import psutil
import pytest
from pyspark.sql import SparkSession

from mainstem.local.class_archive import class_archive
from mainstem.local.jars import spark_jars
from mainstem.local.java import find_java

pytestmark = pytest.mark.spark

_ATTEMPTS = 3
"""Java looks for room at an address of chance; that there is none is no fault of the archive."""


def test_java_takes_the_archive(spark: SparkSession) -> None:
    archive = class_archive(find_java(), spark_jars())
    if not archive.exists():
        pytest.skip("there is no archive: `make classes` makes it")
    java = psutil.Process(spark.sparkContext._gateway.proc.pid)
    classes = spark._jvm.java.lang.System.getProperty("java.class.path")
    # the session's own Java would do without one that does not fit; this one says why
    strict = [java.exe(), f"-XX:SharedArchiveFile={archive}", "-Xshare:on", "-Xlog:class+path=info"]
    for _ in range(_ATTEMPTS):
        run = subprocess.run(
            [*strict, "-cp", classes, "-version"], capture_output=True, text=True, check=False
        )
        if run.returncode == 0:
            break
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr
    assert f"-XX:SharedArchiveFile={archive}" in java.cmdline()
