// The order of the records of a table. Each record is a tbody, so that its rows stay together.

const compareValues = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));

/** Records by a column; those with nothing to show there come last either way, equal ones stay as they are. */
const ordered = (records, column, descending) => {
  const sign = descending ? -1 : 1;
  const valued = records.map((record) => [sortValue(cellOf(record, column)), record]);
  const known = valued.filter(([value]) => value !== null).sort((a, b) => sign * compareValues(a[0], b[0]));
  return [...known, ...valued.filter(([value]) => value === null)].map(([, record]) => record);
};

/** The order as it stands in the address: a column, with a minus where it falls. */
const formatOrder = (state) => (state.column === null ? null : `${state.descending ? "-" : ""}${state.column}`);

const parseOrder = (text, columns) => {
  const found = /^(-?)(\d{1,2})$/.exec(text || "");
  const column = found ? Number(found[2]) : null;
  const known = columns.some((each) => each.at === column);
  return known ? { column, descending: found[1] === "-" } : { column: null, descending: false };
};

/** Headers become buttons that sort. */
const addOrder = (sheet, changed) => {
  for (const column of sheet.columns) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...column.header.childNodes);
    column.header.append(button);
    button.addEventListener("click", () => {
      const again = sheet.state.column === column.at;
      sheet.state.descending = again ? !sheet.state.descending : column.numeric;
      sheet.state.column = column.at;
      sheet.state.page = 1;
      changed();
    });
  }
};

const showOrder = (sheet) => {
  for (const { at, header } of sheet.columns) {
    if (at === sheet.state.column) header.setAttribute("aria-sort", sheet.state.descending ? "descending" : "ascending");
    else header.removeAttribute("aria-sort");
  }
};

const tellOrder = ({ columns, state }) => {
  const column = columns.find((each) => each.at === state.column);
  return column ? `, sorted by ${column.title}, ${state.descending ? "descending" : "ascending"}` : "";
};
