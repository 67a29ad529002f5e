// The files of a run, with a look into those that can be shown.

import { blob, list } from "./api.js";
import { fill, h, problem, say, table } from "./dom.js";
import { size } from "./format.js";
import { preview, shows } from "./preview.js";

export async function artifacts(place, path, signal) {
  const { data, pagination } = await list(`${path}/artifacts`, { per_page: 100 }, signal);
  // What is being looked at stays where the list is read again.
  const view = place.querySelector(".look") ?? h("div", { class: "look" });
  const address = (row) => `${path}/artifacts/${row.name.split("/").map(encodeURIComponent).join("/")}`;
  const look = async (row) => {
    fill(view, h("p", { class: "quiet" }, "…"));
    try {
      fill(view, h("h2", {}, row.name), await preview(await blob(address(row), row.size, signal), row));
    } catch (error) {
      fill(view, problem(error.message));
    }
  };
  const save = async (row) => {
    try {
      const url = URL.createObjectURL(await blob(address(row), row.size, signal));
      h("a", { href: url, download: row.name.split("/").at(-1) }).click();
      setTimeout(() => URL.revokeObjectURL(url), 60000);
    } catch (error) {
      say(`${row.name}: ${error.message}`);
    }
  };
  fill(place, table([
    ["Name", (row) => row.name, "code"],
    ["Size", (row) => size(row.size)],
    ["Type", (row) => row.content_type.split(";")[0]],
    ["", (row) => h("span", { class: "row" }, shows(row) && h("button", { onclick: () => look(row) }, "Look"),
      h("button", { onclick: () => save(row) }, "Download"))],
    ["", (row) => (row.partial ? h("span", { class: "canceled" }, "partial") : "")],
  ], data, "There are no artifacts."), pagination.has_more && h("p", { class: "quiet" }, `${pagination.total} in all; the first 100 are shown`), view);
}
