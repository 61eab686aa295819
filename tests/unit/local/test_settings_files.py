"""What is written for the servers: broker settings, statements for roles, endpoints, secrets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import SecretStr

from mainstem.config import KafkaSettings, load_project
from mainstem.errors import MainstemError
from mainstem.local.broker import server_properties
from mainstem.local.disk import check_disk
from mainstem.local.endpoints import VARIABLE, Endpoints
from mainstem.local.given import postgres_address
from mainstem.local.postgres import Passwords, role_statements
from mainstem.local.postgres_place import open_to_others
from mainstem.local.private_files import write_private
from mainstem.local.stack import Stack

ENDPOINTS = Endpoints(
    bootstrap_servers="127.0.0.1:9092",
    postgres_url=SecretStr("postgresql://mainstem:tiger@127.0.0.1:5432/mainstem"),
    postgres_reader_url=SecretStr("postgresql://reader:lion@127.0.0.1:5432/mainstem"),
    gateway_host="0.0.0.0",
    gateway_port=8080,
    state_folder=Path("/p/.mainstem"),
    spark_jars=(Path("/j/a.jar"),),
)


def test_broker_listens_on_loopback_alone():
    properties = dict(
        line.split("=", 1)
        for line in server_properties(
            KafkaSettings(partitions=7, max_record_bytes=2048), 1111, 2222
        ).splitlines()
    )
    assert properties["listeners"] == "PLAINTEXT://127.0.0.1:1111,CONTROLLER://127.0.0.1:2222"
    assert properties["controller.quorum.voters"] == "1@127.0.0.1:2222"
    assert properties["auto.create.topics.enable"] == "false"
    assert properties["num.partitions"] == "7"
    assert properties["message.max.bytes"] == "2048"


def test_reader_is_not_given_more_than_reading():
    statements = "\n".join(role_statements(Passwords("a", "b")))
    assert "default_transaction_read_only = on" in statements
    assert "SUPERUSER" not in statements


def test_endpoints_travel_by_environment(monkeypatch):
    [(name, text)] = ENDPOINTS.environment().items()
    monkeypatch.setenv(name, text)
    assert Endpoints.from_environment() == ENDPOINTS
    assert ENDPOINTS.gateway_url == "http://127.0.0.1:8080"


def test_endpoints_show_no_password():
    assert "tiger" not in repr(ENDPOINTS) + str(ENDPOINTS) + ENDPOINTS.model_dump_json()


def test_endpoints_missing(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(MainstemError) as caught:
        Endpoints.from_environment()
    assert caught.value.code == "CONFIG_MISSING_ENVIRONMENT"


def test_endpoints_damaged(monkeypatch):
    broken = json.loads(ENDPOINTS.environment()[VARIABLE]) | {"gateway_port": "tiger"}
    monkeypatch.setenv(VARIABLE, json.dumps(broken))
    with pytest.raises(MainstemError) as caught:
        Endpoints.from_environment()
    assert caught.value.code == "CONFIG_INVALID"
    assert "gateway_port" in caught.value.message
    assert "tiger" not in caught.value.message


def test_private_file(tmp_path):
    write_private(tmp_path / "secrets.json", "one")
    write_private(tmp_path / "secrets.json", "two")
    assert (tmp_path / "secrets.json").read_text() == "two"
    assert (tmp_path / "secrets.json").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["secrets.json"]


def test_folder_that_others_cannot_pass(tmp_path):
    inner = tmp_path / "closed" / "inner"
    inner.mkdir(parents=True)
    (tmp_path / "closed").chmod(0o700)
    assert not open_to_others(inner)
    assert not open_to_others(inner / "not" / "yet")
    assert open_to_others(Path("/usr/bin"))


def test_full_disk_is_refused_before_anything_starts(tmp_path, monkeypatch):
    monkeypatch.setenv("MAINSTEM_MIN_FREE_MB", str(10**9))
    with pytest.raises(MainstemError) as caught:
        check_disk(tmp_path)
    assert caught.value.code == "DISK_FULL"
    (tmp_path / "mainstem.toml").write_text('name = "shop"\n')
    with pytest.raises(MainstemError) as caught, Stack(load_project(tmp_path)):
        pass
    assert caught.value.code == "DISK_FULL"


def test_servers_given_by_address_are_not_started(tmp_path):
    (tmp_path / "mainstem.toml").write_text(
        'name = "shop"\nprofile = "cluster"\n[kafka]\nbootstrap_servers = "k:9092"\n'
        '[postgres]\nurl = "postgresql://o:p@db/views"\n'
    )
    with Stack(load_project(tmp_path), {"broker", "postgres"}) as stack:
        assert stack.restarts == {}
        assert stack.endpoints.bootstrap_servers == "k:9092"
        assert stack.endpoints.postgres_url.get_secret_value() == "postgresql://o:p@db/views"


def test_a_state_folder_that_cannot_be_written_is_an_error_in_words(tmp_path):
    (tmp_path / "mainstem.toml").write_text('name = "shop"\n')
    (tmp_path / ".mainstem").write_text("a file, not a folder")
    with pytest.raises(MainstemError) as caught, Stack(load_project(tmp_path), ("postgres",)):
        pass
    assert caught.value.code == "FILE_NOT_WRITABLE"
    assert caught.value.params["file"] == str(tmp_path / ".mainstem")


def test_free_space_that_is_no_number(tmp_path, monkeypatch):
    monkeypatch.setenv("MAINSTEM_MIN_FREE_MB", "lots")
    with pytest.raises(MainstemError) as caught:
        check_disk(tmp_path)
    assert caught.value.code == "CONFIG_INVALID"


def test_an_address_of_postgres_never_shows_its_password(tmp_path):
    (tmp_path / "mainstem.toml").write_text(
        'name = "shop"\n[postgres]\nurl = "postgresql://u:sesame@host:sesame/x"\n'
    )
    with pytest.raises(MainstemError) as caught:
        postgres_address(load_project(tmp_path).settings)
    assert caught.value.code == "CONFIG_INVALID" and "sesame" not in caught.value.message
