"""Runs an entrypoint that is a program: a script, as `python main.py` would, or a command of click or typer.

The program gets the input as one line of JSON on standard input, and in CREWYARD_INPUT up to 64 KiB; the list
`args` of the input gives its arguments. Its output is the last line that it prints, if that is a JSON object
or array, else null. Called by `crew` and `call`.
"""

from __future__ import annotations

import io
import json
import os
import runpy
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

INPUT_VARIABLE = "CREWYARD_INPUT"

# A longer variable would keep the script from starting other programs.
_MAX_VARIABLE_BYTES = 65536
_MAX_LINE_CHARACTERS = 1 << 24


# Classes of command lines; typer has a copy of click inside.
_COMMAND_PACKAGES = frozenset({"click", "typer"})
_COMMAND_CLASSES = ("BaseCommand", "Command", "Typer")


def run_script(path: str, inputs: dict[str, object]) -> object:
    """Run the script and return its output. Raises what the script raises, but sys.exit(0) is success."""
    if module := _module_of(path):
        return _run_program(
            path, inputs, lambda: runpy.run_module(module, run_name="__main__", alter_sys=True)
        )
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    return _run_program(path, inputs, lambda: runpy.run_path(path, run_name="__main__"))


def _module_of(path: str) -> str | None:
    """Return the module's name if the script imports relatively, which only a module can; else None.

    Imports that a `try` guards do not count: such a script also runs as a file.
    """
    with open(path, "rb") as file:
        source = file.read()
    *packages, name = path.removesuffix(".py").split("/")
    if b"from ." not in source or not packages or not all(part.isidentifier() for part in (*packages, name)):
        return None
    import ast  # only needed here

    try:
        pending: list[ast.AST] = [ast.parse(source)]
    except (SyntaxError, ValueError):
        return None  # which the run of the file reports
    level = 0
    while pending:
        node = pending.pop()
        if isinstance(node, ast.ImportFrom):
            level = max(level, node.level)
        if not isinstance(node, ast.Try):
            pending += ast.iter_child_nodes(node)
    if packages[0] == "src" and level < len(packages):
        packages = packages[1:]  # which is on the path
    return ".".join((*packages, name)) if level else None


def is_command_line(target: object) -> bool:
    """Return whether the target is a command of click, or a Typer."""
    return any(
        kind.__name__ in _COMMAND_CLASSES and kind.__module__.partition(".")[0] in _COMMAND_PACKAGES
        for kind in type(target).__mro__
    )


def run_command_line(command: Any, inputs: dict[str, object]) -> object:
    """Run the command line as a script; its name in messages is the command's."""
    return _run_program(str(getattr(command, "name", None) or "crew"), inputs, command)


def set_arguments(name: str, inputs: dict[str, object]) -> None:
    """Give a function without parameters, such as the command of a project, the arguments in the input."""
    sys.argv = [name, *_arguments(inputs)]


def is_success(error: SystemExit) -> bool:
    """Return whether this is how a command line ends that has done its work."""
    from .failure import modules_of

    return error.code in (None, 0) and not _COMMAND_PACKAGES.isdisjoint(modules_of(error.__traceback__))


def _run_program(name: str, inputs: dict[str, object], main: Callable[[], object]) -> object:
    text = json.dumps(inputs, ensure_ascii=False)
    _provide_input(text)
    if len(text.encode()) <= _MAX_VARIABLE_BYTES:
        os.environ[INPUT_VARIABLE] = text
    sys.argv = [name, *_arguments(inputs)]
    output = _LastLineOutput(sys.stdout)  # type: ignore[arg-type]
    sys.stdout = sys.__stdout__ = output  # type: ignore[misc]
    try:
        main()
    except SystemExit as error:
        if error.code not in (None, 0):
            raise
    _join_threads()
    return output.value()


def _arguments(inputs: dict[str, object]) -> list[str]:
    """Return the arguments of the command line: `args` of the input, if it lists texts or numbers."""
    given = inputs.get("args")
    if not isinstance(given, list) or not all(isinstance(item, (str, int, float)) for item in given):
        return []
    return [json.dumps(item) if isinstance(item, bool) else str(item) for item in given]


def _provide_input(text: str) -> None:
    """Make `text` the content of descriptor 0."""
    descriptor = os.memfd_create("input")
    with open(descriptor, "wb", closefd=False) as file:
        file.write(text.encode("utf-8", "backslashreplace") + b"\n")
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.dup2(descriptor, 0)
    os.close(descriptor)
    sys.stdin.reconfigure(encoding="utf-8")  # type: ignore[union-attr]


def _join_threads() -> None:
    """Wait for the script's threads, as Python does at its end."""
    pools: Any = sys.modules.get("concurrent.futures.thread")
    if pools is not None:
        pools._python_exit()  # ends idle threads, which wait for work
    threading = sys.modules.get("threading")
    for thread in threading.enumerate() if threading else ():
        if thread is not threading.main_thread() and not thread.daemon:  # type: ignore[union-attr]
            thread.join()


class _LastLineOutput(io.TextIOWrapper):
    """Standard output that remembers the last line with text.

    The one that it replaces still works: a logger of a module imported before may write to it.
    """

    def __init__(self, replaced: io.TextIOWrapper) -> None:
        super().__init__(replaced.buffer, encoding="utf-8", errors="backslashreplace", line_buffering=True)
        self._replaced = replaced  # its end would close the buffer
        self._last = ""
        self._parts: list[str] = []  # of the line that has not ended
        self._characters = 0

    def write(self, text: str, /) -> int:
        """Write `text` and remember its last line."""
        *whole, rest = text.split("\n")
        for part in whole:
            self._add(part)
            line = "".join(self._parts)
            self._last = line if line.strip() else self._last
            self._parts, self._characters = [], 0
        self._add(rest)
        return super().write(text)

    def _add(self, part: str) -> None:
        if part and self._characters <= _MAX_LINE_CHARACTERS:
            self._parts.append(part)
            self._characters += len(part)

    def value(self) -> object:
        """Return the last line as JSON if it is an object or array, else None."""
        line = ("".join(self._parts).strip() or self._last).strip()
        if not line.startswith(("{", "[")):
            return None
        try:
            return json.loads(line)
        except (ValueError, RecursionError):
            return None
