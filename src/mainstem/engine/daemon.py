"""Spark's Python worker daemon with our imports done: its workers start warm and share memory."""

import pyarrow  # noqa: F401
from pyspark.daemon import manager

import mainstem.log.task_writer  # noqa: F401

if __name__ == "__main__":
    manager()
