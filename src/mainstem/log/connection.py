"""How to reach the Kafka cluster, said once for librdkafka's clients and Spark's Java ones."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mainstem.config import PROJECT_FILE, KafkaSettings
from mainstem.errors import MainstemError

_SECONDS_BETWEEN_LINES = 10.0


class _OnceInAWhile(logging.Filter):
    """Lets one line of each kind through every ten seconds: a dead broker makes hundreds."""

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        kind = str(record.args[0]) if isinstance(record.args, tuple) and record.args else record.msg
        now = time.monotonic()
        if now - self._last.get(kind, -_SECONDS_BETWEEN_LINES) < _SECONDS_BETWEEN_LINES:
            return False
        self._last[kind] = now
        return True


_LIBRDKAFKA = logging.getLogger("mainstem.log.librdkafka")
_LIBRDKAFKA.addFilter(_OnceInAWhile())
# Without a handler Python would print librdkafka's lines to stderr by itself.
_LIBRDKAFKA.addHandler(logging.NullHandler())

# Tuning: a project's [kafka.options] may say otherwise.
_CLIENT_TUNING: dict[str, Any] = {
    "client.id": "mainstem",
    "log.connection.close": False,
    # The first connection waits for this long too: 50 ms less for every new client.
    "reconnect.backoff.ms": 10,
    # A broker that comes back after a minute is found again within a second.
    "reconnect.backoff.max.ms": 1000,
    "socket.nagle.disable": True,
}
_PRODUCER_TUNING: dict[str, Any] = {
    "compression.type": "lz4",
    "retry.backoff.ms": 20,
    # Topics are made before they are written to; a missing one is an error soon, not after 30 s.
    "topic.metadata.propagation.max.ms": 5000,
}
_CONSUMER_TUNING: dict[str, Any] = {
    "fetch.queue.backoff.ms": 20,
    "fetch.error.backoff.ms": 100,
}

# Promises: what our code relies on, whatever the options say.
_PRODUCER: dict[str, Any] = {
    "partitioner": "murmur2_random",  # what Java clients do, so that tools agree on partitions
    "enable.idempotence": True,
    "acks": "all",
}
_CONSUMER: dict[str, Any] = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
}

MAX_RECORD_BYTES = "message.max.bytes"
_DEFAULT_MAX_RECORD_BYTES = 1_000_000
# librdkafka counts headers; we do not, so that a quarantined record may carry some more.
_HEADER_ROOM = 16_384


@dataclass(frozen=True)
class Connection:
    """A Kafka cluster: bootstrap servers, and more client settings by their librdkafka names.

    Immutable and picklable. `options` may hold passwords, so it is not part of `repr`.
    """

    servers: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def from_settings(cls, settings: KafkaSettings, servers: str = "") -> Connection:
        """The connection of a project; `servers` replaces an empty `bootstrap_servers`."""
        options = {name: value.get_secret_value() for name, value in settings.options.items()}
        options.setdefault(MAX_RECORD_BYTES, str(settings.max_record_bytes))
        return cls(settings.bootstrap_servers or servers, options)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Connection:
        """What `to_dict` gave."""
        return cls(document["servers"], dict(document["options"]))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for another process; holds the secrets of `options`."""
        return {"servers": self.servers, "options": dict(self.options)}

    @property
    def protocol(self) -> str:
        """Kafka's name for how the servers are talked to."""
        return self.options.get("security.protocol", "plaintext")

    @property
    def max_record_bytes(self) -> int:
        """The largest record, key and value, that a producer of ours sends."""
        return int(self.options.get(MAX_RECORD_BYTES, _DEFAULT_MAX_RECORD_BYTES))

    def client(self, **extra: Any) -> dict[str, Any]:
        """Settings for librdkafka of any client; its log lines go to Python's logging."""
        return self._settings({}, extra)

    def producer(
        self, settings: Mapping[str, Any], tuning: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Settings for librdkafka of a producer: idempotent, acknowledged by all replicas.

        `settings` hold whatever the project's options say; `tuning` gives way to them.
        """
        limit = {MAX_RECORD_BYTES: self.max_record_bytes + _HEADER_ROOM}
        tuned = {**_PRODUCER_TUNING, **(tuning or {})}
        return self._settings(tuned, {**_PRODUCER, **limit, **settings})

    def consumer(
        self,
        settings: Mapping[str, Any],
        tuning: Mapping[str, Any] | None = None,
        *,
        committed: bool = True,
    ) -> dict[str, Any]:
        """Settings for librdkafka of a consumer that commits nothing by itself; see `producer`."""
        isolation = {"isolation.level": "read_committed" if committed else "read_uncommitted"}
        tuned = {**_CONSUMER_TUNING, **(tuning or {})}
        return self._settings(tuned, {**_CONSUMER, **isolation, **settings})

    def _settings(self, tuning: Mapping[str, Any], fixed: Mapping[str, Any]) -> dict[str, Any]:
        own = {"bootstrap.servers": self.servers, "logger": _LIBRDKAFKA}
        return {**_CLIENT_TUNING, **tuning, **self.options, **own, **fixed}

    def spark_options(self) -> dict[str, str]:
        """Where and how to connect, as options of Spark's Kafka source and sink.

        Only what concerns reaching the cluster is carried over (servers, security, SASL, TLS);
        other librdkafka settings mean nothing to a Java client.
        """
        return {f"kafka.{name}": value for name, value in self.java_options().items()}

    def java_options(self) -> dict[str, str]:
        """The same for any Java client; holds the secrets of `options`."""
        return {"bootstrap.servers": self.servers, **_java_security(self.options)}


def _java_security(options: Mapping[str, str]) -> dict[str, str]:
    java: dict[str, str] = {}
    if "security.protocol" in options:
        java["security.protocol"] = options["security.protocol"].upper()
    mechanism = options.get("sasl.mechanisms", options.get("sasl.mechanism"))
    if mechanism is not None:
        java["sasl.mechanism"] = mechanism.upper()
        java["sasl.jaas.config"] = _jaas(mechanism.upper(), options)
    java.update(_java_tls(options))
    return java


def _jaas(mechanism: str, options: Mapping[str, str]) -> str:
    if mechanism == "PLAIN":
        module = "plain.PlainLoginModule"
    elif mechanism.startswith("SCRAM-"):
        module = "scram.ScramLoginModule"
    else:
        raise _unsupported(f"sasl.mechanism {mechanism} is not supported: use PLAIN or SCRAM-*")
    user = _quoted(options.get("sasl.username", ""))
    password = _quoted(options.get("sasl.password", ""))
    return (
        f"org.apache.kafka.common.security.{module} required username={user} password={password};"
    )


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _java_tls(options: Mapping[str, str]) -> dict[str, str]:
    """TLS settings with the PEM texts inside, so that executors need no files of their own."""
    java: dict[str, str] = {}
    authorities = _pem(options, "ssl.ca.pem", "ssl.ca.location")
    if authorities is not None:
        java["ssl.truststore.type"] = "PEM"
        java["ssl.truststore.certificates"] = authorities
    certificate = _pem(options, "ssl.certificate.pem", "ssl.certificate.location")
    key = _pem(options, "ssl.key.pem", "ssl.key.location")
    if certificate is not None and key is not None:
        java["ssl.keystore.type"] = "PEM"
        java["ssl.keystore.certificate.chain"] = certificate
        java["ssl.keystore.key"] = key
        if "ssl.key.password" in options:
            java["ssl.key.password"] = options["ssl.key.password"]
    verify = options.get("ssl.endpoint.identification.algorithm")
    if verify is not None:
        java["ssl.endpoint.identification.algorithm"] = "" if verify == "none" else verify
    if options.get("enable.ssl.certificate.verification", "true").lower() == "false":
        raise _unsupported(
            "enable.ssl.certificate.verification cannot be turned off: give ssl.ca.location"
        )
    return java


def _pem(options: Mapping[str, str], text: str, file: str) -> str | None:
    if text in options:
        return options[text]
    if file not in options:
        return None
    try:
        return Path(options[file]).read_text("ascii")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not a PEM text"
        raise _unsupported(f"{file}: {reason}") from None


def _unsupported(problem: str) -> MainstemError:
    return MainstemError("CONFIG_INVALID", file=PROJECT_FILE, problem=f"kafka.options: {problem}")
