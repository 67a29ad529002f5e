"""Where blobs lie: a directory, or a bucket by its address. Called by `api.store.store`, and by settings."""

import os
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

from obstore.exceptions import BaseError
from obstore.store import LocalStore, from_url

from api.store.blobs.blobs import Blobs, first_line
from api.store.blobs.stale_parts import remove_staged

PART = 1024 * 1024
BUCKET_PART = 8 * 1024 * 1024
"""S3 takes no smaller part than 5 MiB, but the last."""
CONNECT = timedelta(seconds=2)
PART_TIME = timedelta(seconds=10)
"""For one request that writes or deletes."""
RETRIES = 2
RETRY_TIME = timedelta(seconds=3)
SCHEMES = ("s3", "gs", "az")


def in_folder(directory: Path) -> Blobs:
    """Blobs as files below a directory."""
    store = LocalStore(directory, mkdir=True, automatic_cleanup=True)

    def sync(key: str) -> None:
        # The library renames without flushing: bytes and names must be on disk before we say so.
        path = directory / key
        for place in (path, *list(path.parents)[: key.count("/") + 1]):
            descriptor = os.open(place, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    return Blobs(store, store, PART, sync, lambda before: remove_staged(directory, before), directory)


def in_bucket(url: str) -> Blobs:
    """Blobs as objects below `s3://bucket/prefix` (or `gs://`, `az://`).

    Endpoint, region and credentials come from the usual variables of the environment (`AWS_…`). Raises
    ValueError where the URL or these are wrong; nothing is asked of the bucket yet.
    """
    check_url(url)
    # The library forgets this one variable where any other option of its client is given.
    plain = os.environ.get("AWS_ALLOW_HTTP", "").lower() in ("1", "true")
    try:
        writing, reading = (
            from_url(
                url,
                client_options={"connect_timeout": CONNECT, "timeout": whole, "allow_http": plain},
                retry_config={"max_retries": RETRIES, "retry_timeout": RETRY_TIME},
            )
            for whole in (PART_TIME, timedelta(days=1))
        )
    except BaseError as error:
        raise ValueError(f"the bucket cannot be used: {first_line(error)}") from error
    return Blobs(writing, reading, BUCKET_PART)


def check_url(url: str) -> None:
    """Raises ValueError where this is no address of a bucket."""
    parts = urlsplit(url)
    if parts.scheme not in SCHEMES or not parts.netloc or parts.username or parts.query or parts.fragment:
        raise ValueError("must be s3://bucket/prefix; credentials come from AWS_ACCESS_KEY_ID and the like")
