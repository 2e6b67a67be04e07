// Records as text to copy: tab-separated, as a Markdown table, and as CSV.

// Where the locale has another separator than the comma, a spreadsheet takes `a;=1+1` apart, quotes or not.
const FORMULA = /(^|[;|\t\r\n])(?=[\s"]*[=+\-@\uFF0B\uFF0D\uFF1D\uFF20])/g;
const INLINE = /([\\`*[\]<>|~]|&(?=[#\w])|(?<![^\W_])_|_(?![^\W_]))/gu;
// An empty comment between the sign and the word stops mentions, references and links to addresses.
const REFERENCE = /([@#!$%])(?=[\w\\])|(GH)(?=-\d)|(:)(?=\/\/)|(www)(?=\.)/gi;
const APART = "<" + "!-- -->";
const NUMBER = /^[+-]?\d[\d.,]*( ?[a-zµ%]{1,3})?$/i;

const shownRows = (sheet, records) => records.map((record) => sheet.columns.map(({ at }) => cellText(cellOf(record, at))));
const titles = (sheet) => sheet.columns.map(({ title }) => title);

/** Text that a spreadsheet would take for a formula gets an apostrophe; numbers, with units too, stay numbers. */
const noFormula = (text) => (NUMBER.test(text) ? text : text.replace(FORMULA, "$1'"));

const asTsv = (sheet, records) => shownRows(sheet, records).map((row) => row.map(noFormula).join("\t")).join("\n");

const markdownText = (text) => text.replace(INLINE, "\\$1").replace(REFERENCE, (sign) => sign + APART);

const asMarkdown = (sheet, records) => {
  const rules = sheet.columns.map(({ numeric }) => (numeric ? "---:" : "---"));
  const rows = [titles(sheet).map(markdownText), rules, ...shownRows(sheet, records).map((row) => row.map(markdownText))];
  return rows.map((row) => `| ${row.join(" | ")} |`).join("\n");
};

const csvCell = (value) => {
  const safe = noFormula(value);
  return /[",;|\t\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
};

/** Plain numbers with the unit in the name of the column, text as it is shown. */
const asCsv = (sheet, records) => {
  const units = sheet.columns.map(({ at }) => unitOf(sheet.records, at));
  const header = titles(sheet).map((title, i) => (units[i] ? `${title} (${units[i]})` : title));
  const rows = records.map((record) => sheet.columns.map(({ at }, i) => plainValue(cellOf(record, at), units[i])));
  return [header, ...rows].map((row) => `${row.map(csvCell).join(",")}\r\n`).join("");
};

const fileName = (sheet) => {
  const stem = document.title.split(" · ")[0].replace(/\.\w+$/, "").replace(/[^\w.-]+/g, "_");
  return `${stem}.${sheet.id}.csv`;
};

const download = (name, text) => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
};
