// The two canvases: their sizes, what is on them, and when they are drawn again.

const MINIMAP_LEAST = 34;

/** Draws devices as `view` shows them; `selection`, `range`, `pointer` and `marks` are drawn over them. */
const makeStage = (root, data, devices, view, clock) => {
  const canvas = root.querySelector(".lanes");
  const minimap = root.querySelector(".minimap");
  const brush = makeBrush(canvas.getContext("2d"), view, data.causes);
  const paintLane = makeLanePainter(brush, view, data.causes);
  const overlay = makeOverlay(brush, view);
  const arrows = makeArrows(brush, view);
  const strips = devices.slice(0, MOST_DEVICES);
  const stage = { canvas, minimap, layout: null, selection: null, range: null, pointer: null, marks: [] };
  let width = 0;
  let pending = 0;

  const minimapHeight = () => Math.max(MINIMAP_LEAST, strips.length * 7);

  /** What is selected; of a gap also who woke whom in it. */
  const paintSelection = (selection) => {
    const { device, lane } = selection;
    const [from, to] = spanOf(selection);
    if (selection.range) {
      overlay.band(from, to, AXIS_HEIGHT, stage.layout.height - AXIS_HEIGHT, brush.theme.accent);
      return;
    }
    if (lane) {
      const item = itemOf(stage.layout, selection);
      if (item) overlay.frame(from, to, item.y, item.height);
      const call = item && lane.kind === "stream" ? launchOf(selection) : null;
      const calls = call && itemOf(stage.layout, call);
      if (calls) arrows.launch(spanOf(call)[0], calls, from, item);
      return;
    }
    const own = stage.layout.items.filter((item) => item.device === device);
    if (!own.length) return;
    const top = own[0].y + HEIGHTS.device;
    const last = own[own.length - 1];
    overlay.band(from, to, top, last.y + last.height - top + 2, brush.theme.accent);
    arrows.wakes(stage.layout, device, from);
  };

  /** Everything anew: no more than what the window shows. */
  stage.paint = () => {
    const { items, height } = stage.layout;
    brush.begin(width, height);
    overlay.axis(clock, height);
    overlay.marks(stage.marks);
    for (const item of items) paintLane(item);
    if (stage.selection) paintSelection(stage.selection);
    const below = height - AXIS_HEIGHT;
    if (stage.range) overlay.band(stage.range[0], stage.range[1], AXIS_HEIGHT, below, brush.theme.ink);
    if (stage.pointer !== null) overlay.line(stage.pointer, AXIS_HEIGHT - 4, below);
  };

  stage.paintAll = () => {
    pending = 0;
    stage.paint();
    drawMinimap(minimap.getContext("2d"), width, minimapHeight(), strips, view, brush.theme, brush.palette);
  };

  /** Soon, and once for all changes until then. */
  stage.redraw = () => { if (!pending) pending = requestAnimationFrame(stage.paintAll); };

  stage.clear = () => brush.begin(width, stage.layout.height);

  /** The lanes laid out for the room that there is. */
  stage.measure = () => {
    width = makeRoom(canvas, view);
    stage.layout = layOut(devices);
    fit(canvas, width, stage.layout.height);
    fit(minimap, width, minimapHeight());
  };

  stage.readTheme = () => { brush.theme = readTheme(root); stage.redraw(); };
  return stage;
};
