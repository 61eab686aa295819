"""The page in a real browser, against the running stack."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
from collections.abc import Iterator

import psutil
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, Route, expect, sync_playwright

from mainstem.log.producer import Outgoing

pytestmark = pytest.mark.skipif(
    not shutil.which("chromium"), reason="chromium is not installed (scripts/system-packages)"
)
PAGES = (
    "/",
    "/lineage",
    "/streams",
    "/streams/orders",
    "/tables",
    "/tables/sales_by_product",
    "/flows",
    "/flows/sales_by_product",
    "/lineage?focus=sales_by_product&column=revenue",
    "/streams/orders?tab=topic",
    "/sql",
    "/schemas",
    "/connectors",
    "/new-connector?connector=sink+postgres",
    "/quarantine",
    "/plan",
)
PATIENCE_MS = 90_000
_OPTIONS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--no-proxy-server",
)
expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=_OPTIONS
        )
        yield browser
        browser.close()


@pytest.fixture
def page(shop, browser) -> Iterator[Page]:
    """A tab; what it complains of, or asks of others than the gateway, fails the test."""
    context = browser.new_context(base_url=shop.url, viewport={"width": 1440, "height": 900})
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on(
        "request",
        lambda asked: (
            None if asked.url.startswith((shop.url, "blob:")) else problems.append(asked.url)
        ),
    )
    page.on(
        "console",
        lambda said: problems.append(said.text) if "Content Security" in said.text else None,
    )
    yield page
    context.close()
    assert problems == []


def click(page: str, user: str = "u") -> dict[str, str]:
    return {"user_id": user, "page": page, "country": "CH", "at": "2026-11-15T09:00:00Z"}


def order(id: str, product: str, amount: float) -> dict[str, object]:
    at = "2026-11-15T09:00:00Z"
    return {"order_id": id, "user_id": "u", "product": product, "amount": amount, "at": at}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everybody_can_use_every_page(page, theme):
    page.emulate_media(color_scheme=theme)
    for address in PAGES:
        page.goto(address)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        expect(page.get_by_role("status").first).to_contain_text("live")
        found = Axe().run(page).response["violations"]
        serious = [
            (one["id"], [node["html"][:120] for node in one["nodes"][:3]])
            for one in found
            if one["impact"] in ("serious", "critical")
        ]
        assert serious == [], address


def test_home_leads_to_what_is_wrong(shop, page):
    shop.do("CREATE STREAM page_bad (id BIGINT, n INT) WITH (key = 'id')")
    shop.do("CREATE STREAM page_bad_copy AS SELECT id, n FROM page_bad")
    shop.produce("page_bad", Outgoing(key=b"1", value=b'{"id": "one"}'))
    page.goto("/")
    row = page.get_by_role("row").filter(has_text="page_bad").filter(has_text="held").first
    row.get_by_role("link").click()
    expect(page).to_have_url(f"{shop.url}/quarantine?stream=page_bad")
    page.get_by_role("table", name="held records").get_by_role("row").nth(1).click()
    page.get_by_label("value").fill('{"id": 1, "n": 7}')
    page.get_by_role("button", name="Would it fit now?").click()
    expect(page.get_by_text("would be replayed")).to_be_visible()
    expect(page.get_by_role("img", name="records put into quarantine")).to_be_visible()
    page.get_by_role("button", name="Replay", exact=True).click()
    outcome = page.get_by_role("status").filter(has_text=re.compile(r"^\s*replayed"))
    expect(outcome).to_be_visible()
    page.goto("/streams/page_bad_copy")
    expect(page.get_by_role("table", name="records of page_bad_copy")).to_contain_text('"n":7')


def test_a_live_table_has_no_gap_when_the_gateway_comes_back(shop, page):
    page.goto("/tables/sales_by_product")
    shop.write("orders", order("page-1", "kite", 10))
    grid = page.get_by_role("table", name="rows of sales_by_product")
    expect(grid).to_contain_text("kite")
    kite = grid.get_by_role("row").filter(has_text="kite")
    gateway = shop.up.server("gateway")
    os.kill(gateway.pid, signal.SIGKILL)
    psutil.wait_procs([gateway], timeout=30)
    expect(page.get_by_role("status").first).to_contain_text("reconnecting")
    written = [order("page-2", "kite", 5), order("page-3", "boat", 7)]
    shop.produce("orders", *(Outgoing(key=b"k", value=json.dumps(o).encode()) for o in written))
    expect(page.get_by_role("status").first).to_contain_text("live")
    expect(kite).to_contain_text("15")
    expect(grid).to_contain_text("boat")
    kite.click()
    expect(page.get_by_role("heading", name="One row")).to_be_visible()


def test_a_record_is_text_and_never_markup(shop, page):
    evil = '<img src=x onerror="document.title=1"><script>document.title=2</script>'
    shop.write("clicks", click(evil, user=evil))
    page.goto("/streams/clicks")
    row = page.get_by_role("table", name="records of clicks").get_by_role("row").nth(1)
    expect(row).to_contain_text("<img src=x")
    row.click()
    expect(page.get_by_text("<script>document.title=2</script>").first).to_be_visible()
    assert page.title() == "clicks · Mainstem"
    permalink = page.url
    page.goto(permalink)
    expect(page.get_by_role("heading", name="Record clicks/")).to_be_visible()


def test_a_large_record_and_a_long_name(shop, page):
    name = "page_" + "very_" * 30 + "long"
    shop.do(f"CREATE STREAM {name} (id STRING, text STRING) WITH (key = 'id')")
    shop.write(name, {"id": "a", "text": "x" * 900_000})
    page.goto(f"/streams/{name}")
    page.get_by_role("table", name=f"records of {name}").get_by_role("row").nth(1).click()
    expect(page.get_by_text("more characters")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_ten_thousand_topics(page):
    topic = {"partitions": 4, "replication_factor": 1, "records": 0, "config": {}}

    def many(route: Route) -> None:
        topics = [{"name": f"topic-{n:05}", **topic} for n in range(10_000)]
        route.fulfill(json={"topics": topics})

    page.route(re.compile(r"/v1/topics\?"), many)
    page.goto("/streams")
    expect(page.get_by_role("link", name="topic-00001")).to_be_visible()
    assert page.get_by_role("row").count() < 100
    page.get_by_role("searchbox").fill("topic-09999")
    expect(page.get_by_role("link", name="topic-09999")).to_be_visible()


def test_the_newest_records_as_they_come(shop, page):
    page.goto("/streams/clicks?from=live")
    expect(page.get_by_text("No records here")).to_be_visible()

    def sent() -> bool:
        shop.write("clicks", click("/tail"))
        return page.get_by_role("table", name="records of clicks").is_visible()

    page.wait_for_timeout(500)
    for _ in range(60):
        if sent():
            break
        page.wait_for_timeout(500)
    expect(page.get_by_role("table", name="records of clicks")).to_contain_text("/tail")


def test_statements_and_what_is_wrong_with_them(shop, page):
    page.goto("/sql")
    editor = page.get_by_role("textbox", name="SQL")
    editor.fill("SELECT nothing FROM sales_by_product")
    editor.press("Control+Enter")
    expect(page.get_by_role("alert")).to_contain_text("UNKNOWN_COLUMN")
    shop.write("orders", order("page-sql", "swing", 3))
    editor.fill("SELECT product, revenue FROM sales_by_product EMIT CHANGES")
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("table", name="changes")).to_contain_text("swing")
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("table", name="changes")).to_be_hidden()
    editor.fill("SELECT product FROM sales_by_product WHERE product = 'swing'")
    editor.press("Control+Enter")
    expect(page.get_by_role("table", name="answer")).to_contain_text("swing")
    page.reload()
    expect(editor).to_contain_text("WHERE product = 'swing'")


def test_by_keyboard_alone(page):
    page.goto("/")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    page.keyboard.press("Control+k")
    expect(page.get_by_role("combobox", name="page, stream")).to_be_focused()
    page.keyboard.type("sales_by")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("sales_by_product"))
    expect(page.get_by_role("heading", level=1)).to_contain_text("sales_by_product")


def test_a_flow_is_paused_and_goes_on(shop, page):
    shop.do("CREATE STREAM page_flow AS SELECT page FROM clicks WHERE country = 'XX'")
    page.goto("/flows/page_flow")
    page.get_by_role("button", name="Pause").nth(1).click()
    expect(page.get_by_text("paused", exact=True)).to_be_visible()
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_text("running", exact=True)).to_be_visible()
    page.get_by_role("button", name="Drop").click()
    drop = page.get_by_role("dialog").get_by_role("button", name="Drop page_flow")
    expect(drop).to_be_disabled()
    page.get_by_role("dialog").get_by_label("name").fill("page_flow")
    drop.click()
    expect(page.get_by_text("There is no flow “page_flow”")).to_be_visible()


def test_produced_by_a_form(page):
    page.goto("/streams/orders?tab=produce")
    page.get_by_label("rows").fill('{"order_id": 1')
    page.get_by_role("button", name="Produce").click()
    expect(page.get_by_role("alert")).to_be_visible()
    page.get_by_label("rows").fill(json.dumps(order("page-form", "formed", 1)))
    page.get_by_role("button", name="Produce").click()
    expect(page.get_by_text("written", exact=True)).to_be_visible()
    page.goto("/tables/sales_by_product")
    expect(page.get_by_role("table", name="rows of")).to_contain_text("formed")


def test_a_record_is_produced_again(shop, page):
    shop.write("clicks", click("/again"))
    page.goto("/streams/clicks")
    row = page.get_by_role("table", name="records of clicks").get_by_role("row")
    row.filter(has_text="/again").first.click()
    page.get_by_role("link", name="Produce again").click()
    expect(page.get_by_label("rows")).to_have_value(re.compile('"page": "/again"'))
    page.get_by_role("button", name="Produce").click()
    expect(page.get_by_text("written", exact=True)).to_be_visible()
    page.goto("/streams/clicks?tab=topic")
    expect(page.get_by_role("heading", name="Partitions")).to_be_visible()


def test_where_a_column_comes_from(page):
    page.goto("/lineage?focus=sales_by_product")
    columns = page.get_by_role("region", name="columns of sales_by_product")
    columns.get_by_role("button", name="revenue").click()
    columns.get_by_role("link", name="orders.amount").click()
    expect(page).to_have_url(re.compile("focus=orders&column=amount"))
    way = page.get_by_role("link", name="sales_by_product.revenue")
    expect(way).to_be_visible()


def test_the_plan_is_that_of_the_command_line(shop, page):
    page.goto("/plan")
    expect(page.get_by_text("What would change")).to_be_visible()
    file = shop.folder / "pipeline" / "page.sql"
    file.write_text("CREATE STREAM page_planned (id STRING) WITH (key = 'id');\n")
    try:
        page.get_by_role("button", name="Plan again").click()
        expect(page.get_by_text("page_planned").first).to_be_visible()
        page.get_by_role("button", name="Apply", exact=True).click()
        expect(page.get_by_text("applied:")).to_be_visible()
    finally:
        file.unlink()
    page.get_by_role("button", name="Plan again").click()
    expect(page.get_by_text("drop").first).to_be_visible()
    page.get_by_role("button", name="Apply", exact=True).click()
    page.get_by_role("dialog").get_by_label("name").fill("page_planned")
    page.get_by_role("dialog").get_by_role("button", name="Apply").click()
    expect(page.get_by_text("applied:")).to_be_visible()


def test_nothing_and_nobody(page):
    for address, said in (
        ("/tables/no_such", "There is no table"),
        ("/streams/no_such", "There is no stream"),
        ("/flows/no_such", "There is no flow"),
        ("/connectors/no_such", "There is no source or sink"),
    ):
        page.goto(address)
        expect(page.get_by_text(said).first).to_be_visible()


def test_a_form_for_a_connector(page):
    page.goto("/new-connector")
    page.get_by_label("connector", exact=True).select_option("sink files")
    page.get_by_label("name").fill("page_sink")
    page.get_by_label("from").select_option("orders")
    expect(page.get_by_text("CREATE SINK page_sink FROM orders WITH (")).to_be_visible()
