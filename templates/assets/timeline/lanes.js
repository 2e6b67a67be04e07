// Every kind of lane, drawn in its own way.

const makeLanePainter = (brush, view, causes) => {
  const { context, fill, rows, mixed } = brush;
  const gaps = makeGapPainter(brush, view, causes);

  const work = (item, kind, y, height) => {
    const { device } = item;
    const color = brush.theme[kind];
    mixed(device, device.exact, device.union[kind], device.shares[kind], y, height, null, color, "", color);
  };

  const curve = (item) => {
    const { curve: line, y, height } = item;
    const size = (line.end - line.start) / line.buckets;
    const first = Math.max(Math.floor((view.from - line.start) / size), 0);
    const last = Math.min(Math.ceil((view.to - line.start) / size), line.buckets);
    const step = Math.max(Math.floor((last - first) / (2 * view.width)), 1);
    fill(brush.theme.sunken);
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
    context.strokeStyle = brush.theme.accent;
    context.lineWidth = 1.25;
    context.stroke();
  };

  const host = (item, color) => {
    const { device, thread, lane, y, height } = item;
    mixed(thread, thread.exact, lane.rows, lane.levels, y, height, device.names, color, brush.theme["on-part"], color);
  };

  /** Slices that are exact everywhere. */
  const whole = (color) => ({ device, lane, rows: own, y, height }) => {
    rows(own || lane.rows, device.names, y, height, view.from, view.to, brush.theme[color], brush.theme["on-part"]);
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
      const { work: colors, "on-part": ink } = brush.theme;
      mixed(
        device, device.exact, item.rows, item.track ? [] : lane.levels, y, height, device.names,
        colors, [ink, ink, ink], colors[lane.main],
      );
    },
    metric: curve,
    nvtx: whole("nvtx"),
    phases: whole("nvtx"),
    steps: whole("nvtx"),
    start: whole("api"),
    graphs: whole("compute"),
    host_functions: whole("os"),
    openacc: whole("communication"),
    openmp: whole("communication"),
    mpi: (item) => host(item, brush.theme.communication),
    api: (item) => host(item, brush.theme.api),
    os: (item) => host(item, brush.theme.os),
    off_cpu: (item) => host(item, brush.theme["off-cpu"]),
  };

  /** Time outside of the window that was analyzed is faint. */
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
    fill(brush.theme.ground);
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
    fill(brush.theme.sunken);
    context.fillRect(view.left, each.y, view.width, each.height);
    PAINT[each.type](each);
    if (each.type === "gaps" || each.type === "work") outside(each);
    fill(brush.theme.muted);
    if (each.label) context.fillText(fitting(each.label, view.left - 2), 14, each.y + each.height / 2 + 0.5);
  };

  const heading = (each) => {
    const middle = each.y + each.height / 2 + 1;
    fill(brush.theme.ink);
    if (each.type === "device") {
      context.font = `600 ${brush.theme.font}`;
      context.fillText(`${each.device.open ? "▾" : "▸"} ${each.label}`, 0, middle);
      context.font = brush.theme.font;
    } else {
      context.fillText(each.label, 8, middle + 1);
    }
  };
  return item;
};
