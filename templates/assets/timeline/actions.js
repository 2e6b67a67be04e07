// What the reader can do: each action changes the window, the selection or the lanes, and has the rest follow.

/** `changed` has words, address and canvases follow; `tip` is the box beside the pointer. */
const makeActions = ({ stage, view, clock, devices, picker, showCard, tip, changed }) => {
  const does = {};

  const zoomAround = (start, end, room) => {
    view.show(start - (end - start) * room, end + (end - start) * room);
    changed();
  };

  const unfold = (device) => {
    if (device.open) return;
    device.open = true;
    stage.measure();
  };

  does.select = (chosen) => {
    stage.selection = chosen;
    if (chosen) unfold(chosen.device);
    showCard(chosen, does);
    changed();
  };

  does.zoomToGap = () => {
    if (!stage.selection) return;
    const { device: { gaps }, at } = stage.selection;
    zoomAround(gaps.start[at], gaps.end[at], 0.5);
  };

  const current = () => (stage.selection ? stage.selection.device : devices.find((each) => each.open) || devices[0]);

  /** Move the window where a gap is outside of it, zoom in where it is too small to see. */
  const reveal = ({ gaps }, at) => {
    const [start, end] = [gaps.start[at], gaps.end[at]];
    if (start >= view.from && end <= view.to && end - start >= view.span() / 50) return;
    const room = Math.max(end - start, view.span() / 4);
    view.show(start - room, end + room);
  };

  does.step = (way) => {
    const device = current();
    const { gaps } = device;
    const { selection } = stage;
    const at = selection ? selection.at + way : neighbour(gaps, way > 0 ? view.from - 1 : view.to, way);
    if (at < 0 || at >= gaps.count) return;
    reveal(device, at);
    does.select({ device, at });
  };

  does.device = (way) => {
    const now = current();
    const next = devices[devices.indexOf(now) + way];
    if (!next) return;
    now.open = false;
    next.open = true;
    stage.measure();
    does.select(null);
  };

  does.move = (share) => { view.move(share); changed(); };
  does.zoom = (factor, around) => { view.zoom(factor, around); tip.hidden = true; changed(); };
  does.whole = () => { view.show(0, view.end); changed(); };
  does.center = (time) => { view.show(time - view.span() / 2, time + view.span() / 2); changed(); };

  does.range = (from, to) => {
    stage.range = from === null ? null : [view.time(Math.min(from, to)), view.time(Math.max(from, to))];
    stage.redraw();
  };

  does.zoomTo = (from, to) => {
    stage.range = null;
    view.show(view.time(Math.max(Math.min(from, to), view.left)), view.time(Math.max(from, to)));
    changed();
  };

  const under = (x, y) => (x >= view.left ? itemAt(stage.layout, y) : null);

  does.hover = (x, y) => {
    const item = under(x, y);
    stage.pointer = x >= view.left ? view.time(x) : null;
    showTip(tip, stage.canvas, item && picker.describe(item, view.time(x)), x, y);
    stage.canvas.style.cursor = item && item.type === "gaps" ? "pointer" : "default";
    stage.redraw();
  };

  does.leave = () => { stage.pointer = null; tip.hidden = true; stage.redraw(); };

  does.click = (x, y) => {
    const item = itemAt(stage.layout, y);
    if (item && item.type === "device") {
      item.device.open = !item.device.open;
      stage.measure();
      changed();
      return;
    }
    const found = under(x, y) && picker.gap(item.device, view.time(x));
    does.select(found ? { device: item.device, at: found.at } : null);
  };

  /** Zoom to what is under the pointer; where nothing exact is, zoom in. */
  does.enter = (x, y) => {
    const item = under(x, y);
    const found = item && picker.describe(item, view.time(x));
    if (found && found.end !== undefined) zoomAround(found.start, found.end, 0.25);
    else does.zoom(ZOOM_STEP * ZOOM_STEP, view.time(x));
  };

  /** The gap of a device (by its number in the report) that begins at a moment, null where it is not drawn. */
  const gapAt = (number, start) => {
    const device = devices.find((each) => each.number === number);
    const at = device ? firstFrom(device.gaps.start, start) : -1;
    return device && at < device.gaps.count && device.gaps.start[at] === start ? { device, at } : null;
  };

  /** A window, and a gap where `start` says one. */
  does.goTo = ({ from, to, number, start }) => {
    view.show(from, to);
    does.select(start === null ? null : gapAt(number, start));
  };

  /** What a button outside of the timeline stands for: the key of a gap, or a span of time. */
  does.lookUp = ({ gap, span }) => {
    if (!gap) {
      const [from, to] = span.split("-").map(clock.relative);
      return { from, to, number: null, start: null };
    }
    const [number, text] = gap.split(".");
    const start = clock.relative(text);
    const found = gapAt(Number(number), start);
    const length = found ? found.device.gaps.end[found.at] - start : UNDRAWN_NS;
    return { from: start - length, to: start + 2 * length, number: Number(number), start };
  };
  return does;
};

const UNDRAWN_NS = 1e5;
