// Records as text to take along: tab-separated, as a Markdown table, and as CSV.

const FORMULA = /^ *[=+\-@\t\r\n\uFF0B\uFF0D\uFF1D\uFF20]/;
const INLINE = /([\\`*[\]<>|~]|&(?=[#\w])|(?<![^\W_])_|_(?![^\W_]))/gu;
// An empty comment between the sign and the word stops mentions, references and links to addresses.
const REFERENCE = /([@#!$%])(?=[\w\\])|(GH)(?=-\d)|(:)(?=\/\/)|(www)(?=\.)/gi;
const APART = "<" + "!-- -->";
const NUMBER = /^-?\d+(\.\d+)?$/;

const shownRows = (sheet, records) => records.map((record) => sheet.columns.map(({ at }) => cellText(cellOf(record, at))));
const titles = (sheet) => sheet.columns.map(({ title }) => title);

const asTsv = (sheet, records) => shownRows(sheet, records).map((row) => row.join("\t")).join("\n");

const markdownText = (text) => text.replace(INLINE, "\\$1").replace(REFERENCE, (sign) => sign + APART);

const asMarkdown = (sheet, records) => {
  const rules = sheet.columns.map(({ numeric }) => (numeric ? "---:" : "---"));
  const rows = [titles(sheet).map(markdownText), rules, ...shownRows(sheet, records).map((row) => row.map(markdownText))];
  return rows.map((row) => `| ${row.join(" | ")} |`).join("\n");
};

/** Text that a spreadsheet would take for a formula gets a leading apostrophe; numbers stay numbers. */
const csvCell = (value) => {
  const safe = FORMULA.test(value) && !NUMBER.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
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
