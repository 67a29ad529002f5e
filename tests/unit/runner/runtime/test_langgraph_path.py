"""The directories of langgraph.json on the path. The plan reads the same file: tests/unit/plan/config."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from runner.crewyard_runtime.frameworks.langgraph_path import add_directories

BACKEND = b'{"dependencies": ["./backend"]}'


@pytest.mark.parametrize(
    ("text", "paths", "expected"),
    [
        (BACKEND, ["backend/parts.py"], ["backend"]),
        (b'{"dependencies": [".\\\\backend\\\\lib"]}', ["backend/lib/parts.py"], ["backend/lib"]),
        (b"\xef\xbb\xbf" + BACKEND, ["backend/parts.py"], ["backend"]),
        (BACKEND.decode().encode("utf-16"), ["backend/parts.py"], ["backend"]),
        (BACKEND, ["backend/pyproject.toml", "backend/parts.py"], ["backend"]),
        (b'{"dependencies": ["./all/pack"]}', ["all/pack/__init__.py", "all/pack/setup.cfg"], ["all"]),
        (b'{"dependencies": [".", "../up", "./../up", "httpx"]}', [], []),
        (b'{"dependencies": "./backend"}', ["backend/parts.py"], []),
        (b"\xff", [], []),
    ],
)
def test_directories_are_last_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: bytes, paths: list[str], expected: list[str]
) -> None:
    for path in paths:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("")
    (tmp_path / "langgraph.json").write_bytes(text)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    add_directories(str(tmp_path))
    assert sys.path == [str(tmp_path), *(str(tmp_path / directory) for directory in expected)]
