"""The archive of Spark's classes is really in use."""

from __future__ import annotations

import sys

import psutil
import pytest
from pyspark.sql import SparkSession

from mainstem.local.class_archive import class_archive
from mainstem.local.jars import spark_jars
from mainstem.local.java import find_java

pytestmark = pytest.mark.spark


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says what a process has mapped")
def test_java_has_mapped_the_archive(spark: SparkSession) -> None:
    archive = class_archive(find_java(), spark_jars())
    if not archive.exists():
        pytest.skip("there is no archive: `make classes` makes it")
    java = psutil.Process(spark.sparkContext._gateway.proc.pid)
    assert str(archive) in {mapped.path for mapped in java.memory_maps()}
