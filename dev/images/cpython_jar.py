"""CPython of a version that no Debian release has, from a jar of Maven Central.

Called by `dev.images.base_image`. The jar is the build of CPython by the JavaCPP presets: interpreter,
standard library and pip, linked with an OpenSSL of its own and with libraries that Debian has.
"""

import hashlib
import platform
import zipfile
from pathlib import Path, PurePosixPath

from dev.errors import DevClusterError
from dev.packages import program_path
from dev.process import command
from dev.progress import Step

# Python → version of org.bytedeco:cpython, and its SHA-256.
JARS = {"3.12": ("3.12.1-1.5.10", "a135fcf4dc01adebf7ea439252276fc3196db80f7e0dd3da0b61f1ec489b68bd")}
# Debian packages of the image: certificates, and the libraries that the interpreter and its modules need.
PACKAGES = (
    "ca-certificates",
    "libbz2-1.0",
    "libcrypt1",
    "libncursesw6",
    "libnsl2",
    "libreadline8",
    "libsqlite3-0",
    "libuuid1",
)
PROGRAMS = {"mvn": "maven"}
"""Program that downloads the jar, and its Debian package."""
_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1"
_ROOT = PurePosixPath("org/bytedeco/cpython/linux-x86_64")
# Directory of Debian in which the loader looks without a configuration.
_LIBRARY_DIRECTORY = "usr/lib/x86_64-linux-gnu"
_OMITTED = {"test", "idlelib", "__pycache__", "turtledemo"}
_PIP = """#!/usr/local/bin/python3
import sys

from pip._internal.cli.main import main

sys.exit(main())
"""


def files(work: Path, step: Step, python: str) -> dict[str, Path | str]:
    """Download the jar into `work` and return the files and symlinks of the image.

    Raises CommandFailed with Maven's last lines, DevClusterError if the jar is another one or the machine is
    not x86_64.
    """
    if platform.machine() != "x86_64":
        raise DevClusterError(
            f"Python {python} is available on x86_64 only. Leave it out of CREWYARD_PYTHONS."
        )
    version, digest = JARS[python]
    step.detail = f"CPython {version}"
    argv = [program_path("mvn"), "--batch-mode", "--no-transfer-progress", f"{_PLUGIN}:copy"]
    argv += [f"-Dartifact=org.bytedeco:cpython:{version}:jar:linux-x86_64", f"-DoutputDirectory={work}"]
    command.run(argv, step=step, log=work.parent / "maven.log", seconds=600)
    jar = work / f"cpython-{version}-linux-x86_64.jar"
    if hashlib.sha256(jar.read_bytes()).hexdigest() != digest:
        raise DevClusterError(f"{jar.name} is not the pinned one: its SHA-256 is not {digest}.")
    return unpack(jar, work / "cpython", python)


def unpack(jar: Path, directory: Path, python: str) -> dict[str, Path | str]:
    """Unpack a jar into `directory` and return its files by their path in the image."""
    found: dict[str, Path] = {}
    with zipfile.ZipFile(jar) as archive:
        for name in archive.namelist():
            path = PurePosixPath(name)
            if not name.endswith("/") and path.is_relative_to(_ROOT):
                target = _target(path.relative_to(_ROOT), python)
                if target is not None:
                    found[target] = Path(archive.extract(name, directory))
    pip = found["usr/local/bin/pip"] = directory / "pip"
    pip.write_text(_PIP)
    for file in (pip, found[f"usr/local/bin/python{python}"]):
        file.chmod(0o755)
    links = dict.fromkeys(("usr/local/bin/python3", "usr/local/bin/python"), f"python{python}")
    return {**found, **links, "usr/local/bin/pip3": "pip"}


def _target(path: PurePosixPath, python: str) -> str | None:
    """Return where a file of the jar belongs in the image; None if the image does without it."""
    if path.parts[0] in {"lib", "include"}:
        is_kept = path.parts[1:2] == (f"python{python}",) and not _OMITTED.intersection(path.parts)
        return f"usr/local/{path}" if is_kept and path.suffix != ".a" else None
    if path.parts[0] == "bin":
        return f"usr/local/{path}" if path.name == f"python{python}" else None
    is_library = path.name.startswith(("libpython", "libffi.so.")) and len(path.parts) == 1
    return f"{_LIBRARY_DIRECTORY}/{path}" if is_library else None
