"""Arguments and options that several of the schema commands have."""

from __future__ import annotations

from typing import Annotated

import typer

Subject = Annotated[str, typer.Argument(metavar="SUBJECT", help="Such as clicks-value.")]
File = Annotated[
    str, typer.Argument(metavar="FILE", help="A .avsc, .json or .proto file; - reads stdin.")
]
Type = Annotated[
    str | None,
    typer.Option("--type", metavar="TYPE", help="avro, json or protobuf; else by the suffix."),
]
References = Annotated[
    list[str] | None,
    typer.Option(
        "--reference",
        metavar="NAME=SUBJECT:VERSION",
        help="A schema that this one names; else as the newest version has them.",
    ),
]
