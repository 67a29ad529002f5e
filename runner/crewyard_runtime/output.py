"""What the entrypoint returned → the run's output: inline, or as an artifact. Called by `crew`."""

from __future__ import annotations

import json
import os

from .jsonsafe import safe

NAME = "output.json"


def result(value: object, limit: int, artifacts: str) -> dict[str, object]:
    """The child's last word. Above `limit` bytes the output is written into `artifacts` under the name
    given back.

    A file that the crew itself wrote under that name is kept: ours gets the next free number. An output that
    cannot be stored is the failure of the run. Never raises.
    """
    plain = safe(value)
    written = json.dumps(plain, ensure_ascii=False).encode()
    if len(written) <= limit:
        return {"result": plain}
    name = NAME
    for number in range(2, 1000):
        try:
            with open(os.path.join(artifacts, name), "xb") as file:
                file.write(written)
            return {"result": None, "output_artifact": name}
        except FileExistsError:
            name = f"output-{number}.json"
        except OSError as error:
            return _lost(f"{name} could not be written ({error.strerror})", len(written))
    return _lost(f"there is no free name left for {NAME}", len(written))


def _lost(trouble: str, size: int) -> dict[str, object]:
    return {
        "failure": {
            "reason": "ArtifactsLost",
            "message": f"The crew ended well, but its output of {size} bytes is lost: {trouble}. "
            "Return less, or leave room in the artifacts directory.",
        }
    }
