// The steps of a run as a tree: its agents, their tasks, their tools and timed model calls. Made from the run's events, in their order.

const MAX_STEPS = 20000;
const OUTPUT_NAME = "output.json";
const MAX_CALL_MS = 7 * 24 * 3.6e6;
const MAX_TOKENS = 1e9;
const ENDS = { "run.completed": "succeeded", "run.failed": "failed", "run.canceled": "canceled" };

/** Return how long the model call of a `usage` event took in ms; null if that is not said, or is not such a number. Pure. */
export function callDuration({ duration_ms: took }) {
  return isCount(took, MAX_CALL_MS) ? took : null;
}

/** Return the tokens of a `usage` event; 0 for what the service does not count either. Pure. */
function tokensOf({ prompt_tokens: prompt, completion_tokens: completion }) {
  return [prompt, completion].map((count) => (isCount(count, MAX_TOKENS) ? count : 0));
}

function isCount(value, most) {
  return Number.isInteger(value) && value >= 0 && value <= most;
}

/** Return whether an event is the last of its run. */
export const isLast = ({ type }) => type in ENDS;

/** The tree of steps. A step has kind, name, text, start and end in ms, status, input, output, error, tokens, children. */
export class Steps {
  constructor() {
    this.run = newStep("run", "Run");
    this.count = 0;
    this.dropped = 0;
    this.outputFile = false;
    this.agents = new Map();
    this.openTasks = [];
    this.openTools = [];
    /** Calls and tokens by model, in the order of their first call. */
    this.models = new Map();
  }

  /** Add an event `{type, id, data}`; return whether it changed the tree. */
  add({ type, id, data }) {
    const at = Date.parse(data.timestamp), number = Number(id);
    if (type === "run.started") begin(this.run, at, number);
    else if (type in ENDS) this.end(ENDS[type], data, at, number);
    else if (type === "agent.started") this.startTask(data, at, number);
    else if (type === "agent.completed" || type === "agent.error") this.endTask(data, at, number, type === "agent.error");
    else if (type === "tool.called") this.startTool(data, at, number);
    else if (type === "tool.result" || type === "tool.error") this.endTool(data, at, number, type === "tool.error");
    else if (type === "usage") this.addCall(data, at, number);
    else if (type === "artifact" && data.name === OUTPUT_NAME) this.outputFile = true;
    else return false;
    return true;
  }

  end(status, data, at, number) {
    const tasks = this.openTasks;
    for (const open of [...this.openTools, ...tasks]) finish(open, at, number, "canceled");
    this.openTasks = [];
    this.openTools = [];
    for (const task of tasks) this.summarize(task);
    // The duration is exact, the time of the end is in whole seconds.
    const exact = Number.isFinite(data.duration_ms) && this.run.start !== null ? this.run.start + data.duration_ms : at;
    finish(this.run, exact, number, status);
    if (data.error) this.run.error = data.error;
  }

  startTask(data, at, number) {
    const agent = this.agentOf(data.agent);
    if (!agent) return;
    const task = this.child(agent, "task", data.task ?? "", at, number);
    if (!task) return;
    task.input = data.task;
    this.openTasks.push(task);
    this.summarize(task);
  }

  endTask(data, at, number, failed) {
    const ofAgent = this.openTasks.filter((task) => task.parent.name === nameOf(data.agent));
    let task = ofAgent.find((open) => textOf(open.input) === textOf(data.task)) ?? ofAgent.at(-1);
    if (!task) {
      this.startTask(data, at, number);
      task = this.openTasks.at(-1);
      if (task?.parent.name !== nameOf(data.agent)) return;
    }
    remove(this.openTasks, task);
    task.output = data.output;
    task.error = data.error;
    finish(task, at, number, failed ? "failed" : "succeeded");
    this.summarize(task);
  }

  startTool(data, at, number) {
    const tool = this.child(this.parentOfTool(data.agent), "tool", data.tool ?? "tool", at, number);
    if (!tool) return;
    Object.assign(tool, { input: data.input, agent: data.agent ?? null });
    this.openTools.push(tool);
  }

  endTool(data, at, number, failed) {
    const fits = (tool) => tool.name === textOf(data.tool ?? "tool") && tool.agent === (data.agent ?? null);
    let tool = this.openTools.find(fits);
    if (!tool) {
      // A tool that the agent does not have ends without a start.
      this.startTool(data, at, number);
      tool = this.openTools.find(fits);
      if (!tool) return;
    }
    remove(this.openTools, tool);
    tool.output = data.output;
    tool.error = data.error;
    finish(tool, at, number, failed ? "failed" : "succeeded");
  }

  /** Add a model call to the run, or to the task if only one is open: the event does not name its agent. It has a row if its event has a duration. */
  addCall(data, at, number) {
    const name = String(data.model ?? "unknown model"), model = this.models.get(name) ?? { name, calls: 0, promptTokens: 0, completionTokens: 0 };
    const [prompt, completion] = tokensOf(data);
    model.calls += 1;
    model.promptTokens += prompt;
    model.completionTokens += completion;
    this.models.set(name, model);
    const owner = this.openTasks.length === 1 ? this.openTasks[0] : null, call = this.timedCall(owner ?? this.run, data, at, number);
    const counted = [this.run, ...(owner ? [owner, owner.parent] : []), ...(call ? [call] : [])];
    for (const step of counted) {
      step.promptTokens += prompt;
      step.completionTokens += completion;
      step.modelCalls += 1;
      if (data.model) step.models.add(String(data.model));
    }
  }

  /** Create the row of a model call; null without a duration. Its only event is at its end. */
  timedCall(parent, data, at, number) {
    const took = callDuration(data);
    if (took === null) return null;
    const start = Math.min(at, Math.max(at - took, this.run.start ?? -Infinity));
    const call = this.child(parent, "model", data.model || "model", start, number);
    if (call) finish(call, at, number, "succeeded");
    return call;
  }

  agentOf(text) {
    const name = nameOf(text);
    if (!this.agents.has(name)) {
      const agent = this.child(this.run, "agent", name, null, 0);
      if (!agent) return null;
      this.agents.set(name, agent);
    }
    return this.agents.get(name);
  }

  /** Return the open task of the agent that started last, else its last task, else the run. */
  parentOfTool(text) {
    const name = nameOf(text);
    const open = this.openTasks.findLast((task) => task.parent.name === name);
    return open ?? this.agents.get(name)?.children.at(-1) ?? this.run;
  }

  /** Set the times and the status of the agent whose task started or ended. */
  summarize(task) {
    const agent = task.parent, open = this.openTasks.some((other) => other.parent === agent);
    if (agent.start === null) begin(agent, task.start, task.first);
    agent.latest = Math.max(agent.latest, task.end ?? 0);
    agent.end = open ? null : agent.latest;
    agent.last = open ? null : task.last; // Ids grow, so this is the highest one.
    agent.status = open ? "running" : agent.children.at(-1).status;
  }

  child(parent, kind, name, at, number) {
    if (this.count >= MAX_STEPS) {
      this.dropped += 1;
      return null;
    }
    this.count += 1;
    const step = newStep(kind, textOf(name), parent);
    if (at !== null) begin(step, at, number);
    parent.children.push(step);
    return step;
  }
}

/** Return the rows of a tree: `[{step, level, label}]`. An agent with one task shares its row with it. */
export function rowsOf(run, isCollapsed = () => false) {
  const rows = [];
  const add = (step, level) => {
    const single = step.kind === "agent" && step.children.length === 1 ? step.children[0] : null;
    const shown = single ?? step;
    rows.push({ step: shown, level, name: step.name, text: single ? single.name : "", kind: step.kind, expandable: shown.children.length > 0 });
    if (!isCollapsed(shown)) for (const next of shown.children) add(next, level + 1);
  };
  add(run, 1);
  return rows;
}

function newStep(kind, name, parent = null) {
  return {
    kind, name, parent, start: null, end: null, status: "running", first: 0, last: null, latest: 0, children: [],
    promptTokens: 0, completionTokens: 0, modelCalls: 0, models: new Set(),
  };
}

function begin(step, at, number) {
  step.start = at;
  step.first = number;
}

function finish(step, at, number, status) {
  step.start ??= at;
  step.end = at;
  step.last = number;
  step.status = status;
}

function nameOf(agent) {
  return textOf(agent ?? "agent");
}

function textOf(value) {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function remove(items, item) {
  items.splice(items.indexOf(item), 1);
}
