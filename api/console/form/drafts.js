// What was typed into the forms of a page when its session ended: kept in this tab, and typed again after the next sign-in.

const NAME = "crewyard.draft", KEY = "key:";
// Secrets are not kept.
const FIELDS = "form.box :is(input, select, textarea)[id]:not([type=password], .masked)";

/** Keep what was typed into the forms of an area, for that principal. */
export function keepDraft(area, principal) {
  const fields = [...area.querySelectorAll(FIELDS)].map((field) => [field.id, isBox(field) ? field.checked : field.value]);
  sessionStorage.setItem(NAME, JSON.stringify({ principal, view: location.hash, fields }));
}

/** Type the draft into the fields of an area as they appear, if it is of this page and of this principal. */
export function restoreDraft(area, principal, signal) {
  const draft = JSON.parse(sessionStorage.getItem(NAME));
  sessionStorage.removeItem(NAME);
  if (draft?.view !== location.hash || !isSame(draft.principal, principal)) return;
  const left = new Map(draft.fields);
  const observer = new MutationObserver(() => {
    for (const [id, value] of left) {
      const field = document.getElementById(id);
      if (field && area.contains(field)) {
        left.delete(id);
        write(field, value);
      }
    }
  });
  observer.observe(area, { childList: true, subtree: true });
  signal.addEventListener("abort", () => observer.disconnect());
}

function write(field, value) {
  if (isBox(field)) field.checked = value;
  else field.value = value;
  // The choice of an entrypoint makes other fields, which are next.
  if (field.tagName === "SELECT") field.dispatchEvent(new Event("change"));
}

function isBox({ type }) {
  return type === "checkbox";
}

/** Return whether two principals may be one person: an expired key is replaced by another one. Pure. */
function isSame(before, now) {
  return before === now || (before.startsWith(KEY) && now.startsWith(KEY));
}
