"""Another Kafka cluster: the options by which it is reached, and the connection that they make."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mainstem.connect.spec import Field, FieldKind
from mainstem.log.connection import Connection

LOGIN = (
    Field(
        "security",
        FieldKind.TEXT,
        "How the servers are talked to.",
        "sasl_ssl",
        default="plaintext",
        choices=("plaintext", "ssl", "sasl_plaintext", "sasl_ssl"),
    ),
    Field(
        "mechanism",
        FieldKind.TEXT,
        "How the user logs in, with SASL.",
        "scram-sha-512",
        default="plain",
        choices=("plain", "scram-sha-256", "scram-sha-512"),
    ),
    Field("user", FieldKind.TEXT, "Who logs in, with SASL.", "mainstem"),
    Field("password", FieldKind.TEXT, "The user's password.", "${env:KAFKA_PASSWORD}", secret=True),
    Field(
        "ca",
        FieldKind.TEXT,
        "File with the certificate that the servers' are signed with, with TLS.",
        "/etc/ssl/kafka-ca.pem",
    ),
)


def connection_of(options: Mapping[str, Any]) -> Connection:
    """How to reach the cluster of the option `servers`."""
    given = {
        "security.protocol": options["security"],
        "sasl.mechanisms": options["mechanism"].upper(),
        "sasl.username": options["user"],
        "sasl.password": options["password"],
        "ssl.ca.location": options["ca"],
    }
    sasl = options["security"].startswith("sasl")
    found = {
        name: value
        for name, value in given.items()
        if value is not None and (sasl or not name.startswith("sasl."))
    }
    return Connection(options["servers"], found)
