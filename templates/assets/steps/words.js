// Steps, and what is under the pointer, in words.

const MARKS = ["", "only on this side", "longer on this side", "shorter on this side"];
const SLACK = 3;

const signedNs = (ns) => `${ns < 0 ? "−" : "+"}${shortNs(Math.abs(ns))}`;

/** A moment of the axis: how far into the step it is. */
const stepClock = {
  shift: () => 0,
  seconds: (time, step) => {
    const [unit, name] = step >= 1e9 ? [1e9, "s"] : step >= 1e6 ? [1e6, "ms"] : step >= 1e3 ? [1e3, "µs"] : [1, "ns"];
    return `${grouped(String(Math.round(time / unit)))} ${name}`;
  },
};

const stepTitle = (side, step) => `${side === "before" ? "Before" : "After"}: step ${step.number}, ${shortNs(step.length)}`;

const pairLabel = (pair, at) => {
  const [before, after] = [pair.before.number, pair.after.number];
  return at ? `Step ${before}` : `Typical step (${before} before, ${after} after)`;
};

/** What says of an operation or an idle span on one side, and on the other one. */
const makeTeller = (view, data) => {

  const told = (pair, side, which, at, title) => {
    const other = side === "before" ? "after" : "before";
    const { rows, marks, partner } = pair[side][which];
    const lines = [`${side}: ${exactNs(rows.end[at] - rows.start[at])}, from ${shortNs(rows.start[at])}`];
    const there = pair[other][which].rows;
    const place = partner[at];
    if (place < 0) lines.push(`${other}: none`);
    else lines.push(`${other}: ${exactNs(there.end[place] - there.start[place])}, from ${shortNs(there.start[place])}`);
    if (side === "after") lines.reverse();
    if (marks[at]) lines.push(MARKS[marks[at]]);
    return { title, lines, side, which, at, start: rows.start[at], end: rows.end[at] };
  };

  const behindTold = ({ time, ns }, moment) => {
    const at = firstAbove(time, moment) - 1;
    if (at < 0 || moment > time[time.length - 1]) return null;
    const far = ns[at];
    const title = far ? `After is ${shortNs(Math.abs(far))} ${far > 0 ? "later" : "earlier"}` : "Both at the same time";
    return { title, lines: ["with the same work done", `${shortNs(time[at])} into the step after`] };
  };

  return (item, pair, time) => {
    if (!item || item.type === "heading") return null;
    if (item.type === "behind") return behindTold(pair.behind, time);
    const step = pair[item.side];
    const slack = SLACK * view.perPixel();
    if (item.type === "stream") {
      const { rows } = step.streams[item.stream];
      const at = rowAt(rows, time, slack);
      return at < 0 ? null : told(pair, item.side, "operations", rows.place[at], data.names[rows.names[at]]);
    }
    const spans = step.idle.rows;
    const at = rowAt(spans, time, slack);
    if (item.type === "idle") return at < 0 ? null : told(pair, item.side, "idle", at, `Idle: ${data.causes[spans.names[at]].title}`);
    return differsTold(pair, item.side, time, slack);
  };

  /** The operation or the idle span behind a mark. */
  function differsTold(pair, side, time, slack) {
    for (const which of ["operations", "idle"]) {
      const { rows, marks } = pair[side][which];
      const marked = someOf(rows, (i) => marks[i]);
      const at = rowAt(marked, time, slack);
      if (at >= 0) {
        const name = which === "idle" ? `Idle: ${data.causes[marked.names[at]].title}` : data.names[marked.names[at]];
        return told(pair, side, which, marked.place[at], name);
      }
    }
    return null;
  }
};
