// Drawing. What is visible only, slices of less than a pixel together, nothing made anew for a slice.

const LABEL_ROOM = 30;
const CHARACTER = 6.1;
const WIDE_BUCKET = 3;
const COLORS = [
  "ground", "surface", "sunken", "ink", "muted", "line", "line-strong", "accent", "accent-soft", "on-part", "idle",
  "compute", "communication", "copies", "nvtx", "api", "os", "off-cpu",
];

/** The colours of the page's theme as it is now. */
const readTheme = (element) => {
  const style = getComputedStyle(element);
  const theme = { font: `11px ${style.fontFamily}` };
  for (const name of COLORS) theme[name] = style.getPropertyValue(`--${name}`).trim();
  theme.work = WORK.map((kind) => theme[kind]);
  return theme;
};

const linear = (channel) => (channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4);

/** Black or white, whichever stands out more from #rrggbb. */
const inkOn = (color) => {
  const part = (at) => linear(parseInt(color.slice(at, at + 2), 16) / 255);
  const light = 0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5);
  return (light + 0.05) / 0.05 > 1.05 / (light + 0.05) ? "#000000" : "#ffffff";
};

/** As much of a name as fits into so many pixels. */
const fitting = (name, width) => {
  const room = Math.floor((width - 8) / CHARACTER);
  if (room < 3) return "";
  return name.length <= room ? name : `${name.slice(0, room - 1)}…`;
};

const makePainter = (context, view, causes) => {
  const palette = causes.map((cause) => cause.color);
  const inks = palette.map(inkOn);
  const kindTimes = new Float64Array(Math.max(causes.length, WORK.length));
  let theme = null;

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
          label(names[lane.names[i]][0], x, end - x, y, height, one ? textInks : textInks[kind]);
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
        fill(cause ? palette[device.causes[cause[at]]] || theme.idle : color);
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

  const work = (item, kind, y, height) => {
    const { device } = item;
    const color = theme[kind];
    mixed(device, device.exactOperations, device.union[kind], device.shares[kind], y, height, null, color, "", color);
  };

  /** All gaps where they are all there; elsewhere shares, and the long ones over them. */
  const gaps = (item) => {
    const { device, y, height } = item;
    const { gaps: all } = device;
    const to = Math.min(view.to, device.end);
    let from = Math.max(view.from, device.start);
    if (all.count < all.total) {
      const exact = device.exactOperations;
      for (let at = firstAbove(exact.reach, from); at < exact.count && exact.start[at] < to; at += 1) {
        const begin = Math.max(exact.start[at], from);
        const end = Math.min(exact.end[at], to);
        if ((end - begin) / view.perPixel() < 2) continue;
        thinned(device, y, height, from, begin);
        gapRows(all, y, height, begin, end, true);
        from = end;
      }
      thinned(device, y, height, from, to);
    } else {
      gapRows(all, y, height, from, to, true);
    }
    if (device.slices) slices(device.slices, device.names, y, height, Math.max(view.from, device.start), to);
  };

  const thinned = (device, y, height, from, to) => {
    if (to <= from) return;
    shares(device, device.shares.idle, y, height, from, to, "", device.shares.cause);
    gapRows(device.gaps, y, height, from, to, false);
  };

  /** Every gap that is at least a pixel wide; shorter ones of one column together, in the colour of the leading cause. */
  const gapRows = (all, y, height, from, to, alone) => {
    const right = view.left + view.width;
    let i = firstAbove(all.reach, from);
    while (i < all.count && all.start[i] < to) {
      const x = view.x(all.start[i]);
      const end = view.x(all.end[i]);
      if (end - x >= 1) {
        const begin = Math.max(x, view.left);
        fill(palette[all.kinds[i]]);
        context.fillRect(begin, y, Math.max(Math.min(end, right) - begin, 0), height);
        label(causes[all.kinds[i]].title, x, end - x, y, height, inks[all.kinds[i]]);
        i += 1;
        continue;
      }
      const column = Math.floor(x);
      const next = Math.max(firstFrom(all.start, view.time(column + 1), i), i + 1);
      const stop = next - 1 > i && view.x(all.end[next - 1]) - view.x(all.start[next - 1]) >= 1 ? next - 1 : next;
      if (alone && column >= view.left) {
        const share = Math.min((all.sum[stop] - all.sum[i]) / view.perPixel(), 1);
        const high = Math.max(height * share, 2);
        fill(palette[mostOf(all, i, stop)]);
        context.fillRect(column, y + height - high, 1, high);
      }
      i = stop;
    }
  };

  /** What gaps divide into, where it can be seen. */
  const slices = (lane, names, y, height, from, to) => {
    const right = view.left + view.width;
    for (let i = firstAbove(lane.reach, from); i < lane.count && lane.start[i] < to; i += 1) {
      const x = Math.max(view.x(lane.start[i]), view.left);
      const end = Math.min(view.x(lane.end[i]), right);
      if (end - x < 1) {
        i = Math.max(firstFrom(lane.start, view.time(Math.floor(view.x(lane.start[i])) + 1), i + 1) - 1, i);
        continue;
      }
      const cause = lane.kinds[i];
      fill(palette[cause]);
      context.fillRect(x, y, end - x, height);
      const title = causes[cause].title;
      const text = names[lane.names[i]][0];
      const both = (end - x) / CHARACTER > title.length + text.length + 6;
      label(both && text && text !== title ? `${title}: ${text}` : title, x, end - x, y, height, inks[cause]);
    }
  };

  const curve = (item) => {
    const { curve: line, y, height } = item;
    const size = (line.end - line.start) / line.buckets;
    const first = Math.max(Math.floor((view.from - line.start) / size), 0);
    const last = Math.min(Math.ceil((view.to - line.start) / size), line.buckets);
    const step = Math.max(Math.floor((last - first) / (2 * view.width)), 1);
    fill(theme.sunken);
    context.fillRect(view.left, y, view.width, height);
    context.beginPath();
    let drawing = false;
    for (let at = first; at < last; at += step) {
      const value = line.values[at];
      if (value < 0) { drawing = false; continue; }
      const level = y + height - 1 - (height - 2) * Math.min(value / line.top, 1);
      const x = Math.max(view.x(line.start + at * size), view.left);
      const end = Math.min(view.x(line.start + (at + step) * size), view.left + view.width);
      if (drawing) context.lineTo(x, level); else context.moveTo(x, level);
      context.lineTo(end, level);
      drawing = true;
    }
    context.strokeStyle = theme.accent;
    context.lineWidth = 1.25;
    context.stroke();
  };

  const host = (item, color) => {
    const { device, lane, y, height } = item;
    mixed(device, device.exactHost, lane.rows, lane.levels, y, height, device.names, color, theme["on-part"], color);
  };

  const PAINT = {
    device: () => {},
    thread: () => {},
    work: (item) => { for (const kind of ["copies", "communication", "compute"]) work(item, kind, item.y, item.height); },
    compute: (item) => work(item, "compute", item.y, item.height),
    communication: (item) => work(item, "communication", item.y, item.height),
    copies: (item) => work(item, "copies", item.y, item.height),
    gaps,
    stream: (item) => {
      const { device, lane, y, height } = item;
      const inksOfWork = [theme["on-part"], theme["on-part"], theme["on-part"]];
      mixed(
        device, device.exactOperations, lane.rows, lane.levels, y, height, device.names, theme.work, inksOfWork, theme[WORK[lane.main]],
      );
    },
    metric: curve,
    nvtx: (item) => {
      const { device, lane, y, height } = item;
      rows(lane.rows, device.names, y, height, view.from, view.to, theme.nvtx, theme["on-part"]);
    },
    api: (item) => host(item, theme.api),
    os: (item) => host(item, theme.os),
    off_cpu: (item) => host(item, theme["off-cpu"]),
  };

  /** Time outside of the window that was analysed is faint. */
  const outside = (item) => {
    const { parts } = item.device;
    if (!parts.count) return;
    let from = view.from;
    for (let at = firstAbove(parts.end, view.from); at < parts.count && from < view.to; at += 1) {
      veil(item, from, Math.min(parts.start[at], view.to));
      from = Math.max(parts.end[at], from);
    }
    veil(item, from, view.to);
  };

  const veil = (item, from, to) => {
    if (to <= from) return;
    fill(theme.ground);
    context.globalAlpha = 0.6;
    context.fillRect(view.x(from), item.y, view.x(to) - view.x(from), item.height);
    context.globalAlpha = 1;
  };

  /** The lane's ground, its slices, its name. */
  const item = (each) => {
    if (each.type === "device" || each.type === "thread") {
      heading(each);
      return;
    }
    fill(theme.sunken);
    context.fillRect(view.left, each.y, view.width, each.height);
    PAINT[each.type](each);
    if (each.type === "gaps" || each.type === "work") outside(each);
    fill(theme.muted);
    if (each.label) context.fillText(fitting(each.label, view.left - 2), 14, each.y + each.height / 2 + 0.5);
  };

  const heading = (each) => {
    const middle = each.y + each.height / 2 + 1;
    fill(theme.ink);
    if (each.type === "device") {
      context.font = `600 ${theme.font}`;
      context.fillText(`${each.device.open ? "▾" : "▸"} ${each.label}`, 0, middle);
      context.font = theme.font;
    } else {
      context.fillText(each.label, 8, middle + 1);
    }
  };

  const axis = (clock, height) => {
    const step = roundStep(view.perPixel() * 110);
    context.textAlign = "center";
    const shift = clock.shift(step);
    for (let time = Math.ceil((view.from + shift) / step) * step - shift; time < view.to; time += step) {
      const x = Math.round(view.x(time)) + 0.5;
      if (x < view.left) continue;
      fill(theme.line);
      context.fillRect(x, AXIS_HEIGHT - 6, 1, height - AXIS_HEIGHT + 6);
      fill(theme.muted);
      if (x > view.left + 30 && x < view.left + view.width - 30) context.fillText(clock.seconds(time, step), x, 9);
    }
    context.textAlign = "left";
  };

  /** The wake chain of a gap: arrows from each waker's lanes to those of the thread that it woke. */
  const arrows = (layout, device, start) => {
    context.strokeStyle = theme.ink;
    fill(theme.ink);
    context.lineWidth = 1.5;
    for (const [gap, from, to, at] of device.wakes) {
      if (gap !== start || at < view.from || at > view.to) continue;
      const lanes = (thread) => layout.items.filter((each) => each.device === device && each.thread === thread);
      const [source, target] = [lanes(from), lanes(to)];
      if (!source.length || !target.length) continue;
      arrow(view.x(at), middleOf(source), middleOf(target));
    }
  };

  const middleOf = (items) => {
    const calls = items.find((each) => each.type === "os") || items[items.length - 1];
    return calls.y + calls.height / 2;
  };

  const arrow = (x, y, end) => {
    const way = end < y ? -1 : 1;
    context.beginPath();
    context.moveTo(x, y);
    context.bezierCurveTo(x + 22, y, x + 22, end, x + 4, end);
    context.stroke();
    context.beginPath();
    context.arc(x, y, 3, 0, 2 * Math.PI);
    context.fill();
    context.beginPath();
    context.moveTo(x, end);
    context.lineTo(x + 8, end - 4 - way);
    context.lineTo(x + 8, end + 4 - way);
    context.fill();
  };

  /** A band over all lanes of a device, or over everything. */
  const band = (from, to, y, height, color) => {
    const x = Math.max(view.x(from), view.left);
    const end = Math.min(view.x(to), view.left + view.width);
    if (end < view.left || x > view.left + view.width) return;
    fill(color);
    context.globalAlpha = 0.14;
    context.fillRect(x, y, Math.max(end - x, 1), height);
    context.globalAlpha = 1;
    context.fillRect(x - 1, y, 1.5, height);
    context.fillRect(Math.max(end, x + 1), y, 1.5, height);
  };

  const line = (time, y, height) => {
    fill(theme.muted);
    context.fillRect(Math.round(view.x(time)), y, 1, height);
  };

  const setTheme = (now) => { theme = now; };
  const begin = (width, height) => {
    current = ""; // a new size resets the canvas
    context.clearRect(0, 0, width, height);
    context.font = theme.font;
    context.textBaseline = "middle";
    context.textAlign = "left";
  };
  return { setTheme, begin, item, axis, arrows, band, line, theme: () => theme, palette };
};

/** A device's strip of the whole run: idle time by cause from below, above it what ran most. */
const drawStrip = (context, device, y, height, scale, theme, palette) => {
  const last = device.shares.idle.length - 1;
  const idle = device.shares.idle[last];
  const cause = device.shares.cause[last];
  const work = WORK.map((kind) => device.shares[kind][last]);
  const size = ((device.end - device.start) / idle.length) * scale;
  context.fillStyle = theme.sunken;
  context.fillRect(device.start * scale, y, (device.end - device.start) * scale, height);
  for (let at = 0; at < idle.length; at += 1) {
    // Whole pixels: fractions of neighbours would leave a seam between them.
    const x = Math.round(device.start * scale + at * size);
    const wide = Math.max(Math.round(device.start * scale + (at + 1) * size) - x, 1);
    const low = (height * idle[at]) / 255;
    let most = 0;
    for (let kind = 1; kind < work.length; kind += 1) if (work[kind][at] > work[most][at]) most = kind;
    const high = Math.min((height * work[most][at]) / 255, height - low);
    context.fillStyle = theme.work[most];
    context.fillRect(x, y + height - low - high, wide, high);
    context.fillStyle = palette[device.causes[cause[at]]] || theme.idle;
    context.fillRect(x, y + height - low, wide, low);
  }
};

/** The whole run in a strip for each device, and the visible part of it. */
const drawMinimap = (context, width, height, devices, view, theme, palette) => {
  context.clearRect(0, 0, width, height);
  const strip = height / devices.length;
  devices.forEach((device, at) => {
    drawStrip(context, device, at * strip, strip - 1, width / view.end, theme, palette);
  });
  const from = (view.from / view.end) * width;
  const to = Math.max((view.to / view.end) * width, from + 3);
  context.fillStyle = theme.surface;
  context.globalAlpha = 0.62;
  context.fillRect(0, 0, from, height);
  context.fillRect(to, 0, width - to, height);
  context.globalAlpha = 1;
  context.strokeStyle = theme.accent;
  context.lineWidth = 2;
  context.strokeRect(from + 1, 1, Math.max(to - from - 2, 1), height - 2);
};
