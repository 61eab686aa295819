"""The source connector `syslog`: what it is for, and its options."""

from __future__ import annotations

from mainstem.connect.listening.options import OF_STREAM
from mainstem.connect.spec import ConnectorSpec, Field, FieldKind, Role

SPEC = ConnectorSpec(
    "syslog",
    Role.SOURCE,
    """
    Listens for syslog messages, by UDP and TCP, as RFC 5424 and RFC 3164 have them.

    The messages become one STREAM with the columns `facility` and `severity` (names, and as
    `facility_number` and `severity_number`), `at`, `host`, `app`, `procid`, `msgid`, `message`,
    `structured` (the structured data: a map of maps), `raw` (the whole line) and `peer` (who sent
    it). It is keyed by `host`, so that the lines of a host stay in order, and `at` is its event
    time. TCP messages may be counted in octets or end with a line feed (RFC 6587).

    A line that is no syslog message is kept whole in the quarantine, with the reason. Syslog has
    no acknowledgements: what was sent while nobody listened is lost, and of UDP also what came too
    fast; the latter is counted, and shown as an error.
    """,
    (
        Field(
            "listen",
            FieldKind.TEXT,
            "Address and port. To take messages from other machines, say an address of this one; "
            "anybody who reaches it can then write to the stream.",
            "0.0.0.0:514",
            default="127.0.0.1:5514",
        ),
        Field(
            "protocols",
            FieldKind.NAMES,
            "`udp`, `tcp` or both.",
            "tcp",
            default="udp, tcp",
        ),
        Field(
            "timezone",
            FieldKind.TEXT,
            "Where the clocks of senders are that do not say it, which is so with RFC 3164.",
            "Europe/Berlin",
            default="UTC",
        ),
        Field(
            "charset",
            FieldKind.TEXT,
            "How the text is encoded.",
            "latin-1",
            default="utf-8",
            choices=("utf-8", "latin-1", "cp1252"),
        ),
        Field(
            "max_bytes",
            FieldKind.INTEGER,
            "The longest message by TCP; of longer ones the pieces are kept in the quarantine.",
            "8192",
            default="65536",
            least=480,
            most=524_288,
        ),
        *OF_STREAM,
    ),
)
