"""The installed service, read by a real Prometheus: rules and panels can be asked, and show what happened.

A crew that succeeds and one that fails are run twice: of a new counter the first step is no increase.
"""

import secrets
import time

import pytest

from crewyard import Client, Unauthorized
from tests.e2e.upload_project import archive
from tests.monitoring import shipped

pytestmark = [pytest.mark.nightly, pytest.mark.exclusive]

CREW = "def kickoff():\n    return 'well'\n\n\ndef fails():\n    raise ValueError('not well')\n"
RARE = {"Failed builds by reason", "Repository polls", "Webhooks", "Background work"}
"""Panels of what need not happen: a repository that is followed, a delivery, a failure."""
STEPS = {"Ended runs": 'result="succeeded"', "Failed runs by reason": 'reason="CrewError"'}
"""Panels that must show an increase, and of the label with which value."""
OURS = {
    "route",
    "method",
    "code",
    "le",
    "limit",
    "outcome",
    "kind",
    "phase",
    "queue",
    "reason",
    "result",
    "state",
    "status",
    "verb",
    "work",
}
AROUND = {"__name__", "job", "namespace", "pod", "instance"}
MOST = 100
"""Values of a label; there are some sixty routes; values chosen by users would exceed it."""
SECONDS = 900.0


def finished(client: Client, run: str) -> str:
    """A run's id, once the run has ended."""
    for event in client.follow_run(run):
        assert event
    return run


@pytest.fixture(scope="module")
def traffic(prometheus):
    """Some runs of a crew of its own, a refused caller, and an event stream; gives what users named."""
    name = f"mon-{secrets.token_hex(4)}"
    with Client() as client:
        client.create_project(name)
        try:
            content = archive({"main.py": CREW, "note.txt": secrets.token_hex(8)})
            ticket = client.announce_upload(name, len(content))
            client.send_upload(ticket, lambda: [content])
            deployment = client.create_deployment(name, build_context_url=ticket["build_context_url"])["id"]
            end = time.monotonic() + SECONDS
            while client.get_deployment(deployment)["status"] in ("pending", "building"):
                assert time.monotonic() < end, "the build has not ended"
                time.sleep(0.3)
            runs = []
            for _ in range(2):
                runs.append(finished(client, client.start_run(name)["id"]))
                runs.append(finished(client, client.start_run(name, entrypoint="main:fails")["id"]))
                with pytest.raises(Unauthorized), Client(api_key="crw_no") as nobody:
                    nobody.list_projects()
                for words in STEPS.values():
                    query = f"crewyard_run_ends_total{{{words}}}"
                    prometheus.until(lambda query=query: prometheus.query(query), f"{query} was read")
            yield {name, deployment, *runs}
        finally:
            client.delete_project(name)


def test_prometheus_evaluates_every_rule(prometheus, traffic):
    prometheus.until(
        lambda: all(rule["health"] != "unknown" for group in loaded(prometheus) for rule in group["rules"]),
        "all rules were evaluated",
    )
    seen = [rule for group in loaded(prometheus) for rule in group["rules"]]
    assert len(seen) == len(shipped.rules())
    assert [(rule["name"], rule.get("lastError")) for rule in seen if rule["health"] != "ok"] == []


def loaded(prometheus):
    return prometheus.ask("rules")["groups"]


def test_recorded_ratios_have_values(prometheus, traffic):
    for record in (rule["record"] for rule in shipped.rules() if "record" in rule):
        [series] = prometheus.query(record)
        assert 0 <= float(series["value"][1]) <= 1 and series["metric"]["namespace"] == "crewyard-system"


def test_every_panel_has_data(prometheus, traffic):
    empty = [(title, text) for title, text in shipped.queries() if not prometheus.query(text)]
    assert [entry for entry in empty if entry[0] not in RARE] == []


@pytest.mark.parametrize(("title", "label"), STEPS.items())
def test_recent_traffic_is_in_panel(prometheus, traffic, title, label):
    expression = next(text for name, text in shipped.queries() if name == title)

    def risen():
        found = prometheus.query(expression)
        return label in [
            f'{name}="{value}"'
            for one in found
            if float(one["value"][1])
            for name, value in one["metric"].items()
        ]

    prometheus.until(risen, f"{title} shows {label}")


def test_labels_have_no_user_chosen_values(prometheus, traffic):
    values: dict[str, set[str]] = {}
    for series in prometheus.ask("series", **{"match[]": '{job=~"crewyard-.*",__name__=~"crewyard_.*"}'}):
        for label, value in series.items():
            values.setdefault(label, set()).add(value)
            assert not any(chosen in value for chosen in traffic), series
    assert set(values) - AROUND <= OURS
    assert {label: len(found) for label, found in values.items() if label in OURS and len(found) > MOST} == {}


def test_every_series_is_documented(prometheus, traffic):
    names = prometheus.ask("label/__name__/values", **{"match[]": '{job=~"crewyard-.*"}'})
    ours = {name for name in names if name.startswith("crewyard_") and not name.endswith("_created")}
    assert ours <= set(shipped.exported())
    assert set(shipped.exported()) - ours - {"up"} <= {
        name for name in shipped.exported() if not name.startswith("crewyard_") or name in UNSEEN
    }


UNSEEN = {"crewyard_background_failures_total", "crewyard_git_poll_total"}
"""Counters without a series before their first step."""
