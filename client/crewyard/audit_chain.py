"""Verification of the audit log's hash chain. Pure. Called by `crewyard audit --verify`."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

FIRST_PREVIOUS = "0" * 64
PRUNED = "pruned"


class AuditBroken(Exception):
    """The log was changed; the message says where."""


class RecordsMissing(AuditBroken):
    """Records are missing, as also in an export of a part of the log."""


class KnownRecordGone(Exception):
    """The log has no record any more that it would have to continue."""


def digest(record: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a record without its hash: as JSON with sorted keys, no spaces, in ASCII."""
    fields = {name: value for name, value in record.items() if name != "hash"}
    return hashlib.sha256(json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def verify(records: Iterable[Mapping[str, Any]], known: tuple[int, str] | None = None) -> tuple[int, str]:
    """Check all records, the oldest first; return number and hash of the newest, (0, zeros) for an empty log.

    `known` is what an earlier verification returned: the log must continue it. Without that, records removed
    at the end, and a log that was rewritten as a whole, are not noticed. Retention may have removed further
    records while the log was read. Raises AuditBroken, KnownRecordGone.
    """
    first = (0, FIRST_PREVIOUS)
    (number, previous), start, is_cut = first, None, False
    for record in records:
        if start is None:
            start = (record["number"] - 1, record["previous"])
            number, previous = start
            if known is not None and known != start and 0 < known[0] <= number:
                raise KnownRecordGone(
                    f"the audit log begins with record {number + 1}: nothing shows that it continues record "
                    f"{known[0]}. Retention removed that, or the log was replaced; verify it more often than "
                    "retention removes records"
                )
        if record["number"] != number + 1:
            raise RecordsMissing(f"record {number + 1} is missing: {record['number']} follows {number}")
        if record["hash"] != digest(record):
            raise AuditBroken(f"record {record['number']} was changed: its hash does not fit")
        if record["previous"] != previous:
            raise AuditBroken(f"record {record['number']} does not continue record {number}")
        number, previous = record["number"], record["hash"]
        if known is not None and number == known[0] and previous != known[1]:
            raise AuditBroken(f"record {number} is another one than at the last verification")
        if record["outcome"] == PRUNED and record.get("actor") == "service":
            is_cut = is_cut or (str(start[0]), start[1]) == (record.get("target"), record.get("code"))
    if start not in (None, first) and not is_cut:
        raise RecordsMissing(f"the records up to {start[0]} are missing, and retention did not remove them")
    if known is not None and number < known[0]:
        raise AuditBroken(f"the log ends with record {number}; the last verification saw record {known[0]}")
    return number, previous
