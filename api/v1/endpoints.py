"""The table of all `/v1` operations. Called by `api.app` and `api.openapi.routes`."""

from api.v1.artifacts import routes as artifacts
from api.v1.audit import routes as audit
from api.v1.deliveries import routes as deliveries
from api.v1.deployments import build_logs
from api.v1.deployments import routes as deployments
from api.v1.env import routes as env
from api.v1.installation import routes as installation
from api.v1.keys import routes as keys
from api.v1.projects import routes as projects
from api.v1.runs import answer as answers
from api.v1.runs import events_routes as events
from api.v1.runs import routes as runs
from api.v1.schedules import routes as schedules
from api.v1.uploads import routes as uploads
from api.v1.usage import routes as usage
from api.v1.whoami import routes as whoami

ENDPOINTS = (
    *projects.ENDPOINTS,
    *env.ENDPOINTS,
    *schedules.ENDPOINTS,
    *deliveries.ENDPOINTS,
    *uploads.ENDPOINTS,
    *deployments.ENDPOINTS,
    *build_logs.ENDPOINTS,
    *runs.ENDPOINTS,
    *answers.ENDPOINTS,
    *events.ENDPOINTS,
    *artifacts.ENDPOINTS,
    *keys.ENDPOINTS,
    *usage.ENDPOINTS,
    *audit.ENDPOINTS,
    *installation.ENDPOINTS,
    *whoami.ENDPOINTS,
)
