// Reads CSV (RFC 4180) up to a number of rows. Pure.

/** Return the rows of a text, `{rows, more}`: `more` tells whether the text has more than `limit` rows. */
export function parseCsv(text, separator, limit) {
  const rows = [];
  let row = [], cell = "", quoted = false, start = 0;
  const endCell = () => { row.push(cell); cell = ""; };
  const endRow = () => { endCell(); if (row.length > 1 || row[0] !== "") rows.push(row); row = []; };
  for (let index = 0; index < text.length; index += 1) {
    const sign = text[index];
    if (quoted) {
      if (sign !== '"') continue;
      cell += text.slice(start, index);
      if (text[index + 1] === '"') { cell += '"'; index += 1; } else quoted = false;
      start = index + 1;
    } else if (sign === '"' && index === start && cell === "") {
      quoted = true;
      start = index + 1;
    } else if (sign === separator || sign === "\n") {
      cell += text.slice(start, index);
      if (sign === "\n" && cell.endsWith("\r")) cell = cell.slice(0, -1);
      start = index + 1;
      if (sign === "\n") endRow();
      else endCell();
      if (rows.length > limit) return { rows: rows.slice(0, limit), more: true };
    }
  }
  cell += text.slice(start);
  endRow();
  return { rows: rows.slice(0, limit), more: rows.length > limit };
}
