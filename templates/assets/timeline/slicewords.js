// An operation, a call or a range in words: where it was launched, what it launched, where it waits.

/** The NVTX ranges of a thread around a moment, the outermost first. */
const rangesAround = (device, thread, time) => thread.lanes
  .filter((lane) => lane.kind === "nvtx")
  .map((lane) => [lane, rowAt(lane.rows, time, 0)])
  .filter(([, at]) => at >= 0)
  .map(([lane, at]) => device.names[lane.rows.names[at]]);

const nvtxRow = (device, thread, time) => {
  const ranges = rangesAround(device, thread, time);
  return ranges.length ? [factRow("NVTX", ranges.join(" › "))] : [];
};

/** Grid or bytes of an operation, its launch and the ranges around that. */
const operationRows = (chosen, does) => {
  const { lane: { rows }, at, device } = chosen;
  const found = [];
  const amount = rows.amounts ? rows.amounts[at] : 0;
  const threads = rows.blocksOf ? rows.blocksOf[at] : 0;
  const whole = rows.end[at] - rows.start[at];
  if (rows.kinds[at] === COPIES && amount) {
    found.push(factRow("Bytes", `${grouped(String(amount))} (${sizeText(amount)}), ${rateText({ bytes: amount, whole })}`));
  } else if (threads) {
    found.push(factRow("Grid", `${grouped(String(amount))} blocks of ${grouped(String(threads))} threads`));
  }
  const launch = launchOf(chosen);
  if (!launch) return [...found, factRow("Launch", "not among the calls on this page")];
  const before = rows.start[at] - launch.lane.rows.start[launch.at];
  const row = factRow("Launch", `${nameOf(launch)}, ${launch.thread.label}, ${shortNs(before)} before it starts: `);
  row.lastChild.append(cardButton("Show", () => does.show(launch)));
  return [...found, row, ...nvtxRow(device, launch.thread, launch.lane.rows.start[launch.at])];
};

/** What a call or a range launched, as far as the page holds it: how many, from when to when, and how long they ran. */
const launchedRows = (device, thread, start, end, several, does) => {
  const found = launchedBy(device, thread, start, end);
  if (!found.length) return [];
  const parts = found.map(({ lane: { rows }, places }) => (
    makeRows(Float64Array.from(places, (at) => rows.start[at]), Float64Array.from(places, (at) => rows.end[at]))
  ));
  const busy = unionOf(parts);
  const count = parts.reduce((sum, part) => sum + part.count, 0);
  const [from, to] = [busy.start[0], busy.end[busy.count - 1]];
  const held = isWhole(device) && exactShare(thread, { from: start, to: end }) >= ALL_OF_IT;
  const row = factRow(
    several ? `On ${device.key}` : "On the GPU",
    `${held ? "" : "at least "}${grouped(String(count))} ${count > 1 ? "operations" : "operation"} launched in it: `
    + `${shortNs(busy.sum[busy.count])} busy, `
    + `${shortNs(to - from)} from the first to the last `,
  );
  row.lastChild.append(cardButton("Sums", () => { does.show({ range: [from, to] }); }));
  return [row];
};

/** The ranges around a call, and what a call or a range launched. */
const threadRows = ({ device, thread, lane, at }, devices, does) => {
  const [start, end] = [lane.rows.start[at], lane.rows.end[at]];
  const found = lane.kind === "nvtx" ? [] : nvtxRow(device, thread, start);
  if (lane.kind !== "nvtx" && lane.kind !== "api") return found;
  const until = lane.kind === "api" ? start + 1 : end;
  return [...found, ...devices.flatMap((each) => launchedRows(each, thread, start, until, devices.length > 1, does))];
};

const MOST_WAITS = 6;

/** The gaps that end where an operation of this name starts, the longest first. */
const waitsBefore = (device, number) => {
  const { gaps } = device;
  const found = new Set();
  let count = 0;
  for (const { rows, kind } of device.lanes) {
    if (kind !== "stream") continue;
    for (let at = 0; at < rows.count; at += 1) {
      if (rows.names[at] !== number) continue;
      count += 1;
      const gap = firstFrom(gaps.end, rows.start[at]);
      if (gap < gaps.count && gaps.end[gap] === rows.start[at]) found.add(gap);
    }
  }
  const length = (gap) => gaps.end[gap] - gaps.start[gap];
  return { count, waits: [...found].sort((a, b) => length(b) - length(a) || a - b) };
};

/** Where operations of this name follow idle time: a button for each of the longest gaps. */
const waitRows = (device, number, does) => {
  const { gaps } = device;
  const { count, waits } = waitsBefore(device, number);
  const total = waits.reduce((sum, gap) => sum + gaps.end[gap] - gaps.start[gap], 0);
  const held = isWhole(device) && gaps.count === gaps.total;
  const row = factRow("Idle before it", (held ? "" : "of those on this page ") + (waits.length
    ? `${grouped(String(waits.length))} of ${grouped(String(count))} times, ${shortNs(total)} in all; longest: ` : "never"));
  for (const at of waits.slice(0, MOST_WAITS)) {
    row.lastChild.append(cardButton(shortNs(gaps.end[at] - gaps.start[at]), () => does.show({ device, at })), " ");
  }
  return row;
};
