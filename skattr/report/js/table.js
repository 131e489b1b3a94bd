/* The table. */
const tables = all("table.rows").map((table) => ({ table, lines: [...table.tBodies[0].rows] }));
let cells = "values";

function contents(o, i) {
  const { values, prediction, rest, decimals } = data.outputs[o];
  const texts = cells === "data" ? data.data[i] : values[i].map((v) => number(v, decimals));
  const list = prediction ? [number(prediction[i], decimals), ...texts] : [...texts];
  if (data.more) list.push(number(rest[i], decimals));
  return list;
}

function key(o, i, place) {
  const { values, prediction, rest } = data.outputs[o];
  if (place === 0) return data.rows[i];
  let j = place - 1;
  if (prediction && j-- === 0) return prediction[i];
  if (j === data.features.length) return rest[i];
  if (cells !== "data") return values[i][j];
  const text = data.data[i][j].replace(/^(-?\d{1,3}(,\d{3})+)(?=\.|$)/, (whole) => whole.replaceAll(",", ""));
  return text.trim() !== "" && Number.isFinite(Number(text)) ? Number(text) : text;
}

function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (typeof a === "number") return -1;
  if (typeof b === "number") return 1;
  return String(a).localeCompare(String(b), undefined, { numeric: true });
}

function sortRows(o, place, head) {
  const down = head.getAttribute("aria-sort") === "ascending";
  for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const order = data.rows.map((_, i) => i);
  const keys = order.map((i) => key(o, i, place));
  order.sort((a, b) => (down ? -1 : 1) * compare(keys[a], keys[b]) || a - b);
  const { table, lines } = tables[o];
  table.tBodies[0].append(...order.map((i) => lines[i]));
}

/* The table of the output on the page, when it is first seen or shows something else. */
const filled = []; /* what the cells of each output show */
function fillCells() {
  if (filled[output] === cells) return;
  const { values, prediction } = current();
  const skip = prediction ? 2 : 1;
  tables[output].lines.forEach((line, i) => {
    const own = [...line.cells];
    if (!filled[output]) makeButton(own[0], i);
    if (filled[output] || cells === "data") contents(output, i).forEach((text, c) => { own[c + 1].textContent = text; });
    values[i].forEach((value, j) => {
      own[j + skip].className = cells === "values" && value ? (value > 0 ? "up" : "down") : "";
    });
  });
  filled[output] = cells;
}

function makeButton(cell, i) {
  const button = make("button", null, null, { type: "button", title: "Show the waterfall" });
  button.append(...cell.childNodes);
  cell.append(button);
  button.addEventListener("click", () => {
    pick(i);
    find("row").scrollIntoView();
  });
}

const searched = (i) => [data.rows[i], ...(data.data ? data.data[i] : [])].join("\n").toLowerCase();

function filterRows() {
  const wanted = find("find-row").value.trim().toLowerCase();
  let n = 0;
  tables[output].lines.forEach((line, i) => {
    line.hidden = wanted !== "" && !searched(i).includes(wanted);
    n += line.hidden ? 0 : 1;
  });
  find("count").textContent = `${number(n, 0)} of ${number(data.rows.length, 0)} rows`;
}

function makeTables() {
  tables.forEach(({ table }, o) => {
    [...table.tHead.rows[0].cells].forEach((head, place) => {
      const button = make("button", null, null, { type: "button", title: "Sort" });
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => sortRows(o, place, head));
    });
  });
  find("find-row").addEventListener("input", filterRows);
  const choice = find("cells");
  if (choice) {
    choice.addEventListener("change", () => {
      cells = choice.value;
      fillCells();
    });
  }
}
