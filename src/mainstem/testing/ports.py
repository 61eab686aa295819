"""Ports for servers that tests start themselves."""

from __future__ import annotations

import random
import socket

from mainstem.local.ports import LOOPBACK, RANGE, is_free


def free_port() -> int:
    """A port that nobody has, neither by TCP nor by UDP.

    One that the system chose could be given to an outgoing connection before the server has it.
    """
    while True:
        port = random.choice(RANGE)
        if is_free(port) and _is_free_for_datagrams(port):
            return port


def _is_free_for_datagrams(port: int) -> bool:
    with socket.socket(type=socket.SOCK_DGRAM) as server:
        try:
            server.bind((LOOPBACK, port))
        except OSError:
            return False
    return True
