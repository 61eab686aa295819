"""Python functions of the project, from the file to rows: plan, apply, query, change, drop."""

from __future__ import annotations

import pytest

FUNCTIONS = """
from mainstem import function


@function
def slug(title: str) -> str:
    if not title:
        raise ValueError("no title")
    return "-".join(title.lower().split())
"""
SQL = """
CREATE STREAM articles (id BIGINT, title STRING);
CREATE TABLE pages WITH (key = 'id') AS SELECT id, slug(title) AS slug FROM articles;
"""


@pytest.fixture
def pages(shop):
    """A pipeline that calls a function of the project."""
    (shop.folder / "functions").mkdir(exist_ok=True)
    with (
        shop.edited("functions/text.py", lambda _: FUNCTIONS),
        shop.edited("pipeline/pages.sql", lambda _: SQL),
    ):
        plan = shop.cli("plan").ok().out
        assert "+ function slug" in plan
        assert "slug(title string) -> string" in plan
        shop.cli("apply", "--yes").ok()
        yield shop.folder / "functions" / "text.py"
    assert shop.rows("SHOW FUNCTIONS") == []


def test_the_life_of_a_function(shop, pages):
    titles = ("Good Morning", "", "Good Night")
    shop.write("articles", *({"id": i, "title": title} for i, title in enumerate(titles)))
    shop.wait_for_rows("SELECT * FROM pages", [[0, "good-morning"], [2, "good-night"]])
    assert shop.flow("pages")["state"] == "running"
    assert shop.rows("SELECT slug(title) FROM articles WHERE id = 2") == [["good-night"]]
    assert [row[0] for row in shop.rows("SHOW FUNCTIONS")] == ["slug"]
    shop.sql("SELECT slug(slug) FROM pages").failed("NOT_SUPPORTED", 3)
    shop.sql("SELECT slug(id) FROM articles").failed("TYPE_MISMATCH", 3)
    shop.sql("SELECT slug(title, 1) FROM articles").failed("FUNCTION_ARGUMENTS", 3)
    shop.sql("SELECT slug(title) FROM articles").failed("FUNCTION_FAILED")

    pages.write_text(FUNCTIONS.replace("@function", "# only a comment\n@function"))
    assert shop.cli("plan").ok().out == "No changes.\n"
    pages.write_text(FUNCTIONS.replace('"-".join', '"_".join'))
    plan = shop.cli("plan").ok().out
    assert "~ function slug" in plan
    assert "! table pages" in plan
    shop.cli("apply").failed("CONFIRMATION_NEEDED")
    shop.cli("apply", "--yes").ok()
    shop.wait_for_rows("SELECT * FROM pages", [[0, "good_morning"], [2, "good_night"]])
