"""Pure parts of the measurements on hollow nodes: kwok's configuration, kernel statistics, findings."""

import os
import re
from pathlib import Path

import pytest
import yaml

from bench.hollow import flags as hollow_flags
from bench.hollow import memory, nodes, rates, readings, sizes
from bench.hollow.load import EndTimes, jobs, pod_spec
from bench.hollow.rates import RateRound
from bench.hollow.readings import ProcessMemory

SPEC = {
    "activeDeadlineSeconds": 300,
    "nodeName": "hollow-1",
    "restartPolicy": "Never",
    "tolerations": [{"key": "node.kubernetes.io/not-ready"}],
    "containers": [{"name": "crew", "image": "a", "env": [{"name": "CREWYARD_TOKEN", "value": "secret"}]}],
}


def test_every_stage_has_a_next_state_and_its_status_is_yaml():
    documents = list(yaml.safe_load_all(nodes.configuration()))
    assert [document["metadata"]["name"] for document in documents] == [
        "kwok", "node-ready", "pod-running", "pod-done", "pod-gone"
    ]  # fmt: skip
    for stage in documents[1:]:
        template = stage["spec"]["next"].get("statusTemplate", "")
        status = yaml.safe_load(
            re.sub(r"{{ (range|end)[^}]*}}", "", re.sub(r"{{[^}]*Quote }}", "'x'", template))
        )
        assert stage["spec"]["next"].get("delete") or status["phase"] in ("Running", "Succeeded")


def test_hollow_nodes_are_tainted():
    node = nodes.node(3)
    assert node["metadata"]["annotations"] == {nodes.KWOK_NODE_KEY: "fake"}
    assert [taint["effect"] for taint in node["spec"]["taints"]] == ["NoSchedule"]
    assert nodes.TOLERATION["key"] == node["spec"]["taints"][0]["key"]


def test_a_job_has_the_pod_of_a_run_without_the_runners_parts():
    job = jobs(SPEC).body("a")
    assert pod_spec(SPEC) == {
        "restartPolicy": "Never",
        "tolerations": [nodes.TOLERATION],
        "containers": [{"name": "crew", "image": "a"}],
    }
    assert job["spec"]["template"]["metadata"]["labels"] == nodes.SELF_ENDING_LABELS


def test_a_rate_excludes_the_first_and_the_last_wave():
    wave = [5.0, 5.0, 5.0]
    assert EndTimes([*wave, 5.5, 6.0, 6.5, 7.0, 20.0, 21.0, 22.0]).steady(3) == 2


def test_memory_is_summed_from_smaps_rollup(tmp_path):
    rollup = (
        "5581a4f7a000-7ffd2a5f0000 ---p 00000000 00:00 0    [rollup]\n"
        "Rss:               10 kB\nPrivate_Clean:      1 kB\nPrivate_Dirty:      4 kB\n"
    )
    assert readings.parse(rollup) == ProcessMemory(10240, 5120)


def test_a_process_is_read():
    pid = os.getpid()
    before = readings.open_files(pid)
    with Path(os.devnull).open():
        assert readings.open_files(pid) == before + 1
    assert 0 < readings.memory(pid).private <= readings.memory(pid).resident
    assert readings.cpu_seconds(pid) > 0
    assert readings.threads(pid) >= 1


def test_rates_and_costs_of_rounds():
    def one(rate, cost):
        return RateRound(rate, {"controller": cost, "api": 2 * cost, "kube-controller-manager": 3.0})

    findings = rates.findings([(one(1, 9), one(1, 9)), (one(10, 1), one(18, 6)), (one(10, 1), one(18, 6))])
    lines = [finding.line() for finding in findings]
    assert "ratio 1.80" in lines[0] and "4.0 times 4.5, 1.3 times 13.5" in lines[0]
    assert "ratio 2.00" in lines[1]
    assert "12 s" in lines[2]


def test_the_cost_of_a_live_run_is_the_difference_of_levels():
    mib = 2**20
    levels = [
        ProcessMemory(90 * mib, 60 * mib),
        ProcessMemory(100 * mib, 70 * mib),
        ProcessMemory(104 * mib, 74 * mib),
    ]
    line = memory.finding("controller", 1024, ProcessMemory(80 * mib, 50 * mib), levels).line()
    assert "80 MiB idle (50 private)" in line
    assert "10.0 KiB for each of the first 1024, 4.0 of the second" in line


@pytest.mark.parametrize("flags", ["controllers", "scheduler"])
def test_client_side_rate_limits_are_lifted(flags, tmp_path):
    assert getattr(hollow_flags, flags)(tmp_path)["kube-api-qps"] >= 1000


def test_a_metric_is_summed_over_the_samples_with_a_label():
    text = '# HELP a A.\na{kind="runs",code="200"} 2\na{kind="pods"} 1e+03\nab 7\nb 4\n'
    assert [sizes.metric(text, "a"), sizes.metric(text, "a", kind="runs"), sizes.metric(text, "b")] == [
        1002,
        2,
        4,
    ]


def test_the_cost_of_an_object_excludes_what_passes_anyway():
    idle = sizes.Reading(15.0, {"api": 1.5}, 30)
    created = sizes.Reading(25.0, {"api": 4.0}, 250).since(sizes.Reading(5.0, {"api": 1.0}, 10))
    assert created.cost(100, idle) == "api 10.0 ms; 2.0 requests to the kube-apiserver"
    assert created.cost(100) == "api 30.0 ms; 2.4 requests to the kube-apiserver"
