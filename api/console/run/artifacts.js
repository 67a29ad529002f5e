// The artifacts of a run, with previews.

import { fetchBlob, list } from "../api.js";
import { fill, h, errorBox, notify, table } from "../dom.js";
import { size } from "../format.js";
import { canPreview, preview, previewBytes } from "./preview.js";

export async function artifacts(container, path, signal) {
  const pages = Number(container.dataset.pages ?? 1), data = [];
  let pagination = { has_more: true };
  for (let page = 1; page <= pages && pagination.has_more; page += 1) {
    const found = await list(`${path}/artifacts`, { page, per_page: 100 }, signal);
    data.push(...found.data);
    pagination = found.pagination;
  }
  const showMore = () => {
    container.dataset.pages = pages + 1;
    return artifacts(container, path, signal);
  };
  // Keep an open preview when the list is refreshed.
  const view = container.querySelector(".preview") ?? h("div", { class: "preview" });
  const address = (row) => `${path}/artifacts/${row.name.split("/").map(encodeURIComponent).join("/")}`;
  const showPreview = async (row) => {
    fill(view, h("p", { class: "quiet" }, "…"));
    try {
      fill(view, h("h2", {}, row.name), await preview(await fetchBlob(address(row), row.size, signal, previewBytes(row)), row));
    } catch (error) {
      fill(view, errorBox(error.message));
    }
  };
  const download = async (row) => {
    try {
      const url = URL.createObjectURL(await fetchBlob(address(row), row.size, signal));
      h("a", { href: url, download: row.name.split("/").at(-1) }).click();
      setTimeout(() => URL.revokeObjectURL(url), 60000);
    } catch (error) {
      notify(`${row.name}: ${error.message}`);
    }
  };
  fill(container, table([
    ["Name", (row) => row.name, "code"],
    ["Size", (row) => size(row.size), "number"],
    ["Type", (row) => row.content_type.split(";")[0], "wide"],
    ["", (row) => h("span", { class: "row" }, canPreview(row) && h("button", { "aria-label": `Preview ${row.name}`, onclick: () => showPreview(row) }, "Preview"),
      h("button", { "aria-label": `Download ${row.name}`, onclick: () => download(row) }, "Download"))],
    ["", (row) => (row.partial ? h("span", { class: "canceled" }, "partial") : "")],
  ], data, "No artifacts."), pagination.has_more && h("p", { class: "quiet" }, `Showing the first ${data.length} of ${pagination.total}. `, h("button", { onclick: showMore }, "Show more")), view);
}
