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
_AUDIT_TIMEOUT_SECONDS = 900


@dataclass(frozen=True)
class AuditResult:
    """Of one requirements file: how many packages were asked about, which were not, and what is known."""

    audited: int
    skipped: tuple[str, ...]
    vulnerabilities: tuple[str, ...]


def read(report: Mapping[str, Any]) -> AuditResult:
    """pip-audit's JSON."""
    dependencies = report.get("dependencies", ())
    known = tuple(
        f"{dependency['name']} {dependency['version']}: {vulnerability['id']}, mended in {_fix_versions(vulnerability)}"
        for dependency in dependencies
        for vulnerability in dependency.get("vulns", ())
    )
    skipped = tuple(dependency["name"] for dependency in dependencies if "skip_reason" in dependency)
    return AuditResult(len(dependencies) - len(skipped), skipped, known)


def _fix_versions(vulnerability: Mapping[str, Any]) -> str:
    return ", ".join(vulnerability["fix_versions"]) or "no version"


def code(audits: Iterable[AuditResult]) -> int:
    """The exit code."""
    results = list(audits)
    if any(result.vulnerabilities for result in results):
        return 1
    return 0 if any(result.audited for result in results) else 3


def licenses(document: Mapping[str, Any]) -> Counter[str]:
    """How many Python packages say that they have which licence."""
    count: Counter[str] = Counter()
    for component in document["components"]:
        if str(component.get("purl", "")).startswith("pkg:pypi/"):
            license = (component.get("licenses") or [{"license": {"name": "none said"}}])[0]
            count[license.get("expression") or license["license"]["name"]] += 1
    return count


def main(arguments: list[str]) -> int:
    """Prints what is known, then the licences in the documents that are named."""
    audits = []
    for file in FILES:
        completed = subprocess.run(
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
            timeout=_AUDIT_TIMEOUT_SECONDS,
            check=False,
        )
        try:
            audit = read(json.loads(completed.stdout))
        except ValueError:
            print(f"{file}: {completed.stderr.decode(errors='replace')[-500:]}", file=sys.stderr)
            audit = AuditResult(0, (), ())
        audits.append(audit)
        print(
            f"{file}: {audit.audited} packages asked about, {len(audit.vulnerabilities)} vulnerabilities known"
        )
        if audit.skipped:
            names = ", ".join(audit.skipped[:5])
            print(f"  {len(audit.skipped)} of which the index here tells nothing: {names}, …")
        for line in audit.vulnerabilities:
            print(f"  {line}")
    for path in map(Path, arguments[1:]):
        for name, count in licenses(json.loads(path.read_text())).most_common():
            print(f"{path.stem}: {count:>3} x {name}")
    if code(audits) == 3:
        print("Nothing could be asked about: run this where pip reaches an index with vulnerability data.")
    return code(audits)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
