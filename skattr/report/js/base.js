const doc = document;
const root = doc.documentElement;
const find = (id) => doc.getElementById(id);
const all = (selector, inside = doc) => [...inside.querySelectorAll(selector)];
const data = JSON.parse(find("data").textContent);
let output = 0;
let row = 0;
const current = () => data.outputs[output];
const unit = data.unit && ` ${data.unit}`;

/* Text goes in by textContent only: names and values are anybody's. */
function make(tag, text, parent, attributes = {}) {
  const svg = ["svg", "g", "rect", "line", "text", "title", "polyline", "polygon", "circle"].includes(tag);
  const element = svg ? doc.createElementNS("http://www.w3.org/2000/svg", tag) : doc.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== null) element.textContent = text;
  if (parent) parent.append(element);
  return element;
}

const formats = new Map(); /* by the number of decimals */
function number(value, places) {
  if (value === null) return "–";
  if (places < 0) return value ? value.toExponential(3) : "0";
  if (!formats.has(places)) formats.set(places, new Intl.NumberFormat("en-US", { minimumFractionDigits: places, maximumFractionDigits: places }));
  const text = formats.get(places).format(value);
  return /[1-9]/.test(text) ? text : text.replace("-", ""); /* what rounds to zero has no sign */
}

function signed(value, places) {
  const text = number(value, places);
  return value > 0 && /[1-9]/.test(text) ? `+${text}` : text;
}

/* An error: two digits are enough. */
function small(value) {
  const exponent = value ? Math.floor(Math.log10(Number(value.toExponential(1)))) : 0;
  if (value && (exponent < -4 || exponent >= 12)) return value.toExponential(1);
  return number(Number(value.toExponential(1)), value ? Math.max(0, 1 - exponent) : 0);
}

function short(text, n) {
  const end = Math.floor((n - 1) * 0.4);
  return text.length > n ? `${text.slice(0, n - 1 - end)}…${text.slice(-end)}` : text;
}
