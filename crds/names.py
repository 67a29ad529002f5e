"""Names that everything agrees on: group, labels, annotations, and ids against object names.

An id of the API carries an underscore (`run_ab12`), which no object name may;
the object is `run-ab12`. Only the first separator is exchanged, so that the
mapping has an inverse. Standard library only.
"""

GROUP = "crewyard.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"

LABEL_PROJECT = f"{GROUP}/project"
LABEL_DEPLOYMENT = f"{GROUP}/deployment"
LABEL_RUN = f"{GROUP}/run"
LABEL_COMPONENT = "app.kubernetes.io/component"
LABEL_PART_OF = "app.kubernetes.io/part-of"
LABEL_MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGED_BY = "crewyard"
COMPONENT_RUN = "run"
COMPONENT_BUILD = "build"

ANNOTATION_PUSHED_AT = f"{GROUP}/pushedAt"
"""On a Project: when a webhook last told of a push, which brings the next look forward."""
ANNOTATION_REQUESTED_AT = f"{GROUP}/requestedAt"
ANNOTATION_GITHUB = f"{GROUP}/github"
"""On a Deployment: what GitHub was told of it last, written by the controller."""
ANNOTATION_POLLED = f"{GROUP}/polled"
"""On a Deployment that nobody asked for but its Project's source: it may give way to a newer commit."""
ANNOTATION_CLOSED = f"{GROUP}/closed"
"""On a preview: its pull request is closed, so that it can go."""

RUN_PREFIX = "run-"
DEPLOYMENT_PREFIX = "dep-"
MAX_NAME = 52


def id_of(name: str) -> str:
    """The API's id of an object: `run-ab-12` → `run_ab-12`."""
    return name.replace("-", "_", 1)


def name_of(identifier: str) -> str:
    """The object's name of an id: `run_ab-12` → `run-ab-12`. Anything else becomes no valid name."""
    return identifier.replace("_", "-", 1)


def env_secret(project: str) -> str:
    """The Secret that holds a project's environment variables."""
    return f"{project}-env"
