"""Reports one Deployment to GitHub, and polls whether a preview's pull request is still open.

It has its own queue and workers: an unavailable or slow GitHub delays no build and no activation.
The report is recorded after the call, so a crash repeats it, which changes nothing at GitHub.
Called by `controller.runtime.worker` under the key `github/<deployment>`.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime

from controller.config import ControllerConfig
from controller.github.client import GitHub, GitHubProblem
from controller.github.comment import comment
from controller.github.credentials import Credentials, CredentialsProblem, of_secret
from controller.github.pauses import RequestPauses
from controller.github.report import DeploymentReport, annotation, last_report, pull_request, report
from controller.pods.secret_check import SecretRefused, read_secret
from controller.runtime import event_map
from controller.runtime.apply import Applier
from controller.runtime.decision import ObjectEvent, Patch
from controller.runtime.workqueue import backoff
from crds import kinds
from crds.names import ANNOTATION_CLOSED, ANNOTATION_GITHUB
from crds.objects import Deployment, Project
from crds.secrets.use import github_reference

UNKNOWN_COMMIT_STATUS = 422
REFUSED_RETRY_SECONDS = 600.0
"""Retry interval after a refusal: a user may have fixed the settings."""
BACKOFF_FACTOR = 40.0
"""Multiple of the work queue's back-off if GitHub is unavailable: 2 s, 4 s, … up to twenty minutes."""
PULL_REQUEST_POLL_SECONDS = 300.0
"""Poll interval for the pull request of a preview."""


@dataclass
class ReportMemory:
    """State of this process by Deployment: consecutive failures, reported problems and accepted reports.

    A problem is reported again once a call has succeeded since; those of comments are apart, since they fail
    no report. `unrecorded` are Deployments whose report could not be recorded.
    """

    failures: dict[str, int] = field(default_factory=dict)
    reported_problems: dict[str, str] = field(default_factory=dict)
    comment_problems: dict[str, str] = field(default_factory=dict)
    pull_requests_polled: dict[str, datetime] = field(default_factory=dict)
    commit_statuses: dict[str, tuple[str, str]] = field(default_factory=dict)
    deployment_states: dict[str, tuple[str, str, int]] = field(default_factory=dict)
    unrecorded: set[str] = field(default_factory=set)

    def remove(self, name: str) -> None:
        """Remove a deleted Deployment."""
        self.note_success(name)
        accepted = (self.commit_statuses, self.deployment_states)
        for table in (self.comment_problems, self.pull_requests_polled, *accepted):
            table.pop(name, None)
        self.unrecorded.discard(name)

    def note_success(self, name: str) -> None:
        """Note that all calls of a Deployment have succeeded."""
        self.failures.pop(name, None)
        self.reported_problems.pop(name, None)


@dataclass(frozen=True)
class GitHubReconciler:
    """Reconciler of a Deployment's GitHub reports."""

    applier: Applier
    config: ControllerConfig
    github: GitHub
    memory: ReportMemory = field(default_factory=ReportMemory)
    pauses: RequestPauses = field(default_factory=RequestPauses)

    async def reconcile(self, name: str) -> None:
        """Report one Deployment to GitHub if its state changed. Raises `kube.errors`."""
        key = event_map.github(name)
        raw = await self.applier.get(kinds.DEPLOYMENT, name, key)
        deployment = Deployment(raw) if raw else None
        raw_project = await self.applier.get(kinds.PROJECT, deployment.project, key) if deployment else None
        project = Project(raw_project) if raw_project else None
        if deployment is None or project is None:
            self.memory.remove(name)
            self.applier.queues.remove(key)
            return
        now = datetime.now(UTC)
        desired = report(project, deployment, self.config.public_url, self.config.token_keys, now)
        number = _polled_pull_request(project, deployment)
        if desired is None and number is None:
            self.memory.remove(name)
            return
        if wait := self.pauses.left(project.name, self.config.github_url, now):
            self.applier.queues.add(key, wait)
            return
        failure: GitHubProblem | CredentialsProblem | None = None
        try:
            if desired is not None:
                await self._report(project, deployment, desired)
        except (GitHubProblem, CredentialsProblem) as problem:
            failure = problem
        try:
            # Also after a refused report, but not during a rate limit.
            if number is not None and not (isinstance(failure, GitHubProblem) and failure.retry_after):
                await self._poll_pull_request(project, deployment, number, now)
        except (GitHubProblem, CredentialsProblem) as problem:
            failure = failure or problem
        if failure is None:
            self.memory.note_success(name)
        else:
            self._record_failure(deployment, failure)

    async def _report(self, project: Project, deployment: Deployment, desired: DeploymentReport) -> None:
        before = last_report(deployment)
        unrecorded = deployment.name in self.memory.unrecorded
        if not desired.state_changed(before) and not unrecorded:
            return
        credentials = await self._credentials(project)
        commit = (desired.repository, desired.commit_state)
        if unrecorded or (
            desired.commit_state_changed(before)
            and self.memory.commit_statuses.get(deployment.name) != commit
        ):
            await self.github.set_commit_status(credentials, desired)
            # GitHub allows a thousand statuses per commit, and each triggers other systems: do not repeat an
            # accepted one because a later call fails.
            self.memory.commit_statuses[deployment.name] = commit
        repository, state, deployment_id = self.memory.deployment_states.get(deployment.name, ("", "", 0))
        if unrecorded or (repository, state) != (desired.repository, desired.state):
            self.memory.deployment_states.pop(deployment.name, None)
            deployment_id = await self._report_deployment(
                credentials, desired, before.deployment if before else None
            )
            # Each status starts the workflows of `on: deployment_status`.
            accepted = (desired.repository, desired.state, deployment_id)
            self.memory.deployment_states[deployment.name] = accepted
        await self._put_comment(credentials, project, deployment, desired)
        value = {"metadata": {"annotations": {ANNOTATION_GITHUB: annotation(desired, deployment_id)}}}
        # With a resourceVersion, since the state may have changed meanwhile.
        patch = Patch(kinds.DEPLOYMENT, deployment.name, value, deployment.resource_version, None)
        # If another controller was faster, the last report at GitHub may be an old one.
        self.memory.unrecorded.add(deployment.name)
        await self.applier.patch(patch)
        self.memory.unrecorded.discard(deployment.name)

    async def _put_comment(
        self, credentials: Credentials, project: Project, deployment: Deployment, desired: DeploymentReport
    ) -> None:
        """Comment on a preview's pull request. A refusal becomes an Event: it does not fail the report."""
        text = comment(project, deployment, desired)
        if text is None:
            return
        try:
            await self.github.put_comment(credentials, text)
        except GitHubProblem as problem:
            if problem.transient:
                raise
            self._record_refusal(deployment, problem, self.memory.comment_problems)
            return
        self.memory.comment_problems.pop(deployment.name, None)

    async def _report_deployment(
        self, credentials: Credentials, desired: DeploymentReport, recorded_id: int | None
    ) -> int:
        """Return the id of the reported GitHub deployment; create one if the recorded one is missing."""
        if recorded_id is not None:
            try:
                await self.github.set_deployment_status(credentials, desired, recorded_id, desired.state)
                return recorded_id
            except GitHubProblem as problem:
                # It was deleted, or the Project names another repository now.
                if problem.status != 404:
                    raise
        deployment_id = await self.github.ensure_deployment(credentials, desired)
        await self.github.set_deployment_status(credentials, desired, deployment_id, desired.state)
        return deployment_id

    async def _poll_pull_request(
        self, project: Project, deployment: Deployment, number: int, now: datetime
    ) -> None:
        """Mark a preview whose pull request is closed; the Project's retention then deletes it."""
        last = self.memory.pull_requests_polled.get(deployment.name)
        if last is not None and (left := PULL_REQUEST_POLL_SECONDS - (now - last).total_seconds()) > 0:
            self.applier.queues.add(event_map.github(deployment.name), left)
            return
        credentials = await self._credentials(project)
        repository = str(project.spec["github"]["repository"])
        if await self.github.is_open(credentials, repository, number):
            self.applier.queues.add(event_map.github(deployment.name), PULL_REQUEST_POLL_SECONDS)
        else:
            value = {"metadata": {"annotations": {ANNOTATION_CLOSED: f"pull request {number}"}}}
            await self.applier.patch(
                Patch(kinds.DEPLOYMENT, deployment.name, value, deployment.resource_version, None)
            )
        # Not before the patch: after a conflict, the next reconcile reads the pull request again.
        self.memory.pull_requests_polled[deployment.name] = now

    async def _credentials(self, project: Project) -> Credentials:
        reference = github_reference(project, self.config.github_url)
        if reference is None:
            raise CredentialsProblem("spec.github.secretRef names no Secret")
        try:
            secret = await read_secret(self.applier.kube, project, reference, self.config.secret_use)
        except SecretRefused as problem:
            raise CredentialsProblem(str(problem)) from None
        return of_secret(secret, reference.name)

    def _record_failure(self, deployment: Deployment, problem: GitHubProblem | CredentialsProblem) -> None:
        name = deployment.name
        count = self.memory.failures.get(name, 0) + 1
        self.memory.failures[name] = count
        transient = isinstance(problem, GitHubProblem) and problem.transient
        if not transient:
            self._record_refusal(deployment, problem, self.memory.reported_problems)
        # A commit that was deployed from a directory, and not pushed, says nothing about the credential.
        is_unknown = isinstance(problem, GitHubProblem) and problem.status == UNKNOWN_COMMIT_STATUS
        result = "passing" if transient else "unknown_commit" if is_unknown else "refused"
        self.applier.metrics.github.labels(result).inc()
        if isinstance(problem, GitHubProblem) and problem.retry_after:
            # The next reconcile waits until its end.
            self.pauses.pause(
                deployment.project, self.config.github_url, problem.retry_after, datetime.now(UTC)
            )
        self.applier.queues.add(
            event_map.github(name), BACKOFF_FACTOR * backoff(count) if transient else REFUSED_RETRY_SECONDS
        )

    def _record_refusal(
        self, deployment: Deployment, problem: GitHubProblem | CredentialsProblem, known: dict[str, str]
    ) -> None:
        """Record an Event, unless the problem is the one that is `known` of the Deployment."""
        if known.get(deployment.name) == str(problem):
            return
        known[deployment.name] = str(problem)
        note = ObjectEvent("GitHubNotTold", str(problem), True)
        self.applier.recorder.record(kinds.DEPLOYMENT, deployment.raw, note, datetime.now(UTC))


def _polled_pull_request(project: Project, deployment: Deployment) -> int | None:
    """Return the pull request whose end the Deployment, reported or not, waits for; None without one."""
    is_closed = deployment.deleting or ANNOTATION_CLOSED in deployment.annotations
    if "github" not in project.spec or not deployment.preview or is_closed:
        return None
    return pull_request(deployment)
