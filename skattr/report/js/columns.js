/* Panels of columns: a picture for each, of the output on the page. */
const charts = new Map(); /* by the id of the panel */

function drawCharts() {
  if (find("columns").hidden || !data.charts) return;
  for (const box of all(`.output[data-output="${output}"] .chart`)) {
    const j = Number(box.dataset.column);
    if (!chartKind(j)) continue;
    box.closest(".live-part").classList.add("live");
    const id = `${output} ${j}`;
    if (!charts.has(id)) charts.set(id, new Chart(box, j));
    charts.get(id).draw();
  }
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
