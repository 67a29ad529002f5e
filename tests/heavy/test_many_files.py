"""A crew that leaves as many and as large files as a run keeps, and more."""

from __future__ import annotations

import hashlib
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.nightly

CREW = """
    import os
    def kickoff():
        block = os.urandom(2 << 20)
        for number in range({count}):
            with open(f"artifacts/{{number:04}}.bin", "wb") as file:
                file.write(b"%8d" % number + block[:{size} - 8])
        for line in open(f"/proc/{{os.getppid()}}/status"):
            if line.startswith("VmHWM"):
                return int(line.split()[1]) // 1024
"""


async def test_one_gibibyte_in_thousand_files(pod: Any, api: Any, tmp_path: Path) -> None:
    """Slow: writes, hashes and sends a gibibyte."""
    api.keep_bodies = False
    size = (1 << 30) // 1000
    pod.crew(CREW.format(count=1001, size=size))
    await pod.start(REPORT_SECONDS="200", SCAN_SECONDS="60")
    ended = await pod.wait(300)
    done = time.monotonic()
    assert (ended.code, api.result["outcome"]) == (0, "succeeded")
    assert api.result["artifacts"] == {"count": 1000, "bytes": 1000 * size}
    [refused] = api.logs("warning")
    assert "'1000.bin' is not stored: the limit of a run is 1000 files" in refused
    for name in ("0000.bin", "0999.bin"):
        body = (pod.app / "artifacts" / name).read_bytes()
        assert api.artifacts[name][-1].sha256 == hashlib.sha256(body).hexdigest()
    took = done - pod._started - api.result["duration_ms"] / 1000
    begun = time.monotonic()
    shutil.copytree(pod.app / "artifacts", tmp_path / "copy")
    print(f"stored in {took:.1f} s; a plain copy takes {time.monotonic() - begun:.1f} s")


async def test_byte_over_the_limit_is_refused_and_run_succeeds(pod: Any, api: Any) -> None:
    api.keep_bodies = False
    api.limits = {"artifact_bytes": 10 << 20}
    pod.crew(CREW.format(count=11, size=1 << 20))
    await pod.run()
    assert api.result["outcome"] == "succeeded"
    assert api.result["artifacts"] == {"count": 10, "bytes": 10 << 20}
    [refused] = api.logs("warning")
    assert "the limit of a run is 10485760 bytes of files" in refused


async def test_file_that_grows_during_upload_is_stored_whole(pod: Any, api: Any) -> None:
    api.keep_bodies = False
    pod.crew(
        """
        import hashlib, os, time
        def kickoff():
            digest = hashlib.sha256()
            for _ in range(40):
                with open("artifacts/growing", "ab") as file:
                    block = os.urandom(4 << 20)
                    file.write(block)
                    digest.update(block)
                time.sleep(0.12)
            return digest.hexdigest()
        """
    )
    await pod.run()
    assert api.artifacts["growing"][-1].sha256 == api.result["output"]
    assert api.result["outcome"] == "succeeded"
