"""For each alert: series under which it fires, and such under which it stays silent. Called by test_rules.

Values are in promtool's notation, a minute apart: `0+2x60` grows by 2 a minute for an hour.
"""

from dataclasses import dataclass, field

NAMESPACE = "crewyard-system"
API, CONTROLLER = (f'{{job="crewyard-{one}",namespace="{NAMESPACE}"}}' for one in ("api", "controller"))
ELSEWHERE = API.replace(NAMESPACE, "second-system")


@dataclass(frozen=True)
class AlertCase:
    """`fires` and `silent` at minute `at`."""

    alert: str
    at: int
    fires: dict[str, str]
    silent: dict[str, str] = field(default_factory=dict)


def one(name: str, labels: str = "") -> str:
    """A series of one installation."""
    return f'{name}{{namespace="n"{"," if labels else ""}{labels}}}'


def requests(route: str, code: str) -> str:
    """The counter of requests of a route."""
    return one("crewyard_http_requests_total", f'route="{route}",method="GET",code="{code}"')


def reads(bucket: str) -> str:
    """The counter of reads that took no longer than a bucket; of all for an empty one."""
    labels = 'route="/v1/runs",method="GET"'
    if bucket:
        return one("crewyard_http_request_duration_seconds_bucket", f'{labels},le="{bucket}"')
    return one("crewyard_http_request_duration_seconds_count", labels)


def oldest(kind: str, phase: str) -> str:
    """The age of the oldest object in a phase."""
    return one("crewyard_unfinished_oldest_seconds", f'kind="{kind}",phase="{phase}"')


def ended(what: str, result: str, reason: str = "") -> str:
    """The counter of ends of runs or builds."""
    return one(f"crewyard_{what}_ends_total", f'result="{result}",reason="{reason}"')


GOOD, BAD = requests("/v1/runs", "200"), requests("/v1/runs", "500")
CASES = (
    AlertCase("CrewyardApiDown", 10, {f"up{API}": "1 1 1 0x20"}, {f"up{API}": "1x20"}),
    AlertCase("CrewyardApiDown", 10, {}, {f"up{API}": "1 1 1 1 0 0 1x20"}),
    # The API of another installation does not stand in for it.
    AlertCase(
        "CrewyardApiDown", 10, {f"up{ELSEWHERE}": "1x20"}, {f"up{API}": "1x20", f"up{ELSEWHERE}": "0x20"}
    ),
    AlertCase("CrewyardControllerDown", 10, {f"up{API}": "1x20"}, {f"up{CONTROLLER}": "1x20"}),
    AlertCase(
        "CrewyardRestarts",
        60,
        {f"process_start_time_seconds{API}": "1x10 2x10 3x10 4x10 5x30"},
        {f"process_start_time_seconds{API}": "1x20 2x60"},
    ),
    AlertCase(
        "CrewyardNoLeader",
        10,
        {one("crewyard_leader", 'pod="a"'): "1 1 0x20", one("crewyard_leader", 'pod="b"'): "0x20"},
        {one("crewyard_leader", 'pod="a"'): "1 1 0x20", one("crewyard_leader", 'pod="b"'): "0 0 0 1x20"},
    ),
    AlertCase(
        "CrewyardControllerStandby",
        10,
        {
            one("crewyard_controller_active", 'pod="a"'): "1 1 0x20",
            one("crewyard_controller_active", 'pod="b"'): "0x20",
        },
        {
            one("crewyard_controller_active", 'pod="a"'): "1 1 0x20",
            one("crewyard_controller_active", 'pod="b"'): "0 0 1x20",
        },
    ),
    AlertCase(
        "CrewyardTracesNotExported",
        65,
        {
            one("crewyard_traces_waiting"): "5x80",
            one("crewyard_trace_exports_total", 'result="exported"'): "3x80",
        },
        {
            one("crewyard_traces_waiting"): "5x80",
            one("crewyard_trace_exports_total", 'result="exported"'): "3+1x80",
        },
    ),
    AlertCase(
        "CrewyardProjectionSilent",
        10,
        {one("crewyard_projection_age_seconds", 'kind="runs"'): "0+60x20"},
        {one("crewyard_projection_age_seconds", 'kind="runs"'): "60x20"},
    ),
    AlertCase(
        "CrewyardResyncOld",
        5,
        {one("crewyard_resync_age_seconds"): "3+60x20"},
        {one("crewyard_resync_age_seconds"): "3 15 65 5x20"},
    ),
    # The probe restarts the controller after two minutes, which resets the metrics but repairs nothing.
    AlertCase(
        "CrewyardResyncOld",
        12,
        {one("crewyard_resync_age_seconds"): "3 " + "0+60x2 " * 8},
        # One restart, and all is well again.
        {one("crewyard_resync_age_seconds"): "7x6 0+60x2 7x20"},
    ),
    AlertCase(
        "CrewyardWatchGone",
        12,
        {one("crewyard_watches", 'kind="runs"'): "1 " + "0x2 stale " * 8},
        {one("crewyard_watches", 'kind="runs"'): "1x6 0x2 1x20"},
    ),
    AlertCase(
        "CrewyardQueueStuck",
        12,
        {one("crewyard_queue_oldest_seconds", 'queue="main"'): "0 " + "0+60x2 " * 8},
        {one("crewyard_queue_oldest_seconds", 'queue="main"'): "0x6 0+60x2 0x20"},
    ),
    AlertCase(
        "CrewyardWatchGone",
        10,
        {one("crewyard_watches", 'kind="runs"'): "1 0x20", one("crewyard_watches", 'kind="pods"'): "1x20"},
        {one("crewyard_watches", 'kind="runs"'): "1 0 1x20"},
    ),
    AlertCase(
        "CrewyardQueueStuck",
        10,
        {one("crewyard_queue_oldest_seconds", 'queue="main"'): "0+20x20"},
        {one("crewyard_queue_oldest_seconds", 'queue="main"'): "0 45 2x20"},
    ),
    AlertCase(
        "CrewyardReconcileErrors",
        20,
        {one("crewyard_reconcile_errors_total", 'kind="runs"'): "0+1x30"},
        {one("crewyard_reconcile_errors_total", 'kind="runs"'): "0 1 2 3x30"},
    ),
    AlertCase(
        "CrewyardStatusRefused",
        10,
        {one("crewyard_status_refused_total", 'kind="runs",result="retried"'): "0 0 1x20"},
        {one("crewyard_status_refused_total", 'kind="runs",result="reduced"'): "0 0 1x20"},
    ),
    AlertCase(
        "CrewyardBackgroundWorkFails",
        20,
        {one("crewyard_background_failures_total", 'work="pruning"'): "1+1x30"},
        {one("crewyard_background_failures_total", 'work="pruning"'): "1 2 2x30"},
    ),
    AlertCase(
        "CrewyardPodCertificate",
        20,
        {one("crewyard_tls_certificate_expiry_timestamp_seconds"): "80000x30"},
        # 0: there is no such port.
        {one("crewyard_tls_certificate_expiry_timestamp_seconds"): "0x10 90000x20"},
    ),
    AlertCase(
        "CrewyardPodCertificate",
        20,
        {one("crewyard_tls_certificate_rejected"): "0 1x30"},
        {one("crewyard_tls_certificate_rejected"): "0 0 1 1 0x30"},
    ),
    AlertCase(
        "CrewyardFilesRunOut",
        10,
        {f"process_open_fds{API}": "950x20", f"process_max_fds{API}": "1000x20"},
        {f"process_open_fds{API}": "800x20", f"process_max_fds{API}": "1000x20"},
    ),
    AlertCase(
        "CrewyardApiErrorsFast", 70, {GOOD: "0+100x80", BAD: "0+3x80"}, {GOOD: "0+100x80", BAD: "0+1x80"}
    ),
    # A failure or two with little traffic is a high ratio, and does not alert.
    AlertCase("CrewyardApiErrorsFast", 70, {}, {GOOD: "0x64 1 2 3 4x20", BAD: "0x66 1 3x20"}),
    AlertCase("CrewyardApiErrorsSlow", 370, {}, {GOOD: "0x345 1 2 3 4x60", BAD: "0x350 1 3x60"}),
    AlertCase(
        "CrewyardApiSlowFast", 70, {}, {reads(""): "0x64 1 2 3 4x20", reads("0.25"): "0x64 0 0 0 0x20"}
    ),
    AlertCase(
        "CrewyardApiSlowSlow", 370, {}, {reads(""): "0x345 1 2 3 4x60", reads("0.25"): "0x345 0 0 0 0x60"}
    ),
    # It was bad and is good again: the short window ends the alarm.
    AlertCase("CrewyardApiErrorsFast", 70, {}, {GOOD: "0+100x80", BAD: "0+9x60 540x20"}),
    # Errors of clients do not count, nor do errors outside of /v1.
    AlertCase(
        "CrewyardApiErrorsFast",
        70,
        {},
        {
            GOOD: "0+100x80",
            requests("/v1/runs", "404"): "0+90x80",
            requests("/internal/v1/runs/{run}/events", "503"): "0+90x80",
        },
    ),
    AlertCase(
        "CrewyardApiErrorsSlow",
        390,
        {GOOD: "0+100x400", BAD: "0+1x400"},
        {GOOD: "0+1000x400", BAD: "0+1x400"},
    ),
    AlertCase(
        "CrewyardApiSlowFast",
        70,
        {reads(""): "0+100x80", reads("0.25"): "0+80x80"},
        {reads(""): "0+100x80", reads("0.25"): "0+95x80"},
    ),
    AlertCase(
        "CrewyardApiSlowSlow",
        390,
        {reads(""): "0+100x400", reads("0.25"): "0+90x400"},
        {reads(""): "0+100x400", reads("0.25"): "0+99x400"},
    ),
    AlertCase(
        "CrewyardStoreUnavailable",
        10,
        {requests("/readyz", "503"): "0+6x20", requests("/v1/runs", "200"): "0+60x20"},
        {requests("/readyz", "503"): "0+1x20", requests("/v1/runs", "200"): "0+60x20"},
    ),
    AlertCase(
        "CrewyardWebhooksRefused",
        60,
        {requests("/v1/hooks/git/{name}", "401"): "0+1x80", requests("/v1/hooks/git/{name}", "202"): "0x80"},
        {
            requests("/v1/hooks/git/{name}", "401"): "0+1x80",
            requests("/v1/hooks/git/{name}", "202"): "0+5x80",
        },
    ),
    AlertCase(
        "CrewyardRunsLost",
        30,
        {ended("run", "failed", "NodeLost"): "0 0 5x60"},
        {ended("run", "failed", "CrewError"): "0+5x60"},
    ),
    AlertCase(
        "CrewyardRunsLost",
        30,
        {},
        {ended("run", "failed", "NodeLost"): "0 0 5x60", ended("run", "succeeded"): "0+20x60"},
    ),
    AlertCase(
        "CrewyardRunsWait",
        90,
        {oldest("runs", "pending"): "0+60x100"},
        {oldest("runs", "pending"): "1800x100"},
    ),
    AlertCase(
        "CrewyardTenantAtLimit",
        40,
        {one("crewyard_limit_reached_total", 'limit="queue"'): "0+1x60"},
        {one("crewyard_limit_reached_total", 'limit="queue"'): "0 0 10x60"},
    ),
    AlertCase(
        "CrewyardRunOverdue",
        30,
        {oldest("runs", "running"): "90000+60x100"},
        {oldest("runs", "running"): "80000+60x100"},
    ),
    AlertCase(
        "CrewyardClaimsRefused",
        20,
        {
            one("crewyard_claims_total", 'state="refused"'): "0+1x30",
            one("crewyard_claims_total", 'state="granted"'): "0+2x30",
        },
        {
            one("crewyard_claims_total", 'state="refused"'): "0+1x30",
            one("crewyard_claims_total", 'state="granted"'): "0+20x30",
        },
    ),
    AlertCase(
        "CrewyardClaimGivenUp",
        10,
        {one("crewyard_claims_given_up"): "0 0 1x20"},
        {one("crewyard_claims_given_up"): "4x20"},
    ),
    AlertCase(
        "CrewyardRegistryRefuses",
        20,
        {ended("build", "failed", "RegistryPush"): "0 0 1 3x30"},
        {ended("build", "failed", "ConfigInvalid"): "0+1x30"},
    ),
    AlertCase(
        "CrewyardBuildsFail",
        60,
        {ended("build", "failed", "DependencyResolution"): "0+1x80", ended("build", "built"): "0x80"},
        {ended("build", "failed", "DependencyResolution"): "0+1x80", ended("build", "built"): "0+1x80"},
    ),
    AlertCase(
        "CrewyardBuildsWait",
        45,
        {oldest("deployments", "pending"): "0+60x60"},
        {oldest("deployments", "building"): "0+60x60"},
    ),
    AlertCase(
        "CrewyardBuildOverdue",
        200,
        {oldest("deployments", "building"): "0+60x220"},
        {oldest("deployments", "building"): "3600x220"},
    ),
    AlertCase(
        "CrewyardGitUnreachable",
        30,
        {
            one("crewyard_sources", 'state="unreachable"'): "3x40",
            one("crewyard_sources", 'state="resolved"'): "1x40",
        },
        # A host that was away for ten minutes; and one of four permanently.
        {
            one("crewyard_sources", 'state="unreachable"'): "1x10 4x10 1x20",
            one("crewyard_sources", 'state="resolved"'): "3x10 0x10 3x20",
        },
    ),
    AlertCase(
        "CrewyardGitHubNotTold",
        20,
        {one("crewyard_github_failures_total", 'result="refused"'): "0+1x30"},
        {
            one("crewyard_github_failures_total", 'result="passing"'): "0+1x30",
            one("crewyard_github_failures_total", 'result="unknown_commit"'): "0+1x30",
        },
    ),
    AlertCase(
        "CrewyardDiskFull",
        10,
        {one("crewyard_data_free_bytes"): "4x20", one("crewyard_data_size_bytes"): "100x20"},
        {one("crewyard_data_free_bytes"): "0x20", one("crewyard_data_size_bytes"): "0x20"},
    ),
    AlertCase(
        "CrewyardDiskFills",
        400,
        {one("crewyard_data_free_bytes"): "20000-20x410", one("crewyard_data_size_bytes"): "100000x410"},
        {one("crewyard_data_free_bytes"): "20000-2x410", one("crewyard_data_size_bytes"): "100000x410"},
    ),
    AlertCase(
        "CrewyardEventLogsUnsealed",
        20,
        {one("crewyard_oldest_unsealed_seconds"): "7300x30"},
        {one("crewyard_oldest_unsealed_seconds"): "400x30"},
    ),
    AlertCase(
        "CrewyardRemovalsPileUp",
        70,
        {one("crewyard_records", 'kind="remains"'): "1500x80"},
        {
            one("crewyard_records", 'kind="remains"'): "1500x40 900x40",
            one("crewyard_records", 'kind="run"'): "9000x80",
        },
    ),
)
