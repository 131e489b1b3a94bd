/* One row: bars, and the same as a table. Where the values add up to the prediction each bar
   begins where the one above ends; else all begin at 0. */
function steps() {
  const shared = find("kind") !== null && find("kind").value === "shapley";
  const { prediction, decimals, shapley } = current();
  const { values, rest, base } = shared ? shapley : current();
  const error = shared ? null : current().error; /* Shapley values here are exact */
  const list = data.features.map((name, j) => ({
    name,
    value: values[row][j],
    raw: data.data ? data.data[row][j] : "",
    error: error ? error[row][j] : null,
  }));
  list.sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
  const add = (name, value) => list.push({ name, value, raw: "", error: null, grey: true });
  if (data.more) add(`${number(data.more, 0)} other columns`, rest[row]);
  const sum = list.reduce((total, step) => total + step.value, 0);
  const found = { list, base, sum, shared, end: null, gap: 0, complete: false, places: decimals };
  if (prediction) {
    found.end = prediction[row];
    found.gap = found.end - base - sum;
    const sizes = list.reduce((total, step) => total + Math.abs(step.value), Math.abs(base) + Math.abs(found.end));
    const rounding = decimals < 0 ? 0 : list.length * 10 ** -(decimals + 2); /* of all numbers */
    found.complete = Math.abs(found.gap) <= 1e-5 * sizes + rounding;
    if (!found.complete) add(data.remainder, found.gap);
  }
  return found;
}

function sentence({ base, sum, end, gap, complete, places }) {
  const plus = (value) => `${value < 0 ? "−" : "+"} ${number(Math.abs(value), places)}`;
  const start = `mean ${number(base, places)} ${plus(sum)} from the columns`;
  if (end === null) return start;
  return `prediction ${number(end, places)} = ${start}${complete ? "" : ` ${plus(gap)} ${data.remainder}`}`;
}

function drawWaterfall(found) {
  const { list, base, complete, places } = found;
  const box = find("waterfall");
  const width = Math.max(300, Math.min(760, box.clientWidth));
  const left = Math.min(240, width * 0.4);
  const high = 24;
  const ends = [];
  let place = complete ? base : 0;
  for (const step of list) {
    ends.push([place, place + step.value]);
    if (complete) place += step.value;
  }
  const low = Math.min(...ends.flat());
  const span = Math.max(...ends.flat()) - low || 1;
  const margin = 12 + 7.5 * Math.max(...list.map((step) => signed(step.value, places).length));
  const at = (value) => left + margin + ((value - low) / span) * (width - left - 2 * margin);
  const height = high * list.length + 8;
  const svg = make("svg", null, null, { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Waterfall of row ${data.rows[row]}: ${sentence(found)}` });
  const fit = Math.floor(left / 8);
  if (!complete) make("line", null, svg, { x1: at(0), x2: at(0), y1: 0, y2: height });
  list.forEach((step, i) => {
    const y = high * i;
    const [a, b] = ends[i].map(at);
    const name = step.raw === "" ? step.name : `${step.name} = ${step.raw}`;
    let tail = step.raw === "" ? "" : ` = ${short(step.raw, 12)}`;
    if (step.name.length + tail.length > fit && fit < 25) tail = ""; /* the table has it */
    const label = short(step.name, fit - tail.length) + tail;
    make("title", name, make("text", label, svg, { x: left - 6, y: y + 17, "text-anchor": "end" }));
    if (complete && i) make("line", null, svg, { x1: a, x2: a, y1: y - 4, y2: y + 4 });
    const kind = step.grey ? "rest" : step.value > 0 ? "up" : "down";
    make("rect", null, svg, { x: Math.min(a, b), y: y + 4, width: Math.max(Math.abs(b - a), 1), height: high - 8, class: kind });
    const side = step.value < 0 ? { x: Math.min(a, b) - 4, "text-anchor": "end" } : { x: Math.max(a, b) + 4 };
    make("text", signed(step.value, places), svg, { ...side, y: y + 17 });
  });
  box.replaceChildren(make("p", sentence(found), null), svg);
}

function makeTable(caption, heads, lines) {
  const table = make("table", null, null);
  if (caption) make("caption", caption, table);
  const top = make("tr", null, make("thead", null, table));
  for (const head of heads) make("th", head, top, { scope: "col" });
  const body = make("tbody", null, table);
  for (const [name, ...texts] of lines) {
    const line = make("tr", null, body);
    make("bdi", name, make("th", null, line, { scope: "row" }));
    for (const text of texts) make("td", text, line);
  }
  return table;
}

function writeNumbers({ list, places, shared }) {
  const errors = list.some((step) => step.error !== null);
  const heads = ["column", ...(data.data ? ["data"] : []), shared ? "Shapley value" : "centred value", ...(errors ? ["standard error"] : [])];
  const lines = list.map((step) => [
    step.name,
    ...(data.data ? [step.raw] : []),
    signed(step.value, places),
    ...(errors ? [step.error === null ? "" : small(step.error)] : []),
  ]);
  find("numbers").replaceChildren(makeTable(`Row ${data.rows[row]}, output ${current().name}`, heads, lines));
}

/* What would bring the row to the target. */
function writeChanges() {
  if (!data.changes) return;
  const found = data.changes.rows[row] || { text: "This row is not among those.", lines: [] };
  const parts = [make("p", found.text, null)];
  if (found.lines.length) parts.push(makeTable("", data.changes.headings, found.lines));
  find("change-table").replaceChildren(...parts);
}

function drawRow() {
  if (find("rows").hidden) return;
  const found = steps();
  drawWaterfall(found);
  writeNumbers(found);
  writeChanges();
  if (data.what_if) keepControl();
  fillCells();
  for (const line of all("tr.picked")) line.classList.remove("picked");
  for (const { lines } of tables) lines[row].classList.add("picked");
}

function pick(i) {
  row = (i + data.rows.length) % data.rows.length;
  for (const list of all(".pick")) list.value = String(row);
  draw();
}

function fillPickers(panel) {
  for (const list of all(".pick:empty", panel)) {
    data.rows.forEach((label, i) => make("option", short(label, 60), list, { value: i }));
    list.value = String(row);
  }
}

function makePicker() {
  for (const list of all(".pick")) list.addEventListener("change", () => pick(Number(list.value)));
  find("previous").addEventListener("click", () => pick(row - 1));
  if (find("kind")) find("kind").addEventListener("change", drawRow);
  find("next").addEventListener("click", () => pick(row + 1));
  addEventListener("resize", () => { for (const chart of charts.values()) chart.stale = true; draw(); });
}
