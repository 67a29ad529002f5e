"""The life of the crew's process: wait for the grant, become an ordinary interpreter, run the crew, say
how it
ended. Called by child.py."""

from __future__ import annotations

import json
import os
import sys

from . import channel, seccomp

_CHANNEL, _GRANT = 3, 4
_OUTPUT_BYTES = 32768


def main(here: str) -> int:
    """`here` is the directory that `crewyard_runtime` is imported from. The process's exit code."""
    seccomp.close()
    task = _task()
    if task is None:
        return 0
    channel.open_on(_CHANNEL)
    app = os.getcwd()
    _become_ordinary(app, here)
    try:
        value = _run(task)
    except BaseException as raised:  # also sys.exit: whatever ends the crew is told
        last = _failed(raised, app)
    else:
        from .output import result

        limits = task.get("limits")
        given = limits.get("output_bytes") if isinstance(limits, dict) else None
        last = result(
            value, given if isinstance(given, int) else _OUTPUT_BYTES, os.path.join(app, "artifacts")
        )
    _flush()
    channel.write(json.dumps(last, ensure_ascii=False).encode())
    return 0 if "result" in last else 1


def _task() -> dict[str, object] | None:
    """What process 1 says on descriptor 4; None where it says nothing: this pod may not run the crew."""
    with os.fdopen(_GRANT, "rb") as pipe:
        line = pipe.readline()
    if not line.endswith(b"\n"):
        return None
    task = json.loads(line)
    return task if isinstance(task, dict) else None


def _become_ordinary(app: str, here: str) -> None:
    """What `python` does at its start and -I -S put off until the grant: paths, site-packages, hooks."""
    sys.flags = _Flags(sys.flags)  # type: ignore[assignment]
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    sys.path.remove(here)
    sys.path[:0] = [app, os.path.join(app, "src")]
    import site

    site.main()
    sys.path.append(here)
    for stream in (sys.stdout, sys.stderr):
        # A line is on its way when it is printed, and no character makes print fail.
        stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)  # type: ignore[union-attr]


class _Flags(tuple):  # type: ignore[type-arg]
    """sys.flags without -I and -S, which no longer hold here: multiprocessing would pass them on."""

    def __new__(cls, flags: object) -> _Flags:
        made = super().__new__(cls, flags)  # type: ignore[arg-type]
        for name in dir(flags):
            if not name.startswith("_") and not callable(value := getattr(flags, name)):
                setattr(made, name, value)
        for name in ("isolated", "no_site", "no_user_site", "ignore_environment"):
            setattr(made, name, 0)
        setattr(made, "safe_path", False)  # noqa: B010 (declared by the original only)
        return made


def _run(task: dict[str, object]) -> object:
    from .entrypoint import load
    from .frameworks import import_watch

    import_watch.start()
    given = task.get("input")
    inputs = given if isinstance(given, dict) else {}
    try:
        found = load(str(task.get("entrypoint") or ""))
    except Exception as error:
        error.__crewyard_import__ = True  # type: ignore[attr-defined]
        raise
    if "logging" in sys.modules:
        from . import logging_bridge

        logging_bridge.build()
    from .call import call

    value = call(found, inputs)
    crewai = sys.modules.get(f"{__package__}.crewai_values")
    return crewai.outcome(value) if crewai else value


def _failed(error: BaseException, app: str) -> dict[str, object]:
    from .entrypoint import NotFound
    from .failure import failure, show

    if isinstance(error, NotFound):
        return {"failure": {"reason": "EntrypointNotFound", "message": str(error)[:1500]}}
    if not isinstance(error, SystemExit):
        _flush()
        show(error)
    return failure("ImportError" if hasattr(error, "__crewyard_import__") else "CrewError", error, app)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # the crew may have closed or replaced it
            continue
