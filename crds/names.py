"""Shared names: API group, labels, annotations, and the mapping between API ids and object names.

An id of the API contains an underscore (`run_ab12`), which object names must not; the object is `run-ab12`.
Only the first separator is replaced, to keep the mapping reversible. Standard library only.
"""

GROUP = "crewyard.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"

LABEL_PROJECT = f"{GROUP}/project"
LABEL_DEPLOYMENT = f"{GROUP}/deployment"
LABEL_RUN = f"{GROUP}/run"
LABEL_SCHEDULE = f"{GROUP}/schedule"
"""On a Run that a schedule of its Project started: the name of the schedule."""
LABEL_COMPONENT = "app.kubernetes.io/component"
LABEL_PART_OF = "app.kubernetes.io/part-of"
LABEL_MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGED_BY = "crewyard"
COMPONENT_RUN = "run"
COMPONENT_BUILD = "build"

ANNOTATION_PUSHED_AT = f"{GROUP}/pushedAt"
"""On a Project: when a webhook last reported a push; the controller then polls early."""
ANNOTATION_REQUESTED_AT = f"{GROUP}/requestedAt"
ANNOTATION_GITHUB = f"{GROUP}/github"
"""On a Deployment: the state last reported to GitHub, written by the controller."""
ANNOTATION_SCHEDULED_AT = f"{GROUP}/scheduledAt"
"""On a Run that a schedule started: the time for which it was created."""
ANNOTATION_POLLED = f"{GROUP}/polled"
"""On a Deployment that polling created, without a request: a newer commit may supersede it."""
ANNOTATION_CLOSED = f"{GROUP}/closed"
"""On a preview: its pull request is closed and the preview can be deleted."""

ANNOTATION_CREATED_BY = f"{GROUP}/created-by"
"""On an object that the API created: the caller, such as `key:<id>`."""

RUN_PREFIX = "run-"
DEPLOYMENT_PREFIX = "dep-"
MAX_NAME = 52


def id_of(name: str) -> str:
    """Return the API id of an object: `run-ab-12` → `run_ab-12`."""
    return name.replace("-", "_", 1)


def name_of(identifier: str) -> str:
    """Return the object name of an id: `run_ab-12` → `run-ab-12`. Other texts give no valid name."""
    return identifier.replace("_", "-", 1)


def env_secret(project: str) -> str:
    """Return the name of the Secret with a project's environment variables."""
    return f"{project}-env"
