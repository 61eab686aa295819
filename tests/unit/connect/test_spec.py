"""The description of a connector: what it takes, and what it says to what it does not."""

from pathlib import Path

import pytest

from mainstem.connect.secrets import Secrets
from mainstem.connect.spec import ConnectorSpec, Field, FieldKind, Role
from mainstem.errors import MainstemError

SPEC = ConnectorSpec(
    "box",
    Role.SINK,
    """Puts rows
    into a box.

    There is more to it.""",
    (
        Field("url", FieldKind.URL, "Where.", "http://box", required=True, place=True),
        Field("password", FieldKind.TEXT, "Who.", "${env:BOX}", secret=True),
        Field("tables", FieldKind.NAMES, "What.", "a, b"),
        Field("rows", FieldKind.INTEGER, "How many.", "10", default="100", least=1, most=1000),
        Field("share", FieldKind.NUMBER, "Which part.", "0.5", least=0, most=1),
        Field("tidy", FieldKind.BOOLEAN, "Whether.", "true", default="false"),
        Field("wait", FieldKind.INTERVAL, "How long.", "1 second", default="2 seconds"),
        Field(
            "form", FieldKind.TEXT, "How.", "round", default="square", choices=("square", "round")
        ),
    ),
)
URL = {"url": "http://box"}


def refusal(written):
    with pytest.raises(MainstemError) as caught:
        SPEC.validate(written)
    return caught.value


def test_values_have_their_types_and_defaults():
    assert SPEC.validate(
        URL | {"tables": " a,b ", "share": "0.25", "tidy": "TRUE", "form": "Round"}
    ) == {
        "url": "http://box",
        "password": None,
        "tables": ("a", "b"),
        "rows": 100,
        "share": 0.25,
        "tidy": True,
        "wait": 2000,
        "form": "round",
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tables", "a,,b"),
        ("rows", "many"),
        ("rows", "0"),
        ("rows", "1001"),
        ("rows", "1.5"),
        ("share", "nan"),
        ("share", "1.1"),
        ("tidy", "yes"),
        ("wait", "soon"),
        ("form", "oval"),
        ("url", " "),
    ],
)
def test_a_wrong_value_names_its_option(name, value):
    error = refusal(URL | {name: value})
    assert (error.code, error.params["option"]) == ("INVALID_OPTION", name)
    assert f"{name} = '" in error.hint


def test_the_nearest_choice_is_told():
    assert 'Did you mean "round"?' in refusal(URL | {"form": "roud"}).message


def test_an_unknown_option_names_its_neighbour():
    error = refusal(URL | {"table": "a"})
    assert (error.code, error.params["option"]) == ("UNKNOWN_OPTION", "table")
    assert 'Did you mean "tables"?' in error.hint


def test_a_missing_option_is_told_with_an_example():
    error = refusal({})
    assert (error.code, error.params["option"]) == ("MISSING_OPTION", "url")
    assert "url = 'http://box'" in error.hint


@pytest.mark.parametrize(
    "written",
    [
        {"password": "hunter2"},
        {"url": "http://me:hunter2@box"},
        {"url": "http://me:hunter2${env:X}@box"},
        {"url": "http://box?password=hunter2"},
        {"url": "host=box password=hunter2"},
        {"passwrod": "x", "url": "http://me:hunter2@box"},
        {"password": "hunter2${evn:X}"},
    ],
)
def test_a_secret_in_plain_text_is_refused_and_not_repeated(written):
    error = refusal(URL | written)
    assert error.code in ("SECRET_IN_PLAIN", "INVALID_OPTION")
    assert "hunter2" not in str(error.problem())


def test_a_reference_stands_for_any_value_and_is_filled_in_later(tmp_path):
    written = {"url": "http://me:${env:BOX}@box", "password": "${env:BOX}", "rows": "${env:ROWS}"}
    assert SPEC.validate(written)["rows"] == "${env:ROWS}"
    values = SPEC.resolve(written, Secrets(tmp_path, {"BOX": "hunter2", "ROWS": "7"}))
    assert (values["url"], values["rows"]) == ("http://me:hunter2@box", 7)


def test_what_is_filled_in_must_fit_and_is_not_repeated(tmp_path):
    with pytest.raises(MainstemError) as caught:
        SPEC.resolve(URL | {"rows": "${env:ROWS}"}, Secrets(tmp_path, {"ROWS": "hunter2"}))
    assert caught.value.code == "INVALID_OPTION"
    assert "hunter2" not in str(caught.value.problem())
    with pytest.raises(MainstemError) as caught:
        SPEC.resolve(URL | {"rows": "${env:ROWS}"}, Secrets(tmp_path, {}))
    assert (caught.value.code, caught.value.params["option"]) == ("SECRET_MISSING", "rows")


def test_another_place_is_told_from_another_setting():
    assert SPEC.moved(URL, URL | {"rows": "5"}) is None
    assert SPEC.moved(URL, {"url": "http://box2"}) == "url"


def test_the_text_is_told_in_paragraphs_and_the_example_is_a_statement():
    assert SPEC.paragraphs == ["Puts rows into a box.", "There is more to it."]
    assert " ".join(SPEC.statement.split()) == (
        "CREATE SINK orders_out FROM orders WITH ( connector = 'box', url = 'http://box' );"
    )


def test_options_for_the_system_outside_are_passed_on():
    spec = ConnectorSpec("any", Role.SOURCE, "Any.", SPEC.fields[:1], passed_on="option.")
    written = URL | {"option.rows": "5", "option.token": "${env:TOKEN}"}
    assert spec.validate(written)["option."] == {"rows": "5", "token": "${env:TOKEN}"}
    secrets = Secrets(Path(), {"TOKEN": "t0p"})
    assert spec.resolve(written, secrets)["option."] == {"rows": "5", "token": "t0p"}
    for given, code in (
        ({"option.API_KEY": "x"}, "SECRET_IN_PLAIN"),
        ({"options.rows": "5"}, "UNKNOWN_OPTION"),
    ):
        with pytest.raises(MainstemError) as caught:
            spec.validate(URL | given)
        assert caught.value.code == code
