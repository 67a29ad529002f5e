"""Entrypoints that are files: a script gets the input and gives its last line as output."""

from __future__ import annotations

from typing import Any

import pytest

READ = """
import json, os, sys
given = json.load(sys.stdin)
assert given == json.loads(os.environ["CREWYARD_INPUT"])
print(json.dumps({"got": given}))
"""
ASK = """
import json
if __name__ == "__main__":
    print(json.dumps({"topic": input()}))
"""


@pytest.mark.parametrize(
    ("script", "output"),
    [
        (READ, {"got": {"topic": "té"}}),
        ("print('working')\nprint('[1, 2]')\nprint()", [1, 2]),
        ("import sys\nsys.stdout.write('{\"a\"')\nsys.stdout.write(': 1}')", {"a": 1}),
        ("print('{\"a\": 1}')\nprint('done')", None),
        ("print('{not JSON')", None),
        ("print(42)", None),
        ("pass", None),
        (ASK, {"topic": '{"topic": "té"}'}),
        ("import sys\nprint('{}')\nsys.exit(0)", {}),
        ("import sys, beside\nprint(sys.argv, '\\n', '[\"%s\"]' % beside.NAME)", ["beside"]),
        (
            "import threading, time\n"
            "def work():\n    time.sleep(0.2)\n    print('[\"late\"]')\n"
            "threading.Thread(target=work).start()",
            ["late"],
        ),
        (
            "import json, subprocess, sys\n"
            "code = 'import sys; print(len(sys.stdin.buffer.read()))'\n"
            "child = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)\n"
            "print(json.dumps([child.stdout]))",
            ["17\n"],
        ),
    ],
)  # fmt: skip
async def test_input_and_output_of_a_script(pod: Any, api: Any, script: str, output: object) -> None:
    api.entrypoint, api.input = "tools/report.py", {"topic": "té"}
    pod.crew(script, "tools/report.py")
    pod.crew("NAME = 'beside'", "tools/beside.py")
    ended = await pod.run()
    assert api.result["outcome"] == "succeeded", (api.result, ended.stderr)
    assert api.result["output"] == output


RELATIVE = """
import json, sys
import pilot.names
from . import names
from .deep.depth import DEPTH
print(json.dumps([__name__, __package__, names.NAME, DEPTH, names is pilot.names, sys.argv]))
"""


async def test_a_script_that_imports_relatively_runs_as_a_module(pod: Any, api: Any) -> None:
    api.entrypoint, api.input = "src/pilot/cli.py", {"args": ["tides"]}
    pod.crew(RELATIVE, "src/pilot/cli.py")
    pod.crew("NAME = 'Severn'", "src/pilot/names.py")
    pod.crew("DEPTH = 3", "src/pilot/deep/depth.py")
    ended = await pod.run()
    assert api.result["outcome"] == "succeeded", (api.result, ended.stderr)
    *values, arguments = api.result["output"]
    assert values == ["__main__", "pilot", "Severn", 3, True] and arguments[1:] == ["tides"]


async def test_a_script_in_src_that_imports_relatively_has_src_as_its_package(pod: Any, api: Any) -> None:
    api.entrypoint = "src/cli.py"
    pod.crew("from .names import NAME\nprint([NAME].__repr__().replace(chr(39), chr(34)))", "src/cli.py")
    pod.crew("NAME = 'Severn'", "src/names.py")
    ended = await pod.run()
    assert api.result["outcome"] == "succeeded", (api.result, ended.stderr)
    assert api.result["output"] == ["Severn"]


ARGUMENTS = """
import argparse, json
parser = argparse.ArgumentParser()
parser.add_argument("topic")
parser.add_argument("--depth", type=int, default=1)
print(json.dumps(vars(parser.parse_args())))
"""


async def test_args_of_the_input_are_the_arguments_of_a_script(pod: Any, api: Any) -> None:
    api.entrypoint, api.input = "report.py", {"args": ["spring tides", "--depth", 3]}
    pod.crew(ARGUMENTS, "report.py")
    await pod.run()
    assert api.result["output"] == {"topic": "spring tides", "depth": 3}, api.result


async def test_a_script_without_its_arguments_says_how_to_give_them(pod: Any, api: Any) -> None:
    api.entrypoint, api.input = "report.py", {"args": "spring tides"}
    pod.crew(ARGUMENTS, "report.py")
    ended = await pod.run()
    assert api.result["outcome"] == "failed"
    assert "args of the run's input" in api.result["message"]
    assert b"the following arguments are required: topic" in ended.stdout


COMMAND_LINES = """
import argparse, json, os, sys
import click
from typer import Typer
@click.group()
def cli(): ...
@cli.command()
@click.argument("topic")
@click.option("--depth", default=1)
def find(topic, depth):
    given = json.loads(sys.stdin.readline())["args"]
    print("working")
    print(json.dumps({"topic": topic, "depth": depth, "given": len(given)}))
def start():
    cli()
def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("topic")
    return vars(parser.parse_args())
def fail():
    sys.exit(0)
def make():
    return cli
app = Typer(find)
"""
# As typer's: a Typer makes a command of its copy of click, and calls it.
TYPER = """
class Typer:
    def __init__(self, command): self.command = command
    def __call__(self): self.command()
"""


@pytest.mark.parametrize(
    ("entrypoint", "arguments", "output"),
    [
        ("cli", ["find", "tides", "--depth", 3], {"topic": "tides", "depth": 3, "given": 4}),
        ("find", ["tides"], {"topic": "tides", "depth": 1, "given": 1}),
        ("app", ["tides"], {"topic": "tides", "depth": 1, "given": 1}),
        ("make", ["find", "tides"], {"topic": "tides", "depth": 1, "given": 2}),
        ("parse", ["tides"], {"topic": "tides"}),
        ("start", ["--help"], None),
    ],
)
async def test_command_lines(
    pod: Any, api: Any, entrypoint: str, arguments: list[object], output: object
) -> None:
    api.entrypoint, api.input = f"crew:{entrypoint}", {"args": arguments}
    pod.crew(COMMAND_LINES, "crew.py")
    pod.crew("from .main import Typer", "typer/__init__.py")
    pod.crew(TYPER, "typer/main.py")
    await pod.run()
    assert (api.result["outcome"], api.result["output"]) == ("succeeded", output), api.result


async def test_a_logger_of_a_command_line_keeps_its_stream(pod: Any, api: Any) -> None:
    pod.crew(
        """
        import sys, click
        stream = sys.stdout  # as loguru's logger.add(sys.stdout) does
        @click.command()
        def cli():
            stream.write("begin\\n")
            print('{"found": 1}')
            stream.write("end\\n")
        """
    )
    api.entrypoint = "main:cli"
    await pod.run()
    assert (api.result["outcome"], api.result["output"]) == ("succeeded", {"found": 1})
    assert api.logs() == ["begin", '{"found": 1}', "end"]


@pytest.mark.parametrize(
    ("entrypoint", "words"), [("find", "args of the run's input"), ("fail", "sys.exit(0)")]
)
async def test_failures_of_command_lines(pod: Any, api: Any, entrypoint: str, words: str) -> None:
    api.entrypoint = f"crew:{entrypoint}"
    pod.crew(COMMAND_LINES, "crew.py")
    pod.crew("from .main import Typer", "typer/__init__.py")
    pod.crew(TYPER, "typer/main.py")
    await pod.run()
    assert api.result["reason"] == "CrewError" and words in api.result["message"], api.result


@pytest.mark.parametrize(
    ("script", "reason", "words"),
    [
        ("raise ValueError('no tea left')", "CrewError", ["no tea left", 'report.py", line 1']),
        ("import sys\nsys.exit(3)", "CrewError", ["sys.exit(3)"]),
        ("import nothing_like_it", "ImportError", ["No module named 'nothing_like_it'"]),
        ("def broken(:", "ImportError", ["SyntaxError"]),
        ("input()\ninput('Which tide?')", "InputRequired", ["Which tide?"]),
        ("import asking\nasking.ask()", "InputRequired", ["Go on?"]),
    ],
)
async def test_failures_of_a_script(pod: Any, api: Any, script: str, reason: str, words: list[str]) -> None:
    api.entrypoint = "report.py"
    pod.crew(script, "report.py")
    pod.crew("def ask():\n    return input('Go on?')", "site-packages/asking.py")
    pod.crew("import sys; sys.path.append('site-packages')", "sitecustomize.py")
    await pod.run()
    message = api.result["message"]
    assert (api.result["outcome"], api.result["reason"]) == ("failed", reason), message
    assert [word for word in words if word not in message] == [], message
    assert "crewyard_runtime" not in message
    assert "runpy" not in message


async def test_an_input_too_large_for_a_variable_is_on_standard_input(pod: Any, api: Any) -> None:
    api.entrypoint, api.input = "main.py", {"text": "x" * 200_000}
    pod.crew(
        """
        import json, os, sys
        print(json.dumps([len(json.load(sys.stdin)["text"]), "CREWYARD_INPUT" in os.environ]))
        """
    )
    await pod.run()
    assert api.result["output"] == [200_000, False]


async def test_a_very_long_last_line_of_a_script_is_an_artifact(pod: Any, api: Any) -> None:
    api.entrypoint = "main.py"
    pod.crew("import sys\nfor part in ('[\"', 'x' * 2_000_000, '\"]'):\n    sys.stdout.write(part)")
    await pod.run()
    assert (api.result["outcome"], api.result["output_artifact"]) == ("succeeded", "output.json")
    assert api.artifacts["output.json"][-1].size == 2_000_004


@pytest.mark.parametrize(
    ("entrypoint", "part"),
    [("crew.jsonc", "needs a CrewAI"), ("flow.yaml", "needs a CrewAI"), ("none.yaml", "cannot be read")],
)
async def test_a_definition_without_crewai(pod: Any, api: Any, entrypoint: str, part: str) -> None:
    pod.crew("{}", "crew.jsonc")
    pod.crew("{}", "flow.yaml")
    # Stands for an installed CrewAI that knows no declarations.
    pod.crew("class Flow: ...", "crewai/flow/flow.py")
    api.entrypoint = entrypoint
    await pod.run()
    assert api.result["reason"] == "EntrypointNotFound"
    assert part in api.result["message"]


async def test_a_script_that_leaves_a_pool_of_threads_ends(pod: Any, api: Any) -> None:
    pod.crew("from concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor()\n", "lib.py")
    pod.crew("from lib import pool\nprint(pool.submit(lambda: [1]).result())\n")
    api.entrypoint, api.timeout = "main.py", 20
    await pod.run()
    assert (api.result["outcome"], api.result["output"]) == ("succeeded", [1])
