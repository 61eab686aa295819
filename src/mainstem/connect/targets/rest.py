"""Requests of targets that speak HTTP: what is tried again, and what an answer means."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx2

from mainstem.connect.targets.target import refused, unreachable
from mainstem.errors import MainstemError

_TRIES = 3
_LONGEST_WAIT = 5.0
"""A wait in the task, which holds one of Spark's slots; longer ones are the flow's."""
_PAUSES = (0.2, 1.0)
_AGAIN = (408, 425, 429)
_MISSING = 404
_OURS = (401, 403, 404, 405, 407, 421)
"""Nothing is wrong with the rows: the address or the key is."""
_CONNECT_SECONDS = 5.0
_LONGEST_TEXT = 300


class Requests:
    """One connection to a server; closed with it."""

    def __init__(
        self,
        what: str,
        *,
        timeout: float,
        headers: Mapping[str, str],
        auth: tuple[str, str] | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._what = what
        self._sleep = sleep
        limits = httpx2.Timeout(timeout, connect=min(timeout, _CONNECT_SECONDS))
        self._client = httpx2.Client(timeout=limits, headers=dict(headers), auth=auth)

    def send(
        self, method: str, url: str, *, missing: bool = False, **given: Any
    ) -> httpx2.Response:
        """Asks until there is an answer that is not "later"; raises when there is none.

        The answer is a success, or a 4xx that is about what was sent. With `missing`, that there is
        no such thing (404) is an answer, too.
        """
        for tried in range(1, _TRIES + 1):
            try:
                response = self._client.request(method, url, **given)
            except httpx2.TransportError as error:
                problem, wait = str(error) or type(error).__name__, None
            else:
                if response.is_success:
                    return response
                problem = said(response)
                if missing and response.status_code == _MISSING:
                    return response
                if response.status_code in _OURS or response.is_redirect:
                    raise refused(self._what, problem)
                if response.is_client_error and response.status_code not in _AGAIN:
                    return response
                wait = retry_after(response.headers.get("Retry-After"), datetime.now(UTC))
            if tried == _TRIES or (wait or 0.0) > _LONGEST_WAIT:
                raise _later(self._what, problem, wait)
            self._sleep(_PAUSES[tried - 1] if wait is None else wait)
        raise AssertionError  # the last try returns or raises

    def close(self) -> None:
        """Lets go of the connection."""
        self._client.close()


def retry_after(text: str | None, now: datetime) -> float | None:
    """How many seconds a server wants us to wait; None: it does not say."""
    if text is None:
        return None
    if text.strip().isdigit():
        return float(text)
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return max(0.0, (at - now).total_seconds())


def said(response: httpx2.Response) -> str:
    """What an answer says, in a line."""
    text = " ".join(response.text.split())[:_LONGEST_TEXT]
    head = f"HTTP {response.status_code} {response.reason_phrase}".strip()
    return f"{head}: {text}" if text else head


def check_reachable(url: str, what: str) -> None:
    """CONNECTOR_UNREACHABLE when nobody listens there; sends nothing."""
    try:
        address = httpx2.URL(url)
    except httpx2.InvalidURL as error:
        raise _no_url(str(error)) from None
    if address.scheme not in ("http", "https") or not address.host:
        raise _no_url("it does not begin with http:// or https:// and a host")
    port = address.port or (443 if address.scheme == "https" else 80)
    try:
        socket.create_connection((address.host, port), timeout=_CONNECT_SECONDS).close()
    except OSError as error:
        raise unreachable(what, error.strerror or str(error)) from None


def place_of(url: str) -> str:
    """The server's address, without who logs in."""
    try:
        address = httpx2.URL(url)
    except httpx2.InvalidURL:
        return "the server"
    return f"{address.scheme}://{address.netloc.decode()}"


def _later(what: str, problem: str, wait: float | None) -> MainstemError:
    error = unreachable(what, problem)
    if wait is not None:
        error.params["retry_after"] = wait
    return error


def _no_url(problem: str) -> MainstemError:
    return MainstemError(
        "INVALID_OPTION",
        option="url",
        value="...",  # it may hold a password
        problem=problem,
        advice="Write for example https://example.com/hooks.",
    )
