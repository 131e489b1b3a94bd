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

function fillCells() {
  tables.forEach(({ lines }, o) => {
    const skip = data.outputs[o].prediction ? 1 : 0;
    lines.forEach((line, i) => {
      contents(o, i).forEach((text, c) => {
        const cell = line.cells[c + 1];
        cell.textContent = text;
        const value = data.outputs[o].values[i][c - skip];
        const tint = cells === "values" && c >= skip && value;
        cell.className = tint ? (value > 0 ? "up" : "down") : "";
      });
    });
  });
}

const texts = data.rows.map((label, i) => [label, ...(data.data ? data.data[i] : [])].join("\n").toLowerCase());

function filterRows() {
  const wanted = find("find-row").value.trim().toLowerCase();
  let n = 0;
  tables[output].lines.forEach((line, i) => {
    line.hidden = !texts[i].includes(wanted);
    n += line.hidden ? 0 : 1;
  });
  find("count").textContent = `${number(n, 0)} of ${number(data.rows.length, 0)} rows`;
}

function makeTables() {
  tables.forEach(({ table, lines }, o) => {
    [...table.tHead.rows[0].cells].forEach((head, place) => {
      const button = make("button", null, null, { type: "button", title: "Sort" });
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => sortRows(o, place, head));
    });
    lines.forEach((line, i) => {
      const button = make("button", null, null, { type: "button", title: "Show the waterfall" });
      button.append(...line.cells[0].childNodes);
      line.cells[0].append(button);
      button.addEventListener("click", () => {
        pick(i);
        find("row").scrollIntoView();
      });
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
  fillCells();
  filterRows();
}
