// The line above a table: filter, picks, what is shown, pages, and ways to take the table along.

const PAGE_SIZES = [10, 20, 50, 100];
const ALL = 0;
const MANY = 10;

const make = (tag, attributes, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
};

const makeChoice = (label, options, act) => {
  const select = make("select", {}, ...options.map(([value, text]) => make("option", { value }, text)));
  select.addEventListener("change", () => act(select.value));
  return { select, field: make("label", {}, `${label} `, select) };
};

const makeFilter = (sheet, changed) => {
  const input = make("input", { type: "search", autocomplete: "off", spellcheck: "false" });
  input.addEventListener("input", () => { sheet.state.find = input.value; sheet.state.page = 1; changed(); });
  return { input, field: make("label", {}, "Filter ", input) };
};

const makePick = (sheet, pick, changed) => {
  const options = [["", "all"], ...pick.values.map((value) => [value, value])];
  return makeChoice(pick.title, options, (value) => {
    if (value) sheet.state.picks[pick.at] = value; else delete sheet.state.picks[pick.at];
    sheet.state.page = 1;
    changed();
  });
};

const makePages = (sheet, turn, changed) => {
  const sizes = [...new Set([sheet.first, ...PAGE_SIZES])].filter((size) => size && size < sheet.records.length).sort((a, b) => a - b);
  const options = [...sizes.map((size) => [String(size), String(size)]), [String(ALL), "all"]];
  const { select, field } = makeChoice("Rows", options, (value) => {
    sheet.state.rows = Number(value);
    sheet.state.page = 1;
    changed();
  });
  const [back, on] = [["‹", "Previous page", -1], ["›", "Next page", 1]].map(([sign, name, by]) => {
    const button = make("button", { type: "button", "aria-label": name, title: name }, sign);
    button.addEventListener("click", () => turn(by));
    return button;
  });
  return { select, back, on, element: make("span", { class: "pages" }, back, on, field) };
};

const makeExport = (sheet) => make("span", { class: "take" },
  makeButton("Copy table", (button) => copyFrom(button, asMarkdown(sheet, sheet.found))),
  makeButton("CSV", () => download(fileName(sheet), asCsv(sheet, sheet.found))));

/** Builds the line and puts it above the table; a short table gets the ways to take it along alone. */
const addTools = (sheet, turn, changed) => {
  const caption = cellText(sheet.table.caption).split(/[.:;]/)[0];
  const bar = make("div", { class: "tools", role: "group", "aria-label": `Table: ${caption}` });
  const status = make("span", { class: "shown", role: "status" });
  const tools = { bar, status, filter: null, picks: [], pages: null };
  if (sheet.records.length >= MANY) {
    tools.filter = makeFilter(sheet, changed);
    tools.picks = sheet.picks.map((pick) => ({ at: pick.at, ...makePick(sheet, pick, changed) }));
    bar.append(tools.filter.field, ...tools.picks.map((pick) => pick.field));
  } else {
    bar.classList.add("short");
  }
  bar.append(status);
  if (sheet.records.length > (sheet.first || PAGE_SIZES[0])) {
    tools.pages = makePages(sheet, turn, changed);
    bar.append(tools.pages.element);
  }
  bar.append(makeExport(sheet));
  const scroll = sheet.table.closest(".scroll");
  const frame = make("div", { class: "sheet" });
  scroll.replaceWith(frame);
  frame.append(bar, scroll);
  return tools;
};

/** The controls as the state says. */
const showTools = (sheet, from, to) => {
  const { tools, state, found, records } = sheet;
  const all = found.length === records.length ? "" : ` of ${records.length}`;
  const part = to - from < found.length ? `${from + 1}–${to} of ${found.length}` : `${found.length}${all}`;
  const count = make("span", to - from < records.length ? {} : { class: "unseen" }, `${found.length ? part : `none${all}`} shown`);
  say(tools.status, count, tellOrder(sheet));
  if (tools.filter && tools.filter.input.value !== state.find) tools.filter.input.value = state.find;
  for (const pick of tools.picks) pick.select.value = state.picks[pick.at] || "";
  if (!tools.pages) return;
  tools.pages.select.value = String(state.rows);
  tools.pages.back.disabled = from === 0;
  tools.pages.on.disabled = to >= found.length;
};

const say = (element, count, order) => {
  if (element.textContent === count.textContent + order) return;
  element.replaceChildren(count, make("span", { class: "unseen" }, order));
};
