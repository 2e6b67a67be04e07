// All tables of the page, and the place that the address names.

for (const [table, id] of nameTables()) makeSheet(table, id);
reachScrollers();
const findings = document.getElementById("findings");
if (findings) addFindingsFilter(findings);
if (location.hash) address.reveal();
