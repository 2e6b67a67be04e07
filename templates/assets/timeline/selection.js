// What can be selected: a gap {device, at}, a slice {device, thread, lane, at}, or a range of time {range}.

/** From when to when a selection lasts. */
const spanOf = ({ device, lane, at, range }) => {
  if (range) return range;
  const rows = lane ? lane.rows : device.gaps;
  return [rows.start[at], rows.end[at]];
};

const isGap = (selection) => Boolean(selection && selection.device && !selection.lane);

/** All lanes of a device with slices, those of its threads included; links count them from 0. */
const lanesOf = (device) => [
  ...device.lanes.filter((lane) => lane.kind !== "causes").map((lane) => ({ lane, thread: null })),
  ...device.threads.flatMap((thread) => thread.lanes.map((lane) => ({ lane, thread }))),
];

/** The name of a slice, empty where its lane has none. */
const nameOf = ({ device, lane, at }) => (lane.rows.names ? device.names[lane.rows.names[at]] : "");

/** What a lane is called beside its thread or device. */
const laneTitle = ({ device, lane, thread }) => {
  const own = lane.label || TITLES[lane.kind];
  return thread ? `${own}, ${thread.label}` : `${own}, ${device.key}`;
};

/** The lane in which one of the kinds of work of `item` is at a moment, as a selection; null where there is none. */
const workAt = ({ device, type }, time, slack) => {
  for (const lane of device.lanes) {
    if (lane.kind !== "stream") continue;
    const at = rowAt(lane.rows, time, slack);
    if (at >= 0 && (type === "work" || WORK[lane.rows.kinds[at]] === type)) return { device, thread: null, lane, at };
  }
  return null;
};

/** What a click on an item selects; null for nothing. */
const selectionAt = (item, time, slack) => {
  const { device, type, lane, thread } = item;
  if (type === "gaps") {
    const at = rowAt(device.gaps, time, slack);
    return at < 0 ? null : { device, at };
  }
  if (type === "work" || WORK.includes(type)) return workAt(item, time, slack);
  const rows = lane ? item.rows || lane.rows : null;
  const at = rows ? rowAt(rows, time, slack) : -1;
  return at < 0 ? null : { device, thread, lane, at: rows.place ? rows.place[at] : at };
};

/** The item of the layout that shows a slice. */
const itemOf = (layout, { lane, at }) => layout.items.find((item) => {
  if (item.lane !== lane) return false;
  const place = item.rows && item.rows.place;
  return !place || place[firstFrom(place, at)] === at;
});

/** The call that launched an operation, as a selection; null where the page does not hold it. */
const launchOf = ({ device, lane, at }) => {
  let row = lane.rows.launches ? lane.rows.launches[at] : -1;
  if (row < 0) return null;
  for (const { thread, lane: calls, count } of device.calls) {
    if (row < count) return { device, thread, lane: calls, at: row };
    row -= count;
  }
  return null;
};

/** The operations of a device that calls of a thread launched which begin in [from, to), by stream. */
const launchedBy = (device, thread, from, to) => {
  let base = 0;
  let calls = null;
  for (const each of device.calls) {
    if (each.thread === thread) { calls = each.lane; break; }
    base += each.count;
  }
  if (!calls) return [];
  const first = base + firstFrom(calls.rows.start, from);
  const behind = base + firstFrom(calls.rows.start, to);
  return device.lanes.filter((lane) => lane.kind === "stream" && lane.rows.launches).map((lane) => {
    const { launches } = lane.rows;
    const places = [];
    for (let at = 0; at < launches.length; at += 1) if (launches[at] >= first && launches[at] < behind) places.push(at);
    return { lane, places };
  }).filter(({ places }) => places.length);
};

/** The places of gaps by length, longest first: those of the time that was analyzed. */
const gapsByLength = ({ gaps, parts }) => {
  const judged = (at) => {
    const part = firstAbove(parts.end, gaps.start[at]);
    return part < parts.count && parts.start[part] < gaps.end[at];
  };
  const places = Array.from({ length: gaps.count }, (_, at) => at).filter((at) => !parts.count || judged(at));
  return places.sort((a, b) => gaps.end[b] - gaps.start[b] - gaps.end[a] + gaps.start[a] || a - b);
};

/** The places of the fewest gaps that hold half of the idle time, in order of time. */
const importantGaps = (device) => {
  const { start, end } = device.gaps;
  const places = gapsByLength(device);
  let left = places.reduce((sum, at) => sum + end[at] - start[at], 0) / 2;
  const few = places.findIndex((at) => { left -= end[at] - start[at]; return left <= 0; });
  return places.slice(0, few + 1).sort((a, b) => a - b);
};
