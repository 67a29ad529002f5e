/** The events of a run, each with the data that belongs to its type. */

interface Ended {
  duration_ms: number;
}

/** What each type carries, besides `run_id` and `timestamp`. */
export interface EventData {
  "run.started": { deployment_id: string };
  "run.completed": Ended & { output: unknown };
  "run.failed": Ended & { error: { reason: string; message: string } };
  "run.canceled": Ended;
  log: { message: string; level: string };
  artifact: { name: string; size: number; content_type: string; sha256: string; partial: boolean };
  "agent.started": { agent: string; task: string };
  "agent.completed": { agent: string; task: string; output: unknown };
  "agent.error": { agent: string; task: string; error: unknown };
  "tool.called": { agent: string | null; tool: string; input: unknown };
  "tool.result": { agent: string | null; tool: string; output: unknown };
  "tool.error": { agent: string | null; tool: string; error: unknown };
  usage: { model: string; prompt_tokens: number; completion_tokens: number; duration_ms?: number };
}

export type EventType = keyof EventData;

interface Common {
  run_id: string;
  timestamp: string;
}

/** An event whose type may also be one that the crew made up with `emit`. */
export interface RunEvent<Type extends string = string> {
  /** Counted from 1 without gaps. */
  id: number;
  type: Type;
  data: Common & (Type extends EventType ? EventData[Type] : Record<string, unknown>);
}

/** Narrows an event: `if (isEvent(event, "log")) console.log(event.data.message)`. */
export function isEvent<Type extends EventType>(event: RunEvent, type: Type): event is RunEvent<Type> {
  return event.type === type;
}

/** Whether nothing follows this event. */
export function isLast(event: { type: string }): boolean {
  return event.type === "run.completed" || event.type === "run.failed" || event.type === "run.canceled";
}
