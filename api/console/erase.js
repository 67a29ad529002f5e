// The erasure of a run, a deployment or a project, after a question.

import { change } from "./api.js";
import { errorBox, fill, h, notify } from "./dom.js";

/**
 * Ask, then erase what is at this path of the API and show another page of the console.
 * `typed`: the user must enter the id.
 */
export function askErase(id, path, consequence, nextPage, typed = false) {
  const errorArea = h("div");
  const name = h("input", { id: "erase-name", autocomplete: "off", oninput: () => { confirmButton.disabled = name.value !== id; } });
  const dialog = h("dialog", { "aria-labelledby": "erase-title", onclose: () => dialog.remove() });
  const confirmButton = h("button", { type: "button", class: "danger", disabled: typed, onclick: async () => {
    confirmButton.disabled = true;
    try {
      await change("DELETE", path);
      dialog.close();
      notify(`${id} is erased.`);
      location.hash = nextPage;
    } catch (failure) {
      fill(errorArea, errorBox(failure.message));
      confirmButton.disabled = false;
    }
  } }, "Erase");
  dialog.append(h("h2", { id: "erase-title" }, `Erase ${id}?`), h("p", {}, consequence, " This cannot be undone."),
    typed && h("p", {}, h("label", { for: "erase-name" }, `Enter ${id} to confirm`), name), errorArea,
    h("p", { class: "row" }, confirmButton, h("button", { type: "button", autofocus: true, onclick: () => dialog.close() }, "Keep it")));
  document.body.append(dialog);
  dialog.showModal();
}
