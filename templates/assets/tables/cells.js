// What the cells of a table hold: as text with whole names, as a number, and with the unit of their column.

const TIME = /^[+-]?[\d.,]+ (ns|µs|ms|s)\b/;
const SIZE = /^[\d.,]+ ([KMGT]i)?B$/;
const RATE = /^[\d.,]+ ([KMGT]i)?B\/s$/;
const COUNT = /^-?\d[\d,]*(\.\d+)?$/;
const NOTHING = "–";

const isTold = (element) => !(element instanceof SVGElement || element.matches("button, .unseen, .row-tools"));

/** The text of a cell; names that the page shortens come whole, from their tooltips. */
const cellText = (cell) => {
  const pieces = [];
  const gather = (node) => {
    if (node instanceof Text) pieces.push(node.data.replace(/\s+/g, " ").trim());
    else if (!(node instanceof Element) || !isTold(node)) return;
    else if (node.matches(".name[title]")) pieces.push(node.title.trim());
    else node.childNodes.forEach(gather);
  };
  cell.childNodes.forEach(gather);
  return pieces.filter(Boolean).join(" ");
};

const firstRow = (record) => record.rows[0];
const cellOf = (record, column) => firstRow(record).cells[column];

/** The unit behind the numbers of a column, empty where its cells are best taken as they are shown. */
const unitOf = (records, column) => {
  const shown = records.map((record) => cellText(cellOf(record, column))).find((text) => text && text !== NOTHING) || "";
  if (TIME.test(shown)) return "ns";
  if (RATE.test(shown)) return "bytes/s";
  return SIZE.test(shown) ? "bytes" : "";
};

/** A cell as a plain value of its column: digits for numbers, nothing for a dash. */
const plainValue = (cell, unit) => {
  const text = cellText(cell);
  if (text === NOTHING) return "";
  if (unit && "v" in cell.dataset) return cell.dataset.v;
  return COUNT.test(text) ? text.replaceAll(",", "") : text;
};

/** By what a cell is sorted: a number where it has one, null where it has nothing to show. */
const sortValue = (cell) => {
  const text = cellText(cell);
  if (!text || text === NOTHING) return null;
  return "v" in cell.dataset ? Number(cell.dataset.v) : text.toLowerCase();
};

/** The columns that hold something: where they are, what they are called, whether they are numbers. */
const readColumns = (table) => Array.from(table.tHead.rows[0].cells)
  .map((header, at) => ({ at, header, title: cellText(header), numeric: header.classList.contains("number") }))
  .filter((column) => column.title);
