"use strict";
(() => {
  const doc = document;
  const root = doc.documentElement;
  const find = (id) => doc.getElementById(id);
  const all = (selector, inside = doc) => [...inside.querySelectorAll(selector)];
  const data = JSON.parse(find("data").textContent);
  let output = 0;
  let row = 0;
  root.classList.add("js");

  /* Text goes in by textContent only: names and values are anybody's. */
  function make(tag, text, parent, attributes = {}) {
    const svg = ["svg", "g", "rect", "line", "text", "title"].includes(tag);
    const element = svg ? doc.createElementNS("http://www.w3.org/2000/svg", tag) : doc.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (text !== null) element.textContent = text;
    if (parent) parent.append(element);
    return element;
  }

  function number(value, places) {
    if (value === null) return "–";
    if (places < 0) return value ? value.toExponential(3) : "0";
    const text = value.toLocaleString("en-US", { minimumFractionDigits: places, maximumFractionDigits: places });
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

  /* Tabs: the links of the page without scripts become a tab list. */
  const links = all("#tabs a");
  const panels = links.map((link) => find(link.getAttribute("href").slice(1)));

  function show(place, focus) {
    links.forEach((link, i) => {
      link.setAttribute("aria-selected", String(i === place));
      link.tabIndex = i === place ? 0 : -1;
      panels[i].hidden = i !== place;
    });
    if (focus) links[place].focus();
    if (panels[place].contains(find("waterfall"))) drawRow();
  }

  function openHash() {
    const target = find(decodeURIComponent(location.hash.slice(1)) || "overview");
    const place = panels.findIndex((panel) => panel === target || panel.contains(target));
    show(Math.max(place, 0), false);
    if (place >= 0 && target !== panels[place]) target.scrollIntoView();
    else scrollTo(0, 0);
  }

  function makeTabs() {
    find("tabs").setAttribute("role", "tablist");
    links.forEach((link, i) => {
      link.setAttribute("role", "tab");
      link.id = `tab-${panels[i].id}`;
      link.setAttribute("aria-controls", panels[i].id);
      panels[i].setAttribute("role", "tabpanel");
      panels[i].setAttribute("aria-labelledby", link.id);
      link.addEventListener("click", (event) => {
        event.preventDefault();
        history.replaceState(null, "", link.getAttribute("href"));
        show(i, false);
      });
      link.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        const ends = { Home: 0, End: links.length - 1 };
        let place = event.key in ends ? ends[event.key] : null;
        if (step) place = (i + step + links.length) % links.length;
        if (event.key === " ") place = i;
        if (place === null) return;
        event.preventDefault();
        show(place, true);
      });
    });
    addEventListener("hashchange", openHash);
    openHash();
  }

  /* Outputs: one set of figures and tables each. */
  function showOutput(place) {
    output = place;
    for (const part of all(".output")) part.hidden = Number(part.dataset.output) !== place;
    drawRow();
    filterRows();
  }

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

  /* One row: bars, and the same as a table. Where the values add up to the prediction each bar
     begins where the one above ends; else all begin at 0. */
  function steps() {
    const { values, prediction, rest, error, base, decimals } = data.outputs[output];
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
    const found = { list, base, sum, end: null, gap: 0, complete: false, places: decimals };
    if (prediction) {
      found.end = prediction[row];
      found.gap = found.end - base - sum;
      const sizes = list.reduce((total, step) => total + Math.abs(step.value), Math.abs(base) + Math.abs(found.end));
      found.complete = Math.abs(found.gap) <= 1e-5 * sizes; /* numbers have six digits */
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

  function writeNumbers({ list, places }) {
    const table = make("table", null, null);
    make("caption", `Row ${data.rows[row]}, output ${data.outputs[output].name}`, table);
    const errors = list.some((step) => step.error !== null);
    const heads = ["column", ...(data.data ? ["data"] : []), "centred value", ...(errors ? ["standard error"] : [])];
    const top = make("tr", null, make("thead", null, table));
    for (const head of heads) make("th", head, top, { scope: "col" });
    const body = make("tbody", null, table);
    for (const step of list) {
      const line = make("tr", null, body);
      make("bdi", step.name, make("th", null, line, { scope: "row" }));
      if (data.data) make("td", step.raw, line);
      make("td", signed(step.value, places), line);
      if (errors) make("td", step.error === null ? "" : small(step.error), line);
    }
    find("numbers").replaceChildren(table);
  }

  function drawRow() {
    if (find("rows").hidden) return;
    const found = steps();
    drawWaterfall(found);
    writeNumbers(found);
    for (const { lines } of tables) lines.forEach((line, i) => line.classList.toggle("picked", i === row));
  }

  function pick(i) {
    row = (i + data.rows.length) % data.rows.length;
    find("pick").value = String(row);
    drawRow();
  }

  function makePicker() {
    data.rows.forEach((label, i) => make("option", short(label, 60), find("pick"), { value: i }));
    find("pick").addEventListener("change", (event) => pick(Number(event.target.value)));
    find("previous").addEventListener("click", () => pick(row - 1));
    find("next").addEventListener("click", () => pick(row + 1));
    addEventListener("resize", drawRow);
  }

  /* Panels of columns. */
  function makeColumnSearch() {
    const names = all("article.column").map((panel) => [panel, panel.querySelector("h3").textContent.toLowerCase()]);
    find("find-column").addEventListener("input", (event) => {
      const word = event.target.value.toLowerCase();
      for (const [panel, name] of names) panel.hidden = !name.includes(word);
    });
  }

  makePicker();
  makeTables();
  makeColumnSearch();
  makeTabs();
  const choice = find("output");
  if (choice) choice.addEventListener("change", () => showOutput(Number(choice.value)));
  showOutput(0);
})();
