"""The engine put together: one Spark driver, its flows, its answers, and their threads."""

from __future__ import annotations

import logging
import threading
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from mainstem.config import PROJECT_FILE, Settings
from mainstem.engine.answers import Answers
from mainstem.engine.checkpoints import Checkpoints
from mainstem.engine.flow import FlowServices
from mainstem.engine.formats import Formats
from mainstem.engine.pacing import Pacer
from mainstem.engine.quarantine import Keeper
from mainstem.engine.runner import Background, Runner
from mainstem.engine.session import open_session
from mainstem.engine.tables import Tables
from mainstem.engine.take_over import is_pending
from mainstem.engine.warm_up import warm_up
from mainstem.errors import MainstemError
from mainstem.log.admin import Admin
from mainstem.log.catalog_store import CatalogStore, LogExecutor
from mainstem.log.compacted import StateLog
from mainstem.log.connection import Connection
from mainstem.log.engine_topics import ensure_engine_topics
from mainstem.log.late import Ledger
from mainstem.log.requests import Responder
from mainstem.log.status_log import status_log
from mainstem.schemas.opened import open_registry
from mainstem.vocabulary import SystemClock

_LOG = logging.getLogger(__name__)
READY_FILE = "engine.ready"
_RETRY_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class EngineSetup:
    """Everything the engine needs to know of its surroundings."""

    settings: Settings
    connection: Connection
    jars: tuple[Path, ...]
    state_folder: Path
    project: Path
    class_archive: Path | None = None

    @property
    def checkpoints(self) -> str:
        """Where flows keep their checkpoints."""
        return self.settings.spark.checkpoints or str(self.state_folder / "checkpoints")

    @property
    def drivers(self) -> tuple[Path, ...]:
        """Jars with JDBC drivers; CONFIG_INVALID when one is not there."""
        jars = tuple(self.project / jar for jar in self.settings.spark.jdbc_drivers)
        for jar in jars:
            if not jar.is_file():
                problem = f"spark.jdbc_drivers: there is no file {jar}"
                raise MainstemError("CONFIG_INVALID", file=PROJECT_FILE, problem=problem)
        return jars


def run_engine(setup: EngineSetup, stop: threading.Event) -> None:
    """Runs the engine until `stop` is set. Waits for a broker that is not there yet."""
    ready = setup.state_folder / READY_FILE
    ready.unlink(missing_ok=True)
    with ExitStack() as closing:
        configuration = closing.enter_context(
            as_file(files("mainstem.engine").joinpath("log4j2.properties"))
        )
        spark = open_session(
            setup.settings.spark,
            jars=(*setup.jars, *setup.drivers),
            scratch=setup.state_folder,
            log_configuration=configuration,
            class_archive=setup.class_archive,
        )
        closing.callback(spark.stop)
        admin = Admin(setup.connection)
        closing.callback(admin.close)
        if not _wait_for_log(admin, setup, stop):
            return
        catalog = CatalogStore(setup.connection)
        statuses: StateLog[dict[str, Any]] = status_log(setup.connection)
        for state in (catalog, statuses):
            state.start()
            closing.callback(state.close)
        registry = closing.enter_context(open_registry(setup.settings, setup.connection))
        formats = Formats(registry)
        clock = SystemClock()
        keeper = Keeper(spark, setup.connection, admin, clock, formats)
        keeper.start()
        closing.callback(keeper.stop)
        background = Background()
        closing.callback(background.close)
        checkpoints = Checkpoints(spark, setup.checkpoints)
        tables = Tables(spark, setup.connection, admin, checkpoints, formats)
        closing.callback(tables.close)
        ledger = Ledger(setup.connection, admin)
        services = FlowServices(
            spark=spark,
            connection=setup.connection,
            admin=admin,
            keeper=keeper,
            pacer=Pacer(_cores(spark)),
            settings=setup.settings.spark,
            checkpoints=checkpoints,
            tables=tables,
            clock=clock,
            formats=formats,
            project=setup.project,
            ledger=ledger,
            in_background=background,
            make_topic=LogExecutor(admin, catalog, setup.settings.kafka).create_topic,
        )
        runner = Runner(services, catalog.catalog, statuses, catalog.replace)
        catalog.on_change(runner.wake)

        def is_live(flow: str) -> bool:
            flows = catalog.catalog().flows()
            return any(e.flow_id == flow and not is_pending(e, checkpoints) for e in flows)

        responder = Responder(
            setup.connection,
            Answers(
                spark,
                setup.connection,
                setup.settings.spark,
                admin,
                ledger,
                formats,
                setup.project,
                is_live,
            ),
        )
        answering = threading.Thread(
            target=responder.run, args=(stop,), name="answers", daemon=True
        )
        answering.start()
        if not catalog.catalog().flows():  # else the flows do it
            warming = threading.Thread(target=_warm_up, args=(spark,), name="warm-up", daemon=True)
            warming.start()
        ready.touch()
        closing.callback(lambda: ready.unlink(missing_ok=True))
        _LOG.info("engine ready")
        runner.run(stop)
        answering.join(10)


def _wait_for_log(admin: Admin, setup: EngineSetup, stop: threading.Event) -> bool:
    """Waits for the broker and makes the engine's own topics; False when told to stop first."""
    told = False
    while not stop.is_set():
        try:
            kafka = setup.settings.kafka
            ensure_engine_topics(admin, kafka.replication_factor, kafka.max_record_bytes)
        except MainstemError as error:
            if not told:
                _LOG.warning("waiting for the log: %s", error)
                told = True
            stop.wait(_RETRY_SECONDS)
        else:
            return True
    return False


def _cores(spark: SparkSession) -> int:
    """The cores that this machine, or this container, has for the driver."""
    jvm: Any = spark._jvm
    return int(jvm.java.lang.Runtime.getRuntime().availableProcessors())


def _warm_up(spark: SparkSession) -> None:
    try:
        warm_up(spark)
    except Exception:  # noqa: BLE001 - only a warm-up; a stop in the middle is normal
        _LOG.debug("warm-up did not finish", exc_info=True)
