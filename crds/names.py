"""Shared names: API group, labels, annotations, and the mapping between API ids and object names.

An id of the API contains an underscore (`run_ab12`), which object names must not; the object is `run-ab12`.
Only the first separator is replaced, to keep the mapping reversible. Standard library only.
"""

import base64
import hashlib
import re

GROUP = "crewyard.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"

LABEL_PROJECT = f"{GROUP}/project"
LABEL_DEPLOYMENT = f"{GROUP}/deployment"
LABEL_RUN = f"{GROUP}/run"
LABEL_WARM = f"{GROUP}/warm"
"""On a pod that was started before its run: the fingerprint of what it was made from."""
LABEL_WARM_BUILDER = f"{GROUP}/warm-builder"
"""On a pod that was started before its build: the fingerprint of what it was made from."""
LABEL_SCHEDULE = f"{GROUP}/schedule"
"""On a Run that a schedule of its Project started: the name of the schedule."""
LABEL_SMOKE = f"{GROUP}/smoke"
"""On the smoke run of a Deployment: `true`."""
LABEL_COMPONENT = "app.kubernetes.io/component"
LABEL_PART_OF = "app.kubernetes.io/part-of"
LABEL_MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGED_BY = "crewyard"
COMPONENT_RUN = "run"
COMPONENT_BUILD = "build"
CONTROLLER_LEASE = "crewyard-controller"
"""The Lease that the leading controller renews, in the namespace of the crews."""

ANNOTATION_PUSHED_AT = f"{GROUP}/pushedAt"
"""On a Project: when a webhook last reported a push; the controller then polls early."""
ANNOTATION_MONTH_USE = f"{GROUP}/month-use"
"""On a Project with a budget: what it has used of it in this month, written by the API server."""
ANNOTATION_FAILING_NOTIFICATIONS = f"{GROUP}/failing-notifications"
"""On a Project: names of notifications whose receiver took nothing for a day, written by the API server."""
ANNOTATION_REQUESTED_AT = f"{GROUP}/requestedAt"
ANNOTATION_GITHUB = f"{GROUP}/github"
"""On a Deployment: the state last reported to GitHub, written by the controller."""
ANNOTATION_ATTESTED = f"{GROUP}/attested"
"""On a Deployment: the digest of the image whose provenance the controller attached."""
ANNOTATION_COMMIT_STATUS = f"{GROUP}/commit-status"
"""On a Deployment: provider, repository and state of the last commit status, written by the controller."""
ANNOTATION_SCHEDULED_AT = f"{GROUP}/scheduledAt"
"""On a Run that a schedule started: the time for which it was created."""
ANNOTATION_POLLED = f"{GROUP}/polled"
"""On a Deployment that polling created, without a request: a newer commit may supersede it."""
ANNOTATION_CLOSED = f"{GROUP}/closed"
"""On a preview: its pull request is closed and the preview can be deleted."""
ANNOTATION_ERASED = f"{GROUP}/erased"
"""On a Deployment: its erasure is requested; the controller deletes its image, then the object."""

ANNOTATION_CREATED_BY = f"{GROUP}/created-by"
"""On an object that the API created: the caller, such as `key:<id>`."""

ANNOTATION_PROVEN_COMMIT = f"{GROUP}/proven-commit"
"""On a Deployment of an upload: proof that a workflow's token named its commit, written by the API server."""

ANNOTATION_RERUN_OF = f"{GROUP}/rerun-of"
"""On a Run: the name of the Run that it repeats."""

ANNOTATION_TRACEPARENT = f"{GROUP}/traceparent"
"""On a Run: the span of its caller, as in a header `traceparent`; the run's spans are below it."""

ANNOTATION_BOUND_AT = f"{GROUP}/bound-at"
"""On a pod that was started before its run or build: when it got it."""

ANNOTATION_BUILD = f"{GROUP}/build"
"""On a pod that was started before its build: the variables that the build has in addition, as JSON."""

RUN_PREFIX = "run-"
WARM_PREFIX = "warm-"
"""Of the names of pods that are started before their runs or builds."""
DEPLOYMENT_PREFIX = "dep-"
MAX_NAME = 52
_SMOKE_RUN = re.compile(rf"{RUN_PREFIX}smoke-[a-z2-7]{{26}}")


def id_of(name: str) -> str:
    """Return the API id of an object: `run-ab-12` → `run_ab-12`."""
    return name.replace("-", "_", 1)


def name_of(identifier: str) -> str:
    """Return the object name of an id: `run_ab-12` → `run-ab-12`. Other texts give no valid name."""
    return identifier.replace("_", "-", 1)


def env_secret(project: str) -> str:
    """Return the name of the Secret with a project's environment variables."""
    return f"{project}-env"


def smoke_run(deployment_uid: str) -> str:
    """Return the name of a Deployment's smoke run, which follows from its uid: there is at most one."""
    digest = hashlib.sha256(deployment_uid.encode()).digest()
    return f"{RUN_PREFIX}smoke-{base64.b32encode(digest).decode().lower()[:26]}"


def is_smoke_run(name: str) -> bool:
    """Return whether a Run has the name of a smoke run."""
    return _SMOKE_RUN.fullmatch(name) is not None
