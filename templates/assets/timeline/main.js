// The timeline put together: the data is unpacked, drawn, and drawn again when something changes.

const MINIMAP_LEAST = 34;
const NARROW = 620;

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

const startTimeline = async (root, data) => {
  const reader = blockReader(await inflate(data.bytes));
  const devices = data.devices.map((device) => readDevice(device, reader));
  devices[0].open = true;
  const find = (selector) => root.querySelector(selector);
  const [canvas, minimap, card, tip] = [".lanes", ".minimap", ".gap-card", ".tip"].map(find);
  const [now, detail, command] = [".stage-now", ".stage-detail", "#timeline-command"].map(find);
  const clock = makeClock(BigInt(data.origin));
  const view = makeView(data.end);
  const painter = makePainter(canvas.getContext("2d", { alpha: true }), view, data.causes);
  const picker = makePicker(view, clock, data.causes);
  const tableRows = new Map(Array.from(document.querySelectorAll("tbody[data-gap]"), (body) => [body.dataset.gap, body]));
  let layout = null;
  let selection = null;
  let range = null;
  let pointer = null;
  let width = 0;
  let pending = 0;

  const fit = (element, high) => {
    const ratio = window.devicePixelRatio || 1;
    element.style.height = `${high}px`;
    element.width = Math.round(width * ratio);
    element.height = Math.round(high * ratio);
    element.getContext("2d").setTransform(ratio, 0, 0, ratio, 0, 0);
  };

  const minimapHeight = () => Math.max(MINIMAP_LEAST, Math.min(devices.length, MOST_DEVICES) * 7);

  const measure = () => {
    width = Math.max(Math.floor(canvas.parentElement.clientWidth), 200);
    view.left = width < NARROW ? 84 : 132;
    view.width = width - view.left;
    layout = layOut(devices);
    fit(canvas, layout.height);
    fit(minimap, minimapHeight());
  };

  /** Everything anew: no more than what the window shows. */
  const paint = () => {
    painter.begin(width, layout.height);
    painter.axis(clock, layout.height);
    for (const item of layout.items) painter.item(item);
    const theme = painter.theme();
    if (selection) {
      const own = layout.items.filter((item) => item.device === selection.device);
      const top = own[0].y;
      const low = own[own.length - 1].y + own[own.length - 1].height;
      const { gaps } = selection.device;
      painter.band(gaps.start[selection.at], gaps.end[selection.at], top + HEIGHTS.device, low - top - HEIGHTS.device + 2, theme.accent);
      painter.arrows(layout, selection.device, gaps.start[selection.at]);
    }
    if (range) painter.band(range[0], range[1], AXIS_HEIGHT, layout.height - AXIS_HEIGHT, theme.ink);
    if (pointer !== null) painter.line(pointer, AXIS_HEIGHT - 4, layout.height - AXIS_HEIGHT);
  };

  const paintAll = () => {
    pending = 0;
    paint();
    const strips = devices.slice(0, MOST_DEVICES);
    drawMinimap(minimap.getContext("2d"), width, minimapHeight(), strips, view, painter.theme(), painter.palette);
  };
  const redraw = () => { if (!pending) pending = requestAnimationFrame(paintAll); };

  /** How much of the visible time is exact, the least of what is drawn in full. */
  const exactShare = (device, exact) => {
    const [from, to] = [Math.max(view.from, device.start), Math.min(view.to, device.end)];
    if (to <= from) return 1;
    let covered = 0;
    for (let at = firstAbove(exact.reach, from); at < exact.count && exact.start[at] < to; at += 1) {
      covered += Math.min(exact.end[at], to) - Math.max(exact.start[at], from);
    }
    return covered / (to - from);
  };

  const describe = () => {
    const step = view.span() / 1000;
    now.textContent = `${clock.seconds(view.from, step)} to ${clock.seconds(view.to, step)}, ${shortNs(view.span())}`;
    const opened = devices.filter((device) => device.open);
    if (devices.length > 1) now.textContent += `. Open: ${opened.map((device) => device.key).join(", ") || "none"}`;
    if (selection) {
      const { device, at } = selection;
      const length = device.gaps.end[at] - device.gaps.start[at];
      now.textContent += `. Selected: gap of ${exactNs(length)} on ${device.key}, ${data.causes[device.gaps.kinds[at]].title}`;
    }
    command.textContent = `${data.command} --from ${clock.absolute(view.from)}ns --to ${clock.absolute(view.to)}ns -o detail.html`;
    const least = Math.min(1, ...opened.flatMap((device) => [exactShare(device, device.exactOperations), exactShare(device, device.exactHost)]));
    detail.textContent = least > 0.9999
      ? "Every slice of this window is exact. The same window as a report of its own:"
      : `Every slice is exact in ${(least * 100).toFixed(1)}% of this window, elsewhere shares of the time are drawn. This window in more detail:`;
    Object.assign(canvas.dataset, { from: clock.absolute(view.from), to: clock.absolute(view.to) });
    canvas.dataset.gap = selection ? `${selection.device.number}.${clock.absolute(selection.device.gaps.start[selection.at])}` : "";
  };

  const link = makeLink(clock, (wanted) => { goTo(wanted); describe(); redraw(); });
  const changed = (push = false) => { describe(); link.note(view, selection, push); redraw(); };

  const open = (device) => {
    if (device.open) return;
    device.open = true;
    measure();
  };

  const zoomToGap = () => {
    if (!selection) return;
    const { gaps } = selection.device;
    const [start, end] = [gaps.start[selection.at], gaps.end[selection.at]];
    view.show(start - (end - start) * 0.5, end + (end - start) * 0.5);
    changed();
  };

  const select = (chosen) => {
    selection = chosen;
    if (!chosen) { card.hidden = true; changed(); return; }
    open(chosen.device);
    const actions = [
      ["Zoom to it", zoomToGap], ["‹ Gap", () => does.step(-1)], ["Gap ›", () => does.step(1)], ["Close", () => { select(null); canvas.focus(); }],
    ];
    fillCard(card, chosen.device, chosen.at, { causes: data.causes, clock, tableRows, actions });
    changed();
  };

  /** The gap of a device (by its number in the report) that begins at a moment, null where it is not drawn. */
  const gapAt = (number, start) => {
    const device = devices.find((each) => each.number === number);
    const at = device ? firstFrom(device.gaps.start, start) : -1;
    return device && at < device.gaps.count && device.gaps.start[at] === start ? { device, at } : null;
  };

  const goTo = ({ from, to, number, start }) => {
    view.show(from, to);
    const chosen = start === null ? null : gapAt(number, start);
    selection = chosen;
    if (chosen) select(chosen); else card.hidden = true;
  };

  const reveal = (selected) => {
    const { gaps } = selected.device;
    const [start, end] = [gaps.start[selected.at], gaps.end[selected.at]];
    if (start < view.from || end > view.to || end - start < view.span() / 50) {
      const room = Math.max(end - start, view.span() / 4);
      view.show(start - room, end + room);
    }
  };

  const does = {
    hover: (x, y) => {
      const item = x >= view.left ? itemAt(layout, y) : null;
      pointer = x >= view.left ? view.time(x) : null;
      showTip(item && picker.tell(item, view.time(x)), x, y);
      canvas.style.cursor = item && item.type === "gaps" ? "pointer" : "default";
      redraw();
    },
    leave: () => { pointer = null; tip.hidden = true; redraw(); },
    move: (share) => { view.move(share); changed(); },
    zoom: (factor, around) => { view.zoom(factor, around); tip.hidden = true; changed(); },
    range: (from, to) => { range = from === null ? null : [view.time(Math.min(from, to)), view.time(Math.max(from, to))]; redraw(); },
    zoomTo: (from, to) => {
      range = null;
      view.show(view.time(Math.max(Math.min(from, to), view.left)), view.time(Math.max(from, to)));
      changed();
    },
    click: (x, y) => {
      const item = itemAt(layout, y);
      if (item && item.type === "device") { item.device.open = !item.device.open; measure(); changed(); return; }
      const found = item && x >= view.left ? picker.gap(item.device, view.time(x)) : null;
      select(found ? { device: item.device, at: found.at } : null);
    },
    enter: (x, y) => {
      const item = itemAt(layout, y);
      const found = item && x >= view.left ? picker.tell(item, view.time(x)) : null;
      if (!found || found.end === undefined) { does.zoom(ZOOM_STEP * ZOOM_STEP, view.time(x)); return; }
      view.show(found.start - (found.end - found.start) * 0.25, found.end + (found.end - found.start) * 0.25);
      changed();
    },
    step: (way) => {
      const device = selection ? selection.device : devices.find((each) => each.open) || devices[0];
      const { gaps } = device;
      const at = selection ? selection.at + way : neighbour(gaps, way > 0 ? view.from - 1 : view.to, way);
      if (at < 0 || at >= gaps.count) return;
      reveal({ device, at });
      select({ device, at });
    },
    device: (way) => {
      const now = selection ? selection.device : devices.find((each) => each.open) || devices[0];
      const next = devices[devices.indexOf(now) + way];
      if (!next) return;
      now.open = false;
      next.open = true;
      selection = null;
      card.hidden = true;
      measure();
      changed();
    },
    whole: () => { view.show(0, view.end); changed(); },
    center: (time) => { view.show(time - view.span() / 2, time + view.span() / 2); changed(); },
    zoomToGap, select,
  };

  /** What the pointer is on, beside it and inside the window. */
  const showTip = (told, x, y) => {
    tip.hidden = !told;
    if (!told) return;
    tip.replaceChildren(element("strong", "", told.title), ...told.lines.map((line) => element("span", "", line)));
    const room = tip.offsetParent.clientWidth - tip.offsetWidth - 4;
    const box = canvas.getBoundingClientRect();
    const below = box.top + y + 18 + tip.offsetHeight < window.innerHeight;
    tip.style.left = `${Math.max(Math.min(x + 14, room), 0)}px`;
    tip.style.top = `${below ? y + 18 : y - tip.offsetHeight - 10}px`;
  };

  const show = (button) => {
    const [number, start] = (button.dataset.gap || "").split(".");
    const chosen = start === undefined ? null : gapAt(Number(number), clock.relative(start));
    if (chosen) {
      const { gaps } = chosen.device;
      const room = gaps.end[chosen.at] - gaps.start[chosen.at];
      view.show(gaps.start[chosen.at] - room, gaps.end[chosen.at] + room);
    } else if (start !== undefined) {
      view.show(clock.relative(start) - 1e5, clock.relative(start) + 1e5);
    } else {
      const [from, to] = button.dataset.span.split("-");
      view.show(clock.relative(from), clock.relative(to));
    }
    selection = chosen;
    link.note(view, selection, true);
    select(chosen);
    root.closest("section").scrollIntoView();
    canvas.focus({ preventScroll: true });
  };

  const readColors = () => { painter.setTheme(readTheme(root)); redraw(); };
  for (const button of document.querySelectorAll("button.show")) {
    button.hidden = false;
    button.addEventListener("click", () => show(button));
  }
  const BUTTONS = {
    whole: does.whole, in: () => does.zoom(ZOOM_STEP, (view.from + view.to) / 2),
    out: () => does.zoom(1 / ZOOM_STEP, (view.from + view.to) / 2), previous: () => does.step(-1), next: () => does.step(1),
  };
  for (const button of root.querySelectorAll("button[data-do]")) button.addEventListener("click", BUTTONS[button.dataset.do]);

  for (const stage of root.querySelectorAll(".stage")) stage.hidden = false;
  root.classList.add("live");
  painter.setTheme(readTheme(root));
  measure();
  listen(canvas, view, does);
  listenToMinimap(minimap, view, does);
  new ResizeObserver(() => { measure(); paintAll(); }).observe(canvas.parentElement);
  new MutationObserver(readColors).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", readColors);
  const wanted = link.read();
  if (wanted) { goTo(wanted); root.closest("section").scrollIntoView(); }
  describe();
  paintAll();
  // For tests and the console: draw at once, and how long the same takes with nothing in it.
  window.nsysdiagTimeline = {
    draw: paint, clear: () => painter.begin(width, layout.height), show: (from, to) => { view.show(from, to); describe(); },
    view, devices, layout: () => layout,
  };
};

const timelineRoot = document.getElementById("timeline-view");
if (timelineRoot && "DecompressionStream" in window) {
  startTimeline(timelineRoot, JSON.parse(document.getElementById("timeline-data").textContent));
}
