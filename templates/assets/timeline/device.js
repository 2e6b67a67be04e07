// One device's part of the data, ready to draw.

/** What a stream does most of the time: the colour of its shares. */
const mainKind = (rows) => {
  const times = [0, 0, 0];
  for (let i = 0; i < rows.count; i += 1) times[rows.kinds[i]] += rows.end[i] - rows.start[i];
  return times.indexOf(Math.max(...times));
};

/** Lanes, gaps and shares of a device, ready to draw. */
const readDevice = (given, reader) => {
  const pairs = (list) => makeRows(Float64Array.from(list, (pair) => pair[0]), Float64Array.from(list, (pair) => pair[1]));
  const lanes = given.lanes.map((lane) => {
    const start = reader.starts(lane.starts, lane.count, given.start);
    const end = reader.numbers(lane.lengths, lane.count).map((length, i) => length + start[i]);
    const names = lane.names[1] ? reader.numbers(lane.names, lane.count) : null;
    const kinds = lane.kinds[1] ? reader.numbers(lane.kinds, lane.count) : null;
    const rows = makeRows(start, end, names, kinds);
    return { ...lane, levels: lane.levels.map(reader.bytes), rows, main: lane.kind === "stream" ? mainKind(rows) : 0 };
  });
  const shares = {};
  for (const name of [...WORK, "idle", "cause"]) shares[name] = given.levels.map((level) => reader.bytes(level[name]));
  const streams = lanes.filter((lane) => lane.kind === "stream").map((lane) => lane.rows);
  const union = Object.fromEntries(WORK.map((kind, at) => [kind, unionOf(streams, at)]));
  const start = reader.starts(given.gaps.starts, given.gaps.count, 0);
  const end = reader.numbers(given.gaps.lengths, given.gaps.count).map((length, i) => length + start[i]);
  const gaps = makeRows(start, end, null, reader.numbers(given.gaps.causes, given.gaps.count));
  const inside = lanes.find((lane) => lane.kind === "causes");
  if (inside) inside.rows.kinds = inside.rows.kinds.map((cause) => given.causes[cause]);
  return {
    ...given, lanes, shares, union, open: false,
    names: reader.json(given.names).map((name) => (typeof name === "string" ? [name] : name)),
    gaps: { ...gaps, total: given.gaps.total, threshold: given.gaps.threshold },
    slices: inside ? inside.rows : null,
    parts: pairs(given.parts), exactOperations: pairs(given.exactOperations), exactHost: pairs(given.exactHost),
    present: Object.fromEntries(WORK.map((kind) => [kind, hasShare(shares[kind][0])])),
    metrics: given.metrics.map((curve) => {
      const values = reader.shorts(curve.series);
      return { ...curve, values, top: curve.share ? 1000 : Math.max(1, ...values) };
    }),
  };
};
