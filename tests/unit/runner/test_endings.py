"""Every way in which a crew can end, and its reported outcome."""

from __future__ import annotations

import importlib
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from runner.crewyard_runtime.hint import hint
from tests.unit.runner.conftest import PodExit, RunnerPod, wait_until
from tests.unit.runner.test_warm import WARM

FAILURES = [
    ("def kickoff():\n    raise ValueError('no tea left')", "CrewError",
     ["ValueError: no tea left", "line 2, in"]),
    ("import sys\ndef kickoff():\n    sys.exit(0)", "CrewError",
     ["sys.exit(0)", "Return from the entrypoint"]),
    ("import os\ndef kickoff():\n    os._exit(3)", "CrewError", ["exit code 3", "os._exit"]),
    ("import os\ndef kickoff():\n    os._exit(0)", "CrewError", ["exit code 0"]),
    ("import os\ndef kickoff():\n    os.kill(os.getpid(), 9)", "CrewError", ["killed by SIGKILL"]),
    ("import os\ndef kickoff():\n    os.abort()", "CrewError", ["killed by SIGABRT"]),
    ("import nothing_like_it\ndef kickoff(): pass", "ImportError",
     ["No module named 'nothing_like_it'", "main.py", "Add the package that has it", "--requirement NAME)"]),
    ("import bs4.element\ndef kickoff(): pass", "ImportError",
     ["Add beautifulsoup4 to the crew's", "projects set PROJECT --requirement beautifulsoup4)"]),
    ("import click.nothing\ndef kickoff(): pass", "ImportError",
     ["click 8.", "does not have it: the source needs another version"]),
    ("def kickoff():\n    from click import Nothing", "CrewError", ["click 8.", "another version"]),
    ("try:\n    import bs4\nexcept ImportError:\n    raise RuntimeError('no soup')", "CrewError",
     ["no soup", "Add beautifulsoup4 to"]),
    ("def kickoff(:", "ImportError", ["SyntaxError"]),
    ("import os\nkey = os.environ['NO_SUCH_KEY']", "CrewError",
     ["KeyError: 'NO_SUCH_KEY'", "`crewyard env set -p PROJECT NO_SUCH_KEY`", "line 2"]),
    ("raise RuntimeError('no tea at import')", "CrewError", ["RuntimeError: no tea at import"]),
    ("raise ImportError('no tea')", "ImportError", ["no tea", "line 1"]),
    ("def kickoff():\n    raise ValueError('Missing credentials. Set OPENAI_API_KEY or pass api_key')",
     "CrewError", ["`crewyard env set -p PROJECT OPENAI_API_KEY`"]),
    ("def kickoff():\n    raise TimeoutError(110, 'Connection timed out')", "CrewError",
     ["a network policy blocks it", "spec.run.egress"]),
    ("import socket\ndef kickoff():\n    socket.create_connection(('127.0.0.1', 1))", "CrewError",
     ["Nothing listens at that address", "localhost is the run's own pod", "spec.run.egress", "line 3"]),
    ("def kickoff():\n    refused = ConnectionRefusedError(111, 'Connection refused')\n"
     "    raise OSError('All connection attempts failed') from ExceptionGroup('2', [refused])", "CrewError",
     ["localhost is the run's own pod"]),
    ("from google.adk.agents import Agent\ndef kickoff(): pass", "ImportError",
     ["Add google-adk to the crew's"]),
    ("from llama_index.llms.openai import OpenAI\ndef kickoff(): pass", "ImportError",
     ["has the module llama_index.llms.openai. Add llama-index-llms-openai to the crew's"]),
    ("import socket\ndef kickoff():\n    socket.getaddrinfo('no.such.host.invalid', 443)", "CrewError",
     ["A host name has no address", "line 3"]),
    ("class ConnectTimeoutError(Exception): pass\ndef kickoff():\n"
     "    raise ConnectTimeoutError('[Errno -2] Name or service not known')", "CrewError",
     ["A host name has no address"]),
    ("import ctypes\nctypes.CDLL('libtides2.so.1')", "CrewError",
     ["lacks the library libtides2.so.1", 'packages = ["libtides2-1"]']),
    ("raise ImportError('libGL.so.1: cannot open shared object file: No such file')", "ImportError",
     ["lacks the library libGL.so.1", 'packages = ["libgl1"]']),
    ("import subprocess\ndef kickoff():\n    subprocess.run(['no-such-program'])", "CrewError",
     ["no program no-such-program", "[build] packages", "line 3"]),
    ("def kickoff():\n    open('tides.csv')", "CrewError", ["No such file or directory: 'tides.csv'\n"]),
    ("def kickoff():\n    return {'rows': [1, object()]}", "CrewError",
     ["of type object at ['rows'][1], which has no JSON form", "dataclasses"]),
    ("def kickoff():\n    return kickoff", "CrewError",
     ["of type function", "Return the result of calling it."]),
    ("async def later(): pass\ndef kickoff():\n    return {'a': later()}", "CrewError",
     ["coroutine", "await it"]),
    ("import contextlib\n@contextlib.contextmanager\ndef opened():\n    yield 1\ndef kickoff():\n"
     "    return [opened()]", "CrewError", ["_GeneratorContextManager of contextlib", "`with` statement"]),
    ("def kickoff():\n    a = []\n    a.append(a)\n    return a", "CrewError", ["it contains itself"]),
    ("class Rows(dict):\n    def items(self):\n        raise ValueError('no tea left')\n"
     "def kickoff():\n    return Rows()", "CrewError", ["no tea left"]),
    ("class Row:\n    def model_dump(self):\n        raise ValueError('no tea \\ud83d')\n"
     "def kickoff():\n    return Row()", "CrewError", ["reading it failed with ValueError: no tea ?"]),
    ("def kickoff():\n    return input('Your name? ')", "InputRequired",
     ["asked a person 'Your name?'", "run's input"]),
    ("def kickoff():\n    try:\n        input('Ready? ')\n    except EOFError as error:\n"
     "        raise RuntimeError('no terminal') from error", "InputRequired", ["'Ready?'"]),
    ("import asyncio\nasync def ask():\n    input('Ready?')\nasync def kickoff():\n"
     "    async with asyncio.TaskGroup() as tasks:\n        tasks.create_task(ask())", "InputRequired",
     ["'Ready?'"]),
    ("import asyncio, os\nasync def key():\n    os.environ['NO_SUCH_KEY']\nasync def kickoff():\n"
     "    async with asyncio.TaskGroup() as tasks:\n        tasks.create_task(key())", "CrewError",
     ["in a TaskGroup (1 sub-exception)\nwith KeyError: 'NO_SUCH_KEY'\n",
      "`crewyard env set -p PROJECT NO_SUCH_KEY`", "async with"]),
    # As with `with open(os.devnull, "w") as sys.stderr`, after the block.
    ("import sys\ndef kickoff():\n    sys.stderr = open('log.txt', 'w')\n    sys.stderr.close()\n"
     "    raise ValueError('no tea left')", "CrewError", ["ValueError: no tea left", "line 5, in"]),
    # As a team of AutoGen does, which gives the text of the exception to another agent.
    ("def kickoff():\n    try:\n        input('Ready?')\n    except EOFError as error:\n"
     "        text = f'no user: {error}'\n    raise RuntimeError(text)", "InputRequired", ["'Ready?'"]),
    ("def kick_off(): pass", "EntrypointNotFound", ["Did you mean 'kick_off'?", "configuration file"]),
    ("kickoff = 5", "EntrypointNotFound", ["int", "neither kickoff nor invoke"]),
    ("def kickoff(a, b): pass", "EntrypointNotFound", ["requires a, b"]),
    ("import settings\ndef kickoff(): pass", "ImportError", ["No module named 'settings'"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("module", "package"),
    [
        ("llama_index.readers.file.docs", "llama-index-readers-file"),
        ("llama_index", "llama-index"),
        ("llama_index.core.agent", "llama-index-core"),
        ("google.genai.types", "google-genai"),
        ("google.cloud.storage.blob", "google-cloud-storage"),
        ("langchain_openai.chat", "langchain-openai"),
        ("yaml", "PyYAML"),
        ("autogen", "ag2~=0.9"),
        ("agents", "openai-agents"),
        ("strands.models", "strands-agents"),
        ("dspy", "dspy"),
        ("harbour", "the package that has it"),
    ],
)
def test_the_package_of_a_missing_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, package: str
) -> None:
    # Another test may have imported it.
    monkeypatch.delitem(sys.modules, module.partition(".")[0], raising=False)
    error = ModuleNotFoundError(f"No module named {module!r}", name=module)
    assert f" Add {package} to the crew's dependencies" in hint(error, str(tmp_path))


@pytest.mark.parametrize(
    ("text", "package"),
    [
        ('Azure is not available, to install: uv add "crewai[azure-ai]"', "'crewai[azure-ai]'"),
        ("Please install it with `pip install -U tide-tools`.", "tide-tools"),
        ("Run pip3 install 'tide.tools>=2' first", "tide.tools"),
        ("Run: pip install tide-tools.", "tide-tools"),
        ("pip install -r requirements.txt", "the package that has it"),
        ("Please pip install it", "the package that has it"),
        ("Please pip install the extra of tides", "the package that has it"),
        ("pip install git+https://example.com/tides", "the package that has it"),
        ("pip install https://example.com/tides", "the package that has it"),
        ("Please install tide-tools", "the package that has it"),
    ],
)
def test_the_package_that_an_error_names(tmp_path: Path, text: str, package: str) -> None:
    error = ImportError(text)
    error.__cause__ = ModuleNotFoundError("No module named 'harbour'", name="harbour")
    said = hint(error, str(tmp_path))
    assert f"has the module harbour. Add {package} to" in said
    assert f"--requirement {package if 'that' not in package else 'NAME'})" in said


def test_the_package_of_an_earlier_error_is_another(tmp_path: Path) -> None:
    error = ModuleNotFoundError("No module named 'harbour'", name="harbour")
    error.__cause__ = ImportError("tides needs more: `pip install tide-tools`")
    assert "Add the package that has it" in hint(error, str(tmp_path))


@pytest.mark.parametrize("directory", ["site-packages", "dist-packages"])
def test_an_installed_module_without_the_name_is_of_another_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, directory: str
) -> None:
    """Debian's Python, as in images of crews, installs into dist-packages."""
    (tmp_path / directory).mkdir()
    (tmp_path / directory / "tidelib.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path / directory))
    monkeypatch.delitem(sys.modules, "tidelib", raising=False)
    importlib.import_module("tidelib")
    error = ImportError("cannot import name 'Tide' from 'tidelib'", name="tidelib")
    assert "does not have it: the source needs another version" in hint(error, str(tmp_path / "app"))


@pytest.mark.parametrize(
    "response",
    [
        "400 INVALID_ARGUMENT. {'error': {'code': 400, 'message': 'API key not valid. Please pass a valid "
        "API key.', 'status': 'INVALID_ARGUMENT', 'details': [{'reason': 'API_KEY_INVALID'}]}}",
        'GeminiException - b\'{"error": {"message": "models/x is not found", "status": "NOT_FOUND"}}\'',
        "A ToolMessage is required. Visit: https://docs.langchain.com/langgraph/errors/INVALID_CHAT_HISTORY",
        '_InactiveRpcError: status = StatusCode.NOT_FOUND details = "model not found"',
    ],
)
def test_a_status_of_a_service_is_no_variable(tmp_path: Path, response: str) -> None:
    assert hint(RuntimeError(response), str(tmp_path)) == ""
    assert "The variable TEA_API_KEY is" in hint(ValueError(response + " Set TEA_API_KEY."), str(tmp_path))


@pytest.mark.parametrize(
    "text",
    [
        "Template variable 'port' not found in inputs dictionary",
        "Missing required template variable 'Template variable 'port' not found in inputs' in description",
    ],
)
def test_a_missing_input_of_a_task_is_named(tmp_path: Path, text: str) -> None:
    said = hint(ValueError(text), str(tmp_path))
    assert "has no port" in said and """crewyard run PROJECT --input '{"port": "…"}'""" in said


class TideSettings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="tide_")

    port: int = 1
    api_key: str


class AliasedSettings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="tide_", case_sensitive=True)

    key: str = Field(validation_alias="Harbour_Key")


@pytest.mark.parametrize(
    ("settings", "name"), [(TideSettings, "TIDE_API_KEY"), (AliasedSettings, "Harbour_Key")]
)
def test_a_required_setting_of_pydantic_is_a_variable(
    tmp_path: Path, settings: type[BaseSettings], name: str
) -> None:
    with pytest.raises(ValidationError) as missing:
        settings()
    assert f"The variable {name} is not set" in hint(missing.value, str(tmp_path))


def test_a_wrong_setting_of_pydantic_is_no_missing_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDE_API_KEY", "secret")
    monkeypatch.setenv("TIDE_PORT", "east")
    with pytest.raises(ValidationError) as wrong:
        TideSettings()
    assert hint(wrong.value, str(tmp_path)) == ""


async def test_a_module_of_the_source_is_not_looked_for_in_an_index(pod: Any, api: Any) -> None:
    pod.crew("X = 1\n", "crews/tides/settings.py")
    pod.crew("import settings\ndef kickoff(): pass")
    await pod.run()
    assert "No module named 'settings'" in api.result["message"]
    assert "--requirement" not in api.result["message"]


@pytest.mark.parametrize(("crew", "reason", "words"), FAILURES, ids=range(len(FAILURES)))
async def test_failures_have_a_reason_and_the_next_step(
    pod: Any, api: Any, crew: str, reason: str, words: list[str]
) -> None:
    pod.crew(crew)
    ended = await pod.run()
    assert ended.code == 0
    assert (api.result["outcome"], api.result["reason"]) == ("failed", reason)
    message = api.result["message"]
    assert [word for word in words if word not in message] == [], message
    assert len(message.encode()) <= 2048
    assert "crewyard_runtime" not in message
    assert (ended.termination["reason"], ended.termination["reported"]) == (reason, True)


async def test_the_reason_is_not_repeated_in_the_message(pod: Any, api: Any) -> None:
    pod.crew("raise ImportError('no tea')")
    await pod.run()
    assert api.result["message"].startswith("no tea\n")


async def test_a_missing_variable_names_the_other_unset_ones_of_the_example(pod: Any, api: Any) -> None:
    pod.crew("import os\ndef kickoff():\n    return os.environ['TEA_API_KEY']")
    (pod.app / ".env.example").write_text("# comment\nTEA_API_KEY=\nexport TEA_URL=x\nHOME=/root\n")
    await pod.run()
    assert "Of the variables in .env.example, not set: TEA_API_KEY, TEA_URL." in api.result["message"]


async def test_a_question_that_the_crew_handles_does_not_fail_the_run(pod: Any, api: Any) -> None:
    pod.crew(
        """
        def kickoff():
            try:
                return input("Continue? ")
            except EOFError:
                return "yes"
        """
    )
    await pod.run()
    assert (api.result["outcome"], api.result["output"]) == ("succeeded", "yes")


async def test_a_question_that_a_package_swallows_fails_the_run(pod: Any, api: Any) -> None:
    """As CrewAI's Flow.ask does, which then returns None."""
    pod.crew(
        """
        def ask(question):
            try:
                return input(question)
            except Exception:
                return None
        """,
        "lib/site-packages/asking.py",
    )
    pod.crew(
        """
        import sys
        sys.path.append("lib/site-packages")
        import asking
        def kickoff():
            return asking.ask("Which tea? ")
        """
    )
    await pod.run()
    assert (api.result["outcome"], api.result["reason"]) == ("failed", "InputRequired")
    assert "asked a person 'Which tea?'" in api.result["message"]


@pytest.mark.parametrize("entrypoint", ["nowhere:kickoff", "main", ":x", "main.deeper:kickoff"])
async def test_an_entrypoint_that_does_not_exist(pod: Any, api: Any, entrypoint: str) -> None:
    pod.crew("def kickoff(): pass")
    api.entrypoint = entrypoint
    await pod.run()
    assert api.result["reason"] == "EntrypointNotFound"
    assert entrypoint in api.result["message"]


async def run_imported(pod: RunnerPod, api: Any, **variables: str) -> PodExit:
    """Run a crew whose import, which writes the file imported, is over before the grant."""
    await pod.start(**WARM, **variables)
    await wait_until((pod.app / "imported").exists)
    api.bound.set()
    return await pod.wait()


async def test_the_timeout_starts_at_the_grant_and_keeps_output(pod: Any, api: Any) -> None:
    pod.crew(
        """
        import time
        open("imported", "w").close()
        def kickoff():
            print("started")
            time.sleep(300)
        """
    )
    api.timeout = 4
    ended = await run_imported(pod, api, STOP_GRACE="120")
    assert (api.result["reason"], api.logs("info")) == ("DeadlineExceeded", ["started"])
    # The crew handles SIGTERM, so the runner does not wait for the grace period.
    assert 4000 <= api.result["duration_ms"] < 120_000
    assert "Raise `timeout`" in api.result["message"]
    assert ended.code == 0


async def test_a_crew_that_ignores_the_timeout_is_killed(pod: Any, api: Any) -> None:
    pod.crew(
        """
        import signal, time
        signal.signal(15, signal.SIG_IGN)
        open("imported", "w").close()
        def kickoff():
            time.sleep(300)
        """
    )
    api.timeout = 1
    await run_imported(pod, api)
    assert api.result["reason"] == "DeadlineExceeded"
    assert 1600 <= api.result["duration_ms"] < 200_000


async def test_stop_reports_stopped_with_events_and_a_partial_artifact(pod: Any, api: Any) -> None:
    pod.crew(
        """
        import time
        def kickoff():
            file = open("artifacts/half.txt", "w")
            file.write("half")
            file.flush()
            print("ready")
            time.sleep(600)
        """
    )
    await pod.start()
    await wait_until(lambda: api.logs() == ["ready"])
    pod.terminate()
    ended = await pod.wait()
    assert (ended.code, api.result["outcome"], api.result["reason"]) == (0, "stopped", None)
    assert [(version.body, version.partial) for version in api.artifacts["half.txt"]] == [(b"half", True)]
    assert ended.seconds < 120


async def test_a_crew_that_finishes_within_the_grace_period_succeeds(pod: Any, api: Any) -> None:
    pod.crew(
        """
        import signal, time
        def kickoff():
            asked = []
            signal.signal(signal.SIGTERM, lambda *_: asked.append(1))
            print("ready")
            while not asked:
                time.sleep(0.01)
            return "tidied up"
        """
    )
    await pod.start(STOP_GRACE="60")
    await wait_until(lambda: api.logs() == ["ready"])
    pod.terminate()
    await pod.wait()
    assert (api.result["outcome"], api.result["output"]) == ("succeeded", "tidied up")


async def test_a_crew_that_exits_on_sigterm_is_stopped(pod: Any, api: Any) -> None:
    pod.crew(
        """
        import signal, sys, time
        def kickoff():
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
            print("ready")
            time.sleep(60)
        """
    )
    await pod.start(STOP_GRACE="60")
    await wait_until(lambda: api.logs() == ["ready"])
    pod.terminate()
    await pod.wait()
    assert api.result["outcome"] == "stopped"


@pytest.mark.parametrize("end", ["raise SystemExit(3)", "raise ValueError('no tea')", "return 'child'"])
async def test_a_forked_process_does_not_end_the_run(pod: Any, api: Any, end: str) -> None:
    pod.crew(
        f"""
        import os
        def kickoff():
            child = os.fork()
            if child == 0:
                {end}
            return ["parent", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])]
        """
    )
    await pod.run()
    code = {"raise SystemExit(3)": 3, "return 'child'": 0}.get(end, 1)
    assert (api.result["outcome"], api.result["output"]) == ("succeeded", ["parent", code])


async def test_no_process_of_the_crew_survives(pod: Any, api: Any) -> None:
    # Of this test alone: another checkout may run its own at the same time.
    duration = f"600.{secrets.randbelow(10**9):09}"
    pod.crew(
        """
        import os, subprocess
        def kickoff():
            inside = subprocess.Popen(["sleep", "61"])
            away = subprocess.Popen(["sleep", "62"], start_new_session=True)
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    os.execvp("sleep", ["sleep", "DURATION"])
                os._exit(0)
            os.wait()
            return [inside.pid, away.pid]
        """.replace("DURATION", duration)
    )
    await pod.run()
    assert api.result["outcome"] == "succeeded", api.result
    assert not any(Path(f"/proc/{pid}").exists() for pid in api.result["output"])
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            assert process.read_bytes() != f"sleep\0{duration}\0".encode()
        except OSError:
            continue


@pytest.mark.parametrize("version", [1, 2])
async def test_memory_near_the_limit_kills_the_crew(pod: Any, api: Any, tmp_path: Path, version: int) -> None:
    group = tmp_path / "cgroup"
    at = group if version == 2 else group / "memory"
    at.mkdir(parents=True)
    names = ("memory.current", "memory.max", "memory.events") if version == 2 else (
        "memory.usage_in_bytes", "memory.limit_in_bytes", "memory.oom_control")  # fmt: skip
    for name, text in zip(names, ("1000000", "104857600", "oom_kill 0\n"), strict=True):
        (at / name).write_text(text)
    (at / "memory.stat").write_text("inactive_file 1000\nactive_file 1000\n")
    pod.crew(
        f"""
        import time
        def kickoff():
            print("ready", flush=True)
            open({str(at / names[0])!r}, "r+").write("104000000")  # never empty, like the kernel's file
            time.sleep(60)
        """
    )
    await pod.run(CGROUP=str(group))
    assert (api.result["reason"], api.logs()) == ("OOMKilled", ["ready"])
    assert "100 MiB" in api.result["message"]


async def test_an_oom_kill_by_the_kernel_is_recognised(pod: Any, api: Any, tmp_path: Path) -> None:
    group = tmp_path / "cgroup"
    group.mkdir()
    for name, text in {
        "memory.current": "1",
        "memory.max": "max",
        "memory.events": "oom 0\noom_kill 0\n",
    }.items():
        (group / name).write_text(text)
    events = str(group / "memory.events")
    pod.crew(
        f"""
        import os
        def kickoff():
            open({events!r}, "w").write("oom 1\\noom_kill 1\\n")
            os.kill(os.getpid(), 9)
        """
    )
    await pod.run(CGROUP=str(group))
    assert api.result["reason"] == "OOMKilled"


async def test_the_environment_of_the_crews_process(pod: Any, api: Any) -> None:
    """No token, no CREWYARD_ variable but the run id, and no access to process 1."""
    pod.environ = {"MY_KEY": "given"}
    pod.crew(
        """
        import os, sys
        def kickoff():
            def read(path):
                try:
                    return open(path, "rb").read().decode("latin-1")
                except OSError as error:
                    return type(error).__name__
            return {
                "ours": {k: v for k, v in os.environ.items() if k.startswith("CREWYARD")},
                "given": os.environ.get("MY_KEY"), "cwd": os.getcwd(), "path": sys.path[:2],
                "last": sys.path[-1],
                "group": os.getpgid(0) == os.getpid(), "flags": [sys.flags.isolated, sys.flags.no_site],
                "owner": os.stat(f"/proc/{os.getppid()}/environ").st_uid,
                "channel_inherited": os.get_inheritable(3),
            }
        """
    )
    await pod.run()
    output = api.result["output"]
    assert (output["ours"], output["given"]) == ({"CREWYARD_RUN_ID": "run_01abc"}, "given")
    assert (output["cwd"], output["path"]) == (str(pod.app), [str(pod.app), str(pod.app / "src")])
    assert output["last"].endswith("/runner")
    assert (output["group"], output["flags"], output["owner"], output["channel_inherited"]) == (
        True,
        [0, 0],
        0,
        False,
    )


@pytest.fixture
def public_path() -> Iterator[Path]:
    """Yield a directory that every user can read. pytest closes the parent of all `tmp_path` to others."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        yield Path(directory)


@pytest.mark.skipif(os.getuid() != 0, reason="needs a second user")
async def test_a_crew_that_is_not_root_cannot_access_process_1(api: Any, public_path: Path) -> None:
    pod = RunnerPod(public_path, api)
    os.chown(pod.app / "artifacts", 65532, 65532)
    pod.crew(
        """
        import ctypes, os
        def kickoff():
            found = []
            for name in ("environ", "mem", "maps", "fd/0", "cwd"):
                try:
                    path = f"/proc/{os.getppid()}/{name}"
                    os.readlink(path) if name in ("fd/0", "cwd") else open(path, "rb").close()
                    found.append(name)
                except PermissionError:
                    pass
            libc = ctypes.CDLL(None, use_errno=True)
            buffer = ctypes.create_string_buffer(8)
            place = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), 8)
            there = (ctypes.c_size_t * 2)(id(None), 8)
            if libc.ptrace(16, os.getppid(), 0, 0) == 0:
                found.append("ptrace")
            if libc.process_vm_readv(os.getppid(), place, 1, there, 1, 0) > 0:
                found.append("process_vm_readv")
            if libc.syscall(438, os.pidfd_open(os.getppid()), 0, 0) >= 0:
                found.append("pidfd_getfd")
            return found
        """
    )
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin")
    code = Path(__file__).parents[3] / "runner/child.py"
    reads = [python, "-c", f"open({str(code)!r})"] if python else ["false"]
    if subprocess.run(reads, user=65532, capture_output=True).returncode != 0:
        pytest.skip("the other user cannot read the runner here")
    await pod.start(uid="65532", python=python)
    await pod.wait()
    assert api.result["output"] == []


@pytest.mark.parametrize(
    "name", ["child", "claim", "events", "runner", "settings", "signals", "queue_", "pid1"]
)
async def test_the_crews_own_modules_take_precedence(pod: Any, api: Any, name: str) -> None:
    pod.crew("value = 'mine'", f"{name}.py")
    pod.crew(f"import {name}\nfrom crewyard_runtime import emit\ndef kickoff():\n    return {name}.value")
    await pod.run()
    assert api.result["output"] == "mine"
