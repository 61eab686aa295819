"""What has ended is let go of: an engine that runs for months starts many queries."""

from __future__ import annotations

import gc

import pytest

from mainstem.errors import MainstemError
from mainstem.testing.driver import Driver, Event
from mainstem.testing.waiting import eventually

pytestmark = pytest.mark.spark


def test_neither_java_nor_python_keeps_a_query_that_has_ended(driver: Driver) -> None:
    context = driver.spark.sparkContext
    pool = context._gateway.gateway_property.pool
    others, handed_over = set(pool.dict), pool.next_id
    driver.apply(
        "CREATE STREAM s (a INT); CREATE STREAM copied AS SELECT a FROM s;"
        "CREATE STREAM failing AS SELECT 1 DIV a AS b FROM s"
    )
    for n in (2, 1, 0):
        driver.send([Event("s", {"a": n})])
        try:
            driver.run()
        except MainstemError as error:
            assert n == 0, error
    assert pool.next_id > handed_over

    def let_go() -> bool:
        gc.collect()
        context._jvm.java.lang.System.gc()
        return not pool.dict.keys() - others

    eventually(let_go, every=0.2, what="no function of a query is left")
