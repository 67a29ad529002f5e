"""Blob stores: a directory, or a bucket named by its URL. Called by `api.store.store` and by the settings."""

import os
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

from obstore.exceptions import BaseError
from obstore.store import LocalStore, from_url

from api.store.blobs.blobs import Blobs, first_line
from api.store.blobs.stale_parts import delete_stale_parts

PART_BYTES = 1024 * 1024
BUCKET_PART_BYTES = 8 * 1024 * 1024
"""S3 takes no part below 5 MiB, except the last."""
CONNECT_TIMEOUT = timedelta(seconds=2)
PART_TIMEOUT = timedelta(seconds=10)
"""Limit of one request that writes a part or deletes."""
MAX_RETRIES = 2
RETRY_TIMEOUT = timedelta(seconds=3)
SCHEMES = ("s3", "gs", "az")


def directory_blobs(directory: Path) -> Blobs:
    """Return blobs stored as files below a directory."""
    store = LocalStore(directory, mkdir=True, automatic_cleanup=True)

    def sync(key: str) -> None:
        # The library renames without flushing: bytes and names must be on disk before the acknowledgement.
        path = directory / key
        for entry in (path, *list(path.parents)[: key.count("/") + 1]):
            descriptor = os.open(entry, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    return Blobs(
        store, store, PART_BYTES, sync, lambda before: delete_stale_parts(directory, before), directory
    )


def bucket_blobs(url: str) -> Blobs:
    """Return blobs stored as objects below `s3://bucket/prefix` (or `gs://`, `az://`).

    Endpoint, region and credentials come from the usual environment variables (`AWS_…`). Raises
    ValueError if the URL or one of these is wrong; sends no request to the bucket yet.
    """
    check_url(url)
    # The library ignores this one variable as soon as any other client option is set.
    allow_http = os.environ.get("AWS_ALLOW_HTTP", "").lower() in ("1", "true")
    try:
        writing, reading = (
            from_url(
                url,
                client_options={
                    "connect_timeout": CONNECT_TIMEOUT,
                    "timeout": timeout,
                    "allow_http": allow_http,
                },
                retry_config={"max_retries": MAX_RETRIES, "retry_timeout": RETRY_TIMEOUT},
            )
            for timeout in (PART_TIMEOUT, timedelta(days=1))
        )
    except BaseError as error:
        raise ValueError(f"the bucket cannot be used: {first_line(error)}") from error
    return Blobs(writing, reading, BUCKET_PART_BYTES)


def check_url(url: str) -> None:
    """Raise ValueError if this is not a bucket URL."""
    parts = urlsplit(url)
    if parts.scheme not in SCHEMES or not parts.netloc or parts.username or parts.query or parts.fragment:
        raise ValueError("must be s3://bucket/prefix; credentials come from AWS_ACCESS_KEY_ID and the like")
