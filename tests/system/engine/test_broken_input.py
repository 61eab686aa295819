"""A task whose Spark goes away in the middle of its input must not take that for the end."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from mainstem.engine import whole_input
from mainstem.testing.waiting import eventually

pytestmark = pytest.mark.spark


def test_a_cancelled_task_does_not_see_an_end(spark: SparkSession, tmp_path: Path) -> None:
    first, cancelled, ended = (str(tmp_path / name) for name in ("first", "cancelled", "ended"))

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        whole_input.require_installed()
        how = "whole"
        try:
            next(batches)
            Path(first).touch()
            deadline = time.monotonic() + 180
            while not os.path.exists(cancelled) and time.monotonic() < deadline:
                time.sleep(0.02)
            for _ in batches:
                pass
        except whole_input.BrokenInputError:
            how = "broken"
        except BaseException as error:
            how = repr(error)
            raise
        finally:
            Path(f"{ended}.new").write_text(how)
            Path(f"{ended}.new").rename(ended)
        yield pa.record_batch({"n": [1]})

    # more than the pipe between the two holds, so that the rest is not on its way already
    rows = spark.range(0, 2_000_000, 1, 1).selectExpr("repeat('x', 100) AS text")
    group = "a task that is cancelled"

    def run() -> None:
        spark.sparkContext.setJobGroup(group, group, interruptOnCancel=True)
        with pytest.raises(Exception, match="cancel"):
            rows.mapInArrow(task, "n long").collect()

    running = threading.Thread(target=run)
    running.start()
    eventually(lambda: os.path.exists(first))
    spark.sparkContext.cancelJobGroup(group)
    running.join(120)
    Path(cancelled).touch()
    eventually(lambda: os.path.exists(ended))
    assert Path(ended).read_text() == "broken"
