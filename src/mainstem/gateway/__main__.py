"""The gateway process: `python -m mainstem.gateway <project folder>`; addresses by environment."""

from __future__ import annotations

import logging
import resource
import signal
import socket
import sys
from pathlib import Path
from types import FrameType
from urllib.parse import urlsplit

import uvicorn

from mainstem.config import load_project
from mainstem.errors import MainstemError
from mainstem.gateway.app import create_app
from mainstem.gateway.connectors import ConnectPlace
from mainstem.gateway.protocol import Http, WebSockets
from mainstem.gateway.services import GatewaySetup, Services
from mainstem.local.endpoints import Endpoints
from mainstem.log.connection import Connection

_LOG = logging.getLogger("mainstem.gateway")
_GRACE_SECONDS = 5
_TURN_SECONDS = 0.001
_FILES = 8192
_MOST_FROM_CLIENT = 4096
"""Bytes of a message over a WebSocket: clients have nothing to say there."""


class _Server(uvicorn.Server):
    """Ends open subscriptions first: uvicorn would wait for their clients to leave."""

    def __init__(self, services: Services, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._services = services

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal to end came."""
        self._services.push.stop()
        self._services.members.stop()
        super().handle_exit(sig, frame)


def _allow_many_connections() -> None:
    """A shell gives 1,024 files to a process: fewer than there may be subscriptions."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _connect(endpoints: Endpoints) -> ConnectPlace | None:
    at = endpoints.connect
    if at is None:
        return None
    password = at.password.get_secret_value()
    return ConnectPlace(at.url, at.user, password, at.secrets, at.local)


def main() -> int:
    """Serve until SIGTERM or SIGINT."""
    logging.basicConfig(
        level=logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
        stream=sys.stderr,
    )
    # the pool's own warnings repeat each second while PostgreSQL is away; ours come once
    logging.getLogger("psycopg.pool").setLevel(logging.ERROR)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    logging.getLogger("httpx2").setLevel(logging.WARNING)  # it tells of each request
    try:
        if len(sys.argv) != 2:
            raise MainstemError("NOT_A_PROJECT", folder=" ".join(sys.argv[1:]) or "(none given)")
        project = load_project(Path(sys.argv[1]))
        settings = project.settings
        endpoints = Endpoints.from_environment()
        setup = GatewaySetup(
            settings=settings,
            connection=Connection.from_settings(settings.kafka, endpoints.bootstrap_servers),
            postgres_url=endpoints.postgres_url.get_secret_value(),
            postgres_reader_url=endpoints.postgres_reader_url.get_secret_value(),
            project=project.folder,
            connect=_connect(endpoints),
            name=f"{socket.gethostname()}:{endpoints.gateway_port}",
            state=project.state_folder / "gateway",
        )
    except MainstemError as error:
        _LOG.error("%s", error.render())
        return error.exit_code
    # views are decoded in a thread; a request must not wait 5 ms for its turn each time
    sys.setswitchinterval(_TURN_SECONDS)
    _allow_many_connections()
    hosts = (endpoints.gateway_host, urlsplit(settings.gateway.url).hostname or "")
    services = Services(setup)
    server = _Server(
        services,
        uvicorn.Config(
            create_app(services, hosts),
            host=endpoints.gateway_host,
            port=endpoints.gateway_port,
            loop="uvloop",
            http=Http,
            ws=WebSockets,
            ws_max_size=_MOST_FROM_CLIENT,
            ws_per_message_deflate=False,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            log_config=None,
            timeout_graceful_shutdown=_GRACE_SECONDS,
            timeout_keep_alive=75,
        ),
    )
    # uvicorn raises the signal once more when it has ended: that must not look like a crash
    for sign in (signal.SIGTERM, signal.SIGINT):
        signal.signal(sign, server.handle_exit)
    _LOG.info("gateway at %s", endpoints.gateway_url)
    server.run()
    return 0 if server.started else 1


if __name__ == "__main__":
    sys.exit(main())
