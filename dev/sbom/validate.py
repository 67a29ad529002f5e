"""Validation of CycloneDX documents: `python -m dev.sbom.validate FILE…`, with the audit packages."""

import sys
from pathlib import Path


def main(arguments: list[str]) -> int:
    """Return 1 if a document is invalid, and print why."""
    from cyclonedx.schema import SchemaVersion  # type: ignore[import-not-found]
    from cyclonedx.validation.json import JsonStrictValidator  # type: ignore[import-not-found]

    invalid = 0
    for path in arguments:
        error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(Path(path).read_text())
        print(f"{path}: {error or 'valid'}"[:1000])
        invalid += error is not None
    return 1 if invalid else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
