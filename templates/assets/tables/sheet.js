// A table that can be sorted, filtered, paged and taken along, with its state in the address.

const nothingChosen = (first) => ({ column: null, descending: false, find: "", picks: {}, page: 1, rows: first });

/** How the state stands in the address: only what differs from the table as it comes. */
const formatState = ({ id, state, first, picks }) => ({
  [`${id}.sort`]: formatOrder(state),
  [`${id}.find`]: state.find || null,
  [`${id}.rows`]: state.rows === first ? null : state.rows,
  [`${id}.page`]: state.page === 1 ? null : state.page,
  ...Object.fromEntries(picks.map(({ at }) => [`${id}.${at}`, state.picks[at] || null])),
});

const parseCount = (text, otherwise) => (/^\d{1,5}$/.test(text || "") ? Number(text) : otherwise);

const readState = ({ id, columns, picks, first }) => {
  const state = nothingChosen(first);
  Object.assign(state, parseOrder(address.get(`${id}.sort`), columns));
  state.find = address.get(`${id}.find`) || "";
  state.rows = parseCount(address.get(`${id}.rows`), first);
  state.page = parseCount(address.get(`${id}.page`), 1);
  for (const { at, values } of picks) {
    const value = address.get(`${id}.${at}`);
    if (values.includes(value)) state.picks[at] = value;
  }
  return state;
};

/** Puts the records of the page that is due in place and hides the others. */
const layOut = (sheet) => {
  const { state, records, table } = sheet;
  const inOrder = state.column === null ? records : ordered(records, state.column, state.descending);
  sheet.found = matching(sheet, inOrder);
  const size = state.rows || Math.max(sheet.found.length, 1);
  state.page = Math.min(Math.max(state.page, 1), Math.max(Math.ceil(sheet.found.length / size), 1));
  const from = (state.page - 1) * size;
  const to = Math.min(from + size, sheet.found.length);
  const shown = new Set(sheet.found.slice(from, to));
  for (const record of records) record.hidden = !shown.has(record);
  table.append(...inOrder);
  if (sheet.found.length) setStop(sheet, sheet.found[from]);
  showOrder(sheet);
  showTools(sheet, from, to);
};

const makeSheet = (table, id) => {
  const records = Array.from(table.tBodies);
  const columns = readColumns(table);
  const first = Number(table.dataset.first) || ALL;
  const sheet = {
    id, table, records, columns, first,
    picks: readPicks(columns, records),
    texts: new Map(records.map((record) => [record, cellText(record).toLowerCase()])),
    found: records,
  };
  sheet.state = readState(sheet);
  const changed = () => { layOut(sheet); address.set(formatState(sheet)); };
  const turn = (by) => {
    const before = sheet.state.page;
    sheet.state.page += by;
    changed();
    return sheet.state.page !== before;
  };
  sheet.tools = addTools(sheet, turn, changed);
  addOrder(sheet, changed);
  addRows(sheet, turn);
  address.onChange(() => { sheet.state = readState(sheet); layOut(sheet); });
  layOut(sheet);
};

/** The table's name in the address: its section, and from the second one on a number. */
const nameTables = () => {
  const counts = new Map();
  return Array.from(document.querySelectorAll("table[data-sortable]"), (table) => {
    const section = table.closest(".section").id;
    const number = (counts.get(section) || 0) + 1;
    counts.set(section, number);
    return [table, number > 1 ? `${section}-${number}` : section];
  });
};
