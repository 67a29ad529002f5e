"""The scripted model of examples/model, in the process of the run; the tool that all agents have."""

import os
import sys
import threading
from pathlib import Path

sys.path.append(str(Path(__file__).parent / "model"))

from server import serve  # type: ignore[import-not-found]

_server = serve(0, "127.0.0.1")
threading.Thread(target=_server.serve_forever, daemon=True).start()
os.environ["OPENAI_BASE_URL"] = f"http://127.0.0.1:{_server.server_port}/v1"
os.environ["OPENAI_API_KEY"] = "unused"


def tide_table(harbour: str) -> str:
    """Return the time of the next high water.

    Args:
        harbour: The name of the harbour.
    """
    return f"high water of {harbour} at 04:15"
