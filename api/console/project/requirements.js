// The packages that a project adds to those of its source (spec.build.requirements).

import { change, get } from "../api.js";
import { attempts, fill, h } from "../dom.js";

/** Create the label and the text area of the packages, one per line; `read` returns its lines. */
export function requirementsField(lines = []) {
  const control = h("textarea", { id: "requirements", rows: Math.max(2, lines.length), spellcheck: "false", placeholder: "beautifulsoup4>=4.12" }, lines.join("\n"));
  return {
    elements: [h("label", { for: "requirements" }, "Packages that its source imports but does not declare, one per line (optional)"), control],
    read: () => control.value.split("\n").map((line) => line.trim()).filter(Boolean),
  };
}

/** Create the form that changes the packages of a project. */
export function requirementsForm(name, details) {
  const path = `/v1/projects/${encodeURIComponent(name)}`, section = h("section"), errorArea = h("div");
  const show = ({ build }) => {
    const field = requirementsField(build?.requirements ?? []);
    const attempt = attempts(errorArea, async () => show(await get(path)));
    fill(errorArea);
    fill(section, h("form", { class: "box", onsubmit: (event) => {
      event.preventDefault();
      const lines = field.read();
      attempt(() => change("PATCH", path, { build: { requirements: lines.length > 0 ? lines : null } }), "The packages are changed. They apply from the next deployment on.");
    } }, h("h2", {}, "Added packages"), field.elements, h("p", { class: "quiet" }, "As in requirements.txt, without options and paths. They apply from the next deployment on."),
    h("p", {}, h("button", { class: "main" }, "Set packages")), errorArea));
  };
  show(details);
  return section;
}
