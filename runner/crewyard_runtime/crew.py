"""The crew's process: wait for the task, set up an ordinary interpreter, run the crew, report the outcome.

Called by child.py.
"""

from __future__ import annotations

import json
import os
import sys

from . import channel, seccomp
from .frameworks.call_options import CallOptions

_CHANNEL, _GRANT = 3, 4
_OUTPUT_BYTES = 32768
_EVENT_BYTES = 65536
_unread = b""  # a waiting pod's first line may arrive together with its task


def main(here: str) -> int:
    """Run the crew and return the exit code. `here`: the directory that contains `crewyard_runtime`."""
    seccomp.install_filter()
    task = _task()
    if task is None:
        return 0
    channel.open_on(_CHANNEL)
    app = os.getcwd()
    process = os.getpid()  # of the end of one that the crew forks, nothing is reported
    prepared: _Entrypoint | None = None
    try:
        if isinstance(first := task.get("prepare"), dict):
            # A pod that was started before its run: import now, then wait for the task.
            _set_up_interpreter(app, here)
            prepared = _prepare(first)
            if (task := _task()) is None:
                return 0
            os.environ["CREWYARD_RUN_ID"] = str(task.get("run_id") or "")
        if traceparent := task.get("traceparent"):
            # Libraries of OpenTelemetry take it as the parent of the crew's own spans.
            os.environ["TRACEPARENT"] = str(traceparent)
        _open_questions(task)
        _limit_events(_limit(task, "event_bytes", _EVENT_BYTES))
        if prepared is None:
            _set_up_interpreter(app, here)
        value = _run(task, prepared)
        if os.getpid() != process:
            return 0
        final_report = _result_report(value, _limit(task, "output_bytes", _OUTPUT_BYTES), app)
    except BaseException as error:  # also sys.exit: report every way to end
        if os.getpid() != process:
            raise
        final_report = _failure_report(error, app)
    crewai = sys.modules.get(f"{__package__}.frameworks.crewai_events")
    if crewai and crewai.declared_files:
        final_report["files"] = list(crewai.declared_files)
    _flush()
    # A lone surrogate in a text becomes "?".
    channel.write(json.dumps(final_report, ensure_ascii=False).encode("utf-8", "replace"))
    return 0 if "result" in final_report else 1


def _open_questions(task: dict[str, object]) -> None:
    if task.get("ask") is True:
        from .questions import ask

        ask.open_on(_GRANT)
    else:
        os.close(_GRANT)


def _limit(task: dict[str, object], name: str, default: int) -> int:
    """Return a limit of the run; the default where the task of an earlier process 1 has none."""
    limits = task.get("limits")
    limit = limits.get(name) if isinstance(limits, dict) else None
    return limit if isinstance(limit, int) else default


def _limit_events(max_bytes: int) -> None:
    if max_bytes < _EVENT_BYTES:
        from .events import limit_events

        limit_events(max_bytes)


def _task() -> dict[str, object] | None:
    """Return the next line of descriptor 4; None at its end without one: this pod may not run the crew."""
    global _unread
    # Answers to questions follow the task only after a question, so nothing of them is read here.
    while b"\n" not in _unread:
        data = os.read(_GRANT, 65536)
        if not data:
            return None
        _unread += data
    line, _, _unread = _unread.partition(b"\n")
    task = json.loads(line)
    return task if isinstance(task, dict) else None


def _set_up_interpreter(app: str, here: str) -> None:
    """Do what -I -S skipped at the start of Python: set up sys.path, site-packages and site hooks."""
    sys.flags = _Flags(sys.flags)  # type: ignore[assignment]
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    sys.path.remove(here)
    sys.path[:0] = [app, os.path.join(app, "src")]
    import site

    site.main()
    sys.path.append(here)
    for stream in (sys.stdout, sys.stderr):
        # Flush every printed line, and never fail on a character.
        stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)  # type: ignore[union-attr]


class _Flags(tuple):  # type: ignore[type-arg]
    """sys.flags without -I and -S, which multiprocessing would pass on to its child processes."""

    def __new__(cls, flags: object) -> _Flags:
        instance = super().__new__(cls, flags)  # type: ignore[arg-type]
        for name in dir(flags):
            if not name.startswith("_") and not callable(value := getattr(flags, name)):
                setattr(instance, name, value)
        for name in ("isolated", "no_site", "no_user_site", "ignore_environment"):
            setattr(instance, name, 0)
        setattr(instance, "safe_path", False)  # noqa: B010 (declared by the original only)
        return instance


class _Entrypoint:
    """An imported entrypoint, with the default inputs that it declares. A script (None) is not imported."""

    def __init__(self, spec: str, target: object = None, defaults: dict[str, object] | None = None) -> None:
        self.spec = spec
        self.target = target
        self.defaults = defaults or {}


def _prepare(task: dict[str, object]) -> _Entrypoint:
    """Do what precedes the call of the entrypoint."""
    from .frameworks import import_watch
    from .questions import question

    question.install()
    import_watch.start()
    spec = str(task.get("entrypoint") or "")
    if task.get("framework") == "langgraph":
        from .frameworks import langgraph_path

        langgraph_path.add_directories(os.getcwd())
    if _is_script(spec):
        return _Entrypoint(spec)
    try:
        entrypoint = _Entrypoint(spec, *_load(spec))
    except (ImportError, SyntaxError) as error:
        error.__crewyard_import__ = True  # type: ignore[union-attr]
        raise
    if "logging" in sys.modules:
        from . import logging_bridge

        logging_bridge.install()
    from . import call  # noqa: F401 (imported here for a pod that waits for its run)

    return entrypoint


def _is_script(spec: str) -> bool:
    return ":" not in spec and spec.endswith(".py")


def _run(task: dict[str, object], prepared: _Entrypoint | None) -> object:
    given = task.get("input")
    inputs = given if isinstance(given, dict) else {}
    if prepared is None or prepared.spec != str(task.get("entrypoint") or ""):
        prepared = _prepare(task)
    if _is_script(prepared.spec):
        return _run_script(prepared.spec, inputs)
    from .call import call
    from .questions import question

    value = call(prepared.target, {**prepared.defaults, **inputs}, _options(task))
    question.check_unanswered(value)
    for name in ("crewai_values", "agents.prompts"):  # loaded only with their frameworks
        if framework := sys.modules.get(f"{__package__}.frameworks.{name}"):
            value = framework.outcome(value)
    return value


def _load(spec: str) -> tuple[object, dict[str, object]]:
    """Return the entrypoint and the default inputs that it declares."""
    from .entrypoint import load

    if ":" not in spec and spec.endswith((".json", ".jsonc", ".yaml", ".yml")):
        from .definition import load_definition

        return load_definition(spec)
    return load(spec), {}


def _run_script(path: str, inputs: dict[str, object]) -> object:
    from .questions import question
    from .script import run_script

    try:
        value = run_script(path, inputs)
    except (ImportError, SyntaxError) as error:
        error.__crewyard_import__ = True  # type: ignore[union-attr]
        raise
    question.check_unanswered(value)
    return value


def _options(task: dict[str, object]) -> CallOptions:
    config, context = task.get("config"), task.get("context")
    return CallOptions(
        os.environ.get("CREWYARD_RUN_ID", ""),
        str(task.get("framework") or "python"),
        config if isinstance(config, dict) else None,
        context if isinstance(context, dict) else None,
    )


def _result_report(value: object, max_bytes: int, app: str) -> dict[str, object]:
    """Return the final report of the entrypoint's value."""
    from .output import result

    return result(value, max_bytes, os.path.join(app, "artifacts"))


def _failure_report(error: BaseException, app: str) -> dict[str, object]:
    from .entrypoint import EntrypointNotFound
    from .failure import failure, print_traceback
    from .questions.question import find

    if isinstance(error, EntrypointNotFound):
        return {"failure": {"reason": "EntrypointNotFound", "message": str(error)[:1500]}}
    if not isinstance(error, SystemExit):
        _flush()
        print_traceback(error)
    if (asked := find(error)) is not None:
        return {"failure": {"reason": "InputRequired", "message": str(asked)}}
    if type(error).__name__ == "InputTimeout" and type(error).__module__.startswith(__package__):
        return {"failure": {"reason": "InputTimeout", "message": str(error)}}
    return failure("ImportError" if hasattr(error, "__crewyard_import__") else "CrewError", error, app)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # the crew may have closed or replaced it
            continue
