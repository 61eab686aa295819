"""Two gateways over one log, one of which is killed again and again while clients write."""

from __future__ import annotations

import signal
import threading
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
from tests.system.gateway.processes import Gateway

RECORDS = "/v1/streams/gw_quotes/records"
APPEND = "/v1/streams/gw_quotes/append"
CLIENTS = 6


class TwoGateways:
    """Clients that repeat what was not answered, at whichever gateway answers."""

    def __init__(self, kept: Gateway, killed: Gateway) -> None:
        self._gateways = (kept, killed)
        self._receipts: dict[str, list[Any]] = {}
        self._appended: list[tuple[int, str]] = []
        self._conflicts = 0
        self._requests = 0
        self._over = threading.Event()

    def run(self, *, requests: int, workers: int, events: int, kills: int) -> None:
        """Every request twice, and appends by workers to one aggregate, until all is answered."""
        self._requests = requests
        whole = 2 * requests + workers * events
        with ThreadPoolExecutor(CLIENTS + workers + 1) as threads:
            killing = threads.submit(self._kill, kills, whole)
            working = [threads.submit(self._append_all, n, events) for n in range(workers)]
            asking = [threads.submit(self._ask, n) for n in range(2 * requests)]
            try:
                for each in (*asking, *working):
                    each.result()
            finally:
                self._over.set()
            killing.result()

    def check(self, written: Mapping[bytes | None, int], loaded: Mapping[str, Any]) -> None:
        """Against the keys in the topic, and the aggregate as it is loaded."""
        appends = len(self._appended)
        wanted = {b"once-%d" % n: 2 for n in range(self._requests)}
        assert Counter(written) == Counter({**wanted, b"q": appends})
        differ = {key for key, (one, two) in self._receipts.items() if one != two}
        assert len(self._receipts) == self._requests and not differ
        assert self._conflicts, "nobody was ever quicker: that proves nothing"
        assert sorted(version for version, _ in self._appended) == list(range(1, appends + 1))
        events = [(event["version"], event["value"]["kind"]) for event in loaded["events"]]
        assert events == sorted(self._appended) and loaded["version"] == appends

    def _kill(self, kills: int, whole: int) -> None:
        killed = self._gateways[1]
        for number in range(1, kills + 1):
            while self._answered() < number * whole // (kills + 1):
                if self._over.wait(0.01):
                    return
            killed.stop(signal.SIGKILL)
            killed.start()
            killed.ready()

    def _answered(self) -> int:
        return len(self._appended) + sum(map(len, list(self._receipts.values())))

    def _ask(self, number: int) -> None:
        key = f"once-{number % self._requests}"
        sent = {"records": [{"value": {"id": key, "kind": "asked"}}] * 2}
        answer = self._answer(number, RECORDS, sent, key)
        assert answer.status_code == 200, answer.text
        self._receipts.setdefault(key, []).append(answer.json()["records"])

    def _append_all(self, worker: int, events: int) -> None:
        """Append events, each upon the version that was seen last."""
        version = 0
        for number in range(events):
            done = False
            while not done:
                kind = f"{worker}-{number}"
                sent = {"key": "q", "expected_version": version, "events": [{"kind": kind}]}
                answer = self._answer(worker, APPEND, sent, f"{kind} upon {version}")
                told = answer.json()
                done = answer.status_code == 200
                if done:
                    assert told["version"] == version + 1, told
                    version = told["version"]
                    self._appended.append((version, kind))
                else:
                    assert told["title"] == "VERSION_CONFLICT", told
                    assert told["actual_version"] > version
                    version = told["actual_version"]
                    self._conflicts += 1

    def _answer(self, turn: int, path: str, sent: Any, key: str) -> httpx2.Response:
        """As a client does: the same request again, to whoever answers."""
        while True:
            gateway = self._gateways[turn % 2]
            turn += 1
            url, headers = gateway.endpoints.gateway_url + path, {"Idempotency-Key": key}
            try:
                answer = httpx2.post(url, json=sent, headers=headers, timeout=60, trust_env=False)
            except httpx2.TransportError:
                continue
            if answer.status_code not in (500, 502, 503):
                return answer
