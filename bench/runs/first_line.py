"""L5: the runner's start → the crew's first line, against `python3 -c` of the same crew in the same image.

Both are told by the crew itself: the clock of the machine less the start of process 1, which the kernel
counts in hundredths of a second, on both sides alike.
"""

from bench.lib import pods
from bench.lib.finding import Finding
from bench.lib.installation import Ground
from crds.kinds import POD

PAIRS = 21
SCRIPT = "import json, main; print(json.dumps(main.since_start())); main.kickoff({})"


async def measure(ground: Ground) -> list[Finding]:
    """L5."""
    like = await pods.template(ground)
    pairs = []
    for _ in range(PAIRS):
        body = pods.pod(like, SCRIPT)
        name = body["metadata"]["name"]
        await ground.kube.create(POD, body)
        await pods.finished(ground, name)
        peer = float((await pods.log(ground, name)).split()[0])
        await ground.kube.delete(POD, name, grace_seconds=0)
        made = await ground.yard.post("/v1/runs", {"deployment": ground.deployment})
        run = await ground.finished(made["id"])
        pairs.append((peer * 1000, run["output"]["since_start"] * 1000))
    more = sorted(ours - peer for peer, ours in pairs[1:])
    fact = f"{more[len(more) // 2]:.0f} ms more at the median"
    return [Finding("L5", "process 1's start → crew's first line", "ms", pairs, peer="python3 -c", fact=fact)]
