"""The engine process: `python -m mainstem.engine FOLDER`; addresses come by environment."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from mainstem.config import load_project
from mainstem.crash import PROCESS_VARIABLE
from mainstem.engine.engine import EngineSetup, run_engine
from mainstem.errors import MainstemError
from mainstem.local.endpoints import Endpoints
from mainstem.log.connection import Connection


def main() -> int:
    """Runs until SIGTERM or SIGINT."""
    logging.basicConfig(
        level=logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
        stream=sys.stderr,
    )
    logging.getLogger("py4j").setLevel(logging.WARNING)
    # a crash point inside a worker means a crash of the engine
    os.environ[PROCESS_VARIABLE] = str(os.getpid())
    stop = threading.Event()

    def end(*_: Any) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    try:
        project = load_project(Path(sys.argv[1]))
        settings = project.settings
        endpoints = Endpoints.from_environment()
        bare = () if endpoints.bare_fs_jar is None else (endpoints.bare_fs_jar,)
        setup = EngineSetup(
            settings=settings,
            connection=Connection.from_settings(settings.kafka, endpoints.bootstrap_servers),
            jars=(*endpoints.spark_jars, *bare),
            state_folder=endpoints.state_folder,
            project=project.folder,
            class_archive=endpoints.class_archive,
        )
        run_engine(setup, stop)
    except MainstemError as error:
        logging.error("%s", error.render())
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
