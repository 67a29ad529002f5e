"""Known vulnerabilities and licences of what is installed: `python3 -m dev.sbom.audit PIP_AUDIT [SBOM…]`.

Asks the index that pip uses here for each pinned package. Not every index tells of vulnerabilities: what
could not be asked about is said, and is no success. Exit code 1: something is known; 3: nothing was asked.
"""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILES = ("requirements/service.txt", "requirements/dev.txt")
_SECONDS = 900


@dataclass(frozen=True)
class Audit:
    """Of one requirements file: how many packages were asked about, which were not, and what is known."""

    asked: int
    skipped: tuple[str, ...]
    known: tuple[str, ...]


def read(told: Mapping[str, Any]) -> Audit:
    """pip-audit's JSON."""
    listed = told.get("dependencies", ())
    known = tuple(
        f"{one['name']} {one['version']}: {found['id']}, mended in {_mended(found)}"
        for one in listed
        for found in one.get("vulns", ())
    )
    skipped = tuple(one["name"] for one in listed if "skip_reason" in one)
    return Audit(len(listed) - len(skipped), skipped, known)


def _mended(found: Mapping[str, Any]) -> str:
    return ", ".join(found["fix_versions"]) or "no version"


def code(audits: Iterable[Audit]) -> int:
    """The exit code."""
    found = list(audits)
    if any(one.known for one in found):
        return 1
    return 0 if any(one.asked for one in found) else 3


def licenses(document: Mapping[str, Any]) -> Counter[str]:
    """How many Python packages say that they have which licence."""
    count: Counter[str] = Counter()
    for one in document["components"]:
        if str(one.get("purl", "")).startswith("pkg:pypi/"):
            said = (one.get("licenses") or [{"license": {"name": "none said"}}])[0]
            count[said.get("expression") or said["license"]["name"]] += 1
    return count


def main(arguments: list[str]) -> int:
    """Prints what is known, then the licences in the documents that are named."""
    audits = []
    for file in FILES:
        done = subprocess.run(
            [
                arguments[0],
                "--requirement",
                file,
                "--require-hashes",
                "--no-deps",
                "--disable-pip",
                "--vulnerability-service",
                "pypi",
                "--progress-spinner",
                "off",
                "--format",
                "json",
            ],
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
        try:
            audit = read(json.loads(done.stdout))
        except ValueError:
            print(f"{file}: {done.stderr.decode(errors='replace')[-500:]}", file=sys.stderr)
            audit = Audit(0, (), ())
        audits.append(audit)
        print(f"{file}: {audit.asked} packages asked about, {len(audit.known)} vulnerabilities known")
        if audit.skipped:
            names = ", ".join(audit.skipped[:5])
            print(f"  {len(audit.skipped)} of which the index here tells nothing: {names}, …")
        for line in audit.known:
            print(f"  {line}")
    for path in map(Path, arguments[1:]):
        for name, number in licenses(json.loads(path.read_text())).most_common():
            print(f"{path.stem}: {number:>3} x {name}")
    if code(audits) == 3:
        print("Nothing could be asked about: run this where pip reaches an index with vulnerability data.")
    return code(audits)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
