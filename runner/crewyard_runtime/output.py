"""Converts the entrypoint's return value to the run's output: inline or an artifact. Called by `crew`."""

from __future__ import annotations

import json
import os

from .jsonsafe import json_safe

OUTPUT_NAME = "output.json"


def result(value: object, limit: int, artifacts: str) -> dict[str, object]:
    """Return the final report of a result. Write an output above `limit` bytes into `artifacts`.

    Never overwrites a file of the crew: the name gets the next free number. If the output cannot be stored,
    the run fails. Never raises.
    """
    plain = json_safe(value)
    written = json.dumps(plain, ensure_ascii=False).encode()
    if len(written) <= limit:
        return {"result": plain}
    name = OUTPUT_NAME
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


def _lost_output(problem: str, size: int) -> dict[str, object]:
    return {
        "failure": {
            "reason": "ArtifactsLost",
            "message": f"The crew succeeded, but its output of {size} bytes is lost: {problem}. "
            "Return less, or free space in the artifacts directory.",
        }
    }
