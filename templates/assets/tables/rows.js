// A row by keyboard and pointer: arrows go from row to row, and the row at hand offers to be copied.

const makeButton = (label, act) => {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = label;
  button.addEventListener("click", () => act(button));
  return button;
};

/** Says on the button what became of it, for a moment. */
const copyFrom = async (button, text) => {
  const label = button.textContent;
  const done = await copyText(text);
  button.textContent = done ? "Copied" : "Not allowed";
  setTimeout(() => { button.textContent = label; }, 1500);
};

/** One pair of buttons for a table; it goes with the row at hand. */
const makeRowTools = (sheet) => {
  const tools = document.createElement("span");
  tools.className = "row-tools";
  const copies = (write) => (button) => copyFrom(button, write(sheet, [button.closest("tbody")]));
  tools.append(makeButton("Copy row", copies(asTsv)), makeButton("As Markdown", copies(asMarkdown)));
  return tools;
};

const shownRecords = (sheet) => Array.from(sheet.table.tBodies).filter((record) => !record.hidden);

/** Only one row of a table is a stop of the tab key: the last one that was at hand, else the first. */
const setStop = (sheet, record) => {
  for (const each of sheet.records) firstRow(each).tabIndex = each === record ? 0 : -1;
};

const focusRecord = (sheet, record) => {
  if (!record) return;
  setStop(sheet, record);
  firstRow(record).focus();
};

const stepFrom = (sheet, record, key) => {
  const shown = shownRecords(sheet);
  const at = shown.indexOf(record);
  const wanted = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: shown.length - 1 }[key];
  return shown[Math.min(Math.max(wanted, 0), shown.length - 1)];
};

const onRowKey = (sheet, turn) => (event) => {
  const record = event.target.closest("tbody");
  if (!record || event.target !== firstRow(record) || event.ctrlKey || event.altKey || event.metaKey) return;
  if (["ArrowDown", "ArrowUp", "Home", "End"].includes(event.key)) {
    focusRecord(sheet, stepFrom(sheet, record, event.key));
  } else if (event.key === "PageDown" || event.key === "PageUp") {
    if (!turn(event.key === "PageDown" ? 1 : -1)) return;
    focusRecord(sheet, shownRecords(sheet)[0]);
  } else if (event.key === "Enter") {
    const details = record.querySelector("details");
    if (!details) return;
    details.open = !details.open;
  } else {
    return;
  }
  event.preventDefault();
};

const addRows = (sheet, turn) => {
  const tools = makeRowTools(sheet);
  const take = (event) => {
    const record = event.target.closest("tbody");
    if (!record || tools.closest("tbody") === record || tools.contains(document.activeElement)) return;
    firstRow(record).lastElementChild.append(tools);
  };
  sheet.table.addEventListener("pointerover", take);
  sheet.table.addEventListener("focusin", (event) => {
    const record = event.target.closest("tbody");
    if (!record) return;
    if (event.target === firstRow(record)) setStop(sheet, record);
    take(event);
  });
  sheet.table.addEventListener("keydown", onRowKey(sheet, turn));
};
