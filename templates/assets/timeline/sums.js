// What happened in a range of time, in sums: of each device as tables, for the card and as Markdown.

const MOST_SUMS = 8;
const COPIES = WORK.indexOf("copies");

const percent = (part, whole) => `${((100 * part) / whole).toFixed(1)}%`;

/** Bytes to three digits, in powers of 1,024. */
const sizeText = (bytes) => {
  const power = Math.min(Math.floor(Math.log2(Math.max(bytes, 1)) / 10), 4);
  return power ? `${threeDigits(bytes / 1024 ** power)} ${"KMGT"[power - 1]}iB` : `${bytes} B`;
};

/** Bytes in the time of all that moved them. */
const rateText = ({ bytes, whole }) => (
  bytes >= whole / 10 ? `${threeDigits(bytes / whole)} GB/s` : `${threeDigits((1000 * bytes) / whole)} MB/s`
);

/** How much of [from, to) slices cover that do not overlap. */
const coveredBy = (rows, from, to) => {
  const first = firstAbove(rows.end, from);
  const behind = firstFrom(rows.start, to);
  if (behind <= first) return 0;
  const early = Math.max(from - rows.start[first], 0);
  const late = Math.max(rows.end[behind - 1] - to, 0);
  return rows.sum[behind] - rows.sum[first] - early - late;
};

/** The same from the finest averages. */
const averaged = (device, level, from, to) => {
  const size = (device.end - device.start) / level.length;
  const first = Math.max(Math.floor((from - device.start) / size), 0);
  let ns = 0;
  for (let at = first; at < level.length && device.start + at * size < to; at += 1) {
    const begin = Math.max(device.start + at * size, from);
    ns += ((Math.min(device.start + (at + 1) * size, to) - begin) * level[at]) / 255;
  }
  return ns;
};

/** Operations that share time with [from, to) by name and kind: count, and time in it; most time first. */
const operationSums = (device, from, to) => {
  const groups = new Map();
  for (const { rows, kind } of device.lanes) {
    if (kind !== "stream") continue;
    for (let at = firstAbove(rows.reach, from); at < rows.count && rows.start[at] < to; at += 1) {
      if (rows.end[at] <= from) continue;
      const key = rows.names[at] * WORK.length + rows.kinds[at];
      let group = groups.get(key);
      if (!group) {
        group = { name: device.names[rows.names[at]], kind: rows.kinds[at], count: 0, ns: 0, whole: 0, bytes: 0 };
        groups.set(key, group);
      }
      group.count += 1;
      group.ns += Math.min(rows.end[at], to) - Math.max(rows.start[at], from);
      group.whole += rows.end[at] - rows.start[at];
      group.bytes += rows.amounts ? rows.amounts[at] : 0;
    }
  }
  return [...groups.values()].sort((a, b) => b.ns - a.ns || (a.name < b.name ? -1 : 1));
};

/** Idle time in [from, to) by the leading cause of each gap: count and time; most time first. */
const causeSums = ({ gaps }, from, to, causes) => {
  const groups = causes.map((cause) => ({ name: cause.title, count: 0, ns: 0 }));
  for (let at = firstAbove(gaps.end, from); at < gaps.count && gaps.start[at] < to; at += 1) {
    const group = groups[gaps.kinds[at]];
    group.count += 1;
    group.ns += Math.min(gaps.end[at], to) - Math.max(gaps.start[at], from);
  }
  return groups.filter((group) => group.count).sort((a, b) => b.ns - a.ns);
};

/** A table: its head, and rows of text of which the first cell is a name. */
const sumTable = (title, head, groups, cells) => {
  const rows = groups.slice(0, MOST_SUMS).map((group) => [group.name, ...cells(group)]);
  if (groups.length > MOST_SUMS) {
    const rest = {};
    for (const key of ["count", "ns", "whole", "bytes"]) {
      rest[key] = groups.slice(MOST_SUMS).reduce((sum, group) => sum + group[key], 0);
    }
    rows.push([`${groups.length - MOST_SUMS} more`, ...cells(rest)]);
  }
  return { head: [title, ...head], rows };
};

/** The tables of one device over a range, and what must be said of them. */
const deviceSums = (device, from, to, causes) => {
  const [begin, stop] = [Math.max(from, device.start), Math.min(to, device.end)];
  if (stop <= begin) return { device, tables: [], notes: ["Nothing ran on it in this time."] };
  const share = exactShare(device, { from: begin, to: stop });
  const exact = share >= ALL_OF_IT;
  const notes = [];
  if (begin > from || stop < to) notes.push(`Its timeline holds ${percent(stop - begin, to - from)} of this time.`);
  const allGaps = device.gaps.count === device.gaps.total;
  const state = (name, rows) => ({
    name: TITLES[name] || "Idle", ns: exact ? coveredBy(rows, begin, stop) : averaged(device, device.shares[name][0], begin, stop),
  });
  const states = WORK.filter((kind) => device.present[kind]).map((kind) => state(kind, device.union[kind]));
  states.push(allGaps ? { name: "Idle", ns: coveredBy(device.gaps, begin, stop) } : state("idle", device.gaps));
  const timed = ({ count, ns }) => [shortNs(ns), percent(ns, stop - begin), grouped(String(count))];
  const tables = [sumTable("State", ["Time", "Share"], states, ({ ns }) => [shortNs(ns), percent(ns, stop - begin)])];
  if (!exact) {
    notes.push(
      `Every operation is known in ${percent(share, 1)} of this time: states are from averages, and tables of operations `
      + "hold those of that part alone. A report of this window has them all.",
    );
  }
  if (!allGaps) notes.push(`Gaps under ${exactNs(device.gaps.threshold)} may be missing from the causes.`);
  const add = (title, head, groups, cells) => { if (groups.length) tables.push(sumTable(title, head, groups, cells)); };
  add("Idle, by leading cause", ["Time", "Share", "Gaps"], causeSums(device, begin, stop, causes), timed);
  const operations = operationSums(device, begin, stop);
  const moved = (group) => [...timed(group), ...(group.bytes ? [sizeText(group.bytes), rateText(group)] : ["", ""])];
  ["Kernels", "Collectives"].forEach((title, kind) => {
    add(title, ["Time", "Share", "Count"], operations.filter((each) => each.kind === kind), timed);
  });
  add("Copies and sets", ["Time", "Share", "Count", "Bytes", "Rate"], operations.filter((each) => each.kind === COPIES), moved);
  return { device, tables, notes };
};

const code = (text) => `\`${text.replace(/`/g, "'").replace(/\|/g, "\\|")}\``;

/** The sums of all devices as Markdown, under a title. */
const sumsMarkdown = (title, sums) => {
  const line = (cells) => `| ${cells.join(" | ")} |`;
  const table = ({ head, rows }) => [
    line(head), line(head.map((_, at) => (at ? "---:" : "---"))),
    ...rows.map(([name, ...cells]) => line([code(name), ...cells])), "",
  ];
  return [`**${title}**`, "", ...sums.flatMap(({ device, tables, notes }) => [
    `${device.key}, ${device.name}${notes.length ? `. ${notes.join(" ")}` : ""}`, "", ...tables.flatMap(table),
  ])].join("\n");
};

const drawnTable = ({ head, rows }) => {
  const table = element("table", "sums");
  const cells = (tag, texts) => texts.map((text, at) => element(at ? tag : "th", at ? "number" : "", text));
  const made = [["th", head], ...rows.map((row) => ["td", row])].map(([tag, texts]) => {
    const row = element("tr");
    row.append(...cells(tag, texts));
    return row;
  });
  const [first, rest] = [element("thead"), element("tbody")];
  first.append(made[0]);
  rest.append(...made.slice(1));
  table.append(first, rest);
  return table;
};

/** The sums of all devices as elements. */
const drawnSums = (sums) => sums.flatMap(({ device, tables, notes }) => {
  const all = element("div", "sums-tables");
  all.append(...tables.map(drawnTable));
  const title = sums.length > 1 ? [element("p", "gap-card-title", `${device.key}  ${device.name}`)] : [];
  return [...title, all, ...notes.map((note) => element("p", "quiet", note))];
});
