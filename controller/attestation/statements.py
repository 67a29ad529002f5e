"""In-toto statements about an image: SLSA provenance v1, and a CycloneDX SBOM. Pure.

Called by `controller.attestation.reconcile` after a build, and by `verify` before a run.
"""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote

from build.image.debian_packages import DebianPackage
from build.image.distributions import Distribution
from controller.config import ControllerConfig
from crds import conditions
from crds.objects import Deployment
from crds.times import format_second, parse_time

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PROVENANCE_TYPE = "https://slsa.dev/provenance/v1"
SBOM_TYPE = "https://cyclonedx.org/bom"
BUILD_TYPE = "https://crewyard.dev/build/v1"
"""Described in docs/provenance.md."""
_INPUTS = ("tree", "buildKey", "dependenciesKey")


def builder_id(config: ControllerConfig) -> str:
    """Return the URI that names this installation as the builder."""
    return f"{config.public_url or 'https://crewyard.dev'}/builder"


def provenance(
    deployment: Deployment, image: str, config: ControllerConfig, config_since: datetime
) -> dict[str, Any]:
    """Return the statement of how a Deployment's image was built.

    It names the images of `config` only for builds after `config_since`: earlier ones may have had others.
    """
    had_config = deployment.created > config_since
    images = {"serviceImage": config.service_image, "kanikoImage": config.kaniko_image} if had_config else {}
    base_image = _base_image(deployment, config) if had_config else []
    source = deployment.spec["source"]
    external = {"namespace": config.namespace, "project": deployment.project, "source": _source(source)}
    if deployment.spec.get("crew"):
        external["crew"] = deployment.spec["crew"]
    built = conditions.find(deployment.conditions, conditions.BUILT) or {}
    finished = str(built.get("lastTransitionTime") or format_second(deployment.created))
    return _statement(
        image,
        PROVENANCE_TYPE,
        {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": external,
                "internalParameters": {
                    "deployment": deployment.name,
                    **images,
                    **{name: deployment.status[name] for name in _INPUTS if deployment.status.get(name)},
                },
                "resolvedDependencies": [*_resolved(source), *base_image],
            },
            "runDetails": {
                "builder": {"id": builder_id(config)},
                "metadata": {
                    "invocationId": deployment.uid,
                    "startedOn": format_second(deployment.created),
                    "finishedOn": format_second(parse_time(finished)),
                },
            },
        },
    )


def sbom(
    image: str,
    distributions: Sequence[Distribution],
    packages: Sequence[DebianPackage],
    complete: bool,
    created: str,
) -> dict[str, Any]:
    """Return the statement of what is installed in an image; `complete` if all layers were read."""
    name, _, digest = image.partition("@sha256:")
    subject = {"type": "container", "bom-ref": image, "name": name, "version": f"sha256:{digest}"}
    return _statement(
        image,
        SBOM_TYPE,
        {
            "bomFormat": "CycloneDX",
            "specVersion": "1.6",
            # Equal images give equal documents.
            "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, image)}",
            "version": 1,
            "metadata": {"timestamp": created, "component": subject},
            "components": [*map(_distribution, distributions), *map(_debian_package, packages)],
            "compositions": [{"aggregate": "complete" if complete else "incomplete", "assemblies": [image]}],
        },
    )


def provenance_problem(
    statements: Iterable[Mapping[str, Any]], image: str, project: str, config: ControllerConfig
) -> str | None:
    """Return why verified statements do not vouch for the image of a project; None if one does."""
    about = [one for one in statements if is_about(one, image, PROVENANCE_TYPE)]
    if not about:
        return "the registry has no provenance of it with a valid signature of this installation"
    for one in about:
        definition = (one.get("predicate") or {}).get("buildDefinition") or {}
        external = definition.get("externalParameters") or {}
        if (external.get("namespace"), external.get("project")) == (config.namespace, project):
            return None
    return f"its signed provenance does not name the project {project}"


def is_about(statement: Mapping[str, Any], image: str, predicate_type: str) -> bool:
    """Return whether a statement has that type and the image as its subject."""
    digest = image.partition("@sha256:")[2]
    subjects = statement.get("subject")
    return statement.get("predicateType") == predicate_type and any(
        isinstance(one, Mapping) and (one.get("digest") or {}).get("sha256") == digest
        for one in (subjects if isinstance(subjects, list) else ())
    )


def _statement(image: str, predicate_type: str, predicate: dict[str, Any]) -> dict[str, Any]:
    name, _, digest = image.partition("@sha256:")
    return {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": name, "digest": {"sha256": digest}}],
        "predicateType": predicate_type,
        "predicate": predicate,
    }


def _source(source: Mapping[str, Any]) -> dict[str, Any]:
    git = source.get("git")
    if git:
        return {"git": {key: git[key] for key in ("url", "commit", "path") if git.get(key)}}
    return {"archive": {"sha256": source["archive"].get("sha256")}}


def _resolved(source: Mapping[str, Any]) -> list[dict[str, Any]]:
    git = source.get("git")
    if git:
        uri = f"git+{git['url']}@{git['commit']}"
        return [{"uri": uri, "digest": {"gitCommit": git["commit"]}, "name": "source"}]
    sha256 = source["archive"].get("sha256")
    return [{"uri": "upload:archive", "digest": {"sha256": sha256}, "name": "source"}] if sha256 else []


def _base_image(deployment: Deployment, config: ControllerConfig) -> list[dict[str, Any]]:
    reference = config.base_images.get(str(deployment.plan.get("python") or ""))
    # The images of a crew's own Dockerfile are named in the source.
    if reference is None or deployment.plan.get("dockerfile"):
        return []
    name, _, digest = reference.partition("@sha256:")
    known = {"digest": {"sha256": digest}} if digest else {}
    return [{"uri": f"docker://{name}", "name": "base image", **known}]


def _distribution(found: Distribution) -> dict[str, Any]:
    version = {"version": found.version} if found.version else {}
    purl = f"pkg:pypi/{quote(found.normalized, safe='')}"
    if found.version:
        purl += f"@{quote(found.version, safe='')}"
    return {
        "type": "library",
        "bom-ref": found.path,
        "name": found.name,
        **version,
        "purl": purl,
        "evidence": {"occurrences": [{"location": found.path}]},
    }


def _debian_package(found: DebianPackage) -> dict[str, Any]:
    vendor = found.system.partition("-")[0] or "debian"
    version = quote(found.version, safe="")
    qualifiers = f"arch={found.architecture}" + (f"&distro={found.system}" if found.system else "")
    return {
        "type": "library",
        "bom-ref": f"{found.path}#{found.name}_{found.version}_{found.architecture}",
        "name": found.name,
        "version": found.version,
        "purl": f"pkg:deb/{vendor}/{quote(found.name, safe='')}@{version}?{qualifiers}",
        "evidence": {"occurrences": [{"location": found.path}]},
    }
