/* A picture of one column: its curve, a bar for each level, or the rows as points. Hovering and the
   arrow keys tell value, rows and error; a curve can be zoomed; the row picked is marked. */
const FRAME = { left: 60, right: 14, top: 22, bottom: 26, strip: 24, high: 260 };
const MOST_BARS = 60;
const DAY = 864e5;

function chartKind(j) {
  if (!data.charts) return null;
  const { kind, order } = data.charts[j];
  const curve = curveOf(j);
  if (curve.kind === "steps" || curve.kind === "linear") return "line";
  if (curve.kind === "levels" && order && order.length <= MOST_BARS) return "bars";
  return kind === "number" || kind === "date" ? "points" : null;
}

/* The place of a row on the axis of a column; null is missing. */
function placeOf(j, i) {
  const { places } = data.charts[j];
  return places ? places[i] : asNumber(data.data[i][j]);
}

/* Numbers below 10,000 have no separator: they may be years. */
function plain(value, places) {
  const text = Math.abs(value) < 1e4 ? value.toFixed(places) : number(value, places);
  return /[1-9]/.test(text) ? text : text.replace("-", "");
}

function ticksOf(low, high, most) {
  const rough = (high - low) / most || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((times) => times * power).find((size) => size >= rough * 0.999);
  const list = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k += 1) list.push(k * step);
  return { list, places: Math.min(12, Math.max(0, -Math.floor(Math.log10(step) + 1e-9))) };
}

function dateTicks(low, high, most) {
  const months = (high - low) / 30.4 / most;
  if (months < 0.5) return ticksOf(low, high, most).list.filter(Number.isInteger).map((t) => [t, dateText(t)]);
  const step = [1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200].find((size) => size >= months) || 12000;
  const start = new Date(low * DAY);
  const list = [];
  for (let m = Math.ceil((start.getUTCFullYear() * 12 + start.getUTCMonth()) / step) * step; ; m += step) {
    const t = Date.UTC(Math.floor(m / 12), m % 12, 1) / DAY;
    if (!(t <= high)) return list;
    if (t >= low) list.push([t, dateText(t).slice(0, step >= 12 ? 4 : 7)]);
  }
}

const dateText = (t) => new Date(t * DAY).toISOString().slice(0, 10);

class Chart {
  constructor(box, j) {
    this.box = box;
    this.j = j;
    this.kind = chartKind(j);
    this.about = data.charts[j];
    this.curve = curveOf(j);
    this.stale = true; /* not drawn yet, or not as the page is now */
    this.at = null; /* the value that is told of: a number, or the place of a bar */
    this.moved = null; /* [value, attribution] of what if */
    this.drag = null;
    if (this.kind === "points") {
      this.rows = data.rows.map((_, i) => [placeOf(j, i), i]).filter(([t]) => t !== null).sort((a, b) => a[0] - b[0]);
    }
    const { low, high } = this.about;
    this.whole = this.kind === "bars" ? [-0.5, this.about.order.length - 0.5] : [low, high > low ? high : low + 1];
    this.view = this.whole;
    this.build();
  }

  build() {
    const name = data.features[this.j];
    const keys = this.kind === "bars" ? "Arrow keys go from bar to bar." : "Arrow keys move along it, plus and minus zoom, 0 shows all.";
    const svg = make("svg", null, null, { tabindex: 0, role: "group", "aria-label": `Picture of ${name}. ${keys}` });
    this.svg = svg;
    this.told = make("p", "", null, { class: "told", role: "status" });
    this.box.replaceChildren(svg, this.told);
    this.width = 640;
    this.resize(FRAME.high); /* until it is drawn */
    this.told.textContent = this.aboutRow(row);
    if (this.kind !== "bars") {
      const line = make("p", null, this.box, { class: "zoom" });
      const buttons = [["Zoom in", () => this.zoom(0.5)], ["Zoom out", () => this.zoom(2)], ["All", () => this.show(this.whole)]];
      for (const [text, act] of buttons) make("button", text, line, { type: "button" }).addEventListener("click", act);
    }
    const on = (name, act) => svg.addEventListener(name, act);
    on("pointermove", (event) => this.hover(this.valueAt(event)));
    on("pointerleave", () => { this.drag = null; this.hover(null); });
    on("pointerdown", (event) => { this.drag = this.kind === "bars" ? null : this.valueAt(event); });
    on("pointerup", (event) => this.drop(this.valueAt(event)));
    on("keydown", (event) => this.press(event));
  }

  valueAt(event) {
    const box = this.svg.getBoundingClientRect();
    const part = ((event.clientX - box.left) * (this.width / box.width) - FRAME.left) / (this.width - FRAME.left - FRAME.right);
    return this.view[0] + Math.min(Math.max(part, 0), 1) * (this.view[1] - this.view[0]);
  }

  drop(t) {
    const [a, b] = [Math.min(t, this.drag), Math.max(t, this.drag)];
    const dragged = this.drag !== null && b - a > 0.03 * (this.view[1] - this.view[0]);
    this.drag = null;
    if (dragged) this.show([a, b]);
    else if (this.kind === "points" && this.rows.length) pick(this.nearest(t)[1]);
  }

  press(event) {
    const [a, b] = this.view;
    const step = this.kind === "bars" ? 1 : (b - a) / 50;
    const now = this.at === null ? (this.kind === "bars" ? -1 : (a + b) / 2) : this.at;
    const act = {
      ArrowRight: () => this.hover(now + step),
      ArrowLeft: () => this.hover(now - step),
      Home: () => this.hover(a + (this.kind === "bars" ? 0.5 : 0)),
      End: () => this.hover(b),
      "+": () => this.zoom(0.5),
      "=": () => this.zoom(0.5),
      "-": () => this.zoom(2),
      0: () => this.show(this.whole),
      Escape: () => this.hover(null),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  zoom(times) {
    if (this.kind === "bars") return;
    const [a, b] = this.view;
    const middle = this.at === null ? (a + b) / 2 : this.at;
    const width = Math.min((b - a) * times, this.whole[1] - this.whole[0]);
    const start = Math.min(Math.max(middle - width / 2, this.whole[0]), this.whole[1] - width);
    this.show([start, start + width]);
  }

  show(view) {
    if (view[1] - view[0] > 1e-6 * (this.whole[1] - this.whole[0])) this.view = view;
    this.draw();
  }

  nearest(t) {
    return this.rows.reduce((best, each) => (Math.abs(each[0] - t) < Math.abs(best[0] - t) ? each : best));
  }

  /* The points of the line in view, with its jumps, and the number of the step. */
  line() {
    const [a, b] = this.view;
    const { x, kind } = this.curve;
    const values = this.curve.values[output];
    const points = [[a, curveAt(this.curve, a), stepOf(this.curve, a)]];
    for (let k = stepOf(this.curve, a); k < x.length && x[k] < b; k += 1) {
      const t = Math.max(x[k], a); /* in float32, a jump at the left end may lie before it */
      points.push([t, values[k], k]);
      if (kind === "steps") points.push([t, values[k + 1], k + 1]);
    }
    points.push([b, curveAt(this.curve, b), stepOf(this.curve, b)]);
    return points;
  }

  /* Twice the error from the background, null where there is none: of steps and bars their own, of
     a line that of the nearest place where it is known. */
  errorAt(t) {
    const { errors } = this.curve;
    return errors ? errors[output][stepOf(this.curve, t)] : this.bandAt(t)[1];
  }

  /* That place, and the error there. */
  bandAt(t) {
    const near = (best, each) => (Math.abs(each[0] - t) < Math.abs(best[0] - t) ? each : best);
    const band = this.kind === "bars" ? this.about.band?.filter(([place]) => place === t) : this.about.band;
    if (!band || !band.length) return [t, null];
    const found = band.reduce(near);
    return [found[0], found[output + 1]];
  }

  resize(high) {
    for (const [name, value] of Object.entries({ width: this.width, height: high, viewBox: `0 0 ${this.width} ${high}` })) this.svg.setAttribute(name, value);
  }

  draw() {
    this.stale = false;
    const { left, right, top, strip } = FRAME;
    this.width = Math.max(280, Math.min(640, this.box.clientWidth));
    this.fit = this.kind === "bars" ? Math.floor((this.width - left - right) / this.about.order.length / 7.6) : 0;
    this.longest = this.kind === "bars" ? Math.min(16, Math.max(...this.about.order.map((k) => this.curve.levels[k].length))) : 0;
    this.slanted = this.longest > this.fit;
    const bottom = FRAME.bottom + (this.slanted ? 4.5 * this.longest : 0);
    const high = FRAME.high + bottom - FRAME.bottom;
    this.floor = high - bottom;
    const { width, svg, kind } = this;
    const [a, b] = this.view;
    svg.replaceChildren();
    this.resize(high);
    const line = kind === "line" ? this.line() : [];
    const values = current().values;
    const seen = kind === "points" ? this.rows.filter(([t]) => t >= a && t <= b) : [];
    const { order } = this.about;
    const { errors } = this.curve;
    const ends = kind === "bars" ? order.map((_, place) => [place, this.valueOf(place)]) : line;
    const band = ends.map(([t, v, k]) => [t, v, errors ? errors[output][k] : this.errorAt(t)]).filter((end) => end[2] !== null);
    const heights = [
      ...line.map((p) => p[1]),
      ...seen.map(([, i]) => values[i][this.j]),
      ...(kind === "bars" ? [0, ...order.map((k) => this.curve.values[output][k])] : []),
      ...band.flatMap(([, v, e]) => [v - e, v + e]),
      ...(this.missing() === null ? [] : [this.missing()]),
      ...(this.moved ? [this.moved[1]] : []),
    ];
    let low = heights.reduce((m, v) => Math.min(m, v), Infinity);
    let most = heights.reduce((m, v) => Math.max(m, v), -Infinity);
    if (!(low <= most)) [low, most] = [-1, 1];
    if (low === most) [low, most] = [low - (Math.abs(low) || 1), most + (Math.abs(most) || 1)];
    const pad = 0.06 * (most - low);
    [low, most] = [low - pad, most + pad];
    this.range = [low, most];
    this.x = (t) => left + ((t - a) / (b - a)) * (width - left - right);
    this.y = (v) => top + ((most - v) / (most - low)) * (high - top - bottom - strip);
    this.axes(low, most);
    this.histogram();
    const path = (points) => points.map(([t, v]) => `${this.x(t).toFixed(1)},${this.y(v).toFixed(1)}`).join(" ");
    if (band.length > 1 && kind === "line") {
      const edge = (sign) => band.map(([t, v, e]) => [t, v + sign * e]);
      make("polygon", null, svg, { points: path([...edge(1), ...edge(-1).reverse()]), class: "band" });
    }
    if (line.length) make("polyline", null, svg, { points: path(line), class: "curve" });
    if (kind === "bars") this.bars(band);
    for (const [t, i] of seen) make("circle", null, svg, { cx: this.x(t), cy: this.y(values[i][this.j]), r: 2.5, class: "dot" });
    if (this.missing() !== null) {
      const y = this.y(this.missing());
      make("line", null, svg, { x1: left, x2: width - right, y1: y, y2: y, class: "missing" });
      make("text", "missing", svg, { x: width - right, y: y - 3, "text-anchor": "end", class: "soft" });
    }
    this.marks = make("g", null, svg);
    this.mark();
  }

  missing() {
    const { missing } = this.curve;
    return this.kind === "line" && missing && this.about.missing ? missing[output] : null;
  }

  valueOf(t) {
    if (this.kind === "bars") return this.curve.values[output][this.about.order[Math.round(t)]];
    return curveAt(this.curve, t);
  }

  axes(low, most) {
    const { left, right, strip } = FRAME;
    const { svg, width } = this;
    make("text", `effect on the ${short(current().what, 60)}${data.unit && ` (${data.unit})`}`, svg, { x: 4, y: 13, class: "soft" });
    const down = ticksOf(low, most, 5);
    for (const v of down.list) {
      make("line", null, svg, { x1: left, x2: width - right, y1: this.y(v), y2: this.y(v), class: Math.abs(v) < 1e-12 * (most - low) ? "zero" : "grid" });
      make("text", number(v, down.places), svg, { x: left - 6, y: this.y(v) + 4, "text-anchor": "end", class: "soft" });
    }
    const write = (t, text) => make("text", text, svg, { x: this.x(t), y: this.floor + 16, "text-anchor": "middle", class: "soft" });
    const [a, b] = this.view;
    if (this.kind === "bars") {
      this.about.order.forEach((k, place) => {
        if (this.slanted && place % Math.ceil(22 / (this.x(1) - this.x(0)))) return; /* hovering tells the others */
        const label = write(place, short(this.curve.levels[k], this.slanted ? Math.min(16, Math.floor(this.x(place) / 5.8)) : this.fit));
        if (!this.slanted) return;
        label.setAttribute("text-anchor", "end");
        label.setAttribute("transform", `rotate(-35 ${this.x(place)} ${this.floor + 16})`);
      });
    } else if (this.about.kind === "date") {
      for (const [t, text] of dateTicks(a, b, Math.floor(width / 110))) write(t, text);
    } else {
      const across = ticksOf(a, b, Math.floor(width / 75));
      for (const t of across.list) write(t, plain(t, across.places));
    }
    make("line", null, svg, { x1: left, x2: width - right, y1: this.floor - strip + 4, y2: this.floor - strip + 4, class: "grid" });
  }

  /* How many rows have such values, below the curve. */
  histogram() {
    const { strip } = FRAME;
    const { counts } = this.about;
    const most = Math.max(...counts, 1);
    counts.forEach((n, k) => {
      const [from, to] = this.bin(k);
      const [x, end] = [Math.max(this.x(from), FRAME.left), Math.min(this.x(to), this.width - FRAME.right)];
      const tall = (n / most) * (strip - 6);
      if (n && end > x) make("rect", null, this.svg, { x, width: Math.max(end - x - 1, 0.5), y: this.floor - tall, height: tall, class: "rows" });
    });
  }

  bin(k) {
    if (this.kind === "bars") return [k - 0.4, k + 0.4];
    const { low, high, counts } = this.about;
    const size = (high - low) / counts.length;
    return [low + k * size, low + (k + 1) * size];
  }

  bars(band) {
    const wide = this.x(0.4) - this.x(-0.4);
    this.about.order.forEach((k, place) => {
      const [v, zero] = [this.y(this.curve.values[output][k]), this.y(0)];
      const kind = this.curve.values[output][k] < 0 ? "down" : "up";
      make("rect", null, this.svg, { x: this.x(place - 0.4), width: wide, y: Math.min(v, zero), height: Math.max(Math.abs(v - zero), 1), class: kind });
    });
    for (const [t, v, e] of band) make("line", null, this.svg, { x1: this.x(t), x2: this.x(t), y1: this.y(v - e), y2: this.y(v + e), class: "error" });
  }

  /* The row picked, the value moved to, and the value under the pointer. */
  mark() {
    const { marks, j } = this;
    marks.replaceChildren();
    const circle = (t, v, kind, r) => make("circle", null, marks, { cx: this.x(t), cy: this.y(v), r, class: kind });
    const inside = (t) => t >= this.view[0] && t <= this.view[1];
    const own = this.kind === "bars" ? this.about.order.indexOf(this.curve.levels.indexOf(data.data[row][j])) : placeOf(j, row);
    const value = current().values[row][j];
    if (own === null && this.missing() !== null) circle(this.view[0], value, "picked", 6);
    else if (own !== null && own !== -1 && inside(own)) circle(own, value, "picked", 6);
    if (this.moved && this.moved[0] !== null && inside(this.moved[0])) circle(...this.moved, "moved", 5);
    if (this.at !== null && this.kind !== "points" && inside(this.at)) {
      make("line", null, marks, { x1: this.x(this.at), x2: this.x(this.at), y1: FRAME.top, y2: this.floor, class: "cross" });
      circle(this.at, this.valueOf(this.at), "here", 4);
    }
    if (this.at !== null && this.kind === "points" && this.rows.length) {
      const [t, i] = this.nearest(this.at);
      if (inside(t)) circle(t, current().values[i][j], "here", 5);
    }
    if (this.drag !== null && this.at !== null) {
      const [from, to] = [this.x(Math.min(this.drag, this.at)), this.x(Math.max(this.drag, this.at))];
      make("rect", null, marks, { x: from, width: to - from, y: FRAME.top, height: this.floor - FRAME.top, class: "drag" });
    }
    this.told.textContent = this.at === null ? this.aboutRow(row) : this.aboutValue();
  }

  /* What if: the chart is drawn anew only if the value lies beyond it. */
  move(moved) {
    this.moved = moved;
    if (this.stale || moved[1] < this.range[0] || moved[1] > this.range[1]) this.draw();
    else this.mark();
  }

  hover(t) {
    if (this.stale) this.draw();
    const [a, b] = this.view;
    this.at = t === null ? null : Math.min(Math.max(t, a), b);
    if (this.at !== null && this.kind === "bars") this.at = Math.min(Math.max(Math.round(t), 0), this.about.order.length - 1);
    if (this.at !== null && this.about.whole && this.kind === "line") this.at = Math.min(Math.max(Math.round(this.at), Math.ceil(a)), Math.floor(b));
    this.mark();
  }

  unit(text) {
    return this.about.unit ? `${text} ${this.about.unit}` : text;
  }

  written(t) {
    if (this.about.kind === "date") return dateText(t);
    const span = this.view[1] - this.view[0];
    return this.unit(plain(t, this.about.whole ? 0 : Math.min(12, Math.max(0, 2 - Math.floor(Math.log10(span))))));
  }

  aboutRow(i) {
    return `Row ${data.rows[i]}: ${data.features[this.j]} = ${this.unit(data.data[i][this.j])}, ${amount(current().values[i][this.j])}${errorText(i, this.j)}.`;
  }

  aboutValue() {
    if (this.kind === "points") return this.rows.length ? this.aboutRow(this.nearest(this.at)[1]) : "";
    const { counts, low, high, order } = this.about;
    const error = this.errorAt(this.at);
    const place = this.curve.kind === "linear" ? ` at ${this.written(this.bandAt(this.at)[0])}` : "";
    const more = error === null ? "" : ` ± ${small(error)} (background${place})`;
    if (this.kind === "bars") {
      return `${this.curve.levels[order[this.at]]}: ${amount(this.valueOf(this.at))}${more}, ${rowsText(counts[this.at])}.`;
    }
    const k = Math.min(counts.length - 1, Math.max(0, Math.floor(((this.at - low) / (high - low)) * counts.length)));
    const [from, to] = this.bin(k);
    const where = this.about.whole && to - from <= 1 ? "" : ` from ${this.written(from)} to ${this.written(to)}`;
    return `${this.written(this.at)}: ${amount(this.valueOf(this.at))}${more}, ${rowsText(counts[k])}${where}.`;
  }
}

const rowsText = (n) => `${number(n, 0)} ${n === 1 ? "row" : "rows"}`;

/* An attribution with its sign and unit. */
function amount(value) {
  return signed(value, current().decimals) + unit;
}

function errorText(i, j) {
  const { error } = current();
  return error ? ` (standard error ${small(error[i][j])})` : "";
}
