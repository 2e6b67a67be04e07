// A gap in words: its row in the table of gaps where it has one, else what the timeline knows of it.

const MOST_SLICES = 6;

/** A copy of what the table of gaps says of it; null where the table does not list it. */
const evidenceOf = (rows, key) => {
  const row = rows.get(key);
  const list = row ? row.querySelector(".slices") : null;
  return list ? list.cloneNode(true) : null;
};

/** The last slice of any stream that ends at or before a moment, and the first that starts at or after it. */
const operationsAround = (device, start, end) => {
  let before = null;
  let after = null;
  for (const lane of device.lanes) {
    if (lane.kind !== "stream") continue;
    const { rows } = lane;
    const next = firstFrom(rows.start, end);
    if (next < rows.count && (!after || rows.start[next] < after.time)) {
      after = { time: rows.start[next], name: device.names[rows.names[next]] };
    }
    for (let at = next - 1; at >= 0 && at >= next - 8; at -= 1) {
      if (rows.end[at] <= start && (!before || rows.end[at] > before.time)) {
        before = { time: rows.end[at], name: device.names[rows.names[at]] };
      }
    }
  }
  return {
    before: before && before.time === start ? before.name : null,
    after: after && after.time === end ? after.name : null,
  };
};

/** Title, length and ends of a gap. */
const cardHead = (device, at, causes, clock) => {
  const [start, end] = [device.gaps.start[at], device.gaps.end[at]];
  const cause = causes[device.gaps.kinds[at]];
  const head = element("p", "gap-card-title");
  const swatch = element("span", "gap-card-swatch");
  swatch.style.background = cause.color;
  head.append(swatch, element("strong", "", `${shortNs(end - start)} idle on ${device.key}`), ` · ${cause.title}`);
  return [head, factsOf(timeFacts(start, end, clock))];
};

/** The slices of a gap by cause and name, most time first; none where the report holds none. */
const slicesOf = (device, start, end) => {
  const total = new Map();
  const lane = device.slices;
  for (let at = lane ? firstFrom(lane.start, start) : 0; lane && at < lane.count && lane.end[at] <= end; at += 1) {
    const key = `${lane.kinds[at]} ${lane.names[at]}`;
    total.set(key, (total.get(key) || 0) + lane.end[at] - lane.start[at]);
  }
  const rows = [...total].map(([key, ns]) => [...key.split(" ").map(Number), ns]);
  return rows.sort((a, b) => b[2] - a[2]).slice(0, MOST_SLICES);
};

/** A gap that the table does not list: what it divides into, its neighbours, and how to learn more. */
const unlisted = (device, start, end, causes) => {
  const list = element("dl", "slices");
  for (const [cause, name, ns] of slicesOf(device, start, end)) {
    const text = device.names[name];
    list.append(factRow(causes[cause].title, text ? `${exactNs(ns)}, ${text}` : exactNs(ns)));
  }
  const { before, after } = operationsAround(device, start, end);
  if (before) list.append(factRow("Previous", before));
  if (after) list.append(factRow("Next", after));
  list.append(factRow("More", "The table of gaps on this page omits this gap; the command below describes it."));
  return list;
};
