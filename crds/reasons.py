"""All reasons and phases of the custom resources, as stable CamelCase words.

They are part of the interface: kubectl users select by them, API clients branch on `error.reason`. Written by
controller, build pods and runner; runner and plan repeat the ones they use, because they do not import this
package.
"""

from enum import StrEnum


class BuildReason(StrEnum):
    """Why a Deployment failed (docs/deployment.md)."""

    GIT_AUTH_FAILED = "GitAuthFailed"
    GIT_NOT_FOUND = "GitNotFound"
    VERIFICATION_FAILED = "VerificationFailed"
    CONTEXT_TOO_LARGE = "ContextTooLarge"
    CONTEXT_INVALID = "ContextInvalid"
    CONFIG_INVALID = "ConfigInvalid"
    ENTRYPOINT_NOT_FOUND = "EntrypointNotFound"
    UNSUPPORTED_FRAMEWORK = "UnsupportedFramework"
    DEPENDENCY_RESOLUTION = "DependencyResolution"
    BUILD_FAILED = "BuildFailed"
    BUILD_TIMEOUT = "BuildTimeout"
    BUILD_OUT_OF_MEMORY = "BuildOutOfMemory"
    REGISTRY_PUSH = "RegistryPush"
    SMOKE_FAILED = "SmokeFailed"
    SUPERSEDED = "Superseded"
    CANCELED = "Canceled"


class ProgressReason(StrEnum):
    """Which step a Deployment is at while it is built and does not wait, in its condition Ready."""

    ASSEMBLING = "Assembling"
    INSTALLING = "InstallingDependencies"
    ACTIVATING = "Activating"


class RunReason(StrEnum):
    """Why a Run failed (docs/run.md)."""

    CREW_ERROR = "CrewError"
    IMPORT_ERROR = "ImportError"
    ENTRYPOINT_NOT_FOUND = "EntrypointNotFound"
    MISSING_VARIABLE = "MissingVariable"
    INPUT_TOO_LARGE = "InputTooLarge"
    INPUT_INVALID = "InputInvalid"
    INPUT_REQUIRED = "InputRequired"
    INPUT_TIMEOUT = "InputTimeout"
    DEADLINE_EXCEEDED = "DeadlineExceeded"
    OOM_KILLED = "OOMKilled"
    STORAGE_EXCEEDED = "StorageExceeded"
    EVICTED = "Evicted"
    PREEMPTED = "Preempted"
    POD_DELETED = "PodDeleted"
    RUNNER_LOST = "RunnerLost"
    NODE_LOST = "NodeLost"
    IMAGE_PULL_FAILED = "ImagePullFailed"
    START_TIMEOUT = "StartTimeout"
    ARTIFACTS_LOST = "ArtifactsLost"
    ALREADY_EXECUTED = "AlreadyExecuted"
    DEPLOYMENT_FAILED = "DeploymentFailed"
    DEPLOYMENT_NOT_FOUND = "DeploymentNotFound"
    NO_ACTIVE_DEPLOYMENT = "NoActiveDeployment"
    BUDGET_EXCEEDED = "BudgetExceeded"


class RunPhase(StrEnum):
    """The phases of a Run."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    CANCELED = "Canceled"


class DeploymentPhase(StrEnum):
    """The phases of a Deployment."""

    PENDING = "Pending"
    BUILDING = "Building"
    ACTIVE = "Active"
    FAILED = "Failed"
    SUPERSEDED = "Superseded"


TERMINAL_RUN_PHASES = frozenset({RunPhase.SUCCEEDED, RunPhase.FAILED, RunPhase.CANCELED})
"""The phases that a Run never leaves."""

STATUS_OF_PHASE: dict[str, str] = {phase: phase.lower() for phase in (*RunPhase, *DeploymentPhase)}
"""Phases in CamelCase to the API's statuses in lower case."""
