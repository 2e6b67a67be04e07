// Exact slices of a lane in typed arrays, sorted by start, and how they are searched.

/** Slices [start, end). `reach` is the largest end so far, `sum` the time of all before each. */
const makeRows = (start, end, names = null, kinds = null) => {
  const count = start.length;
  const reach = new Float64Array(count);
  const sum = new Float64Array(count + 1);
  for (let i = 0, far = -Infinity; i < count; i += 1) {
    far = Math.max(far, end[i]);
    reach[i] = far;
    sum[i + 1] = sum[i] + end[i] - start[i];
  }
  return { count, start, end, reach, sum, names, kinds };
};

const MOST_TRACKS = 6;

const overlapping = ({ start, reach, count }) => {
  for (let at = 1; at < count; at += 1) if (start[at] < reach[at - 1]) return true;
  return false;
};

/** Slices as rows in which none begins before the one before it has ended; `place` leads back. What fits into none of
 * MOST_TRACKS is in the last one. */
const tracksOf = (rows) => {
  if (!overlapping(rows)) return [rows];
  const ends = [];
  const places = [];
  for (let at = 0; at < rows.count; at += 1) {
    let track = 0;
    while (track < ends.length && ends[track] > rows.start[at]) track += 1;
    track = Math.min(track, MOST_TRACKS - 1);
    if (track === places.length) places.push([]);
    ends[track] = Math.max(ends[track] || 0, rows.end[at]);
    places[track].push(at);
  }
  return places.map((place) => {
    const pick = (values) => values && Float64Array.from(place, (at) => values[at]);
    return { ...makeRows(pick(rows.start), pick(rows.end), pick(rows.names), pick(rows.kinds)), place };
  });
};

/** The first index from `low` on whose value is above `limit`; `values` never fall. */
const firstAbove = (values, limit, low = 0) => {
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] > limit) high = middle; else low = middle + 1;
  }
  return low;
};

/** The first index from `low` on whose value is `limit` or above. */
const firstFrom = (values, limit, low = 0) => {
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] >= limit) high = middle; else low = middle + 1;
  }
  return low;
};

/** The last slice that holds a moment, or else the nearest within `slack`; -1 where there is none. */
const rowAt = (rows, time, slack) => {
  let best = -1;
  let nearest = slack;
  for (let i = firstAbove(rows.reach, time - slack); i < rows.count && rows.start[i] <= time + slack; i += 1) {
    const away = Math.max(rows.start[i] - time, time - rows.end[i] + 1, 0);
    if (rows.end[i] > time - slack && away <= nearest) { best = i; nearest = away; }
  }
  return best;
};

/** The time that slices of one kind cover, or all of them, as slices that neither touch nor overlap. */
const unionOf = (parts, kind = null) => {
  const pairs = [];
  for (const rows of parts) {
    for (let i = 0; i < rows.count; i += 1) {
      if (kind === null || rows.kinds[i] === kind) pairs.push([rows.start[i], rows.end[i]]);
    }
  }
  pairs.sort((a, b) => a[0] - b[0]);
  const merged = [];
  for (const [start, end] of pairs) {
    const last = merged[merged.length - 1];
    if (last && start <= last[1]) last[1] = Math.max(last[1], end); else merged.push([start, end]);
  }
  return makeRows(Float64Array.from(merged, (pair) => pair[0]), Float64Array.from(merged, (pair) => pair[1]));
};
