"""Connection: settings for librdkafka and for Spark, and no secrets where they do not belong."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from pydantic import SecretStr

from mainstem.config import KafkaSettings
from mainstem.errors import MainstemError
from mainstem.log.connection import Connection


def test_options_tune_but_do_not_break_promises() -> None:
    connection = Connection(
        "a:1", {"linger.ms": "7", "enable.idempotence": "false", "isolation.level": "x"}
    )
    producer = connection.producer({"transactional.id": "t"}, {"linger.ms": 1})
    assert producer["linger.ms"] == "7"
    assert producer["enable.idempotence"] is True
    assert producer["transactional.id"] == "t"
    assert connection.consumer({})["isolation.level"] == "read_committed"
    assert connection.consumer({}, committed=False)["isolation.level"] == "read_uncommitted"


def test_secrets_are_not_in_repr_and_survive_the_way_to_a_worker() -> None:
    connection = Connection("a:1", {"sasl.password": "hunter2"})
    assert "hunter2" not in repr(connection)
    assert Connection.from_dict(connection.to_dict()) == connection
    assert pickle.loads(pickle.dumps(connection)) == connection


def test_from_settings() -> None:
    settings = KafkaSettings(max_record_bytes=5000, options={"sasl.password": SecretStr("p")})
    connection = Connection.from_settings(settings, "local:9")
    assert connection.servers == "local:9"
    assert connection.max_record_bytes == 5000
    assert connection.options["sasl.password"] == "p"
    named = KafkaSettings(bootstrap_servers="far:1")
    assert Connection.from_settings(named, "local:9").servers == "far:1"


def test_spark_options_without_security() -> None:
    connection = Connection("a:1,b:2", {"linger.ms": "5"})
    assert connection.spark_options() == {"kafka.bootstrap.servers": "a:1,b:2"}


def test_spark_options_with_scram() -> None:
    options = {
        "security.protocol": "sasl_ssl",
        "sasl.mechanisms": "SCRAM-SHA-512",
        "sasl.username": "u",
        "sasl.password": 'p"\\w',
    }
    spark = Connection("a:1", options).spark_options()
    assert spark["kafka.security.protocol"] == "SASL_SSL"
    assert spark["kafka.sasl.mechanism"] == "SCRAM-SHA-512"
    assert spark["kafka.sasl.jaas.config"] == (
        "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="u" password="p\\"\\\\w";'
    )


def test_spark_options_carry_certificates_as_text(tmp_path: Path) -> None:
    for name in ("ca", "certificate", "key"):
        (tmp_path / f"{name}.pem").write_text(f"-- {name}")
    options = {
        "security.protocol": "ssl",
        "ssl.ca.location": str(tmp_path / "ca.pem"),
        "ssl.certificate.location": str(tmp_path / "certificate.pem"),
        "ssl.key.location": str(tmp_path / "key.pem"),
        "ssl.key.password": "k",
        "ssl.endpoint.identification.algorithm": "none",
    }
    assert Connection("a:1", options).spark_options() == {
        "kafka.bootstrap.servers": "a:1",
        "kafka.security.protocol": "SSL",
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.certificates": "-- ca",
        "kafka.ssl.keystore.type": "PEM",
        "kafka.ssl.keystore.certificate.chain": "-- certificate",
        "kafka.ssl.keystore.key": "-- key",
        "kafka.ssl.key.password": "k",
        "kafka.ssl.endpoint.identification.algorithm": "",
    }


@pytest.mark.parametrize(
    "options",
    [
        {"sasl.mechanism": "GSSAPI"},
        {"ssl.ca.location": "no/such/file.pem"},
        {"enable.ssl.certificate.verification": "false"},
    ],
)
def test_what_spark_cannot_do_is_said(options: dict[str, str]) -> None:
    with pytest.raises(MainstemError) as caught:
        Connection("a:1", options).spark_options()
    assert caught.value.code == "CONFIG_INVALID"
