/* Panels of columns: a picture for each, of the output on the page. */
const charts = new Map(); /* by the id of the panel */
const drawn = new Map(); /* the same by their pictures */
const AHEAD = 400; /* pixels: pictures are drawn when they are so near to the window */
const eye = new IntersectionObserver((seen) => {
  for (const { target, isIntersecting } of seen) if (isIntersecting && drawn.get(target).stale) drawn.get(target).draw();
}, { rootMargin: `${AHEAD}px` });

function drawCharts() {
  if (find("columns").hidden || !data.charts) return;
  const shown = [];
  for (const box of all(`.output[data-output="${output}"] .chart`)) {
    const j = Number(box.dataset.column);
    if (!chartKind(j)) continue;
    box.closest(".live-part").classList.add("live");
    const id = `${output} ${j}`;
    if (!charts.has(id)) {
      const chart = new Chart(box, j);
      charts.set(id, chart);
      eye.observe(chart.svg);
      drawn.set(chart.svg, chart);
    }
    shown.push(charts.get(id));
  }
  const places = shown.map(({ svg }) => svg.getBoundingClientRect());
  shown.forEach((chart, k) => {
    if (!chart.stale) chart.mark();
    else if (places[k].top < innerHeight + AHEAD && places[k].bottom > -AHEAD) chart.draw();
  });
}

function makeColumnSearch() {
  const names = all("article.column").map((panel) => [panel, panel.querySelector("h3").textContent.toLowerCase()]);
  find("find-column").addEventListener("input", (event) => {
    const word = event.target.value.toLowerCase();
    for (const [panel, name] of names) panel.hidden = !name.includes(word);
  });
}

/* What is on the page, for the output and the row picked. */
function draw() {
  drawSwarm();
  drawCharts();
  drawRow();
}
