"""The commands of the documentation, executed in order, page by page, against the installed service."""

import asyncio
import contextlib
import os
import secrets
import signal
import sys
from pathlib import Path

import pytest
import pytest_asyncio
from _pytest.mark import ParameterSet

from tests.daily import daily
from tests.e2e.demo import GIT_HOST
from tests.e2e.docs.pages import PageNames, script
from tests.testbed.documentation import PAGES, ROOT, blocks, name_of

SECONDS = 900
DAILY = ("README.md", "docs/start.md", "docs/run.md")
"""Pages whose commands `make test` executes."""
RUN = [page for page in PAGES if any("run" in block.marks for block in blocks(page.read_text()))]


def given(page: Path) -> bool:
    """Whether a page takes a deployed project for granted."""
    return any("given" in block.marks for block in blocks(page.read_text()))


def pages(with_project: bool) -> list[ParameterSet]:
    """Return the pages that take a deployed project for granted, or the others."""
    found = [page for page in RUN if given(page) is with_project]
    return daily(found, [page for page in found if name_of(page) in DAILY], name_of)


_PROGRAM = """#!{python}
import sys
sys.path[:0] = [{client!r}]
from crewyard.cli.main import main
main()
"""


async def bash(text: str, directory: Path, environment: dict[str, str]) -> tuple[int, str]:
    """Return the exit code and all output. Its child processes end with it."""
    process = await asyncio.create_subprocess_exec(
        "bash", "-c", text,
        cwd=directory, env=environment, start_new_session=True,
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    try:
        output, _ = await asyncio.wait_for(process.communicate(), SECONDS)
        return process.returncode or 0, output.decode(errors="replace")
    except TimeoutError:
        return -1, f"it took longer than {SECONDS} s"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture(scope="session")
def environment(tmp_path_factory):
    """A home of its own, and the tree's command line as `crewyard`."""
    home = tmp_path_factory.mktemp("home")
    places = home / "bin"
    places.mkdir()
    program = places / "crewyard"
    program.write_text(_PROGRAM.format(python=sys.executable, client=str(ROOT / "client")))
    program.chmod(0o755)
    path = f"{places}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {
        **os.environ,
        "HOME": str(home),
        "PATH": path,
        "PYTHONPATH": str(ROOT / "client"),
        "LANG": "C.UTF-8",
    }


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def names(testbed, git_server):
    """Names for pages that make and remove things themselves; what is left over is removed."""
    made = []

    def one() -> PageNames:
        project = f"docs-{secrets.token_hex(4)}"
        repository = git_server.create(project)
        repository.commit({"main.py": "def kickoff(inputs):\n    return inputs\n"}, "A first commit")
        made.append(project)
        return PageNames(project, git_server.url(project, host=GIT_HOST))

    yield one
    for project in made:
        await testbed.kubectl("delete", "cproj", project, "--ignore-not-found", "--wait=false")
        await testbed.kubectl("delete", "secret", f"{project}-index", "--ignore-not-found")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def deployed(names, environment, tmp_path_factory):
    """The deployed project that some pages take for granted, and the directory it came from."""
    found, directory = names(), tmp_path_factory.mktemp("deployed")
    made = "crewyard init tides && crewyard projects create research && crewyard deploy tides -p research"
    code, output = await bash(found.into(f"set -e; {made}"), directory, environment)
    assert code == 0, output
    return found, directory


@pytest.mark.timeout(SECONDS + 100)
@pytest.mark.parametrize("page", pages(False))
async def test_commands_of_page(page, names, environment, tmp_path):
    """Slow: builds and runs what the page describes."""
    directory = ROOT if page.parent == ROOT else tmp_path
    code, output = await bash(script(blocks(page.read_text()), names()), directory, environment)
    assert code == 0, output[-6000:]


@pytest.mark.timeout(2 * SECONDS + 100)
@pytest.mark.parametrize("page", pages(True))
async def test_commands_of_page_on_deployed_project(page, deployed, environment):
    """Slow: builds and runs what the page describes."""
    mine, directory = deployed
    code, output = await bash(script(blocks(page.read_text()), mine), directory, environment)
    assert code == 0, output[-6000:]
