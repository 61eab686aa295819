"""Java classes are looked up once, by their full names."""

from __future__ import annotations

import pytest
from pyspark import SparkContext

from mainstem.engine.java import java_class, keep_known_classes


class Found(str):
    """Stands for a class or a package."""

    def __getattr__(self, name: str) -> Found:
        return Found(f"{self}.{name}")


class View:
    """Stands for py4j's view of a JVM, which asks Java for each name that it does not have."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> Found:
        self.asked.append(name)
        return Found(f"class {name}")


@pytest.fixture
def view(monkeypatch: pytest.MonkeyPatch) -> View:
    made = View()
    monkeypatch.setattr(SparkContext, "_jvm", made)
    return made


def test_a_class_is_asked_for_once_and_by_its_full_name(view: View) -> None:
    assert java_class("org.shop.Order") == java_class("org.shop.Order") == "class org.shop.Order"
    assert view.asked == ["org.shop.Order"]


def test_another_jvm_is_asked_anew(view: View, monkeypatch: pytest.MonkeyPatch) -> None:
    java_class("org.shop.Order")
    later = View()
    monkeypatch.setattr(SparkContext, "_jvm", later)
    java_class("org.shop.Order")
    assert later.asked == ["org.shop.Order"]


def test_what_pyspark_asks_for_by_its_last_name_is_there(view: View) -> None:
    keep_known_classes()
    asked = list(view.asked)
    assert view.functions == "class org.apache.spark.sql.functions"
    assert view.PythonUtils == "class org.apache.spark.api.python.PythonUtils"
    assert vars(view.py4j.reflection)["TypeUtil"] == "class py4j.reflection.TypeUtil"
    assert view.asked == asked
