// The parts of the data, ready to draw: names, threads, devices.

/** The names by number; a form is filled with the next numbers of its columns. */
const readNames = (given, reader) => {
  const forms = reader.json(given.forms);
  const columns = given.columns.map((column) => reader.running(column).values());
  return Array.from(reader.numbers(given.used, given.count), (at) => {
    const form = forms[at];
    if (typeof form === "string") return form;
    let hole = 0;
    return form[0].replace(/\n/g, () => { hole += 1; return columns[form[hole]].next().value; });
  });
};

const readPairs = (list) => makeRows(
  Float64Array.from(list, (pair) => pair[0]), Float64Array.from(list, (pair) => pair[1]),
);

/** Where the launch of each operation is among the calls of all threads of its device; -1 for none. */
const readLaunches = (steps) => {
  let now = 0;
  return steps.map((step) => {
    if (!step) return -1;
    now += step % 2 ? (step - 1) / 2 : -step / 2;
    return now;
  });
};

/** Lanes whose slices may overlap. */
const IN_TRACKS = new Set(["stream", "graphs", "host_functions"]);

/** A lane; its slices count from `base`. Of streams `more` has amounts, threads per block and launches. */
const readLane = (lane, base, reader) => {
  const lengths = reader.numbers(lane.lengths, lane.count);
  const start = reader.starts(lane.starts, lane.count, base, lane.apart ? lengths : null);
  const end = lengths.map((length, i) => length + start[i]);
  const names = lane.names[1] ? reader.numbers(lane.names, lane.count) : null;
  const kinds = lane.kinds[1] ? reader.numbers(lane.kinds, lane.count) : null;
  const rows = makeRows(start, end, names, kinds);
  const [amounts, blocksOf, launches] = lane.more.map((column) => (column[1] ? reader.numbers(column, lane.count) : null));
  Object.assign(rows, { amounts, blocksOf, launches: launches ? readLaunches(launches) : null });
  const tracks = IN_TRACKS.has(lane.kind) ? tracksOf(rows) : [rows];
  return { ...lane, levels: lane.levels.map(reader.bytes), rows, tracks, main: lane.kind === "stream" ? mainKind(rows) : 0 };
};

/** A thread, whichever devices it serves; null where the report has no lanes of it. */
const readThread = (given, number, reader) => given && {
  ...given, number, exact: readPairs(given.exact), lanes: given.lanes.map((lane) => readLane(lane, given.start, reader)),
};

/** What a stream does most of the time: the colour of its shares. */
const mainKind = (rows) => {
  const times = [0, 0, 0];
  for (let i = 0; i < rows.count; i += 1) times[rows.kinds[i]] += rows.end[i] - rows.start[i];
  return times.indexOf(Math.max(...times));
};

/** The calls of a device's threads that its launches count: the lane of each thread that has one. */
const callsOf = (given, threads) => given.threads.map(({ number }) => {
  const thread = threads[number];
  const lane = thread && thread.lanes.find((each) => each.kind === "api");
  return { thread, lane, count: lane ? lane.rows.count : 0 };
});

/** The gaps of a device: their own columns where they have any, else what is between its operations. */
const readGaps = (given, streams, reader) => {
  const causes = reader.numbers(given.causes, given.count);
  if (!given.starts) {
    const busy = unionOf(streams);
    return makeRows(busy.end.slice(0, -1), busy.start.slice(1), null, causes);
  }
  const start = reader.starts(given.starts, given.count, 0);
  const end = reader.numbers(given.lengths, given.count).map((length, i) => length + start[i]);
  return makeRows(start, end, null, causes);
};

/** Lanes, gaps and shares of a device, ready to draw; `names` and `threads` are those of all devices. */
const readDevice = (given, names, threads, reader) => {
  const lanes = given.lanes.map((lane) => readLane(lane, given.start, reader));
  const shares = {};
  for (const name of [...WORK, "idle", "cause"]) shares[name] = given.levels.map((level) => reader.bytes(level[name]));
  const streams = lanes.filter((lane) => lane.kind === "stream").map((lane) => lane.rows);
  const union = Object.fromEntries(WORK.map((kind, at) => [kind, unionOf(streams, at)]));
  const inside = lanes.find((lane) => lane.kind === "causes");
  if (inside) inside.rows.kinds = inside.rows.kinds.map((cause) => given.causes[cause]);
  return {
    ...given, names, lanes, shares, union, open: false, calls: callsOf(given, threads),
    threads: given.threads.map(({ number }) => threads[number]).filter((thread) => thread && thread.lanes.length),
    gaps: { ...readGaps(given.gaps, streams, reader), total: given.gaps.total, threshold: given.gaps.threshold },
    slices: inside ? inside.rows : null,
    parts: readPairs(given.parts), exact: readPairs(given.exact),
    present: Object.fromEntries(WORK.map((kind) => [kind, hasShare(shares[kind][0])])),
    metrics: given.metrics.map((curve) => {
      const values = reader.shorts(curve.series);
      return { ...curve, values, top: curve.share ? 1000 : Math.max(1, ...values) };
    }),
  };
};
