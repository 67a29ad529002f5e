// Which view the address asks for. Addresses hold names and ids, never a secret.

const ROUTES = [];

/** Adds a view: `#/projects/:name` → view({name}, query, signal). */
export function route(pattern, view) {
  const names = [];
  const text = pattern.replace(/:(\w+)/g, (_, name) => { names.push(name); return "([^/?]+)"; });
  ROUTES.push({ expression: new RegExp(`^${text}$`), names, view });
}

/** The address of a view. */
export function to(...parts) {
  return `#/${parts.map(encodeURIComponent).join("/")}`;
}

/** The view of the present address, with its parameters; undefined where there is none. */
export function present() {
  const [path, text = ""] = (location.hash.slice(1) || "/projects").split("?");
  for (const { expression, names, view } of ROUTES) {
    const found = expression.exec(path);
    if (found) {
      let parameters;
      try {
        parameters = Object.fromEntries(names.map((name, index) => [name, decodeURIComponent(found[index + 1])]));
      } catch {
        return undefined; // A lone % is no address.
      }
      return { view, parameters, query: Object.fromEntries(new URLSearchParams(text)), path };
    }
  }
  return undefined;
}

/** Changes what follows `?` in the address, and with it the view. */
export function refine(values) {
  const [path] = location.hash.split("?");
  const given = Object.entries(values).filter(([, value]) => value !== "" && value !== undefined && value !== null);
  location.hash = `${path}${given.length ? `?${new URLSearchParams(given)}` : ""}`;
}
