"""The source connector `webhook`: what it is for, and its options."""

from __future__ import annotations

from mainstem.connect.listening.options import OF_STREAM
from mainstem.connect.listening.signatures import GITHUB, PLAIN, STRIPE
from mainstem.connect.spec import ConnectorSpec, Field, FieldKind, Role

SPEC = ConnectorSpec(
    "webhook",
    Role.SOURCE,
    """
    Takes JSON that others post to the gateway, at `/v1/hooks/` and the source's name.

    The requests become one STREAM. With `columns`, a JSON object is a record, and an array a record
    for each of its objects; fields that are no columns are left out. Without, a request is a
    record with the columns `body` (its text, as it came), `headers` (a map) and `at` (when it
    came).

    A request is answered with 200 when the log has it; with 401 when its signature does not fit,
    413 when it is too large, 422 with the place and the reason when it does not fit the columns;
    then nothing of it is kept. With `id`, a request that comes again is answered, and not written
    twice; the gateway that wrote it knows that, another one does not.
    """,
    (
        Field(
            "signature",
            FieldKind.TEXT,
            "How requests are signed: as GitHub or Stripe do, or the HMAC of the body in a header, "
            "hexadecimal or base64. Without it, who reaches the gateway can write.",
            GITHUB,
            choices=(GITHUB, STRIPE, PLAIN),
        ),
        Field(
            "secret",
            FieldKind.TEXT,
            "What requests are signed with.",
            "${env:HOOK_SECRET}",
            secret=True,
        ),
        Field(
            "header",
            FieldKind.TEXT,
            "The header with the signature, if it is not the usual one: `X-Hub-Signature-256`, "
            "`Stripe-Signature`, `X-Signature`.",
            "X-Shopify-Hmac-Sha256",
        ),
        Field(
            "tolerance",
            FieldKind.INTERVAL,
            "How old a signature may be that has a time in it, as Stripe's.",
            "1 minute",
            default="5 minutes",
        ),
        Field(
            "columns",
            FieldKind.TEXT,
            "The columns of the stream, as in CREATE STREAM.",
            "id BIGINT, action STRING, sender STRUCT<login: STRING>",
        ),
        Field(
            "key",
            FieldKind.NAMES,
            "Columns that are the key of the stream's records.",
            "id",
        ),
        Field(
            "event_time",
            FieldKind.TEXT,
            "The column with the event time; without it, when the request came.",
            "created_at",
        ),
        Field(
            "id",
            FieldKind.TEXT,
            "What tells requests apart: a header, or a path in the JSON such as `$.id`.",
            "header:X-GitHub-Delivery",
        ),
        Field(
            "within",
            FieldKind.INTERVAL,
            "How long a request is known by its `id`.",
            "1 day",
            default="1 hour",
        ),
        Field(
            "max_bytes",
            FieldKind.INTEGER,
            "The largest body.",
            "65536",
            default="1000000",
            least=1,
            most=33_554_432,
        ),
        *OF_STREAM,
    ),
)
