"""Ports: free, distinct, remembered."""

from __future__ import annotations

import socket

import pytest

from mainstem.errors import MainstemError
from mainstem.local.ports import Ports, is_free


@pytest.fixture
def busy():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server.getsockname()[1]


def test_distinct_and_remembered(tmp_path):
    ports = Ports(tmp_path / "ports.json")
    first = [ports.take(name) for name in ("broker", "controller", "postgres", "gateway")]
    assert len(set(first)) == 4
    again = Ports(tmp_path / "ports.json")
    assert [again.take(name) for name in ("broker", "controller", "postgres", "gateway")] == first


def test_another_one_when_the_old_one_is_taken(tmp_path):
    port = Ports(tmp_path / "ports.json").take("broker")
    with socket.socket() as server:
        server.bind(("127.0.0.1", port))
        server.listen()
        assert Ports(tmp_path / "ports.json").take("broker") != port


def test_configured_port_that_is_taken(tmp_path, busy):
    assert not is_free(busy)
    with pytest.raises(MainstemError) as caught:
        Ports(tmp_path / "ports.json").take("gateway", busy)
    assert caught.value.code == "PORT_TAKEN"
    assert caught.value.params["port"] == busy


def test_damaged_memory_is_forgotten(tmp_path):
    (tmp_path / "ports.json").write_text("{not json")
    assert Ports(tmp_path / "ports.json").take("broker") > 0
