"""What a Deployment would be built from, as one hash that is known before any pod. Pure.

Equal keys mean equal images, so everything that goes into an image goes in here:
the files, the crew chosen of them, base and service images (the latter holds plan
and runner), and where dependencies come from. Called by `controller.deployment.reconcile`.
"""

from controller.config import Config
from crds.objects import Deployment, Project
from plan.keys import digest


def source_key(deployment: Deployment, project: Project, tree: str | None, config: Config) -> str | None:
    """The key, or None where the files are not known by a hash. `tree` is the git tree at the path."""
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
        }
    )


def private_index(project: Project) -> str:
    """The Secret of the private index that the project's dependencies come from; empty for the public one.

    Its name stands for the index: another one may hold other files of the same names.
    """
    return str(((project.spec.get("build") or {}).get("secretRef") or {}).get("name") or "")


def recorded_tree(deployment: Deployment, project: Project) -> str | None:
    """The git tree of a Deployment's commit where the Project's status records just that."""
    git, own = deployment.spec["source"].get("git"), project.git
    recorded = project.status.get("source") or {}
    if git is None or own is None or own.get("suspend"):
        return None
    # What is recorded was found at the address and path of the spec that was looked at.
    if project.status.get("observedGeneration") != project.generation:
        return None
    same = git.get("url") == own.get("url") and (git.get("path") or "") == (own.get("path") or "")
    return (
        str(recorded.get("tree") or "") or None if same and recorded.get("commit") == git["commit"] else None
    )
