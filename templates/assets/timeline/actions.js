// What the reader can do: each action changes the window, the selection or the lanes, and has the rest follow.

/** `changed` has words, address and canvases follow; `tip` is the box beside the pointer. */
const makeActions = ({ stage, view, clock, devices, picker, showCard, tip, changed: told }) => {
  const does = {};
  const byLength = new Map();

  /** What the box said is no longer under the pointer. */
  const changed = () => { tip.hidden = true; told(); };

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
    if (chosen && chosen.device) unfold(chosen.device);
    showCard(chosen, does);
    changed();
  };

  does.zoomToSelection = () => { if (stage.selection) zoomAround(...spanOf(stage.selection), stage.selection.range ? 0 : 0.5); };

  const current = () => (
    (stage.selection && stage.selection.device) || devices.find((each) => each.open) || devices[0]
  );

  /** Move the window where a time is outside of it, zoom in where it is too small to see. */
  const reveal = (start, end) => {
    if (start >= view.from && end <= view.to && end - start >= view.span() / 50) return;
    const room = Math.max(end - start, view.span() / 4);
    view.show(start - room, end + room);
  };

  /** Select a gap or a slice, and move the window to it. */
  does.show = (chosen) => {
    reveal(...spanOf(chosen));
    does.select(chosen);
  };

  does.step = (way) => {
    const device = current();
    const { gaps } = device;
    const { selection } = stage;
    const [start, end] = selection ? spanOf(selection) : [view.to, view.from - 1];
    const at = isGap(selection) ? selection.at + way : neighbour(gaps, way > 0 ? end : start, way);
    if (at >= 0 && at < gaps.count) does.show({ device, at });
  };

  /** The longest gap, then the next longest one, or back. */
  does.longest = (way) => {
    const device = current();
    if (!byLength.has(device)) byLength.set(device, gapsByLength(device));
    const places = byLength.get(device);
    const next = (isGap(stage.selection) ? places.indexOf(stage.selection.at) : -1) + way;
    if (next >= 0 && next < places.length) does.show({ device, at: places[next] });
  };

  /** The next gap in time, or the one before, of the longest ones that hold half of the idle time. */
  does.important = (way) => {
    const device = current();
    const [start, end] = stage.selection ? spanOf(stage.selection) : [view.to, view.from - 1];
    const places = importantGaps(device);
    const next = places.filter((at) => (way > 0 ? device.gaps.start[at] > end - 1 : device.gaps.end[at] <= start));
    if (next.length) does.show({ device, at: next[way > 0 ? 0 : next.length - 1] });
  };

  /** A range of time with its sums: what is selected, else what is visible. */
  does.sums = () => {
    if (stage.selection && stage.selection.range) does.select(null);
    else does.select({ range: stage.selection ? spanOf(stage.selection) : [view.from, view.to] });
  };

  /** Move the end of the selected range by a part of the window. */
  does.stretch = (share) => {
    if (!stage.selection || !stage.selection.range) { does.sums(); return; }
    const [from, to] = stage.selection.range;
    does.select({ range: [from, Math.min(Math.max(to + share * view.span(), from + 1), view.end)] });
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
  does.zoom = (factor, around) => { view.zoom(factor, around); changed(); };
  does.whole = () => { view.show(0, view.end); changed(); };
  does.center = (time) => { view.show(time - view.span() / 2, time + view.span() / 2); changed(); };

  does.range = (from, to) => {
    stage.range = from === null ? null : [view.time(Math.min(from, to)), view.time(Math.max(from, to))];
    stage.redraw();
  };

  /** The range between two places of the canvas. */
  does.take = (from, to) => {
    stage.range = null;
    const start = view.time(Math.max(Math.min(from, to), view.left));
    const end = Math.min(view.time(Math.max(from, to)), view.end);
    if (end > start) does.select({ range: [Math.round(start), Math.round(end)] }); else changed();
  };

  const under = (x, y) => (x >= view.left ? itemAt(stage.layout, y) : null);

  does.hover = (x, y) => {
    const item = under(x, y);
    stage.pointer = x >= view.left ? view.time(x) : null;
    showTip(tip, stage.canvas, item && picker.describe(item, view.time(x)), x, y);
    stage.canvas.style.cursor = item && selectionAt(item, view.time(x), SLACK_PIXELS * view.perPixel()) ? "pointer" : "default";
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
    does.select(under(x, y) && selectionAt(item, view.time(x), SLACK_PIXELS * view.perPixel()));
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

  /** The slice of a lane of a device that begins at a moment, null where it is not drawn. */
  const sliceAt = (number, place, start) => {
    const device = devices.find((each) => each.number === number);
    const { lane, thread } = (device && lanesOf(device)[place]) || {};
    const at = lane ? firstFrom(lane.rows.start, start) : -1;
    return lane && at < lane.rows.count && lane.rows.start[at] === start ? { device, thread, lane, at } : null;
  };

  /** A window, and what is selected in it: a range, a slice or a gap. */
  does.goTo = ({ from, to, range, slice, gap }) => {
    view.show(from, to);
    does.select(range ? { range } : slice ? sliceAt(...slice) : gap ? gapAt(...gap) : null);
  };

  /** What a button outside of the timeline stands for: the key of a gap, or a span of time. */
  does.lookUp = ({ gap, span }) => {
    if (!gap) {
      const [from, to] = span.split("-").map(clock.relative);
      return { from, to };
    }
    const [number, text] = gap.split(".");
    const start = clock.relative(text);
    const found = gapAt(Number(number), start);
    const length = found ? found.device.gaps.end[found.at] - start : UNDRAWN_NS;
    return { from: start - length, to: start + 2 * length, gap: [Number(number), start] };
  };
  return does;
};

const UNDRAWN_NS = 1e5;
