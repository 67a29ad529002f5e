"""Reports the commit status of one Deployment to the host that `spec.commitStatus` names.

It shares the queue of the GitHub reports: a slow host delays no build and no activation. The status is
recorded after the call, so a crash repeats it, which changes nothing there. Called by
`controller.runtime.worker` under the key `commit-statuses/<deployment>`.
"""

import base64
import binascii
from dataclasses import dataclass, field
from datetime import UTC, datetime

from controller.commit_status.host import StatusHost
from controller.commit_status.request import GITLAB, StatusProblem, read_token, state_of, status_request
from controller.config import ControllerConfig
from controller.github.pauses import RequestPauses
from controller.github.report import DeploymentReport, commit_report
from controller.pods.secret_check import SecretRefused, read_secret
from controller.runtime import event_map
from controller.runtime.apply import Applier
from controller.runtime.decision import ObjectEvent, Patch
from controller.runtime.workqueue import backoff
from crds import kinds
from crds.names import ANNOTATION_COMMIT_STATUS
from crds.objects import Deployment, Project
from crds.secrets.use import commit_status_reference

REFUSED_RETRY_SECONDS = 600.0
"""Retry interval after a refusal: a user may have fixed the settings."""
BACKOFF_FACTOR = 40.0
"""Multiple of the work queue's back-off if the host is unavailable: 2 s, 4 s, … up to twenty minutes."""


@dataclass(frozen=True)
class CommitStatusReconciler:
    """Reconciler of a Deployment's commit status. `failures` and `problems` are by Deployment."""

    applier: Applier
    config: ControllerConfig
    host: StatusHost
    failures: dict[str, int] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    pauses: RequestPauses = field(default_factory=RequestPauses)

    async def reconcile(self, name: str) -> None:
        """Report the status of one Deployment if its state changed. Raises `kube.errors`."""
        key = event_map.commit_status(name)
        raw = await self.applier.get(kinds.DEPLOYMENT, name, key)
        deployment = Deployment(raw) if raw else None
        raw_project = await self.applier.get(kinds.PROJECT, deployment.project, key) if deployment else None
        project = Project(raw_project) if raw_project else None
        desired = self._desired(project, deployment)
        if deployment is None or project is None or desired is None:
            self._note_success(name)
            self.applier.queues.remove(key)
            return
        provider = str(project.spec["commitStatus"]["provider"])
        record = f"{provider} {desired.repository} {state_of(provider, desired)}"
        if deployment.annotations.get(ANNOTATION_COMMIT_STATUS) == record:
            return
        if wait := self.pauses.left(project.name, self._url(provider), datetime.now(UTC)):
            self.applier.queues.add(key, wait)
            return
        try:
            token = await self._token(project, provider)
            await self.host.send(provider, status_request(provider, self._url(provider), token, desired))
        except StatusProblem as problem:
            self._record_failure(deployment, self._url(provider), problem)
            return
        self._note_success(name)
        # With a resourceVersion, since the state may have changed meanwhile.
        value = {"metadata": {"annotations": {ANNOTATION_COMMIT_STATUS: record}}}
        await self.applier.patch(
            Patch(kinds.DEPLOYMENT, deployment.name, value, deployment.resource_version, None)
        )

    def _desired(self, project: Project | None, deployment: Deployment | None) -> DeploymentReport | None:
        settings = project.spec.get("commitStatus") if project else None
        if project is None or deployment is None or settings is None:
            return None
        is_reported = ANNOTATION_COMMIT_STATUS in deployment.annotations
        repository = str(settings["repository"])
        return commit_report(
            project, deployment, repository, is_reported, self.config.public_url, datetime.now(UTC)
        )

    def _url(self, provider: str) -> str:
        return self.config.gitlab_url if provider == GITLAB else self.config.gitea_url

    async def _token(self, project: Project, provider: str) -> str:
        reference = commit_status_reference(project, self._url(provider))
        if reference is None:
            raise StatusProblem("spec.commitStatus.secretRef names no Secret", False)
        try:
            secret = await read_secret(self.applier.kube, project, reference, self.config.secret_use)
        except SecretRefused as problem:
            raise StatusProblem(str(problem), False) from None
        try:
            value = base64.b64decode(((secret or {}).get("data") or {}).get("token") or "")
        except binascii.Error:
            value = None
        return read_token(secret, reference.name, value)

    def _note_success(self, name: str) -> None:
        """Remove the failures of a Deployment: the same problem is reported again."""
        self.failures.pop(name, None)
        self.problems.pop(name, None)

    def _record_failure(self, deployment: Deployment, host: str, problem: StatusProblem) -> None:
        name = deployment.name
        count = self.failures[name] = self.failures.get(name, 0) + 1
        if not problem.transient and self.problems.get(name) != str(problem):
            self.problems[name] = str(problem)
            note = ObjectEvent("CommitStatusRefused", str(problem), True)
            self.applier.recorder.record(kinds.DEPLOYMENT, deployment.raw, note, datetime.now(UTC))
        self.applier.metrics.commit_statuses.labels("passing" if problem.transient else "refused").inc()
        if problem.retry_after:
            # The next reconcile waits until its end.
            self.pauses.pause(deployment.project, host, problem.retry_after, datetime.now(UTC))
        wait = BACKOFF_FACTOR * backoff(count) if problem.transient else REFUSED_RETRY_SECONDS
        self.applier.queues.add(event_map.commit_status(name), wait)
