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
  fillPickers(panels[place]);
  draw();
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
  root.classList.add("ready");
  openHash();
}

/* Outputs: one set of figures and tables each. */
function showOutput(place) {
  output = place;
  for (const part of all(".output")) part.hidden = Number(part.dataset.output) !== place;
  filterRows();
}
