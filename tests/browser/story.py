"""A project with a run of two agents, for tests and pictures of the console."""

import base64
from datetime import timedelta
from typing import Any

from api.store.logs.event_log import NewEvent
from crds.times import format_second
from tests.unit.api.conftest import NOW, ApiTestbed

PROJECT, DEPLOYMENT, RUN, RUN_ID = "tides", "dep-tides", "run-tides", "run_tides"
ACTIVE = "dep-fourth"
SPEC = {"source": {"git": {"url": "https://git.example.com/crews/tides.git"}}}
RESEARCHER, WRITER = "Harbour researcher", "Report writer"
FIND, READ, WRITE = (
    "Find the harbours with the widest tides",
    "Read the tables of each harbour",
    "Write the report",
)
STORY: tuple[tuple[float, str, dict[str, Any]], ...] = (
    (0.1, "log", {"message": "Reading the tables of 2026", "level": "info"}),
    (0.2, "agent.started", {"agent": RESEARCHER, "task": FIND}),
    (
        1.4,
        "usage",
        {"model": "mistral-small", "prompt_tokens": 812, "completion_tokens": 96, "duration_ms": 1150},
    ),
    (1.5, "tool.called", {"agent": RESEARCHER, "tool": "search", "input": {"query": "widest tides"}}),
    (3.2, "tool.result", {"agent": RESEARCHER, "tool": "search", "output": ["Fundy", "Severn", "Granville"]}),
    (4.1, "tool.called", {"agent": RESEARCHER, "tool": "read_table", "input": {"harbour": "Severn"}}),
    (5.0, "log", {"message": "The table of Severn ends in March", "level": "warning"}),
    (5.4, "tool.error", {"agent": RESEARCHER, "tool": "read_table", "error": "no rows after 2026-03-31"}),
    (6.9, "usage", {"model": "mistral-small", "prompt_tokens": 1904, "completion_tokens": 240}),
    (7.0, "agent.completed", {"agent": RESEARCHER, "task": FIND, "output": "Fundy, 16.3 m; Severn, 15.0 m"}),
    (7.1, "agent.started", {"agent": RESEARCHER, "task": READ}),
    (7.4, "tool.called", {"agent": RESEARCHER, "tool": "read_table", "input": {"harbour": "Fundy"}}),
    (9.9, "tool.result", {"agent": RESEARCHER, "tool": "read_table", "output": {"rows": 705}}),
    (11.0, "usage", {"model": "mistral-small", "prompt_tokens": 2210, "completion_tokens": 310}),
    (11.1, "agent.completed", {"agent": RESEARCHER, "task": READ, "output": "705 rows"}),
    (11.2, "agent.started", {"agent": WRITER, "task": WRITE}),
    (12.0, "log", {"message": "Retrying the model after 429", "level": "error"}),
    (
        15.8,
        "usage",
        {"model": "mistral-large", "prompt_tokens": 3120, "completion_tokens": 905, "duration_ms": 3600},
    ),
    (
        16.0,
        "agent.completed",
        {"agent": WRITER, "task": WRITE, "output": "# Tides\n\nThe widest are in Fundy."},
    ),
)
SECONDS = 16.2
CSV = b'harbour,range_m,"source, year"\nFundy,16.3,"tables, 2026"\nSevern,15.0,"tables, 2026"\n'
PDF = b"""%PDF-1.1
1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj
2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 100]>>endobj
trailer<</Root 1 0 R>>
%%EOF
"""
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20"><rect width="40" height="20"/></svg>'
SCHEDULED = {
    "schedules": [{"name": "mornings", "expression": "0 7 * * * UTC", "nextTime": "2026-11-22T07:00:00Z"}]
}
"""The status of the schedule of `add_receiver`."""
REPORT = b"# Tides\n\nThe widest are in **Fundy**.\n\n| harbour | range |\n|---|--:|\n| Fundy | 16.3 |\n"
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAACgAAAAUCAIAAABwJOjsAAAAJElEQVR42mPgL8sbEMQwavGoxaMWj1o8"
    "avGoxaMWj1o8ciwGAO6Q938fsSnRAAAAAElFTkSuQmCC"
)
ARTIFACTS = {
    "report.md": (REPORT, "text/markdown"),
    "harbours.csv": (CSV, "text/csv"),
    "harbours.json": (
        b'[{"harbour": "Fundy", "range": 16.3}, {"harbour": "Severn", "range": 15}]',
        "application/json",
    ),
    "chart.svg": (
        SVG,
        "image/svg+xml",
    ),
    "photo.png": (PNG, "image/png"),
    "report.pdf": (PDF, "application/pdf"),
    "depths.jsonl": (b'{"depth": 4}\n{"depth": 7}\n', "application/octet-stream"),
    "settings.json": (b'{"units":"m"}', "application/json"),
    "notes.txt": (b"Ask the harbour master.\n", "text/plain"),
}


async def add_project(testbed: ApiTestbed) -> None:
    """Add the project with its active deployment."""
    await testbed.add_project(PROJECT, SPEC, activeDeployment=DEPLOYMENT, **SCHEDULED)
    await testbed.add_deployment(DEPLOYMENT, PROJECT)


async def add_run(
    testbed: ApiTestbed, name: str = RUN, *, phase: str | None = "Succeeded", offset: float = 0
) -> Any:
    """Add a run that emitted the story; `phase` None leaves it running."""
    testbed.clock[0] = NOW + timedelta(seconds=offset)
    raw = await testbed.add_run(name, PROJECT, DEPLOYMENT)
    await testbed.claim_run(raw)
    await append(testbed, name, STORY, offset)
    for artifact, (content, content_type) in ARTIFACTS.items():
        await testbed.add_artifact(name, artifact, content, content_type=content_type)
    if phase is not None:
        testbed.clock[0] = NOW + timedelta(seconds=offset + SECONDS)
        result = {
            "outcome": "succeeded",
            "durationMs": int(SECONDS * 1000),
            "output": '{"widest": "Fundy", "range_m": 16.3}',
        }
        error = (
            {"error": {"reason": "CrewError", "message": "ValueError: no tables"}}
            if phase == "Failed"
            else {"result": result}
        )
        await testbed.finish_run(raw, phase, durationMs=int(SECONDS * 1000), **error)
    return raw


async def append(testbed: ApiTestbed, run: str, events: Any, offset: float = 0) -> None:
    """Append events `(seconds, type, data)` as the pod does."""
    made = [
        (kind, {"run_id": run.replace("-", "_", 1), "timestamp": _time(offset + seconds), **data})
        for seconds, kind, data in events
    ]
    async with testbed.store.events.open_writer(run) as log:
        said = log.seq
        await log.append([NewEvent(said + n, kind, data) for n, (kind, data) in enumerate(made, 1)])
    testbed.store.events.notify_appended(run)


def _time(seconds: float) -> str:
    moment = NOW + timedelta(seconds=seconds)
    return f"{format_second(moment)[:-1]}.{moment.microsecond:06d}Z"


async def add_history(testbed: ApiTestbed) -> None:
    """Add deployments and runs of the last days: three that are superseded, and runs of which some failed."""
    await testbed.add_project(PROJECT, SPEC, activeDeployment=ACTIVE, **SCHEDULED)
    for name, message in (
        ("dep-first", "Read tables"),
        ("dep-second", "Add Severn"),
        ("dep-third", "Ask twice"),
    ):
        await testbed.add_deployment(name, PROJECT, "Superseded", {"message": message})
    await testbed.add_deployment(
        ACTIVE, PROJECT, spec={"message": "Name the sources", "gitSha": "4f1d2c7ab09e"}
    )
    for number in range(12):
        phase = "Failed" if number in (3, 8) else "Succeeded"
        await add_past_run(testbed, f"run-past{number:02}", phase, 4000 + number * 1000)


async def add_receiver(testbed: ApiTestbed) -> None:
    """Add a schedule, a receiver of notifications and its pending delivery to the project."""
    chat = {"name": "chat", "url": "https://hooks.example.com/tides", "secretRef": {"name": "chat"}}
    await testbed.update_spec(
        PROJECT,
        notifications=[{**chat, "events": ["run.failed"]}],
        schedules=[{"name": "mornings", "cron": "0 7 * * *", "timeZone": "UTC"}],
    )
    await testbed.add_delivery("msg_first", PROJECT, RUN)


async def add_past_run(testbed: ApiTestbed, name: str, phase: str, milliseconds: int) -> None:
    """Add a run of the active deployment that ended after some time."""
    raw = await testbed.add_run(name, PROJECT, ACTIVE)
    await testbed.claim_run(raw)
    outcome = {"outcome": "succeeded", "durationMs": milliseconds, "output": "1"}
    error = {"reason": "CrewError", "message": "ValueError: no tables"}
    more = {"error": error} if phase == "Failed" else {"result": outcome}
    await testbed.finish_run(raw, phase, durationMs=milliseconds, **more)
