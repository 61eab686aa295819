"""Spark's Python worker daemon with our imports done: its workers start warm and share memory."""

import os
import time

import pandas  # noqa: F401
import pyarrow.compute  # noqa: F401
import pyspark.sql.conversion
import pyspark.worker_message  # noqa: F401
from pyspark.daemon import manager

import mainstem.engine.batch_tasks  # noqa: F401
from mainstem.engine import whole_input

if __name__ == "__main__":
    # Spark hands a table function times without a zone, in the worker's own
    os.environ["TZ"] = "UTC"
    time.tzset()
    whole_input.install()
    manager()
