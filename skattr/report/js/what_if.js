/* What if: a stored curve at another value. */
let moved = null; /* a number, the place of a level, or null: missing */
let chart = null;
let touched = false; /* whether it is another value than that of the row */

/* Steps are packed: ends as bytes, values as differences in units, errors as runs. */
function curveOf(j) {
  const curve = data.what_if.columns[j];
  if (typeof curve.x === "string") {
    const bytes = Uint8Array.from(atob(curve.x), (letter) => letter.charCodeAt(0));
    curve.x = new (curve.single ? Float32Array : Float64Array)(bytes.buffer);
    if (curve.units) {
      curve.values = curve.values.map((list, o) => {
        const [times, places] = curve.units[o];
        let sum = 0;
        return Float64Array.from(list, (step) => { sum += step; return (sum * times) / 10 ** places; });
      });
    }
    if (curve.errors) curve.errors = curve.errors.map((runs) => runs.flatMap((n, k) => (k % 2 ? [] : Array(n).fill(runs[k + 1]))));
  }
  return curve;
}

/* The first end or knot that is not below a value. */
function placeIn({ x }, t) {
  let low = 0;
  let high = x.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (x[middle] < t) low = middle + 1;
    else high = middle;
  }
  return low;
}

const stepOf = (curve, t) => placeIn(curve, curve.single ? Math.fround(t) : t);

function curveAt(curve, value) {
  const values = curve.values[output];
  if (curve.kind === "levels") return values[value];
  if (value === null) return curve.missing[output];
  const t = curve.single ? Math.fround(value) : value;
  const { x } = curve;
  const low = stepOf(curve, value);
  if (curve.kind === "steps" || x[low] === t) return values[low];
  const right = Math.min(Math.max(low, 1), x.length - 1);
  const left = right - 1;
  return values[left] + (values[right] - values[left]) * ((t - x[left]) / (x[right] - x[left]));
}

function asNumber(text) {
  const value = Number(text.replaceAll(",", ""));
  return text.trim() !== "" && Number.isFinite(value) ? value : null;
}

/* The place of a level or of any other; -1: it has none. */
function levelOf({ levels }, text) {
  return levels.indexOf(levels.includes(text) || text === "missing" ? text : "any other");
}

/* Resizing the window keeps what was moved. */
let controlled = ""; /* the output and the row of the control */
function keepControl() {
  if (controlled !== `${output} ${row}`) makeControl();
  else if (chart) chart.draw();
}

function makeControl() {
  controlled = `${output} ${row}`;
  const j = Number(find("if-column").value);
  const curve = curveOf(j);
  const own = data.data[row][j];
  const box = find("if-control");
  box.replaceChildren();
  if (!curve.kind) {
    find("if-result").textContent = `Not shown: ${curve.why}.`;
    find("if-curve").replaceChildren();
    chart = null;
    return;
  }
  chart = chartKind(j) && chartKind(j) !== "points" ? new Chart(find("if-curve"), j) : null;
  if (!chart) find("if-curve").replaceChildren();
  const heard = (element, change) => element.addEventListener("input", () => { touched = true; change(); answer(); });
  touched = false;
  if (curve.kind === "levels") {
    const list = make("select", null, box, { id: "if-level", "aria-label": "Level" });
    curve.levels.forEach((level, i) => make("option", short(level, 60), list, { value: i }));
    moved = levelOf(curve, own);
    list.value = String(moved);
    heard(list, () => { moved = Number(list.value); });
  } else {
    const { low, high, whole } = curve;
    const step = whole ? 1 : (high - low) / 200 || 1;
    const start = curve.own ? curve.own[row] : asNumber(own);
    const range = make("input", null, box, { id: "if-range", type: "range", min: low, max: high, step, "aria-label": "Value" });
    const field = make("input", null, box, { id: "if-number", type: "number", step: whole ? 1 : "any", "aria-label": "Value" });
    moved = start === null && !curve.missing ? low : start;
    range.value = field.value = moved === null ? low : moved;
    heard(range, () => { moved = Number(range.value); field.value = range.value; gone(false); });
    heard(field, () => {
      const value = asNumber(field.value);
      if (value === null) return;
      moved = whole ? Math.round(value) : value;
      range.value = moved;
      gone(false);
    });
    const missing = curve.missing ? make("input", null, null, { id: "if-missing", type: "checkbox" }) : null;
    const gone = (is) => { if (missing) missing.checked = is; };
    if (missing) {
      box.append(missing);
      make("label", "missing", box, { for: "if-missing" });
      gone(moved === null);
      heard(missing, () => { moved = missing.checked ? null : Number(field.value); });
    }
  }
  answer();
}

function answer() {
  const j = Number(find("if-column").value);
  const curve = curveOf(j);
  const { values, decimals: places } = current();
  const before = values[row][j];
  const after = touched ? curveAt(curve, moved) : before;
  const box = find("if-result");
  box.replaceChildren();
  make("bdi", data.features[j], box);
  const own = data.data[row][j];
  const level = !touched ? own : curve.kind === "levels" ? curve.levels[moved] : moved === null ? "missing" : String(moved);
  box.append(`: ${own} → ${level}. Attribution: ${signed(before, places)} → `);
  make("strong", signed(after, places), box, { id: "if-value" });
  box.append(unit);
  const sums = data.what_if.predictions;
  const start = sums ? ownValue(curve, j) : null;
  if (start !== null) {
    const from = sums[output][row];
    box.append(`. Prediction: ${number(from, places)} → `);
    make("strong", number(touched ? from - start + after : from, places), box, { id: "if-prediction" });
    box.append(unit);
  }
  box.append(".");
  if (!chart) return;
  const place = curve.kind === "levels" ? data.charts[j].order.indexOf(moved) : moved;
  chart.move([curve.kind === "levels" && place < 0 ? null : place, after]);
}

/* The attribution of the row itself, in full: of its own value on the curve. */
function ownValue(curve, j) {
  if (curve.own) return curve.own[row] === null && !curve.missing ? null : curveAt(curve, curve.own[row]);
  const place = curve.kind === "levels" ? levelOf(curve, data.data[row][j]) : -1;
  return place < 0 ? null : curveAt(curve, place);
}

function makeWhatIf() {
  if (!data.what_if) return;
  data.features.forEach((name, j) => make("option", short(name, 60), find("if-column"), { value: j }));
  find("if-column").addEventListener("change", makeControl);
}
