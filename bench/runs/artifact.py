"""A1: a GiB in the pod → stored, by the runner's own code, against a plain copy to the same store; and back.

The peer of a directory is a copy and its fsync, once by the kernel alone, and once with a hash of what is
read, as tools do that copy between stores; of a bucket it is the object-store library's own upload of the
file, in parts, which hashes nothing. The facade is a process of its own; its memory is what it held at most
while the GiB went in, and out.
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
from collections.abc import Callable
from pathlib import Path

import aiohttp
import obstore
from obstore.store import from_url

from bench.lib.finding import Finding
from bench.lib.installation import Ground
from bench.lib.statistics import Pair
from bench.runs.artifact_service import NONCE, POD, UID
from crds import api_keys, pod_tokens
from runner.pid1.api.client import Facade
from runner.pid1.artifacts.files import scan
from runner.pid1.artifacts.transfer import transfer
from runner.pid1.settings import Settings
from tests.unit.api.store import bucket as s3

SIZE = 1 << 30
PAIRS = 5
MIB = 1 << 20
RUN = "run-01bench"
NAME = "large.bin"


def held(pid: int, most: bool = False) -> float:
    """MiB that a process holds, or held at most since `forget`."""
    text = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+)" if most else r"VmRSS:\s+(\d+)", text)
    assert found is not None
    return int(found[1]) / 1024


def forget(pid: int) -> None:
    """The greatest amount begins anew."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


async def measure(_ground: Ground) -> list[Finding]:
    """A1, into a directory and into a bucket."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("CREWYARD_BENCH_DIRECTORY")) as root:
        place = Path(root)
        (place / "artifacts").mkdir()
        with (place / "artifacts" / NAME).open("wb") as file:
            block = os.urandom(64 * MIB)
            for number in range(SIZE // len(block)):
                file.write(number.to_bytes(8, "big") + block[8:])
        peers = {"copy and fsync": _copied, "copy with a hash, and fsync": _hashed}
        found = await _store(place, "a directory", None, peers)
        program = s3.program()
        if program is None:
            return found
        server = await asyncio.to_thread(s3.Server, program)
        try:
            os.environ.update(server.environment)
            url = f"s3://{server.new().name}"
            upload = {"the object-store library's upload": lambda place: _put(place, url)}
            return [*found, *await _store(place, "a bucket", url, upload)]
        finally:
            server.close()


async def _store(
    place: Path, what: str, url: str | None, peers: dict[str, Callable[[Path], float]]
) -> list[Finding]:
    drawn, key = api_keys.draw(), secrets.token_hex(16)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.runs.artifact_service",
        str(place / "data"), url or "-", RUN, key, drawn.key_id, drawn.hash,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        port = int(await asyncio.wait_for(process.stdout.readline(), 60))
        address = f"http://127.0.0.1:{port}"
        facade = _facade(address, key)
        speeds: dict[str, list[Pair]] = {name: [] for name in peers}
        grown = []
        for _ in range(PAIRS):
            theirs = {name: await asyncio.to_thread(peer, place) for name, peer in peers.items()}
            before = held(process.pid)
            forget(process.pid)
            ours = await asyncio.to_thread(_sent, facade, place)
            grown.append(held(process.pid, most=True) - before)
            for name, seconds in theirs.items():
                speeds[name].append((SIZE / MIB / seconds, SIZE / MIB / ours))
        before = held(process.pid)
        forget(process.pid)
        seconds = await _read(address, drawn.text)
        out = held(process.pid, most=True) - before
    finally:
        process.terminate()
        await process.wait()
        shutil.rmtree(place / "data", ignore_errors=True)
    memory = f"in {max(grown):.0f} MiB more at most, out {out:.0f} MiB more"
    return [
        *(
            Finding("A1", f"1 GiB in the pod → stored in {what}", "MiB/s", pairs=pairs, peer=name)
            for name, pairs in speeds.items()
        ),
        Finding("A1", f"1 GiB read from {what}", "MiB/s", fact=f"{SIZE / MIB / seconds:.0f} MiB/s"),
        Finding("A1", f"memory of the facade, with {what}", "MiB", fact=memory),
    ]


def _facade(address: str, key: str) -> Facade:
    token = pod_tokens.mint(key, "run", "crews", RUN, UID, int(time.time()) + 3600)
    variables = {"INTERNAL_URL": address, "RUN": RUN, "RUN_UID": UID, "TOKEN": token, "POD_UID": POD}
    return Facade(Settings({f"CREWYARD_{name}": value for name, value in variables.items()}), NONCE)


def _sent(facade: Facade, place: Path) -> float:
    """The runner's way: hashed, sent, hashed and stored there, acknowledged."""
    [file], _ = scan(str(place / "artifacts"))
    begun = time.monotonic()
    transfer(facade, str(place / "artifacts"), file, False, lambda _: True)
    return time.monotonic() - begun


def _copied(place: Path) -> float:
    begun = time.monotonic()
    shutil.copyfile(place / "artifacts" / NAME, place / "copy")
    with (place / "copy").open("rb") as file:
        os.fsync(file.fileno())
    took = time.monotonic() - begun
    (place / "copy").unlink()
    return took


def _hashed(place: Path) -> float:
    begun, digest = time.monotonic(), hashlib.sha256()
    with (place / "artifacts" / NAME).open("rb") as source, (place / "copy").open("wb") as target:
        while piece := source.read(MIB):
            digest.update(piece)
            target.write(piece)
        target.flush()
        os.fsync(target.fileno())
    took = time.monotonic() - begun
    (place / "copy").unlink()
    return took


def _put(place: Path, url: str) -> float:
    store = from_url(url, client_options={"allow_http": True})
    begun = time.monotonic()
    obstore.put(store, "copy", place / "artifacts" / NAME, chunk_size=8 * MIB)
    took = time.monotonic() - begun
    obstore.delete(store, "copy")
    return took


async def _read(address: str, key: str) -> float:
    begun, digest = time.monotonic(), hashlib.sha256()
    path = f"/v1/runs/{RUN.replace('-', '_', 1)}/artifacts/{NAME}"
    async with (
        aiohttp.ClientSession(address, headers={"Authorization": f"Bearer {key}"}) as session,
        session.get(path) as answer,
    ):
        assert answer.status == 200
        async for chunk in answer.content.iter_chunked(MIB):
            digest.update(chunk)
        assert answer.headers["ETag"] == f'"{digest.hexdigest()}"'
    return time.monotonic() - begun
