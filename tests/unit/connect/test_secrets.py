"""Secrets by reference: where they may come from, and that they stay hidden."""

import pytest

from mainstem.connect.secrets import (
    Secrets,
    has_reference,
    password_in,
    reference_problem,
)
from mainstem.errors import MainstemError


@pytest.fixture
def secrets(tmp_path):
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "db").write_text("from file\n")
    return Secrets(tmp_path, {"URL": "postgresql://me:s3%20cret@db/shop", "EMPTY": ""})


def refusal(secrets, text):
    with pytest.raises(MainstemError) as caught:
        secrets.resolve(text)
    assert caught.value.code == "SECRET_MISSING"
    return caught.value.message


def test_references_are_filled_in(secrets):
    assert secrets.resolve("${env:URL}?x=1") == "postgresql://me:s3%20cret@db/shop?x=1"
    assert secrets.resolve("Bearer ${file:secrets/db}") == "Bearer from file"
    assert secrets.resolve("plain") == "plain"


@pytest.mark.parametrize(
    "text",
    [
        "${env:MISSING}",
        "${env:EMPTY}",
        "${file:secrets/none}",
        "${file:secrets}",
        "${file:../outside}",
        "${file:/etc/hostname}",
    ],
)
def test_what_is_not_there_is_told_by_its_reference(secrets, text):
    assert text in refusal(secrets, text)


def test_a_link_out_of_the_project_is_not_followed(secrets, tmp_path):
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.write_text("x")
    (tmp_path / "link").symlink_to(outside)
    refusal(secrets, "${file:link}")


def test_a_file_that_is_no_secret_is_refused(secrets, tmp_path):
    (tmp_path / "big").write_text("x" * 70_000)
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    assert "longer" in refusal(secrets, "${file:big}")
    refusal(secrets, "${file:bytes}")


def test_values_are_taken_out_of_texts(secrets):
    secrets.resolve("${env:URL} ${file:secrets/db}")
    told = secrets.mask(
        'no "from file" at postgresql://me:s3%20cret@db/shop; me, s3%20cret, s3 cret'
    )
    assert told == 'no "***" at ***; me, ***, ***'


@pytest.mark.parametrize(
    ("url", "plain"),
    [
        ("postgresql://me@db/shop", False),
        ("postgresql://me:@db/shop", False),
        ("postgresql://me:${env:P}@db/shop", False),
        ("postgresql://me:p@db/shop", True),
        ("postgresql://me:p/q@db/shop", True),
        ("postgresql://me:p@q@db/shop", True),
        ("http://box:9200", False),
        ("http://box:9200/a@b", False),
        ("http://box/?token=abc", True),
        ("http://box/?token=${env:T}", False),
        ("host=db user=me password=p", True),
        ("host=db sslpassword='p'", True),
        ("${env:URL}", False),
    ],
)
def test_a_password_in_plain_text_is_seen(url, plain):
    assert password_in(url) is plain


@pytest.mark.parametrize("text", ["${evn:X}", "${env:}", "${env:a b}", "${X}", "${env:X", "a ${"])
def test_a_reference_that_is_none_is_seen(text):
    assert reference_problem(text) is not None


def test_the_nearest_kind_of_reference_is_told():
    assert 'Did you mean "env"?' in (reference_problem("${evn:X}") or "")
    assert reference_problem("a ${env:X} b ${file:c/d}") is None
    assert has_reference("a ${env:X}")
    assert not has_reference("$env:X")
