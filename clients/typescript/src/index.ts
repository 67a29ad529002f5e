export type { BuildEnd } from "./build.js";
export { Crewyard, ok, type Options, type Upload } from "./client.js";
export { CrewyardError, type Failure } from "./errors.js";
export { type EventData, type EventType, isEvent, isLast, type RunEvent } from "./events.js";
export type { components, paths } from "./schema.js";
export type { FollowOptions } from "./stream.js";
