"""Which Secrets a Project may use, and where their content may be sent. Pure.

A Secret says so itself: the label `crewyard.dev/project` or the annotation `crewyard.dev/projects` names the
projects, `crewyard.dev/hosts` the hosts. Then neither the order of calls nor the rights of a project's admin
matter. A Secret that says nothing is usable by every Project where CREWYARD_SECRET_USE is `any`, and by none
where it is `labelled`. Called by API and controller before each use.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

from crds import names
from crds.objects import Project

ANNOTATION_PROJECTS = f"{names.GROUP}/projects"
"""Names of projects, separated by commas; `*` for all."""
ANNOTATION_HOSTS = f"{names.GROUP}/hosts"
"""Hosts that may receive the content, separated by commas; absent, every host that a Project names."""
ENV_SUFFIX = "-env"
Secret = Mapping[str, Any]


class SecretUse(StrEnum):
    """Value of CREWYARD_SECRET_USE."""

    ANY = "any"
    LABELLED = "labelled"


@dataclass(frozen=True)
class SecretReference:
    """A Secret that a field of a Project names, and the host that receives its content where it is known."""

    field: str
    name: str
    host: str = ""


def parse_secret_use(text: str) -> SecretUse:
    """Return the setting. Raises ValueError with the known values."""
    try:
        return SecretUse(text)
    except ValueError:
        raise ValueError(f"must be {SecretUse.LABELLED} or {SecretUse.ANY}, not {text[:40]!r}") from None


def git_reference(project: Project) -> SecretReference | None:
    """Return the credential of the git source."""
    git = project.git or {}
    return _reference(git, "source.git.secretRef", _host(str(git.get("url"))))


def signers_reference(project: Project) -> SecretReference | None:
    """Return the keys that may sign commits."""
    return _reference((project.git or {}).get("verify") or {}, "source.git.verify.secretRef")


def build_references(project: Project, registry: str) -> tuple[SecretReference, ...]:
    """Return the Secrets of a Project's builds besides the credential of git."""
    build = project.spec.get("build") or {}
    found = (
        signers_reference(project),
        _reference(build, "build.secretRef"),
        _reference(build.get("push") or {}, "build.push.secretRef", registry.partition("/")[0]),
    )
    return tuple(reference for reference in found if reference is not None)


def github_reference(project: Project, url: str) -> SecretReference | None:
    """Return the credential of reports to GitHub, whose API is at `url`."""
    return _reference(project.spec.get("github") or {}, "github.secretRef", _host(url))


def commit_status_reference(project: Project, url: str) -> SecretReference | None:
    """Return the credential of commit statuses, set at `url`."""
    return _reference(project.spec.get("commitStatus") or {}, "commitStatus.secretRef", _host(url))


def webhook_reference(project: Project) -> SecretReference | None:
    """Return the Secret that verifies deliveries."""
    return _reference(project.spec.get("webhook") or {}, "webhook.secretRef")


def notification_reference(notification: Mapping[str, Any]) -> SecretReference | None:
    """Return the Secret that signs a notification; the signatures go to the host of its URL."""
    field = f"notifications[{notification.get('name')}].secretRef"
    return _reference(notification, field, _host(str(notification.get("url"))))


def pull_references(project: Project) -> tuple[SecretReference, ...]:
    """Return the Secrets with which a Project's runs pull their image."""
    entries: Iterable[Mapping[str, Any]] = (project.spec.get("pod") or {}).get("imagePullSecrets") or ()
    return tuple(SecretReference("pod.imagePullSecrets", str(entry["name"])) for entry in entries)


def credential_problem(
    secret: Secret | None, reference: SecretReference, project: Project, use: SecretUse
) -> str | None:
    """Return why the Project may not use the Secret, and the next step; None if it may or there is none."""
    if secret is None:
        return None
    what = f"{reference.field} names the Secret {reference.name}"
    if _holds_variables(secret, reference.name, use):
        return (
            f"{what}, which holds the variables of a project; put the credential into a Secret whose name "
            f"does not end in {ENV_SUFFIX}"
        )
    if not _is_for(secret, project, use):
        return f"{what}, which does not say that project {project.name} may use it; " + _advice(
            reference.name, project
        )
    hosts = _names(secret, ANNOTATION_HOSTS)
    if hosts is not None and reference.host and reference.host.lower() not in hosts:
        return f"{what}, which may not go to {reference.host}; add it to the annotation {ANNOTATION_HOSTS}"
    return None


def variables_problem(secret: Secret | None, project: Project, use: SecretUse) -> str | None:
    """Return why `<project>-env` is not the Project's; None if it is, or if there is none.

    The API server makes it with the Project as owner; a Secret made with kubectl has the label.
    """
    if secret is None:
        return None
    owners = _project_owners(secret)
    if project.uid in owners if owners else _is_for(secret, project, use):
        return None
    name = names.env_secret(project.name)
    if owners:
        return (
            f"the Secret {name} belongs to an earlier project of this name; delete it with "
            f"kubectl delete secret {name}"
        )
    return f"the Secret {name} does not say that it is for project {project.name}; " + _advice(name, project)


def _advice(name: str, project: Project) -> str:
    """Return the command for a Secret of one project; several need the annotation."""
    return f"run kubectl label secret {name} {names.LABEL_PROJECT}={project.name} if it should"


def _is_for(secret: Secret, project: Project, use: SecretUse) -> bool:
    label = _metadata(secret, "labels").get(names.LABEL_PROJECT)
    listed = _names(secret, ANNOTATION_PROJECTS)
    if label is None and listed is None:
        return use is SecretUse.ANY
    return project.name == label or bool({project.name, "*"} & (listed or frozenset()))


def _holds_variables(secret: Secret, name: str, use: SecretUse) -> bool:
    if not name.endswith(ENV_SUFFIX):
        return False
    managed = _metadata(secret, "labels").get(names.LABEL_MANAGED_BY) == names.MANAGED_BY
    return use is SecretUse.LABELLED or managed or bool(_project_owners(secret))


def _project_owners(secret: Secret) -> frozenset[str]:
    owners = (secret.get("metadata") or {}).get("ownerReferences") or ()
    return frozenset(
        str(owner.get("uid"))
        for owner in owners
        if owner.get("kind") == "Project" and str(owner.get("apiVersion")).startswith(f"{names.GROUP}/")
    )


def _metadata(secret: Secret, field: str) -> Mapping[str, str]:
    return (secret.get("metadata") or {}).get(field) or {}


def _names(secret: Secret, annotation: str) -> frozenset[str] | None:
    text = _metadata(secret, "annotations").get(annotation)
    return None if text is None else frozenset(part.strip().lower() for part in text.split(","))


def _reference(parent: Mapping[str, Any], field: str, host: str = "") -> SecretReference | None:
    name = (parent.get("secretRef") or {}).get("name")
    return SecretReference(field, str(name), host) if name else None


def _host(url: str) -> str:
    """Return the host, with the port where the URL has one."""
    try:
        return urlsplit(url).netloc.rpartition("@")[2].lower()
    except ValueError:
        return ""
