"""Flows as the engine runs them, over a driver's pipeline."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mainstem.config import KafkaSettings, SparkSettings
from mainstem.engine.checkpoints import Checkpoints
from mainstem.engine.flow import Flow, FlowServices
from mainstem.engine.pacing import Pacer
from mainstem.engine.quarantine import Keeper
from mainstem.engine.runner import Background
from mainstem.engine.tables import Tables
from mainstem.log.catalog_store import CatalogStore, LogExecutor
from mainstem.log.late import Ledger
from mainstem.testing.driver import Driver
from mainstem.vocabulary import Clock


@pytest.fixture
def services(driver: Driver, tmp_path: Path) -> Iterator[FlowServices]:
    """What the flows of an engine over the driver's pipeline share."""
    background = Background()
    keeper = Keeper(driver.spark, driver.connection, driver.admin, driver.clock, driver.formats)
    keeper.start()
    checkpoints = Checkpoints(driver.spark, str(tmp_path / "live"))
    catalog = CatalogStore(driver.connection)
    yield FlowServices(
        spark=driver.spark,
        connection=driver.connection,
        settings=SparkSettings(),
        checkpoints=checkpoints,
        tables=Tables(driver.spark, driver.connection, driver.admin, checkpoints, driver.formats),
        admin=driver.admin,
        clock=driver.clock,
        formats=driver.formats,
        project=tmp_path,
        keeper=keeper,
        ledger=Ledger(driver.connection, driver.admin),
        pacer=Pacer(2),
        in_background=background,
        make_topic=LogExecutor(driver.admin, catalog, KafkaSettings()).create_topic,
    )
    background.close()
    keeper.stop()


@pytest.fixture
def live(driver: Driver, services: FlowServices) -> Iterator[Callable[..., Flow]]:
    """Makes the flow of an object, not yet started; at the end of the test it is stopped."""
    made: list[Flow] = []

    def make(name: str, clock: Clock = driver.clock) -> Flow:
        entry = driver.entry(name)
        assert entry.definition.query is not None
        inputs = tuple(driver.entry(i).definition for i in entry.definition.query.inputs)
        made.append(Flow(entry, inputs, replace(services, clock=clock)))
        return made[-1]

    yield make
    for flow in made:
        flow.stop()
