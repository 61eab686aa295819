"""The page at `/` in a real browser, driven over its debugging protocol."""

from __future__ import annotations

import base64
import itertools
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from websockets.sync.client import ClientConnection, connect

from mainstem.testing.waiting import eventually

pytestmark = pytest.mark.skipif(
    not shutil.which("chromium"), reason="chromium is not installed (scripts/system-packages)"
)


class Browser:
    """One tab of a headless browser."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol; events that come in between are passed over."""
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self._socket.recv(timeout=120))
            if answer.get("id") == number:
                return dict(answer["result"])

    def value(self, expression: str) -> Any:
        """The value of a JavaScript expression."""
        result = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        return result["result"].get("value")

    @property
    def text(self) -> str:
        """What a person reads on the page."""
        return str(self.value("document.body.innerText"))

    def picture(self, file: Path, width: int, height: int) -> None:
        """Save what a person sees in a window of that size."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height,
                 deviceScaleFactor=1, mobile=False)  # fmt: skip
        file.write_bytes(base64.b64decode(self.ask("Page.captureScreenshot")["data"]))


def first_tab(port: str) -> str | None:
    """The address of the first page that is open."""
    address = f"http://127.0.0.1:{port}/json/list"
    tabs = httpx2.get(address, trust_env=False, timeout=120).json()
    return next((t["webSocketDebuggerUrl"] for t in tabs if t["type"] == "page"), None)


@pytest.fixture(scope="module")
def browser(shop, tmp_path_factory) -> Iterator[Browser]:
    folder = tmp_path_factory.mktemp("browser")
    process = subprocess.Popen(
        [
            *("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"),
            *("--no-first-run", "--disable-background-networking", "--disable-component-update"),
            *("--disable-sync", "--no-proxy-server", f"--user-data-dir={folder}"),
            *("--remote-debugging-port=0", "--remote-allow-origins=*", "about:blank"),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        port_file = folder / "DevToolsActivePort"
        eventually(lambda: port_file.exists() and "\n" in port_file.read_text())
        port = port_file.read_text().splitlines()[0]
        address = eventually(lambda: first_tab(port), what="the browser has a tab")
        with connect(address, max_size=None, proxy=None, open_timeout=120) as socket:
            browser = Browser(socket)
            browser.ask("Page.enable")
            browser.ask("Page.navigate", url=f"{shop.url}/")
            yield browser
    finally:
        process.terminate()
        process.wait(120)


def test_it_shows_objects_their_state_and_what_is_written(shop, browser, tmp_path):
    for name in ("clicks", "orders", "big_orders", "page_visits", "sales_by_product"):
        eventually(lambda name=name: name in browser.text, what=name)
    eventually(lambda: "running" in browser.text)
    click = {"user_id": "u", "page": "/live", "country": "CH", "at": "2026-11-15T09:00:00Z"}
    shop.write("clicks", click)
    eventually(lambda: "/live" in browser.text, what="the row of the first table")
    browser.picture(tmp_path / "page.png", 1280, 900)
    assert (tmp_path / "page.png").stat().st_size > 10_000


def test_it_asks_nobody_but_the_gateway(shop, browser):
    entries = browser.value(
        "JSON.stringify(performance.getEntriesByType('resource').map(e => e.name))"
    )
    assert json.loads(entries)
    assert all(name.startswith(shop.url) for name in json.loads(entries))
    policy = shop.http.get("/").headers["content-security-policy"]
    assert "default-src 'none'" in policy or "default-src 'self'" in policy
