// Findings by severity and by words, where there are many.

const MANY_FINDINGS = 6;

const addFindingsFilter = (section) => {
  const findings = Array.from(section.querySelectorAll(".finding"));
  if (findings.length < MANY_FINDINGS) return;
  const texts = new Map(findings.map((finding) => [finding, cellText(finding).toLowerCase()]));
  const severity = (finding) => finding.dataset.severity;
  const counts = new Map();
  for (const finding of findings) counts.set(severity(finding), (counts.get(severity(finding)) || 0) + 1);
  const state = { find: "", severity: "" };

  const show = () => {
    const words = wordsOf(state.find);
    for (const finding of findings) {
      const matches = words.every((word) => texts.get(finding).includes(word));
      finding.hidden = !matches || (state.severity && severity(finding) !== state.severity);
    }
    const left = findings.filter((finding) => !finding.hidden).length;
    shown.textContent = left < findings.length ? `${left} of ${findings.length} shown` : "";
    input.value = state.find;
    select.value = state.severity;
  };
  const changed = () => {
    show();
    address.set({ "findings.find": state.find || null, "findings.severity": state.severity || null });
  };
  const restore = () => {
    const wanted = address.get("findings.severity");
    state.find = address.get("findings.find") || "";
    state.severity = counts.has(wanted) ? wanted : "";
    show();
  };

  const { input, field } = makeFilter({ state }, changed);
  const options = [["", "all"], ...Array.from(counts, ([name, count]) => [name, `${name} (${count})`])];
  const { select, field: choice } = makeChoice("Severity", options, (value) => { state.severity = value; changed(); });
  const shown = make("span", { class: "shown", role: "status" });
  findings[0].before(make("div", { class: "tools", role: "group", "aria-label": "Findings" }, field, choice, shown));
  address.onChange(restore);
  restore();
};
