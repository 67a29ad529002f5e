// Parts of a page that show what has changed meanwhile, while the page is visible.

import { fill } from "./dom.js";

const REFRESH_MS = 5000;

/** Fill an area with `draw(found)` of what `read` finds, now and whenever that has changed. */
export async function keepFresh(area, signal, read, draw) {
  let shown = null;
  const update = async () => {
    const found = await read(), text = JSON.stringify(found);
    // A row that has the keyboard's focus stays, and so does a form.
    const isUsed = () => signal.aborted || area.contains(document.activeElement) || area.querySelector("form");
    if (text === shown || isUsed()) return;
    const drawn = await draw(found);
    if (isUsed()) return;
    shown = text;
    fill(area, drawn);
  };
  await update();
  if (signal.aborted) return;
  const timer = setInterval(() => {
    // A view that is drawn again has another area.
    if (!area.isConnected) clearInterval(timer);
    else if (!document.hidden) update().catch(() => {});
  }, REFRESH_MS);
  signal.addEventListener("abort", () => clearInterval(timer));
}
