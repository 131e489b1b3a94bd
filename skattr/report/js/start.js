makePicker();
makeWhatIf();
makeTables();
makeColumnSearch();
makeSwarm();
showOutput(0);
makeTabs();
const choice = find("output");
if (choice) choice.addEventListener("change", () => { showOutput(Number(choice.value)); draw(); });
