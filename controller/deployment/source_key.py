"""Source key: one hash of all inputs of a build, known before any pod. Pure.

Equal keys mean equal images, so the key covers every input: the files, the selected crew, base
and service images (the latter contains plan and runner), and the source of dependencies. Called by
`controller.deployment.build_admission`.
"""

from controller.config import ControllerConfig
from crds.objects import Deployment, Project
from plan.keys import digest


def source_key(
    deployment: Deployment, project: Project, tree: str | None, config: ControllerConfig
) -> str | None:
    """Return the key, or None if no hash of the files is known. `tree` is the git tree at the path.

    None too if commits must be signed: another commit with the same files need not be.
    """
    if (project.git or {}).get("verify"):
        return None
    archive = deployment.spec["source"].get("archive")
    files = {"archive": archive.get("sha256")} if archive else {"tree": tree}
    if not any(files.values()):
        return None
    return digest(
        {
            **files,
            "crew": deployment.spec.get("crew"),
            "bases": dict(config.base_images),
            "service": config.service_image,
            "registry": config.registry,
            "private_index": private_index(project),
            "dockerfile": own_dockerfile(project),
            "dockerfile_images": list(config.dockerfile_images),
            "requirements": own_requirements(project),
        }
    )


def private_index(project: Project) -> str:
    """Return the Secret name of the project's private package index; empty for the public one.

    The name identifies the index: another one may hold different files of the same names.
    """
    return str(((project.spec.get("build") or {}).get("secretRef") or {}).get("name") or "")


def own_dockerfile(project: Project) -> str:
    """Return the path of the project's Dockerfile; empty where that of the configuration applies."""
    return str((project.spec.get("build") or {}).get("dockerfile") or "")


def own_requirements(project: Project) -> list[str]:
    """Return the packages that the project adds to the declared dependencies."""
    return [str(line) for line in (project.spec.get("build") or {}).get("requirements") or ()]


def recorded_tree(deployment: Deployment, project: Project) -> str | None:
    """Return the git tree of a Deployment's commit if the Project's status records that commit."""
    git, own = deployment.spec["source"].get("git"), project.git
    recorded = project.status.get("source") or {}
    if git is None or own is None or own.get("suspend"):
        return None
    # The record belongs to URL and path of the observed generation of the spec. A generation counts as
    # observed before its head is deployed: the record may have an earlier path.
    if project.status.get("observedGeneration") != project.generation:
        return None
    paths = {str(source.get("path") or "") for source in (git, own, recorded)}
    same = git.get("url") == own.get("url") and len(paths) == 1 and recorded.get("commit") == git["commit"]
    return str(recorded.get("tree") or "") or None if same else None
