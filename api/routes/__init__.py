"""The operations of /v1, a resource a file, and `ENDPOINTS`, the table of them all."""

from api.routes import artifacts, build_logs, deployments, env, events, keys, projects, runs, uploads, usage

ENDPOINTS = (
    *projects.ENDPOINTS,
    *env.ENDPOINTS,
    *uploads.ENDPOINTS,
    *deployments.ENDPOINTS,
    *build_logs.ENDPOINTS,
    *runs.ENDPOINTS,
    *events.ENDPOINTS,
    *artifacts.ENDPOINTS,
    *keys.ENDPOINTS,
    *usage.ENDPOINTS,
)
