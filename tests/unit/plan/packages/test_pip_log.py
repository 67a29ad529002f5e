"""Real output of pip and the builder, and the resulting errors."""

import pytest

from plan.packages.dockerfile import FROM_PYLOCK
from plan.packages.pip_log import INDEX_UNREACHABLE, dependency_failure

CONFLICT = """\
ERROR: Cannot install a==1.0 and b==1.0 because these package versions have conflicting dependencies.

The conflict is caused by:
    a 1.0 depends on c==1
    b 1.0 depends on c==2

ERROR: ResolutionImpossible: for help visit https://pip.pypa.io/en/latest/topics/dependency-resolution/
error building image: failed to execute command: waiting for process to exit: exit status 1
"""
MISSING = """\
ERROR: Could not find a version that satisfies the requirement nope==3 (from versions: none)
ERROR: No matching distribution found for nope==3
"""
NO_PYTHON = """\
ERROR: Ignored the following versions that require a different python version: 2.0 Requires-Python >=3.12
ERROR: Could not find a version that satisfies the requirement new==2.0 (from versions: 1.0)
ERROR: No matching distribution found for new==2.0
"""
UNREACHABLE = """\
WARNING: Retrying (Retry(total=0, connect=None, read=None, redirect=None, status=None)) after connection \
broken by 'NewConnectionError('<pip._vendor.urllib3.connection.HTTPConnection object at 0x7fbf74bd2c90>: \
Failed to establish a new connection: [Errno 111] Connection refused')': /simple/x/
ERROR: Could not find a version that satisfies the requirement x (from versions: none)
ERROR: No matching distribution found for x
"""
HASHES = """\
ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE. If you have updated the package \
versions, please update the hashes. Otherwise, examine the package contents carefully; someone may have \
tampered with them.
    a==1.0 from file:///w/a-1.0-py3-none-any.whl (from -r r.txt (line 1)):
        Expected sha256 0000000000000000000000000000000000000000000000000000000000000000
"""
COMPILER = """\
      building 'e' extension
      creating build/temp.linux-x86_64-cpython-311
      x86_64-linux-gnu-gcc -Wsign-compare -DNDEBUG -g -fwrapv -O2 -Wall -c e.c -o build/temp/e.o
      error: command 'x86_64-linux-gnu-gcc' failed: No such file or directory
      [end of output]
  note: This error originates from a subprocess, and is likely not a problem with pip.
  ERROR: Failed building wheel for ext
ERROR: Could not build wheels for ext, which is required to install pyproject.toml-based projects
"""
SETUP = """\
        File "<string>", line 1, in <module>
      RuntimeError: no
      [end of output]
  note: This error originates from a subprocess, and is likely not a problem with pip.
error: metadata-generation-failed

× Encountered error while generating package metadata.
"""
OWN = """\
Processing /workspace/tree
  Preparing metadata (setup.py): finished with status 'error'
  error: subprocess-exited-with-error

  × python setup.py egg_info did not run successfully.
  │ exit code: 1
  ╰─> [1 lines of output]
      the tide table is missing
      [end of output]

  note: This error originates from a subprocess, and is likely not a problem with pip.
error: metadata-generation-failed
"""
FLAT = """\
      error: Multiple top-level packages discovered in a flat-layout: ['one', 'two'].
      To avoid accidental inclusion of unwanted files or directories,
error: metadata-generation-failed
"""


UV_MISSING = """\
error: No solution found when resolving dependencies
  cause: Because there is no version of six==99 and you require six==99, we can conclude that your \
requirements are unsatisfiable.
"""
UV_UNKNOWN = """\
error: No solution found when resolving dependencies
  cause: Because nope was not found in the package registry and you require nope==9, we can conclude that \
your requirements are unsatisfiable.
"""
UV_CONFLICT = """\
error: No solution found when resolving dependencies
  cause: Because a==1 depends on c>=1,<2 and you require a==1, we can conclude that you require c>=1,<2.
         And because you require c==3, we can conclude that your requirements are unsatisfiable.
"""
UV_PYTHON = """\
error: No solution found when resolving dependencies
  cause: Because the current Python version (3.11.7) does not satisfy Python>=3.12 and new==2 depends on \
Python>=3.12, we can conclude that new==2 cannot be used.
         And because you require new==2, we can conclude that your requirements are unsatisfiable.
"""
UV_ABI = """\
error: No solution found when resolving dependencies
  cause: Because old==2.3.0 has no wheels with a matching Python ABI tag (e.g., `cp311`) and you require \
old==2.3.0, we can conclude that your requirements are unsatisfiable.
"""
UV_HASH = """\
error: Failed to download `idna==3.4`
  cause: Hash mismatch for `idna==3.4`
"""
UV_HASHLESS = (
    "error: In `--require-hashes` mode, all requirements must have a hash, but none were provided for: a==1\n"
)
UV_UNREACHABLE = """\
error: Request failed after 3 retries in 12.3s
  cause: Failed to fetch: http://127.0.0.1:1/simple/toml/
  cause: error sending request for url (http://127.0.0.1:1/simple/toml/)
  cause: client error (Connect)
"""
UV_INVALID = """\
error: Couldn't parse requirement in `tmp/crewyard/requirements.txt` at position 0
  cause: no such comparison operator "=!", must be one of ~= == != <= >= < > ===
         a=!1
          ^^^
"""
UV_OWN = """\
error: The build backend returned an error
  cause: Call to `setuptools.build_meta:__legacy__.get_requires_for_build_wheel` failed (exit status: 1)

         [stderr]
           File "<string>", line 2, in <module>
         RuntimeError: the tide table is missing
error building image: failed to execute command: waiting for process to exit: exit status 2
"""
UV_OWN_COMPILED = """\
error: Failed to build `ext @ file:///workspace/tree`
  cause: The build backend returned an error

         [stderr]
         error: the compiler is lost

hint: Build failures usually indicate a problem with the package or the build environment
"""
UV_COMPILER = """\
error: Failed to build `ext==1`
  cause: The build backend returned an error

         [stderr]
         error: [Errno 2] No such file or directory: 'gcc'

hint: Build failures usually indicate a problem with the package or the build environment
"""


@pytest.mark.parametrize(
    ("log", "reason", "message"),
    [
        (CONFLICT, "DependencyResolution", "a==1.0 and b==1.0 conflict with each other"),
        (MISSING, "DependencyResolution", "no version of nope==3 can be installed"),
        (UV_MISSING, "DependencyResolution", "no version of six==99"),
        (UV_UNKNOWN, "DependencyResolution", "no version of nope can be installed"),
        (UV_CONFLICT, "DependencyResolution", "conflict with each other: Because a==1 depends on c>=1,<2"),
        (UV_PYTHON, "DependencyResolution", "no version of new==2 supports the crew's Python"),
        (UV_ABI, "DependencyResolution", "no version of old==2.3.0 supports the crew's Python"),
        (UV_HASH, "DependencyResolution", "does not match its pinned hash"),
        (UV_HASHLESS, "DependencyResolution", "some lines have a pinned hash and others have none"),
        (UV_UNREACHABLE, "BuildFailed", "the package index could not be reached"),
        (UV_INVALID, "DependencyResolution", "a=!1 is not a valid requirement"),
        (UV_OWN, "BuildFailed", "the crew's own project failed: RuntimeError: the tide table is missing"),
        (UV_OWN_COMPILED, "BuildFailed", "the crew's own project failed: error: the compiler is lost"),
        (UV_COMPILER, "DependencyResolution", "must be compiled, but gcc is missing"),
        (NO_PYTHON, "DependencyResolution", "no version of new==2.0 supports the crew's Python"),
        (
            "ERROR: Package 'q' requires a different Python: 3.11.2 not in '>=3.14'\n",
            "DependencyResolution",
            "q requires another Python: 3.11.2 not in '>=3.14'",
        ),
        (UNREACHABLE, "BuildFailed", "the package index could not be reached"),
        (
            f"{UNREACHABLE.splitlines()[0]}\n{CONFLICT}",
            "DependencyResolution",
            "a==1.0 and b==1.0 conflict with each other",
        ),
        (
            f"{UNREACHABLE.splitlines()[0]}\nCollecting a\n{HASHES}",
            "DependencyResolution",
            "a downloaded package",
        ),
        (HASHES, "DependencyResolution", "a downloaded package does not match its pinned hash"),
        (
            "ERROR: Hashes are required in --require-hashes mode, but they are missing from some.\n",
            "DependencyResolution",
            "some lines have a pinned hash",
        ),
        (COMPILER, "DependencyResolution", "must be compiled, but x86_64-linux-gnu-gcc is missing"),
        (
            "fatal error: Python.h: No such file or directory\n",
            "DependencyResolution",
            "but Python.h is missing",
        ),
        ("error: can't find Rust compiler\n", "DependencyResolution", "but Rust is missing"),
        (
            "  ERROR: Failed building wheel for ext\n",
            "DependencyResolution",
            "ext has no wheel for this platform",
        ),
        (SETUP, "DependencyResolution", "the setup of a package failed: RuntimeError: no"),
        (OWN, "BuildFailed", "the crew's own project failed: the tide table is missing"),
        (
            f"Processing /workspace/tree\nCollecting other\n{OWN}",
            "BuildFailed",
            "the crew's own project failed: the tide table is missing",
        ),
        (
            OWN.replace("  Preparing", "Collecting other\n  Preparing"),
            "DependencyResolution",
            "the setup of a package failed: the tide table is missing",
        ),
        (FLAT, "DependencyResolution", "does not declare its packages: ['one', 'two']"),
        (
            "ERROR: Cannot find command 'git' - do you have 'git' installed and in your PATH?\n",
            "DependencyResolution",
            "has no git",
        ),
        (
            "WARNING: 401 Error, Credentials not correct for https://h/simple/x/\n" + MISSING,
            "DependencyResolution",
            "rejects the credentials",
        ),
        (
            "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n",
            "BuildFailed",
            "ran out of disk",
        ),
        ("Killed\nwaiting for process to exit: exit status 137\n", "BuildFailed", "ran out of memory"),
        (
            "ERROR: Invalid requirement: 'a b' (from line 1)\n",
            "DependencyResolution",
            "is not a valid requirement",
        ),
        ("", "BuildFailed", "the builder printed nothing"),
        ("something else\n\n", "BuildFailed", "something else"),
        (
            "the cause\n\nhint: Build failures usually indicate a problem\n"
            "error building image: error building stage: failed to execute command: exit status 1\n",
            "BuildFailed",
            "failed: the cause",
        ),
        ("error building image: no space\n", "BuildFailed", "error building image: no space"),
        (
            "RuntimeError: Unsupported compiler -- at least C++11 support is needed!\n\nhint: Build\n",
            "DependencyResolution",
            "a package must be compiled, but a compiler of C++ is missing",
        ),
    ],
)
def test_dependency_failure(log: str, reason: str, message: str) -> None:
    error = dependency_failure(log)
    assert (error.reason, message in error.message) == (reason, True), error.message
    assert error.hint


def test_a_lack_of_git_is_answered_with_its_package() -> None:
    assert 'packages = ["git"] to [build]' in dependency_failure("Git executable not found.\n").hint


@pytest.mark.parametrize(
    ("log", "message", "hint"),
    [
        (
            f"one\n {'x' * 301} \n\n",
            f"building the dependency image failed: {'x' * 300}",
            "See the build log.",
        ),
        (" \n", "building the dependency image failed: the builder printed nothing", "See the build log."),
        (
            f"ERROR: No matching distribution found for {'x' * 301}\n",
            f"no version of {'x' * 300} can be installed",
            "Correct the version",
        ),
        (OWN, "the setup of the crew's own project failed: the tide table is missing", "Try pip install ."),
        (
            UV_OWN_COMPILED,
            "the setup of the crew's own project failed: error: the compiler is lost",
            "Try pip install .",
        ),
    ],
)
def test_a_failure_has_a_bounded_message_and_a_next_step(log: str, message: str, hint: str) -> None:
    error = dependency_failure(log)
    assert error.message == message
    assert error.hint.startswith(hint) and error.hint.endswith(".")


def test_the_index_decides_where_the_urls_of_the_lock_fail_too() -> None:
    log = f"{MISSING}{FROM_PYLOCK}\nerror sending request for url (https://files.example.org/a.whl)\n"
    # The builder repeats the command.
    error = dependency_failure(f"RUN install || {{ echo '{FROM_PYLOCK}'; }}\n{log}")
    assert (error.reason, error.message) == ("DependencyResolution", "no version of nope==3 can be installed")
    # Of a long log only the end is kept.
    assert dependency_failure(log.removeprefix(MISSING)).message == INDEX_UNREACHABLE


def test_long_log_is_searched_fast() -> None:
    assert dependency_failure("Error: x\nConnection aborted " * 400).hint
    assert dependency_failure("Processing /workspace/tree\n[end of output]\n" * 400).hint


@pytest.mark.parametrize(
    "text",
    [
        "Ignored the following versions that require a different python version:",
        "Cannot install a ",
        "Package a ",
        "\n" * 9 + "a",
    ],
)
def test_repetitive_log_is_searched_fast(text: str) -> None:
    assert dependency_failure(text * ((64 << 10) // len(text))).reason == "BuildFailed"


def test_an_unreachable_index_is_seen_in_a_log_of_two_streams() -> None:
    """Two streams of the builder end in one log, in any order."""
    log = (
        "error: Request failed after 3 retries in 4.8s\n"
        f"{FROM_PYLOCK}\n"
        "  cause: Failed to fetch: https://index.example.com/simple/rich/\n"
        "  cause: error sending request for url (https://index.example.com/simple/rich/)\n"
    )
    assert dependency_failure(log).message == INDEX_UNREACHABLE


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("error: Failed to build `tides==0.7.6`\n", "tides==0.7.6"),
        ("  ERROR: Failed building wheel for tides\n", "tides"),
        ("", "a package"),
    ],
)
def test_a_package_without_a_compiler_is_named(line: str, name: str) -> None:
    cause = "RuntimeError: Unsupported compiler -- at least C++11 support is needed!"
    error = dependency_failure(f"   Building tides==0.7.6\n{line}{cause}\n")
    assert error.message == f"{name} must be compiled, but a compiler of C++ is missing"
