"""Python base images from Debian packages and a jar, for machines without access to an image registry.

Called by `dev.images.images`. Uses the apt mirror and the CA certificates of the host, to make pip work where
the host's pip works.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from dev.errors import DevClusterError
from dev.images import cpython_jar, oci
from dev.process import command
from dev.progress import Step

# Each Python and the Debian release of its image. No release has 3.12: a jar has it. forky is testing.
SUITES = {"3.11": "bookworm", "3.12": "bookworm", "3.13": "trixie", "3.14": "forky"}
SUITE = SUITES["3.11"]
PACKAGES = ("python3", "python3-pip", "python3-venv", "ca-certificates")
# Increase it when `build` changes the content of the image.
VERSION = "1"
_SUITES = ("{0}", "{0}-updates", "{0}-security")
_PIP_VARIABLES = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_TRUSTED_HOST", "PIP_DEFAULT_TIMEOUT")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")
# The host's settings of apt that mmdebstrap needs too; a mirror's release file may have expired.
_APT_SETTINGS = ("http::Proxy", "https::Proxy", "Check-Valid-Until", "Check-Date")
_CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"


def config(environment: Mapping[str, str]) -> dict[str, object]:
    """Return the image's configuration, including the host's settings for pip and web proxies."""
    variables = {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LANG": "C.UTF-8",
        "PIP_CERT": _CERTIFICATES,
        "SSL_CERT_FILE": _CERTIFICATES,
        "REQUESTS_CA_BUNDLE": _CERTIFICATES,
        "PIP_BREAK_SYSTEM_PACKAGES": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_ROOT_USER_ACTION": "ignore",
    }
    variables |= {name: environment[name] for name in (*_PIP_VARIABLES, *_PROXIES) if environment.get(name)}
    return {"Env": [f"{name}={value}" for name, value in variables.items()], "Cmd": ["python3"]}


def packages(python: str) -> tuple[str, ...]:
    """Return the Debian packages of the image of a Python."""
    return cpython_jar.PACKAGES if python in cpython_jar.JARS else PACKAGES


def _is_debian_suite(suite: str, codename: str) -> bool:
    return suite in {pattern.format(codename) for pattern in _SUITES}


def parse_deb822(text: str, codename: str, image_suite: str) -> list[str]:
    """Return one-line entries of Debian's own suites in a `.sources` file, for the image's suite."""
    lines = []
    for block in re.split(r"\n\s*\n", text):
        pairs = re.findall(r"^([A-Za-z-]+):[ \t]*(.*)$", block, re.MULTILINE)
        fields = {name.lower(): value.split() for name, value in pairs}
        if "deb" not in fields.get("types", []) or "main" not in fields.get("components", []):
            continue
        if fields.get("enabled") == ["no"] or _third_party(fields.get("signed-by", [])):
            continue
        suites = [suite for suite in fields.get("suites", []) if _is_debian_suite(suite, codename)]
        for address in fields.get("uris", []):
            lines += [f"deb {address} {suite.replace(codename, image_suite, 1)} main" for suite in suites]
    return lines


def parse_one_line(text: str, codename: str, image_suite: str) -> list[str]:
    """Return the same for a `.list` file."""
    lines = []
    for line in text.splitlines():
        match = re.match(r"^deb\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)\s+(.*)$", line.strip())
        if not match or not _is_debian_suite(match[3], codename) or "main" not in match[4].split():
            continue
        keys = re.findall(r"signed-by=(\S+)", match[1] or "")
        if not _third_party(keys):
            lines.append(f"deb {match[2]} {match[3].replace(codename, image_suite, 1)} main")
    return lines


def _third_party(signed_by: list[str]) -> bool:
    return any("debian-archive" not in key for key in signed_by)


def sources(image_suite: str = SUITE, root: Path = Path("/etc")) -> str:
    """Return the host's Debian sources as a sources.list of `image_suite`.

    Raises DevClusterError if there are none.
    """
    match = re.search(r"^VERSION_CODENAME=(\S+)$", (root / "os-release").read_text(), re.MULTILINE)
    codename = match[1] if match else SUITE
    files = [root / "apt" / "sources.list", *sorted((root / "apt" / "sources.list.d").glob("*"))]
    lines: list[str] = []
    for file in files:
        if file.suffix == ".sources":
            lines += parse_deb822(file.read_text(), codename, image_suite)
        elif file.suffix == ".list" and file.exists():
            lines += parse_one_line(file.read_text(), codename, image_suite)
    if not lines:
        raise DevClusterError(
            f"{root}/apt has no source for Debian {codename} main, which the base image needs. Add one."
        )
    return "\n".join(dict.fromkeys(lines)) + "\n"


def build(
    work: Path, step: Step, python: str, entries: str, certificates: Path, image: Mapping[str, object]
) -> oci.OciImage:
    """Build the file system in `work`. Raises CommandFailed with the last lines of mmdebstrap or Maven."""
    files: dict[str, Path | str] = {"usr/local/bin/python": "/usr/bin/python3"}
    if python in cpython_jar.JARS:
        files = cpython_jar.files(work, step, python)
    (work / "sources.list").write_text(entries)
    tar = work / "system.tar"
    apt = command.read_output(["apt-config", "dump", *(f"Acquire::{name}" for name in _APT_SETTINGS)]).strip()
    argv = ["mmdebstrap", "--variant=apt", f"--include={','.join(packages(python))}", "--mode=root"]
    argv += [f"--aptopt={apt}"] if apt else []
    argv += ["--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=/usr/share/man/*"]
    argv += [SUITES[python], str(tar), str(work / "sources.list")]
    # Fixed timestamps: the same packages give the same image.
    environment = {"SOURCE_DATE_EPOCH": "0"}
    command.run(
        argv, step=step, log=work.parent / f"base-image-{python}.log", seconds=900, environment=environment
    )
    step.detail = "compressing"
    oci.write_tar(work / "host.tar", {"etc/ssl/certs/ca-certificates.crt": certificates, **files})
    layers = [oci.layer(tar, work / "system.gz"), oci.layer(work / "host.tar", work / "host.gz")]
    return oci.OciImage(layers, image)
