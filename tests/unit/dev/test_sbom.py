"""Bills of materials: package metadata, documents, and audit results."""

import json

import pytest

from dev.sbom import audit, document, image
from dev.sbom.image import InstalledPackage

STATUS = """Package: libc6
Status: install ok installed
Architecture: amd64
Version: 2.36-9+deb12u10
Description: a library
 Version: not this one

Package: gone
Status: deinstall ok config-files
Architecture: amd64
Version: 1
"""
LOCK = """# Pinned
aiohttp==3.14.5 \\
    --hash=sha256:{0} \\
    --hash=sha256:{1}
limits[redis]==5.8.0 ; python_version < "4" --hash=sha256:{0}
""".format("a" * 64, "b" * 64)


@pytest.mark.parametrize(
    ("lines", "license"),
    [
        ("License-Expression: Apache-2.0 AND MIT\nLicense: x", "Apache-2.0 AND MIT"),
        ("Classifier: License :: OSI Approved :: MIT License", "MIT License"),
        ("License: BSD\n  with more\n", "BSD"),
        ("", ""),
    ],
)
def test_a_packages_metadata(lines, license):
    package = image.python_package(f"Metadata-Version: 2.1\nName: A_b\nVersion: 1.0\n{lines}\n\nLong: text")
    assert (package.name, package.version, package.license) == ("A_b", "1.0", license)


def test_dpkgs_status():
    assert image.debian_packages(STATUS) == [InstalledPackage("libc6", "2.36-9+deb12u10", "", "amd64")]


def test_a_lock_has_versions_and_hashes():
    assert document.pinned(LOCK) == {
        "aiohttp": ("3.14.5", ["a" * 64, "b" * 64]),
        "limits": ("5.8.0", ["a" * 64]),
    }


def test_the_same_content_is_the_same_document():
    components = [
        document.python(InstalledPackage("A_b", "1"), ["b" * 64, "a" * 64]),
        document.file("x.py", "c" * 64),
    ]
    made = [document.document("x", "1", "application", order) for order in (components, components[::-1])]
    assert json.dumps(made[0]) == json.dumps(made[1])
    assert made[0]["serialNumber"] != document.document("x", "2", "application", components)["serialNumber"]
    (library,) = (component for component in made[0]["components"] if component["type"] == "library")
    assert (library["purl"], library["name"]) == ("pkg:pypi/a-b@1", "a-b")
    assert document.debian(InstalledPackage("g++", "1:2", "", "amd64"), "bookworm")["purl"] == (
        "pkg:deb/debian/g%2B%2B@1%3A2?arch=amd64&distro=bookworm"
    )


def test_skipped_packages_do_not_count_as_success():
    skipped = {"name": "a", "skip_reason": "not found"}
    good = {"name": "b", "version": "1", "vulns": []}
    bad = {"name": "c", "version": "2", "vulns": [{"id": "CVE-1", "fix_versions": ["3"]}]}
    nothing = audit.read({"dependencies": [skipped]})
    assert (nothing.audited, nothing.skipped, audit.code([nothing])) == (0, ("a",), 3)
    assert audit.code([audit.read({"dependencies": [skipped, good]})]) == 0
    result = audit.read({"dependencies": [good, bad]})
    assert result.vulnerabilities == ("c 2: CVE-1, fixed in 3",)
    assert audit.code([nothing, result]) == 1
