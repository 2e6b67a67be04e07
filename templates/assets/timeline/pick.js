// What is under the pointer, in words.

const SLACK_PIXELS = 3;

/** The bucket of a level that holds a moment: its share and its time. */
const bucketAt = (device, levels, time, perPixel) => {
  const length = device.end - device.start;
  let level = levels[0];
  for (const each of levels) if (length / each.length <= perPixel) level = each;
  const size = length / level.length;
  const at = Math.min(Math.max(Math.floor((time - device.start) / size), 0), level.length - 1);
  return { share: level[at] / 255, size };
};

const isExact = (exact, time) => {
  const at = firstAbove(exact.reach, time);
  return at < exact.count && exact.start[at] <= time;
};

const makePicker = (view, clock, causes) => {
  const span = (start, end) => [
    `${exactNs(end - start)} (${shortNs(end - start)})`, `from ${clock.exact(start)}`, `to ${clock.exact(end)}`,
  ];

  const slice = (rows, names, time) => {
    const at = rowAt(rows, time, SLACK_PIXELS * view.perPixel());
    if (at < 0) return null;
    const kind = rows.kinds ? rows.kinds[at] : 0;
    return { start: rows.start[at], end: rows.end[at], name: rows.names ? names[rows.names[at]] : "", kind };
  };

  const share = (device, levels, time, what) => {
    if (!levels.length) return null;
    const found = bucketAt(device, levels, time, view.perPixel());
    if (!found.share) return null;
    const percent = Math.max(found.share * 100, 0.1).toFixed(1);
    return { title: `${what}: ${percent}% of ${shortNs(found.size)}`, lines: ["an average over this time"] };
  };

  const described = (title, start, end, more = []) => ({ title, lines: [...span(start, end), ...more], start, end });

  const gap = (device, time) => {
    const at = rowAt(device.gaps, time, SLACK_PIXELS * view.perPixel());
    return at < 0 ? null : { at, start: device.gaps.start[at], end: device.gaps.end[at], cause: device.gaps.kinds[at] };
  };

  const gapTold = (device, time) => {
    const found = gap(device, time);
    if (!found) return device.gaps.count < device.gaps.total ? share(device, device.shares.idle, time, "Idle") : null;
    const part = device.slices ? slice(device.slices, device.names, time) : null;
    const inner = part && part.start >= found.start && part.end <= found.end && part.end - part.start >= view.perPixel() / 2;
    const words = inner ? [causes[part.kind].title, part.name, exactNs(part.end - part.start)].filter(Boolean) : [];
    const more = inner ? [`here: ${words.join(", ")}`] : [];
    return described(`Gap: ${causes[found.cause].title}`, found.start, found.end, more);
  };

  const workTold = (device, kind, time) => {
    const found = slice(device.union[kind], null, time);
    if (found) return described(TITLES[kind], found.start, found.end, ["operations together"]);
    return isExact(device.exact, time) ? null : share(device, device.shares[kind], time, TITLES[kind]);
  };

  const laneTold = (item, time) => {
    const found = slice(item.rows || item.lane.rows, item.device.names, time);
    if (found) {
      const what = item.type === "stream" ? TITLES[WORK[found.kind]] : TITLES[item.type];
      return described(found.name || what, found.start, found.end, found.name ? [`${what}, ${item.label || "NVTX"}`] : []);
    }
    const area = item.thread || item.device;
    return isExact(area.exact, time) ? null : share(area, item.lane.levels, time, item.label);
  };

  const curveTold = ({ curve: line }, time) => {
    const size = (line.end - line.start) / line.buckets;
    const value = line.values[Math.floor((time - line.start) / size)];
    if (value === undefined || value < 0) return null;
    const text = line.share ? `${(value / 10).toFixed(1)}%` : `${value} MHz`;
    return { title: `${line.title}: ${text}`, lines: [`mean of ${shortNs(size)}`] };
  };

  /** Title, lines and, of something exact, its time; null where there is nothing. */
  const describe = (item, time) => {
    if (!item || item.type === "device" || item.type === "thread") return null;
    if (item.type === "gaps") return gapTold(item.device, time);
    if (item.type === "metric") return curveTold(item, time);
    if (item.type === "work") {
      return WORK.map((kind) => workTold(item.device, kind, time)).find(Boolean) || null;
    }
    if (item.lane) return laneTold(item, time);
    return workTold(item.device, item.type, time);
  };
  return { describe };
};

/** The first gap that begins after a moment, or the last one that begins before it; -1 where there is none. */
const neighbour = (gaps, time, step) => {
  const at = step > 0 ? firstAbove(gaps.start, time) : firstFrom(gaps.start, time) - 1;
  return at >= 0 && at < gaps.count ? at : -1;
};
