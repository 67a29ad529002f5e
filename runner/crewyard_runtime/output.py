"""Converts the entrypoint's return value to the run's output: inline or an artifact. Called by `crew`."""

from __future__ import annotations

import contextlib
import json
import os

from .jsonsafe import NotJsonError, to_json

OUTPUT_NAME = "output.json"


def result(value: object, limit: int, artifacts: str) -> dict[str, object]:
    """Return the final report of a result. Write an output above `limit` bytes into `artifacts`.

    Never overwrites a file of the crew: the name gets the next free number. If the output has no JSON form or
    cannot be stored, the run fails. Never raises.
    """
    try:
        plain = to_json(value)
    except NotJsonError as error:
        return {"failure": {"reason": "CrewError", "message": _not_json(error)}}
    written = json.dumps(plain, ensure_ascii=False).encode()
    if len(written) <= limit:
        return {"result": plain}
    name = OUTPUT_NAME
    with contextlib.suppress(OSError):
        os.makedirs(artifacts, exist_ok=True)  # the crew may have removed it
    for number in range(2, 1000):
        try:
            with open(os.path.join(artifacts, name), "xb") as file:
                file.write(written)
            return {"result": None, "output_artifact": name}
        except FileExistsError:
            name = f"output-{number}.json"
        except OSError as error:
            return _lost_output(f"{name} could not be written ({error.strerror})", len(written))
    return _lost_output(f"there is no free name left for {OUTPUT_NAME}", len(written))


def _not_json(error: NotJsonError) -> str:
    kind = type(error.value)
    module = "" if kind.__module__ in ("builtins", "__main__") else f" of {kind.__module__}"
    place = "".join(f"[{part!r}]" for part in error.path)[:200]
    what = f"The crew returned a value of type {kind.__name__}{module}"
    if place:
        what = f"The crew's output has a value of type {kind.__name__}{module} at {place}"
    why = f": {error.problem}" if error.problem else ", which has no JSON form"
    return f"{what}{why}. {_fix(kind)}"


def _fix(kind: type) -> str:
    if hasattr(kind, "__await__"):
        return "Nothing awaited it: await it in the entrypoint and return its result."
    if hasattr(kind, "__aenter__") or hasattr(kind, "__enter__"):
        return "Nothing entered it: use it in a `with` statement and return what the work gives."
    if kind.__name__ in ("function", "method", "builtin_function_or_method", "type"):
        return "Return the result of calling it."
    if kind.__name__ in ("DataFrame", "Series"):
        return "Return `.to_dict()` of it, or write it into a file in /app/artifacts."
    return (
        "Return text, numbers, lists, dicts, dataclasses or pydantic models, or write it into a file in "
        "/app/artifacts."
    )


def _lost_output(problem: str, size: int) -> dict[str, object]:
    return {
        "failure": {
            "reason": "ArtifactsLost",
            "message": f"The crew succeeded, but its output of {size} bytes is lost: {problem}. "
            "Return less, or free space in the artifacts directory.",
        }
    }
