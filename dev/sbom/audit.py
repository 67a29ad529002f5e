"""Known vulnerabilities and licences of dependencies: `python3 -m dev.sbom.audit PIP_AUDIT [SBOM…]`.

Queries pip's index for each pinned package. Not every index has vulnerability data: packages without data are
listed and do not count as success. Exit code 1: vulnerabilities found; 3: no package could be checked.
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
    """Result for one requirements file: packages checked, packages skipped, vulnerabilities."""

    audited: int
    skipped: tuple[str, ...]
    vulnerabilities: tuple[str, ...]


def read(report: Mapping[str, Any]) -> AuditResult:
    """Parse pip-audit's JSON."""
    dependencies = report.get("dependencies", ())
    vulnerabilities = tuple(
        f"{dependency['name']} {dependency['version']}: {vulnerability['id']}, "
        f"fixed in {_fix_versions(vulnerability)}"
        for dependency in dependencies
        for vulnerability in dependency.get("vulns", ())
    )
    skipped = tuple(dependency["name"] for dependency in dependencies if "skip_reason" in dependency)
    return AuditResult(len(dependencies) - len(skipped), skipped, vulnerabilities)


def _fix_versions(vulnerability: Mapping[str, Any]) -> str:
    return ", ".join(vulnerability["fix_versions"]) or "no version"


def code(audits: Iterable[AuditResult]) -> int:
    """Return the exit code."""
    results = list(audits)
    if any(result.vulnerabilities for result in results):
        return 1
    return 0 if any(result.audited for result in results) else 3


def licenses(document: Mapping[str, Any]) -> Counter[str]:
    """Return the number of Python packages per declared licence."""
    count: Counter[str] = Counter()
    for component in document["components"]:
        if str(component.get("purl", "")).startswith("pkg:pypi/"):
            license = (component.get("licenses") or [{"license": {"name": "not declared"}}])[0]
            count[license.get("expression") or license["license"]["name"]] += 1
    return count


def main(arguments: list[str]) -> int:
    """Print the vulnerabilities, then the licences in the given documents."""
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
        print(f"{file}: {audit.audited} packages checked, {len(audit.vulnerabilities)} known vulnerabilities")
        if audit.skipped:
            names = ", ".join(audit.skipped[:5])
            print(f"  {len(audit.skipped)} without vulnerability data in this index: {names}, …")
        for line in audit.vulnerabilities:
            print(f"  {line}")
    for path in map(Path, arguments[1:]):
        for name, count in licenses(json.loads(path.read_text())).most_common():
            print(f"{path.stem}: {count:>3} x {name}")
    if code(audits) == 3:
        print("No package could be checked: run this where pip has an index with vulnerability data.")
    return code(audits)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
