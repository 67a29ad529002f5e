// Numbers about the runs of a project. Pure.

/** Return `{ended, share, median, p95}` of runs: the share that succeeded of those that ended by themselves. */
export function runStatistics(runs) {
  const ended = runs.filter((run) => run.status === "succeeded" || run.status === "failed");
  const durations = ended.map((run) => run.duration_ms).filter((value) => value !== null).sort((a, b) => a - b);
  const succeeded = ended.filter((run) => run.status === "succeeded").length;
  return {
    ended: ended.length, share: ended.length ? succeeded / ended.length : null,
    median: percentile(durations, 0.5), p95: percentile(durations, 0.95),
  };
}

/** Return `{running, waiting}`: all runs of now, which the limits of a usage report count. */
export function runsNow(limits) {
  const used = (name) => limits.find((use) => use.name === name)?.used.toLocaleString() ?? "–";
  return { running: used("concurrent_runs"), waiting: used("queue") };
}

/** Return the value below which that part of sorted values lies (nearest rank); null without values. */
export function percentile(sorted, part) {
  return sorted.length ? sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)] : null;
}
