// The steps of both sides from the data block of the page.

const ALONE = 1;

/** Numbers one after another, cut into pieces of these lengths. */
const cutInto = (values, counts) => {
  let from = 0;
  return counts.map((count) => { from += count; return values.subarray(from - count, from); });
};

/** A number from 0 up for one of either sign. */
const signed = (value) => (value % 2 ? -(value + 1) / 2 : value / 2);

/** What no operation covers, by cause; `causes` are numbers from 1, 0 for an unknown one. */
const idleOf = (operations, carried, length, causes) => {
  const [start, end] = [[], []];
  let reach = carried;
  for (let i = 0; i < operations.count; i += 1) {
    if (operations.start[i] > reach) { start.push(reach); end.push(operations.start[i]); }
    reach = Math.max(reach, operations.end[i]);
  }
  if (reach < length) { start.push(reach); end.push(length); }
  return makeRows(Float64Array.from(start), Float64Array.from(end), causes, causes);
};

/** Some of the rows; `place` is where each is among all. */
const someOf = (rows, keep) => {
  const place = [];
  for (let i = 0; i < rows.count; i += 1) if (keep(i)) place.push(i);
  const pick = (values) => values && Float64Array.from(place, (i) => values[i]);
  return { ...makeRows(pick(rows.start), pick(rows.end), pick(rows.names), pick(rows.kinds)), place };
};

/** One side of a step: its operations by stream, its idle spans, and those of both that differ, by mark. */
const readStep = (given, parts, at, kinds) => {
  const names = parts.names[at];
  let reach = 0;
  const start = parts.apart[at].map((step, i) => {
    const time = reach + signed(step);
    reach = time + parts.lengths[at][i];
    return time;
  });
  const end = start.map((time, i) => time + parts.lengths[at][i]);
  const rows = makeRows(start, end, names, names.map((name) => kinds[name]));
  const idle = idleOf(rows, given.carried[at], given.lengths[at], parts.causes[at]);
  const all = [{ rows, marks: parts.marks[at] }, { rows: idle, marks: parts.idle_marks[at] }];
  const differing = (mark) => {
    const found = all.flatMap((each) => [...each.marks.keys()].filter((i) => each.marks[i] === mark)
      .map((i) => [each.rows.start[i], each.rows.end[i]])).sort((a, b) => a[0] - b[0]);
    return makeRows(Float64Array.from(found, (pair) => pair[0]), Float64Array.from(found, (pair) => pair[1]));
  };
  return {
    number: given.numbers[at], length: given.lengths[at],
    operations: { ...all[0], partner: new Int32Array(rows.count).fill(-1) },
    idle: { ...all[1], partner: new Int32Array(idle.count).fill(-1) },
    streams: given.streams.map((label, stream) => ({ label, rows: someOf(rows, (i) => parts.stream[at][i] === stream) })),
    differing: [1, 2, 3].map(differing),
  };
};

const sumOf = (counts) => counts.reduce((sum, count) => sum + count, 0);

const LISTS = ["numbers", "lengths", "carried", "counts", "idle"];

const readSide = (given, steps, kinds, reader) => {
  const side = { streams: given.streams };
  for (const name of LISTS) side[name] = Array.from(reader.numbers(given[name], steps));
  const parts = {};
  for (const [name, place] of Object.entries(given.columns)) {
    const counts = name === "causes" || name === "idle_marks" ? side.idle : side.counts;
    parts[name] = cutInto(reader.numbers(place, sumOf(counts)), counts);
  }
  return side.numbers.map((_, at) => readStep(side, parts, at, kinds));
};

/** Places from their differences, of each step by itself. */
const readPlaces = (place, counts, reader) => cutInto(reader.numbers(place, sumOf(counts)), counts).map((steps) => {
  let now = 0;
  return steps.map((step) => { now += signed(step); return now; });
});

const join = (before, after, places, others) => {
  places.forEach((place, i) => { before.partner[place] = others[i]; after.partner[others[i]] = place; });
};

/** How far the step after is behind where both sides have done the same work: times in it, and ns. */
const behindOf = (before, after, places, others, front) => {
  const [time, ns] = [[0], [0]];
  const add = (moment, other) => {
    if (moment < time[time.length - 1]) return;
    time.push(moment);
    ns.push(moment - other);
  };
  for (let i = 0; i < places.length; i += 1) {
    if (!front[i]) continue;
    const [one, two] = [before.operations.rows, after.operations.rows];
    add(two.start[others[i]], one.start[places[i]]);
    add(two.end[others[i]], one.end[places[i]]);
  }
  add(after.length, before.length);
  const most = (choose) => ns.reduce((last, each) => choose(last, each));
  return { time, ns, low: most(Math.min), high: most(Math.max) };
};

/** Every step before with the one after at the same place. */
const readPairs = (data, reader) => {
  const [befores, afters] = [data.before, data.after].map((side) => readSide(side, data.steps, data.kinds, reader));
  const [matched, idle] = [data.matched, data.idleMatched].map((place) => Array.from(reader.numbers(place, data.steps)));
  const places = (name, counts) => readPlaces(data.places[name], counts, reader);
  const [one, two] = [places("before", matched), places("after", matched)];
  const [first, second] = [places("idleBefore", idle), places("idleAfter", idle)];
  const front = cutInto(reader.numbers(data.places.front, sumOf(matched)), matched);
  return befores.map((before, at) => {
    const after = afters[at];
    join(before.operations, after.operations, one[at], two[at]);
    join(before.idle, after.idle, first[at], second[at]);
    const behind = behindOf(before, after, one[at], two[at], front[at]);
    return { before, after, behind, length: Math.max(before.length, after.length) };
  });
};
