"""SSH brute force is found in syslog lines; what is no syslog goes to the quarantine."""

from __future__ import annotations

import random
import re
from collections import Counter
from datetime import UTC, datetime, timedelta

from play import Answer, Line, clock, moment

NEEDS = {"SYSLOG_ADDRESS": "port:", "SEARCH_URL": "opensearch"}
BEGIN = datetime(2026, 4, 1, 3, tzinfo=UTC)
HOSTS = ("bastion", "build-1", "mail")
ACCOUNTS = ("root", "admin", "invalid user oracle", "invalid user pi")
FIVE_MINUTES = 300
HELLO = ("GET / HTTP/1.1", "SSH-2.0-scanner", "\x16\x03\x01 hello")


def events(seed: int) -> list[Line]:
    """An hour: people who mistype, two who try for long, other programs, and a port scanner."""
    choose = random.Random(seed)
    lines = []
    for second in range(0, 3600, 4):
        at = clock(BEGIN + timedelta(seconds=second))
        host = choose.choice(HOSTS)
        kind = choose.random()
        account, port = choose.choice(ACCOUNTS), choose.randrange(1024, 65536)
        if kind < 0.4:
            attacker = "203.0.113.7" if second < 1500 else "198.51.100.23"
            address = attacker if kind < 0.2 else f"192.0.2.{choose.randrange(1, 200)}"
            text = f"Failed password for {account} from {address} port {port} ssh2"
            lines.append(f"<38>1 {at} {host} sshd {port} - - {text}")
        elif kind < 0.6:
            text = f"Accepted publickey for deploy from 192.0.2.9 port {port} ssh2"
            lines.append(f"<38>1 {at} {host} sshd {port} - - {text}")
        elif kind < 0.8:
            text = "Failed password for root from 203.0.113.7 port 22 ssh2"
            lines.append(f"<30>1 {at} {host} backup {port} - - {text}")
        elif kind < 0.81:
            lines.append(choose.choice(HELLO))
    text = "".join(f"{line}\n" for line in lines)
    return [Line("SYSLOG_ADDRESS", text)]


def answer(events: list[Line]) -> Answer:
    """Line by line, with an expression of its own."""
    whole = re.compile(r"<\d+>1 (\S+) (\S+) (\S+) \d+ - - (.*)")
    failed = re.compile(r"Failed password for .* from (\S+) port \d+ ssh2")
    failures: Counter[tuple[str, datetime]] = Counter()
    documents, other = [], []
    for line in events[0].text.splitlines():
        found = whole.fullmatch(line)
        if found is None:
            other.append({"stage": "source", "value": line})
            continue
        at, host, app, message = found.groups()
        documents.append({"host": host, "app": app, "message": message})
        if app == "sshd" and (tried := failed.fullmatch(message)):
            seconds = moment(at).timestamp()
            since = datetime.fromtimestamp(seconds - seconds % FIVE_MINUTES, UTC)
            failures[tried[1], since] += 1
    attacks = [
        {"address": address, "since": since, "failures": number}
        for (address, since), number in failures.items()
        if number > 5
    ]
    alarms = [
        {"op": "insert", "after.address": a["address"], "after.since": a["since"]} for a in attacks
    ]
    return {
        "attackers": attacks,
        "alarms": alarms,
        "opensearch:logs": documents,
        "quarantine:log_lines": other,
    }
