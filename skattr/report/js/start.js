makePicker();
makeWhatIf();
makeTables();
makeColumnSearch();
makeSwarm();
makeTabs();
const choice = find("output");
if (choice) choice.addEventListener("change", () => showOutput(Number(choice.value)));
showOutput(0);
