"""Where lake tables are: a folder, or a bucket of S3 with the options that reach it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs

from mainstem.connect.targets.target import refused
from mainstem.errors import MainstemError

S3 = "s3://"


def check_place(option: str, place: str) -> None:
    """Refuse a place that is neither a folder from the root on nor a bucket."""
    if not place.startswith(S3):
        check_path(option, place)
    elif not place.removeprefix(S3).strip("/"):
        raise MainstemError(
            "INVALID_OPTION",
            option=option,
            value=place,
            problem="it names no bucket",
            advice="Write for example s3://lake/orders.",
        )


def check_path(option: str, path: str) -> None:
    """Refuse a path that does not begin at the root."""
    if not Path(path).is_absolute():
        raise MainstemError(
            "INVALID_OPTION",
            option=option,
            value=path,
            problem="it does not begin at the root",
            advice="Write the whole path, such as /data/orders.",
        )


def check_folder(what: str, folder: Path) -> None:
    """Refuse a folder of this machine that can neither be made nor written to."""
    there = next(path for path in (folder, *folder.parents) if path.exists())
    if not there.is_dir():
        raise refused(what, f"{there} is not a folder", "Choose another one.")
    if not os.access(there, os.W_OK | os.X_OK):
        problem = f"no permission to write in {there}"
        raise refused(what, problem, "Give it to the user that runs Mainstem.")


def filesystem(place: str, options: Mapping[str, Any]) -> tuple[pafs.FileSystem, str]:
    """What opens files at the place, and the place as it wants to have it."""
    if not place.startswith(S3):
        return pafs.LocalFileSystem(), place
    given = {
        "access_key": options["s3_access_key"],
        "secret_key": options["s3_secret_key"],
        "region": options["s3_region"],
        "endpoint_override": options["s3_endpoint"],
    }
    store = pafs.S3FileSystem(
        **{name: value for name, value in given.items() if value is not None},
        connect_timeout=5,
        request_timeout=60,
    )
    return store, place.removeprefix(S3)


def delta_options(options: Mapping[str, Any]) -> dict[str, str]:
    """The same options as Delta's library calls them."""
    endpoint = options["s3_endpoint"]
    given = {
        "AWS_ACCESS_KEY_ID": options["s3_access_key"],
        "AWS_SECRET_ACCESS_KEY": options["s3_secret_key"],
        "AWS_REGION": options["s3_region"],
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ALLOW_HTTP": "true" if endpoint and endpoint.startswith("http://") else None,
        # the flow tries again: waiting here would hide that it does
        "max_retries": "2",
        "timeout": "60s",
    }
    return {name: value for name, value in given.items() if value is not None}


def iceberg_options(options: Mapping[str, Any]) -> dict[str, str]:
    """The same options as Iceberg's library calls them."""
    given = {
        "s3.access-key-id": options["s3_access_key"],
        "s3.secret-access-key": options["s3_secret_key"],
        "s3.region": options["s3_region"],
        "s3.endpoint": options["s3_endpoint"],
        "s3.connect-timeout": "5",
        "s3.request-timeout": "60",
    }
    return {name: value for name, value in given.items() if value is not None}


def to_disk(path: str) -> None:
    """Waits until the disk has a file, and its name."""
    for each in (path, os.path.dirname(path)):
        handle = os.open(each, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
