// Routes the URL hash to views. URLs contain names and ids, never a secret.

import { queryText } from "./format.js";

const ROUTES = [];

/** Add a route: `#/projects/:name` → view(container, {name}, query, signal). */
export function route(pattern, view) {
  const names = [];
  const text = pattern.replace(/:(\w+)/g, (_, name) => { names.push(name); return "([^/?]+)"; });
  ROUTES.push({ expression: new RegExp(`^${text}$`), names, view });
}

/** Return the URL of a view. */
export function linkTo(...parts) {
  return `#/${parts.map(encodeURIComponent).join("/")}`;
}

/** Return the view of the current URL with its parameters, or undefined. */
export function currentRoute() {
  const [path, text = ""] = (location.hash.slice(1) || "/projects").split("?");
  for (const { expression, names, view } of ROUTES) {
    const match = expression.exec(path);
    if (match) {
      let parameters;
      try {
        parameters = Object.fromEntries(names.map((name, index) => [name, decodeURIComponent(match[index + 1])]));
      } catch {
        return undefined; // Malformed percent-encoding.
      }
      return { view, parameters, query: Object.fromEntries(new URLSearchParams(text)), path };
    }
  }
  return undefined;
}

/** Set the query in the URL, which updates the view. */
export function setQuery(values) {
  const [path] = location.hash.split("?");
  location.hash = path + queryText(values);
}
