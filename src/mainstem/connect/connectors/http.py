"""The sink connector `http`: rows to a webhook."""

from __future__ import annotations

from mainstem.connect.spec import ConnectorSpec, Field, FieldKind, Role

SPEC = ConnectorSpec(
    name="http",
    role=Role.SINK,
    doc="""Posts rows to a URL, some at a time, as a JSON array.

At least once: after a failure the same rows may come again, in the same requests. Each has a header
`Idempotency-Key` made of the sink, the topic's id, the partition, and the first and last offset, by
which a receiver can tell that it has it. Of a table each change is a row, with a field `_deleted`.

408, 425, 429 and 5xx are tried again, after the time that `Retry-After` says; so are 401, 403, 404,
405, 407 and redirections, which say that something is wrong with the address or the key. With any
other 4xx the rows are posted by halves, until it is known which of them are not taken: these go to
the quarantine.""",
    fields=(
        Field(
            "url",
            FieldKind.URL,
            "Where the rows are posted to.",
            "https://example.com/hooks/orders",
            required=True,
            place=True,
        ),
        Field(
            "authorization",
            FieldKind.TEXT,
            "The value of the header `Authorization`.",
            "Bearer ${env:HOOK_TOKEN}",
            secret=True,
        ),
        Field(
            "batch_rows",
            FieldKind.INTEGER,
            "Most rows of a request; it has at most 4 MiB, too, unless a single row is larger.",
            "100",
            default="500",
            least=1,
            most=100_000,
        ),
        Field(
            "timeout",
            FieldKind.INTERVAL,
            "How long an answer may take.",
            "10 seconds",
            default="30 seconds",
        ),
    ),
)
