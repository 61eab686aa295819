"""What a new user meets first: the tour of the README, command by command, on a fresh stack."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
from pathlib import Path

from mainstem.testing.waiting import eventually

README = Path(__file__).parents[3] / "README.md"


def tour() -> list[list[str]]:
    """The commands of the README's second terminal, without their comments."""
    text = README.read_text("utf-8")
    chapter = text[text.index("## Five minutes") : text.index("## The language")]
    blocks = re.findall(r"```sh\n(.*?)```", chapter, re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    return [shlex.split(line, comments=True) for line in lines if line.startswith("mainstem ")]


def test_the_tour_of_the_readme(shop):
    commands = tour()
    assert commands[:2] == [
        ["mainstem", "init", "shop", "&&", "cd", "shop"],
        ["mainstem", "up"],
    ]
    answers = {}
    for _, *arguments in commands[2:]:
        if "EMIT CHANGES" in arguments[-1]:
            with shop.running(*arguments, "-o", "csv") as push:
                shop.wait_for_subscriptions(1)
                shop.do("INSERT INTO orders VALUES ('o2', 'u2', 'lamp', 250, current_timestamp())")
                assert push.stdout.readline() == "order_id,user_id,product,amount,at\n"
                assert push.stdout.readline().startswith("o2,u2,lamp,250.00,20")
                push.send_signal(signal.SIGINT)
                assert push.wait(120) == 130
                assert "position" in push.stderr.read()
            continue
        if "sales_by_product" in arguments[-1]:
            shop.wait_for_rows(arguments[-1], [["lamp", 1, 120.5, 120.5]])
        answers[" ".join(arguments)] = shop.cli(*arguments).ok()
    assert "1 record written" in answers[" ".join(commands[2][1:])].err
    history = answers["sql -e SELECT product, count(*) FROM orders GROUP BY product"]
    assert re.search(r"^lamp +2$", history.out, re.MULTILINE)
    assert re.search(r"^big_orders +running ", answers["status"].out, re.MULTILINE)
    assert answers["plan"].out == "No changes.\n"
    assert answers["apply"].out == "No changes.\n"


def test_what_up_prints(shop):
    for part in ("broker", "postgres", "engine", "gateway"):
        assert re.search(rf"^{part}: ready after [\d.]+ s$", shop.up.text, re.MULTILINE)
    assert "applied: 5 changes" in shop.up.text
    assert f"page: {shop.url}/" in shop.up.text


def test_the_printed_psql_command_works_as_it_is(shop):
    [line] = re.findall(r"^psql: (.*)$", shop.up.text, re.MULTILINE)
    query = "SELECT count(*) >= 0 FROM sales_by_product"
    done = subprocess.run(
        f'{line} -XAtc "{query}"', shell=True, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "t\n"), done.stderr


def test_doctor_finds_nothing(shop):
    checks = {c["check"]: c["result"] for c in shop.cli("doctor", "-o", "json").ok().json}
    assert {"java", "jars", "disk", "broker", "postgres", "gateway", "engine"} <= set(checks)
    assert set(checks.values()) == {"ok"}


def test_the_engine_is_not_silent(shop):
    eventually(lambda: shop.http.get("/v1/status").json()["engine"]["state"] == "running")
    eventually(lambda: "engine: running" in shop.cli("status").ok().err)
