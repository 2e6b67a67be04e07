// Drawing on one lane. What is visible only, slices of less than a pixel together, nothing made anew for a slice.

const WIDE_BUCKET = 3;

/** Draws slices and shares of lanes; whoever else draws on the canvas takes its colours from here. */
const makeBrush = (context, view, causes) => {
  const palette = causes.map((cause) => cause.color);
  const inks = palette.map(inkOn);
  const kindTimes = new Float64Array(Math.max(causes.length, WORK.length));
  const brush = { context, palette, inks, theme: null };
  let current = "";

  /** Reading a canvas's own fillStyle costs as much as setting it. */
  const fill = (color) => {
    if (color === current) return;
    context.fillStyle = color;
    current = color;
  };

  const label = (name, x, width, y, height, ink) => {
    const from = Math.max(x, view.left);
    const shown = fitting(name, Math.min(x + width, view.left + view.width) - from);
    if (!shown) return;
    fill(ink);
    context.fillText(shown, from + 4, y + height / 2 + 0.5);
  };

  /**
   * Exact slices in [from, to): each that is at least a pixel wide by itself; those of one pixel column together, as
   * high as their share of it. `colors` and `inks` are by kind, or one for all.
   */
  const rows = (lane, names, y, height, from, to, colors, textInks) => {
    const right = view.left + view.width;
    const one = typeof colors === "string";
    const perPixel = view.perPixel();
    let i = firstAbove(lane.reach, from);
    while (i < lane.count && lane.start[i] < to) {
      const x = view.x(lane.start[i]);
      const end = view.x(lane.end[i]);
      const kind = one ? 0 : lane.kinds[i];
      fill(one ? colors : colors[kind]);
      if (end - x >= 1) {
        const begin = Math.max(x, view.left);
        const width = Math.min(end, right) - begin;
        if (width > 0) context.fillRect(begin, y, width > 4 ? width - 0.6 : Math.max(width, 1), height);
        if (width > LABEL_ROOM && names && lane.names) {
          label(names[lane.names[i]], x, end - x, y, height, one ? textInks : textInks[kind]);
        }
        i += 1;
        continue;
      }
      const column = Math.floor(x);
      let next = Math.max(firstFrom(lane.start, view.time(column + 1), i), i + 1);
      if (next - 1 > i && view.x(lane.end[next - 1]) - view.x(lane.start[next - 1]) >= 1) next -= 1;
      if (!one) fill(colors[mostOf(lane, i, next)]);
      const reach = view.x(lane.reach[next - 1]);
      if (reach > column + 2 && lane.reach[next - 1] > lane.reach[i]) {
        context.fillRect(column, y, Math.min(reach, right) - column, height);
      } else if (column >= view.left - 1) {
        const share = Math.min((lane.sum[next] - lane.sum[i]) / perPixel, 1);
        const high = Math.max(height * share, 2);
        context.fillRect(column, y + height - high, 1, high);
      }
      i = next;
    }
  };

  /** The kind with most of the time of the slices from `first` to before `behind`. */
  const mostOf = (lane, first, behind) => {
    kindTimes.fill(0);
    for (let at = first; at < behind; at += 1) kindTimes[lane.kinds[at]] += lane.end[at] - lane.start[at];
    let most = lane.kinds[first];
    for (let kind = 0; kind < kindTimes.length; kind += 1) if (kindTimes[kind] > kindTimes[most]) most = kind;
    return most;
  };

  /** The level whose buckets are a pixel or less, the finest one where none is. */
  const levelFor = (levels, length) => {
    let best = levels[0];
    for (const level of levels) if (length / level.length <= view.perPixel()) best = level;
    return best;
  };

  /** Shares of buckets in [from, to) as heights; wide buckets are faint, for they are averages. */
  const shares = (device, levels, y, height, from, to, color, leading) => {
    const length = device.end - device.start;
    const level = levelFor(levels, length);
    const cause = leading ? leading[levels.indexOf(level)] : null;
    const size = length / level.length;
    const last = Math.min(Math.ceil((to - device.start) / size), level.length);
    context.globalAlpha = size / view.perPixel() > WIDE_BUCKET ? 0.45 : 1;
    for (let at = Math.max(Math.floor((from - device.start) / size), 0); at < last;) {
      let next = at + 1;
      while (next < last && level[next] === level[at] && (!cause || cause[next] === cause[at])) next += 1;
      if (level[at]) {
        fill(cause ? palette[device.causes[cause[at]]] || brush.theme.idle : color);
        const begin = Math.max(view.x(Math.max(device.start + at * size, from)), view.left);
        const end = Math.min(view.x(Math.min(device.start + next * size, to)), view.left + view.width);
        const high = Math.max((height * level[at]) / 255, 1);
        if (end > begin) context.fillRect(begin, y + height - high, Math.max(end - begin, 0.6), high);
      }
      at = next;
    }
    context.globalAlpha = 1;
  };

  /** Exact slices where the report has them all, shares elsewhere. */
  const mixed = (device, exact, lane, levels, y, height, names, colors, textInks, color) => {
    let from = Math.max(view.from, device.start);
    const to = Math.min(view.to, device.end);
    for (let at = firstAbove(exact.reach, from); at < exact.count && exact.start[at] < to; at += 1) {
      const begin = Math.max(exact.start[at], from);
      const end = Math.min(exact.end[at], to);
      if ((end - begin) / view.perPixel() < 2 && exact.count > 1) continue;
      if (levels.length && begin > from) shares(device, levels, y, height, from, begin, color);
      rows(lane, names, y, height, begin, end, colors, textInks);
      from = end;
    }
    if (levels.length && from < to) shares(device, levels, y, height, from, to, color);
  };

  /** An empty canvas; a new size has made it forget its font and colours. */
  const begin = (width, height) => {
    current = "";
    context.clearRect(0, 0, width, height);
    context.font = brush.theme.font;
    context.textBaseline = "middle";
    context.textAlign = "left";
  };
  return Object.assign(brush, { fill, label, rows, shares, mixed, mostOf, begin });
};
