"""Types of the results, named as in the OpenAPI document (/openapi.json). A test compares the two."""

from typing import Any, Literal, NotRequired, TypedDict

DeploymentStatus = Literal["pending", "building", "active", "failed", "superseded"]
RunStatus = Literal["pending", "running", "succeeded", "failed", "canceled"]
EventType = Literal[
    "run.succeeded", "run.failed", "run.canceled", "run.waiting", "deployment.active", "deployment.failed"
]
DeliveryStatus = Literal["pending", "delivered", "failed"]
Scope = Literal["read", "run", "preview", "deploy", "admin"]


class Ready(TypedDict):
    """Whether a project's source could be read; status None until the first check."""

    status: bool | None
    reason: str
    message: str


class Limited(TypedDict):
    """What a project does not get although its settings ask for it."""

    reason: str
    message: str


class Project(TypedDict):
    """A named container for the deployments of one crew."""

    name: str
    namespace: str | None
    created_by: str | None
    plan: str
    source: dict[str, Any] | None
    run: dict[str, Any] | None
    build: dict[str, Any] | None
    pod: dict[str, Any] | None
    webhook: dict[str, Any] | None
    github: dict[str, Any] | None
    commit_status: dict[str, Any] | None
    oidc: list[dict[str, Any]] | None
    schedules: list[dict[str, Any]] | None
    notifications: list[dict[str, Any]] | None
    retention: dict[str, Any] | None
    budget: dict[str, Any] | None
    created_at: str
    active_deployment_id: str | None
    ready: Ready
    limited: Limited | None
    failing_notifications: list[str]


class NotificationDelivery(TypedDict):
    """One event for one receiver of a project's notifications."""

    id: str
    notification: str
    type: EventType
    object_id: str
    status: DeliveryStatus
    attempts: int
    created_at: str
    next_attempt_at: str | None
    completed_at: str | None
    response_status: int | None
    error: str | None


class Variable(TypedDict):
    """An environment variable's name; the API never returns its value."""

    name: str
    updated_at: str


class Schedule(TypedDict):
    """Times at which runs of a project's active deployment start automatically."""

    name: str
    cron: str
    time_zone: str
    input: dict[str, Any] | None
    entrypoint: str | None
    labels: dict[str, str] | None
    concurrency_policy: Literal["Allow", "Forbid", "Replace"]
    starting_deadline: str | None
    suspend: bool
    last_time: str | None
    last_run_id: str | None
    next_time: str | None
    message: str | None


class Upload(TypedDict):
    """The signed URL for an archive, and the URL to reference it afterwards."""

    id: str
    upload_url: str
    build_context_url: str
    method: str
    headers: dict[str, str]
    expires_at: str


class BuildError(TypedDict):
    """Why a deployment failed."""

    reason: str
    message: str
    hint: NotRequired[str]
    log: NotRequired[str]
    docs_url: NotRequired[str]


class BuildStage(TypedDict):
    """One stage of a build; while it lasts it has a start and no seconds."""

    name: str
    seconds: NotRequired[float]
    started_at: NotRequired[str]


class Waiting(TypedDict):
    """Why a run or a deployment has not started."""

    reason: str
    message: str
    since: str | None


class DeploymentCreated(TypedDict):
    """A deployment in the response of its creation."""

    id: str
    project: str
    status: DeploymentStatus
    message: str
    created_at: str


class DeploymentItem(DeploymentCreated):
    """A deployment in a list."""

    activated_at: str | None
    error: NotRequired[BuildError]
    smoke_run: NotRequired[str]
    is_preview: NotRequired[bool]


class Deployment(DeploymentItem):
    """A deployment."""

    git_sha: str | None
    created_by: str | None
    build_logs_url: str
    queue_position: NotRequired[int]
    waiting: NotRequired[Waiting]
    cancel_requested: NotRequired[bool]
    stages: NotRequired[list[BuildStage]]
    entrypoints: NotRequired[list[str]]


class DeploymentInputs(TypedDict):
    """The JSON Schema of a deployment's input."""

    schema: dict[str, Any]
    declared: bool


class RunError(TypedDict):
    """Why a run failed."""

    reason: str | None
    message: str | None
    docs_url: NotRequired[str]


class ModelUsage(TypedDict):
    """The tokens of a model; `cost` None: they have no price."""

    prompt_tokens: int
    completion_tokens: int
    cost: float | None


class RunUsage(TypedDict):
    """What a run used; `cost` None: the installation has no prices."""

    prompt_tokens: int
    completion_tokens: int
    artifact_bytes: int
    cost: float | None
    currency: str | None
    models: dict[str, ModelUsage]


class RunItem(TypedDict):
    """A run in a list."""

    id: str
    status: RunStatus
    created_at: str
    deployment_id: str | None
    project: str
    labels: dict[str, str]
    completed_at: str | None
    duration_ms: int | None
    usage: RunUsage | None
    smoke: NotRequired[bool]


class InputRequest(TypedDict):
    """A question that a run waits to have answered."""

    request_id: str
    prompt: str
    schema: NotRequired[dict[str, Any]]
    choices: NotRequired[list[Any]]
    created_at: str
    expires_at: str


class InputReceived(TypedDict):
    """The answer to a question was stored."""

    request_id: str
    received_at: str
    by: str


class RunCreated(TypedDict):
    """A run in the response of its creation; with its outcome only if the call waited for it."""

    id: str
    status: RunStatus
    created_at: str
    deployment_id: str | None
    project: str
    labels: dict[str, str]
    trace_id: str | None
    input: dict[str, Any]
    events_url: str
    completed_at: NotRequired[str | None]
    duration_ms: NotRequired[int | None]
    usage: NotRequired[RunUsage | None]
    created_by: NotRequired[str | None]
    entrypoint: NotRequired[str | None]
    timeout: NotRequired[str | None]
    rerun_of: NotRequired[str | None]
    started_at: NotRequired[str | None]
    queue_position: NotRequired[int]
    waiting: NotRequired[Waiting]
    cancel_requested: NotRequired[bool]
    output: NotRequired[Any]
    error: NotRequired[RunError]


class Run(TypedDict):
    """A run."""

    id: str
    status: RunStatus
    created_at: str
    deployment_id: str | None
    project: str
    labels: dict[str, str]
    trace_id: str | None
    input: dict[str, Any]
    events_url: str
    completed_at: str | None
    duration_ms: int | None
    usage: RunUsage | None
    started_at: str | None
    created_by: str | None
    entrypoint: str | None
    timeout: str | None
    rerun_of: str | None
    smoke: NotRequired[bool]
    queue_position: NotRequired[int]
    waiting: NotRequired[Waiting]
    input_requests: NotRequired[list[InputRequest]]
    cancel_requested: NotRequired[bool]
    output: NotRequired[Any]
    error: NotRequired[RunError]


class Event(TypedDict):
    """An event of a run. `data` always has `run_id` and `timestamp`."""

    id: int
    type: str
    data: dict[str, Any]


class Artifact(TypedDict):
    """A file of a run. `partial`: the crew was stopped before it finished."""

    name: str
    size: int
    content_type: str
    sha256: str
    partial: bool
    created_at: str
    url: str


class Key(TypedDict):
    """An API key without its secret. `projects` None: all projects."""

    id: str
    name: str
    created_by: str | None
    scopes: list[Scope]
    projects: list[str] | None
    plan: str | None
    created_at: str
    expires_at: str | None
    last_used_at: str | None


class KeyCreated(Key):
    """A new API key with its secret, which only this response contains."""

    key: str


class UsageTotal(TypedDict):
    """Total usage."""

    runs: int
    run_seconds: float
    build_seconds: float
    artifact_bytes: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None


class UsageDay(UsageTotal):
    """Usage of one day (UTC)."""

    date: str


class LimitUse(TypedDict):
    """A limit of a project, and how much of it is used now; `limit` None: there is none."""

    name: str
    used: int
    limit: int | None


class BudgetTokens(TypedDict):
    """A budget of tokens, and how many are used of it; `limit` None: there is none."""

    used: int
    limit: int | None


class BudgetCost(TypedDict):
    """A budget of cost, and how much is used of it; `used` None: there are no prices."""

    used: float | None
    limit: float | None


class BudgetUse(TypedDict):
    """The budget of a project for this month; once `exceeded`, new runs are refused."""

    month: str
    tokens: BudgetTokens
    cost: BudgetCost
    exceeded: bool
    message: str | None


class RunBudget(TypedDict):
    """The budget of each run, which is stopped above it; None: no limit."""

    tokens: int | None
    cost: float | None


Usage = TypedDict(
    "Usage",
    {
        "project": str,
        "from": str,
        "to": str,
        "currency": str | None,
        "prices": dict[str, Any] | None,
        "days": list[UsageDay],
        "total": UsageTotal,
        "models": dict[str, ModelUsage],
        "limits": list[LimitUse],
        "budget": BudgetUse | None,
        "run_budget": RunBudget | None,
    },
)


ProjectUsage = TypedDict(
    "ProjectUsage",
    {
        "project": str,
        "from": str,
        "to": str,
        "currency": str | None,
        "runs": int,
        "run_seconds": float,
        "build_seconds": float,
        "artifact_bytes": int,
        "prompt_tokens": int,
        "completion_tokens": int,
        "cost": float | None,
    },
)


class WhoamiProject(TypedDict):
    """The scopes in one project."""

    project: str
    scopes: list[str]


class Whoami(TypedDict):
    """Who the caller is; `scopes` are those in all projects, None for a caller of single ones."""

    principal: str
    scopes: list[str] | None
    projects: list[WhoamiProject]
    expires_at: str | None


class InstallationComponent(TypedDict):
    """A part of the installation; `ready` None: nothing tells."""

    name: str
    ready: bool | None
    message: str | None


class InstallationRuns(TypedDict):
    """How many runs of all projects wait and run."""

    pending: int
    running: int


class InstallationBuilds(TypedDict):
    """The builds of all projects that wait and run; `deployments` has the first of them."""

    waiting: int
    running: int
    slots: int
    deployments: list[DeploymentItem]


class InstallationNotifications(TypedDict):
    """Pending deliveries, and receivers whose last delivery was given up."""

    pending: int
    failing: int


class Installation(TypedDict):
    """The state of the installation; `leading` is that of the replica that answered."""

    components: list[InstallationComponent]
    leading: bool
    runs: InstallationRuns
    builds: InstallationBuilds
    notifications: InstallationNotifications


class AuditRecord(TypedDict):
    """A change made through the API, as its log has it."""

    number: int
    time: str
    actor: str
    remote: str
    method: str
    path: str
    project: str | None
    target: str | None
    outcome: Literal["accepted", "failed", "pruned"]
    code: str | None
    request_id: str
    previous: str
    hash: str
