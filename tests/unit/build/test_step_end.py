"""End of a step: its result does not wait for a slow API server, and the end of its log is not lost."""

import io
import threading
from pathlib import Path

import pytest

from build import __main__ as step
from build.logs import BuildLog
from tests.unit.build.environment import environment

LINES = ["fetching", "assembling", "done"]


@pytest.mark.parametrize("accepted", [True, False])
def test_result_is_reported_before_a_log_that_the_api_takes_slowly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, accepted: bool
) -> None:
    reported, api_answers = threading.Event(), threading.Event()
    sent: list[str] = []
    timeouts: list[float] = []

    class SlowLog(BuildLog):
        """A log whose API answers only when the step waits for it after its result."""

        def close(self, timeout: float = 0.0) -> None:
            timeouts.append(timeout)
            if reported.is_set():
                api_answers.set()
                super().close(timeout)

    def send(_: int, text: str) -> bool:
        api_answers.wait(60)
        sent.append(text)
        return True

    def run(name: str, settings: object, log: BuildLog) -> tuple[dict[str, str], int]:
        for line in LINES:
            log.line(line)
        return {"outcome": "built"}, step.SUCCEEDED

    def report(settings: object, name: str, result: object) -> bool:
        assert result == {"outcome": "built"} and sent == []
        reported.set()
        return accepted

    for name, value in {**environment(), "CREWYARD_TERMINATION": str(tmp_path / "message")}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(step, "run", run)
    monkeypatch.setattr(step, "report_result", report)
    monkeypatch.setattr(step, "_api_log", lambda *_: SlowLog(send, io.StringIO()))
    assert step.main(["assemble"]) == step.SUCCEEDED
    assert "".join(sent).splitlines() == LINES
    # Without the report the kubelet's follows the exit, which does not wait as long.
    assert timeouts == [1.0, 30.0 if accepted else 5.0]
