// The steps of a device put together: drawn, and drawn again when the step, the window, the room or the theme changes.

const makeSteps = (root, data, pairs) => {
  const canvas = root.querySelector(".lanes");
  const [tip, now, choice] = [".tip", ".stage-now", "select"].map((selector) => root.querySelector(selector));
  const view = makeView(pairs[0].length);
  const brush = makeBrush(canvas.getContext("2d"), view, data.causes);
  const overlay = makeOverlay(brush, view);
  const layout = layOutSteps(data);
  const paintLane = makeStepPainter(brush, view, data.names, data.causes.map((cause) => cause.title));
  const tell = makeTeller(view, data);
  const stage = { canvas, layout, view, at: 0, pointer: null, shown: null };
  const does = {};
  let width = 0;
  let pending = 0;

  const pair = () => pairs[stage.at];

  /** A frame around an operation or an idle span, on the side that has it. */
  const frame = (side, which, at) => {
    const { rows } = pair()[side][which];
    const item = layout.items.find((each) => each.side === side && (which === "idle" ? each.type === "idle"
      : each.type === "stream" && pair()[side].streams[each.stream].rows.place.includes(at)));
    const [x, end] = [Math.max(view.x(rows.start[at]), view.left), Math.min(view.x(rows.end[at]), view.left + view.width)];
    if (!item || end < view.left || x > view.left + view.width) return;
    brush.context.strokeStyle = brush.theme.ink;
    brush.context.lineWidth = 2;
    brush.context.strokeRect(x, item.y - 1, Math.max(end - x, 2), item.height + 2);
  };

  stage.paint = () => {
    brush.begin(width, layout.height);
    overlay.axis(stepClock, layout.height);
    for (const item of layout.items) paintLane(item, pair(), item.side && stepTitle(item.side, pair()[item.side]));
    if (stage.shown) {
      const { side, which, at } = stage.shown;
      const partner = pair()[side][which].partner[at];
      frame(side, which, at);
      if (partner >= 0) frame(side === "before" ? "after" : "before", which, partner);
    }
    if (stage.pointer !== null) overlay.line(stage.pointer, AXIS_HEIGHT - 4, layout.height - AXIS_HEIGHT);
  };
  stage.paintAll = () => { pending = 0; stage.paint(); };
  stage.redraw = () => { if (!pending) pending = requestAnimationFrame(stage.paintAll); };
  stage.clear = () => brush.begin(width, layout.height);
  stage.measure = () => { width = makeRoom(canvas, view); fit(canvas, width, layout.height); };
  stage.readTheme = () => { brush.theme = readTheme(root); stage.redraw(); };

  const caption = () => {
    const { before, after } = pair();
    now.textContent = `${shortNs(before.length)} → ${shortNs(after.length)} (${signedNs(after.length - before.length)}).`
      + ` Shown: ${shortNs(view.from)} to ${shortNs(view.to)}`;
    Object.assign(canvas.dataset, { step: stage.at, from: Math.round(view.from), to: Math.round(view.to) });
  };

  const hide = () => { stage.pointer = null; stage.shown = null; tip.hidden = true; };
  const changed = () => { hide(); caption(); stage.redraw(); };

  /** Another step, all of it. */
  does.choose = (at) => {
    stage.at = Math.min(Math.max(at, 0), pairs.length - 1);
    choice.value = String(stage.at);
    Object.assign(view, { end: pair().length });
    does.whole();
  };
  does.step = (way) => does.choose(stage.at + way);
  does.next = does.step;
  does.whole = () => { view.show(0, view.end); changed(); };
  does.move = (share) => { view.move(share); changed(); };
  does.zoom = (factor, around) => { view.zoom(factor, around); changed(); };
  does.range = () => {};
  does.take = (from, to) => {
    view.show(view.time(Math.max(Math.min(from, to), view.left)), view.time(Math.max(from, to)));
    changed();
  };

  /** What differs, on either side, by start. */
  const differences = () => ["before", "after"].flatMap((side) => ["operations", "idle"].flatMap((which) => {
    const { rows, marks } = pair()[side][which];
    return [...marks.keys()].filter((at) => marks[at]).map((at) => ({ side, which, at, start: rows.start[at], end: rows.end[at] }));
  })).sort((a, b) => a.start - b.start || a.end - b.end);

  /** To the next difference from the middle of the window, or from the one that is shown. */
  does.device = (way) => {
    const all = differences();
    const middle = (view.from + view.to) / 2;
    const last = stage.shown ? all.findIndex((each) => ["side", "which", "at"].every((key) => each[key] === stage.shown[key])) : -1;
    const next = last >= 0 ? all[last + way]
      : way > 0 ? all.find((each) => each.start >= (view.span() < view.end ? middle : 0)) : all.findLast((each) => each.end <= middle);
    if (!next) return;
    const room = Math.max(next.end - next.start, view.end / 50);
    view.show(next.start - room, next.end + room);
    changed();
    stage.shown = next;
    const item = layout.items.find((each) => each.side === next.side && each.type === "differs");
    const time = (next.start + next.end) / 2;
    showTip(tip, canvas, tell(item, pair(), time), view.x(time), item.y);
  };
  does.zoomToSelection = () => { if (stage.shown) zoomAround(stage.shown); };
  does.escape = () => { hide(); stage.redraw(); };

  const zoomAround = ({ start, end }) => {
    view.show(start - (end - start) / 4, end + (end - start) / 4);
    changed();
  };

  const under = (x, y) => (x < view.left ? null
    : layout.items.find((item) => y >= item.y - 1 && y < item.y + item.height + 2) || null);

  does.hover = (x, y) => {
    const said = tell(under(x, y), pair(), view.time(x));
    stage.pointer = x >= view.left ? view.time(x) : null;
    stage.shown = said && said.side ? said : null;
    showTip(tip, canvas, said, x, y);
    stage.redraw();
  };
  does.leave = () => { hide(); stage.redraw(); };
  does.click = () => {};
  does.enter = (x, y) => {
    const said = tell(under(x, y), pair(), view.time(x));
    if (said && said.side) zoomAround(said); else does.zoom(ZOOM_STEP * ZOOM_STEP, view.time(x));
  };

  choice.replaceChildren(...pairs.map((each, at) => Object.assign(element("option", "", pairLabel(each, at)), { value: at })));
  choice.addEventListener("change", () => does.choose(Number(choice.value)));
  const middle = () => (view.from + view.to) / 2;
  const actions = {
    whole: does.whole, in: () => does.zoom(ZOOM_STEP, middle()), out: () => does.zoom(1 / ZOOM_STEP, middle()),
    previous: () => does.step(-1), next: () => does.step(1),
    back: () => does.device(-1), forth: () => does.device(1),
  };
  for (const button of root.querySelectorAll("button[data-do]")) button.addEventListener("click", actions[button.dataset.do]);
  root.querySelector(".stage").hidden = false;
  root.classList.add("live");
  stage.measure();
  stage.readTheme();
  listen(canvas, view, does);
  follow(stage);
  caption();
  return { ...stage, draw: stage.paint, does, pairs };
};

const startSteps = async (root) => {
  const data = JSON.parse(root.querySelector("script").textContent);
  const reader = blockReader(new Uint8Array(await unpacked(data.bytes, "deflate").arrayBuffer()));
  data.names = reader.json(data.names);
  return makeSteps(root, data, readPairs(data, reader));
};

// For tests and the console: what was drawn, and its actions.
window.nsysdiagSteps = Promise.all(Array.from(document.querySelectorAll(".steps"), startSteps));
