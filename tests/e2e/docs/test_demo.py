"""The demonstration of `make demo` is the first end-to-end test."""

import asyncio
import sys


async def test_demo_succeeds():
    """Slow: a build and two runs."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.e2e.demo",
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await asyncio.wait_for(process.communicate(), 500)
    text = out.decode()
    assert process.returncode == 0, text[-4000:]
    assert "run.started" in text and "run.completed" in text
    assert "report.md" in text
    assert "is superseded" in text
    assert text.index("Timeline") < text.index("Look around")
