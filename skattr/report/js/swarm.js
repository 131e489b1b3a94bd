/* The rows shown as points, one line for each column: hover, arrow keys, a click picks the row. */
const LINE = 36;
const LOW_TO_HIGH = [[44, 127, 224], [176, 80, 143], [240, 138, 29]];
const KINDS = ["#2c7fe0", "#f08a1d", "#1a9e6c", "#c45ab3", "#8f7a00", "#5b6bd6", "#d1495b", "#3aa6b9"];
let points = []; /* {x, y, i, j} of the swarm on the page */
let here = null; /* the point that is told of */

function shade(part) {
  const k = Math.min(1, Math.floor(part * 2));
  const rest = part * 2 - k;
  return `rgb(${LOW_TO_HIGH[k].map((from, c) => Math.round(from + (LOW_TO_HIGH[k + 1][c] - from) * rest)).join(",")})`;
}

/* The colour of each row by a column: its rank or, of few levels without one, its kind; null is grey. */
const colourings = new Map();
function colours(j) {
  if (!data.charts) return () => null;
  if (!colourings.has(j)) {
    const about = data.charts[j];
    if (about.kind === "number" || about.kind === "date") {
      const values = data.rows.map((_, i) => placeOf(j, i));
      const sorted = [...new Set(values.filter((v) => v !== null))].sort((a, b) => a - b);
      const rank = new Map(sorted.map((v, k) => [v, sorted.length > 1 ? k / (sorted.length - 1) : 0.5]));
      colourings.set(j, { low: true, of: values.map((v) => (v === null ? null : shade(rank.get(v)))) });
    } else {
      const low = about.ranks > 0; /* the order of the levels is theirs */
      const names = low
        ? about.order.slice(0, about.ranks).map((k) => data.what_if.columns[j].levels[k])
        : [...new Set(data.data.map((line) => line[j]))].sort();
      const few = names.length <= KINDS.length;
      const key = new Map(names.map((name, k) => [name, low ? shade((k + 0.5) / names.length) : few ? KINDS[k] : null]));
      colourings.set(j, { low, key: few ? [...key] : [], of: data.data.map((line) => key.get(line[j]) || null) });
    }
  }
  return colourings.get(j);
}

const swarmBox = () => all(".swarm").find((box) => Number(box.dataset.output) === output);

let painted = ""; /* what `still` shows: all points without marks */
const still = make("canvas", null, null);

function drawSwarm() {
  const box = swarmBox();
  if (find("overview").hidden || !box) return;
  const canvas = box.querySelector("canvas");
  const width = Math.max(280, Math.min(900, box.clientWidth));
  const height = LINE * data.features.length + 34;
  const dense = devicePixelRatio || 1;
  const style = getComputedStyle(root);
  const ink = (name) => style.getPropertyValue(name);
  const chosen = find("colour") ? find("colour").value : "own";
  const wanted = [output, chosen, width, dense, ink("--ink")].join();
  if (wanted !== painted || canvas.width !== still.width) {
    for (const each of [canvas, still]) {
      each.width = Math.round(width * dense);
      each.height = Math.round(height * dense);
    }
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    paintSwarm(width, dense, ink, chosen);
    painted = wanted;
    describe(chosen);
  }
  const brush = canvas.getContext("2d");
  brush.setTransform(1, 0, 0, 1, 0, 0);
  brush.clearRect(0, 0, canvas.width, canvas.height);
  brush.drawImage(still, 0, 0);
  brush.scale(dense, dense);
  for (const point of points) if (point.i === row) ring(brush, point, 5, ink("--ink"));
  if (here) ring(brush, points.find(({ i, j }) => i === here.i && j === here.j), 6, ink("--accent"));
  tell(chosen);
}

function paintSwarm(width, dense, ink, chosen) {
  const n = data.features.length;
  const brush = still.getContext("2d");
  brush.scale(dense, dense);
  brush.font = `13px ${getComputedStyle(doc.body).fontFamily}`;
  const longest = Math.max(...data.features.map((name) => name.length));
  const left = Math.min(20 + 7.6 * longest, width * 0.3);
  const { values } = current();
  let [low, high] = [0, 0];
  for (const line of values) for (const v of line) [low, high] = [Math.min(low, v), Math.max(high, v)];
  if (low === high) [low, high] = [-1, 1];
  [low, high] = [low - 0.02 * (high - low), high + 0.02 * (high - low)];
  const at = (v) => left + 10 + ((v - low) / (high - low)) * (width - left - 26);
  const text = (words, x, y, align, colour) => {
    brush.textAlign = align;
    brush.fillStyle = ink(colour);
    brush.fillText(words, x, y);
  };
  const ticks = ticksOf(low, high, Math.floor((width - left) / 60));
  for (const v of ticks.list) {
    brush.fillStyle = ink(Math.abs(v) < 1e-12 * (high - low) ? "--rest" : "--line");
    brush.fillRect(at(v), 0, 1, LINE * n);
    text(number(v, ticks.places), at(v), LINE * n + 16, "center", "--soft");
  }
  text(`effect${unit && ` in${unit}`}`, width - 4, LINE * n + 31, "right", "--soft");
  const grey = ink("--rest");
  points = [];
  data.features.forEach((name, j) => {
    const middle = LINE * (j + 0.5);
    text(short(name, Math.floor(left / 7.6)), left - 4, middle + 4, "right", "--ink");
    const found = colours(chosen === "own" ? j : Number(chosen));
    const colour = (chosen === "own" && !found.low ? null : found.of) || []; /* neither low nor high */
    const heaps = new Map();
    values.forEach((line, i) => {
      const heap = Math.round(at(line[j]) / 3);
      if (heaps.has(heap)) heaps.get(heap).push(i);
      else heaps.set(heap, [i]);
    });
    for (const rows of heaps.values()) {
      const step = Math.min(3, (LINE - 10) / rows.length);
      rows.forEach((i, k) => {
        const y = middle + (k - (rows.length - 1) / 2) * step;
        const point = { x: at(values[i][j]), y, i, j };
        points.push(point);
        brush.fillStyle = colour[i] || grey;
        brush.beginPath();
        brush.arc(point.x, y, 2.6, 0, 7);
        brush.fill();
      });
    }
  });
}

function ring(brush, { x, y }, size, colour) {
  brush.strokeStyle = colour;
  brush.lineWidth = 2;
  brush.beginPath();
  brush.arc(x, y, size, 0, 7);
  brush.stroke();
}

/* What the point is. */
function tell(chosen) {
  const box = swarmBox();
  const { i, j } = here || { i: row, j: null };
  const { prediction, decimals, values } = current();
  const own = (k) => (data.data ? ` = ${data.data[i][k]}` : "");
  let words = `Row ${data.rows[i]}`;
  if (prediction) words += ` (prediction ${number(prediction[i], decimals)}${unit})`;
  if (j !== null) {
    words += `: ${data.features[j]}${own(j)}, ${amount(values[i][j])}${errorText(i, j)}`;
    if (chosen !== "own" && Number(chosen) !== j) words += `; ${data.features[chosen]}${own(chosen)}`;
  } else words += " is marked";
  box.querySelector(".told").textContent = `${words}.`;
}

/* What the colours mean. */
function describe(chosen) {
  const key = swarmBox().querySelector(".key");
  key.replaceChildren();
  const dot = (colour, words) => {
    const svg = make("svg", null, make("span", null, key), { width: 12, height: 12, "aria-hidden": "true" });
    make("circle", null, svg, { cx: 6, cy: 6, r: 5, fill: colour });
    svg.parentElement.append(` ${words} `);
  };
  if (!data.charts) return;
  const own = chosen === "own";
  const found = (own ? [...data.features.keys()] : [Number(chosen)]).map(colours);
  const named = (!own && found[0].key) || [];
  for (const [name, colour] of named) dot(colour, short(name, 30));
  if (!named.length && found.some(({ low }) => low)) ["low", "middle", "high"].forEach((name, k) => dot(shade(k / 2), name));
  if (found.some(({ low, of }) => (own && !low) || of.includes(null))) dot("var(--rest)", "missing or without order");
}

function makeSwarm() {
  if (find("colour")) {
    data.features.forEach((name, j) => make("option", short(name, 60), find("colour"), { value: j }));
    find("colour").addEventListener("change", drawSwarm);
  }
  const move = (point) => { here = point; drawSwarm(); };
  for (const box of all(".swarm")) {
    box.closest(".live-part").classList.add("live");
    const canvas = make("canvas", null, box, { tabindex: 0, role: "img", "aria-label": "Effects of the rows shown. Left and right go from row to row, up and down from column to column, Enter picks the row." });
    make("p", null, box, { class: "key" });
    make("p", null, box, { class: "told", role: "status" });
    const nearest = (event) => {
      const frame = canvas.getBoundingClientRect();
      const far = ({ x, y }) => Math.hypot(x - event.clientX + frame.left, y - event.clientY + frame.top);
      const best = points.reduce((found, point) => (found && far(found) <= far(point) ? found : point), null);
      return best && far(best) < 14 ? best : null;
    };
    canvas.addEventListener("pointermove", (event) => {
      const point = nearest(event);
      if ((point && point.i) !== (here && here.i) || (point && point.j) !== (here && here.j)) move(point);
    });
    canvas.addEventListener("pointerleave", () => move(null));
    canvas.addEventListener("click", (event) => { const point = nearest(event); if (point) pick(point.i); });
    canvas.addEventListener("keydown", (event) => {
      const now = here || { i: row, j: 0 };
      const line = points.filter(({ j }) => j === now.j).sort((a, b) => a.x - b.x || a.i - b.i);
      const place = line.findIndex(({ i }) => i === now.i);
      const n = data.features.length;
      const act = {
        ArrowRight: () => move(line[Math.min(place + 1, line.length - 1)]),
        ArrowLeft: () => move(line[Math.max(place - 1, 0)]),
        ArrowDown: () => move({ i: now.i, j: Math.min(now.j + 1, n - 1) }),
        ArrowUp: () => move({ i: now.i, j: Math.max(now.j - 1, 0) }),
        Enter: () => pick(now.i),
        Escape: () => move(null),
      }[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    });
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawSwarm);
}
