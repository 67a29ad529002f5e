// JSON whose integers keep all their digits, which a number of JavaScript would round.

const MANY_DIGITS = /\d{16}/;
const INTEGER = /^-?\d+$/;

/** Parse a JSON text. An integer that a number cannot hold is an object that JSON.stringify writes as it was. Pure. */
export function parseExact(text) {
  return JSON.rawJSON && MANY_DIGITS.test(text) ? JSON.parse(text, exact) : JSON.parse(text);
}

function exact(_name, value, { source }) {
  return Number.isInteger(value) && !Number.isSafeInteger(value) && INTEGER.test(source) ? JSON.rawJSON(source) : value;
}
