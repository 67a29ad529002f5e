"""Whether there is place for a file is asked while other lanes store theirs."""

from __future__ import annotations

import sys
import threading
from types import SimpleNamespace
from typing import Any

from runner.pid1.until import Until
from runner.pid1.upload import Upload


def test_counting_what_is_stored_bears_that_more_is_stored() -> None:
    limits = {"artifacts": 10**9, "artifact_bytes": 10**12}
    upload = Upload(lambda: None, None, Until(), "/nowhere", limits, 1.0)  # type: ignore[arg-type,return-value]
    upload.stored = {str(number): (1, "") for number in range(2000)}
    one: Any = SimpleNamespace(name="one", size=1)
    done = threading.Event()

    def store() -> None:
        while not done.is_set():
            for number in range(40):
                upload.stored[f"more {number}"] = (1, "")
            for number in range(40):
                del upload.stored[f"more {number}"]

    before, other = sys.getswitchinterval(), threading.Thread(target=store)
    sys.setswitchinterval(1e-6)
    other.start()
    try:
        assert all(upload._fits(one, 0, 0) for _ in range(200))
    finally:
        done.set()
        other.join()
        sys.setswitchinterval(before)
