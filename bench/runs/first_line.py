"""L5: the runner's start → the crew's first line, against `python3 -c` of the same crew in the same image.

The crew itself reports both: the machine's clock minus the start of process 1, which the kernel stores in
hundredths of a second for both.
"""

from bench.lib import pods
from bench.lib.finding import Finding
from bench.lib.installation import MeasuredInstallation
from crds.kinds import POD

PAIR_COUNT = 21
SCRIPT = "import json, main; print(json.dumps(main.since_start())); main.kickoff({})"


async def measure(installation: MeasuredInstallation) -> list[Finding]:
    """Measure L5."""
    pod_spec = await pods.template(installation)
    pairs = []
    for _ in range(PAIR_COUNT):
        body = pods.pod(pod_spec, SCRIPT)
        name = body["metadata"]["name"]
        await installation.kube.create(POD, body)
        await pods.wait_finished(installation, name)
        peer = float((await pods.log(installation, name)).split()[0])
        await installation.kube.delete(POD, name, grace_seconds=0)
        created = await installation.testbed.post("/v1/runs", {"deployment": installation.deployment})
        run = await installation.finished(created["id"])
        pairs.append((peer * 1000, run["output"]["since_start"] * 1000))
    differences = sorted(ours - peer for peer, ours in pairs[1:])
    fact = f"{differences[len(differences) // 2]:.0f} ms more at the median"
    return [Finding("L5", "process 1's start → crew's first line", "ms", pairs, peer="python3 -c", fact=fact)]
