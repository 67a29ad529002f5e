"""A1: upload of 1 GiB by the runner's code, against a plain copy to the same store; and download.

The peer of a directory is a copy and fsync: once by the kernel alone, and once with a hash of the content, as
tools that copy between stores compute. The peer of a bucket is the object-store library's multipart upload,
without a hash. The API server is a separate process; its memory is the peak during upload and download.
"""

import asyncio
import hashlib
import os
import re
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import aiohttp
import obstore
from obstore.store import from_url

from bench.lib.finding import Finding
from bench.lib.installation import MeasuredInstallation
from bench.lib.statistics import Pair
from bench.runs.artifact_service import NONCE, POD, UID
from crds import api_keys, pod_tokens
from runner.pid1.api.client import RunAPIClient
from runner.pid1.artifacts.files import scan
from runner.pid1.artifacts.transfer import upload_file
from runner.pid1.settings import RunnerSettings
from tests.unit.api.store import bucket as s3

FILE_BYTES = 1 << 30
PAIR_COUNT = 5
MIB = 1 << 20
RUN = "run-01bench"
NAME = "large.bin"


def resident_mib(pid: int, peak: bool = False) -> float:
    """Return the resident memory of a process in MiB, or its peak since `reset_peak`."""
    text = Path(f"/proc/{pid}/status").read_text()
    match = re.search(r"VmHWM:\s+(\d+)" if peak else r"VmRSS:\s+(\d+)", text)
    assert match is not None
    return int(match[1]) / 1024


def reset_peak(pid: int) -> None:
    """Reset the peak memory of a process."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


async def measure(_installation: MeasuredInstallation) -> list[Finding]:
    """Measure A1, into a directory and into a bucket."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("CREWYARD_BENCH_DIRECTORY")) as root:
        directory = Path(root)
        (directory / "artifacts").mkdir()
        with (directory / "artifacts" / NAME).open("wb") as file:
            block = os.urandom(64 * MIB)
            for number in range(FILE_BYTES // len(block)):
                file.write(number.to_bytes(8, "big") + block[8:])
        peers = {"copy and fsync": _copy_seconds, "copy with a hash, and fsync": _hashed_copy_seconds}
        findings = await _measure_store(directory, "a directory", None, peers)
        program = s3.program()
        if program is None:
            return findings
        server = await asyncio.to_thread(s3.S3Server, program)
        try:
            os.environ.update(server.environment)
            url = f"s3://{server.new().name}"
            upload = {
                "the object-store library's upload": lambda directory: _bucket_upload_seconds(directory, url)
            }
            return [*findings, *await _measure_store(directory, "a bucket", url, upload)]
        finally:
            server.close()


async def _measure_store(
    directory: Path, store_name: str, url: str | None, peers: Mapping[str, Callable[[Path], float]]
) -> list[Finding]:
    admin_key, key = api_keys.generate(), secrets.token_hex(16)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.runs.artifact_service",
        str(directory / "data"), url or "-", RUN, key, admin_key.key_id, admin_key.hash,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        port = int(await asyncio.wait_for(process.stdout.readline(), 60))
        address = f"http://127.0.0.1:{port}"
        run_client = _run_client(address, key)
        speeds: dict[str, list[Pair]] = {name: [] for name in peers}
        memory_growth = []
        for _ in range(PAIR_COUNT):
            peer_seconds = {name: await asyncio.to_thread(peer, directory) for name, peer in peers.items()}
            before = resident_mib(process.pid)
            reset_peak(process.pid)
            our_seconds = await asyncio.to_thread(_upload_seconds, run_client, directory)
            memory_growth.append(resident_mib(process.pid, peak=True) - before)
            for name, seconds in peer_seconds.items():
                speeds[name].append((FILE_BYTES / MIB / seconds, FILE_BYTES / MIB / our_seconds))
        before = resident_mib(process.pid)
        reset_peak(process.pid)
        seconds = await _download_seconds(address, admin_key.text)
        download_growth = resident_mib(process.pid, peak=True) - before
    finally:
        process.terminate()
        await process.wait()
        shutil.rmtree(directory / "data", ignore_errors=True)
    memory = f"in {max(memory_growth):.0f} MiB more at most, out {download_growth:.0f} MiB more"
    return [
        *(
            Finding("A1", f"1 GiB in the pod → stored in {store_name}", "MiB/s", pairs=pairs, peer=name)
            for name, pairs in speeds.items()
        ),
        Finding(
            "A1", f"1 GiB read from {store_name}", "MiB/s", fact=f"{FILE_BYTES / MIB / seconds:.0f} MiB/s"
        ),
        Finding("A1", f"memory of the API server, with {store_name}", "MiB", fact=memory),
    ]


def _run_client(address: str, key: str) -> RunAPIClient:
    token = pod_tokens.mint(key, "run", "crews", RUN, UID, int(time.time()) + 3600)
    variables = {"INTERNAL_URL": address, "RUN": RUN, "RUN_UID": UID, "TOKEN": token, "POD_UID": POD}
    return RunAPIClient(
        RunnerSettings({f"CREWYARD_{name}": value for name, value in variables.items()}), NONCE
    )


def _upload_seconds(run_client: RunAPIClient, directory: Path) -> float:
    """Return the seconds of the runner's upload: hash, send, hash and store there, acknowledge."""
    [file], _ = scan(str(directory / "artifacts"))
    started = time.monotonic()
    upload_file(run_client, file, False, lambda _: True)
    return time.monotonic() - started


def _copy_seconds(directory: Path) -> float:
    started = time.monotonic()
    shutil.copyfile(directory / "artifacts" / NAME, directory / "copy")
    with (directory / "copy").open("rb") as file:
        os.fsync(file.fileno())
    seconds = time.monotonic() - started
    (directory / "copy").unlink()
    return seconds


def _hashed_copy_seconds(directory: Path) -> float:
    started, digest = time.monotonic(), hashlib.sha256()
    with (directory / "artifacts" / NAME).open("rb") as source, (directory / "copy").open("wb") as target:
        while chunk := source.read(MIB):
            digest.update(chunk)
            target.write(chunk)
        target.flush()
        os.fsync(target.fileno())
    seconds = time.monotonic() - started
    (directory / "copy").unlink()
    return seconds


def _bucket_upload_seconds(directory: Path, url: str) -> float:
    store = from_url(url, client_options={"allow_http": True})
    started = time.monotonic()
    obstore.put(store, "copy", directory / "artifacts" / NAME, chunk_size=8 * MIB)
    seconds = time.monotonic() - started
    obstore.delete(store, "copy")
    return seconds


async def _download_seconds(address: str, key: str) -> float:
    started, digest = time.monotonic(), hashlib.sha256()
    path = f"/v1/runs/{RUN.replace('-', '_', 1)}/artifacts/{NAME}"
    async with (
        aiohttp.ClientSession(address, headers={"Authorization": f"Bearer {key}"}) as session,
        session.get(path) as response,
    ):
        assert response.status == 200
        async for chunk in response.content.iter_chunked(MIB):
            digest.update(chunk)
        assert response.headers["ETag"] == f'"{digest.hexdigest()}"'
    return time.monotonic() - started
