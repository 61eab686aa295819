"""Spark's words for offsets and errors, in ours."""

from __future__ import annotations

import pytest

from mainstem.engine.spark_errors import flow_error, short, task_failure
from mainstem.engine.status import offsets_in
from mainstem.errors import MainstemError


@pytest.mark.parametrize("text", [None, "", "null", "None"])
def test_no_offsets(text: str | None) -> None:
    assert offsets_in(text) == {}


def test_offsets_by_topic_and_partition() -> None:
    assert offsets_in('{"a":{"0":5,"1":7}}') == {"a": {0: 5, 1: 7}}


def test_a_long_error_becomes_one_short_line() -> None:
    error = RuntimeError(
        "[CAST_INVALID_INPUT] The value 'x' cannot be cast. SQLSTATE: 22018; line 1 pos 7\n\tat x"
    )
    assert short(error) == "The value 'x' cannot be cast."


def test_the_cause_inside_a_python_traceback_is_what_is_told() -> None:
    text = "An exception was thrown:\nTraceback (most recent call last):\nValueError: no\n"
    assert short(RuntimeError(text)) == "ValueError: no"


def test_an_error_of_java_is_told_by_its_last_cause() -> None:
    text = (
        "An error occurred while calling o79.collectToPython.\n"
        ": org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 failed\n"
        "\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:1)\n"
        "Caused by: org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)\n"
        "\t... 1 more\n"
        "Caused by: java.io.EOFException\n"
    )
    assert short(RuntimeError(text)) == "Python worker exited unexpectedly (crashed)"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("org.apache.spark.SparkException: [X] boom", "FLOW_FAILED"),
        ("... KAFKA_DATA_LOSS ...", "FLOW_DATA_LOST"),
        ("OffsetOutOfRangeException: partition 3", "FLOW_DATA_LOST"),
    ],
)
def test_flow_errors_have_codes(text: str, code: str) -> None:
    assert flow_error(RuntimeError(text), "f").code == code


def test_our_own_errors_pass_through() -> None:
    error = MainstemError("LOG_UNREACHABLE", servers="x")
    assert flow_error(error, "f") is error


def test_an_error_of_a_task_keeps_its_code_through_spark() -> None:
    inside = task_failure(MainstemError("RECORD_TOO_LARGE", size=9, limit=5, topic="t"))
    error = flow_error(RuntimeError(f"PythonException: Traceback\nRuntimeError: {inside}\n"), "f")
    assert (error.code, error.params["topic"]) == ("RECORD_TOO_LARGE", "t")
