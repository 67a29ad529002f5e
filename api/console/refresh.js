// Parts of a page that show what has changed meanwhile, while the page is visible.

import { fill } from "./dom.js";

const REFRESH_MS = 5000;

/** Fill an area with `draw(found)` of what `read` finds, now and whenever that has changed. */
export async function keepFresh(area, signal, read, draw) {
  let shown = null;
  const update = async () => {
    const found = await read(), text = JSON.stringify(found);
    // A row that has the keyboard's focus stays.
    if (signal.aborted || text === shown || area.contains(document.activeElement)) return;
    shown = text;
    fill(area, draw(found));
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
