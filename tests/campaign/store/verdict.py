"""Whether rows and files of a store agree. Pure; for the checker's `missing` and `left`.

What a row names has to be there at any time. A file that no row names may be there for the time that
docs/operations.md promises, since a process may be killed between the two: so these are looked for in a copy
of the store that has been through that time.
"""

from collections.abc import Iterator, Mapping

from tests.campaign.store.contents import StoreContents


def missing_blobs(kept: StoreContents) -> Iterator[str]:
    """Rows whose bytes are not there, or are others."""
    for row in kept.rows:
        blob = kept.blobs.get(row.blob)
        if blob is None:
            yield f"{row.what} has a row and no blob"
        elif blob.size != row.size or row.sha256 not in (None, blob.sha256):
            yield f"{row.what} has other bytes than its row says"


def missing_uploads(kept: StoreContents, uploads: Mapping[str, str]) -> Iterator[str]:
    """Upload, by their id with their sha256, that were answered for and are not there."""
    hashes = {row.what: row.sha256 for row in kept.rows}
    for upload, sha256 in uploads.items():
        if hashes.get(f"upload {upload}") != sha256:
            yield f"upload {upload} was stored, and is not there"


def leftovers(kept: StoreContents) -> Iterator[str]:
    """Yield leftovers after all retention periods: files without a row, logs without an owner."""
    named = {row.blob for row in kept.rows}
    for key in sorted(kept.blobs.keys() - named):
        yield f"blob {key} has no row"
    for key in sorted(kept.begun):
        yield f"file {key} never became a blob"
    for upload in sorted(kept.announced):
        yield f"upload {upload} is there long after it has expired"
    for run in sorted(kept.event_logs):
        sealed = kept.runs.get(run)
        if sealed is None:
            yield f"there is an event log of {run}, which is no run"
        elif sealed:
            yield f"the log of {run} is there though it is sealed"
    for run in sorted(run for run, sealed in kept.runs.items() if not sealed):
        yield f"the events of {run} are not sealed long after its end"
    for build in sorted(kept.build_logs - kept.builds):
        yield f"there is a build log of {build}, which is no deployment"
