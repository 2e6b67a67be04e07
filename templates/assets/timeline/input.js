// The wheel and the keys over the lanes.

const ZOOM_STEP = 0.6;
const WHEEL_RATE = 0.0016;

/** Wires the canvas of the lanes; `does` is what there is to do. */
const listen = (canvas, view, does) => {
  listenToPointers(canvas, view, does);

  canvas.addEventListener("wheel", (event) => {
    const x = event.clientX - canvas.getBoundingClientRect().left;
    const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
    // Without the focus the wheel belongs to the page.
    if (!event.ctrlKey && !event.metaKey && !sideways && document.activeElement !== canvas) return;
    event.preventDefault();
    const rate = event.deltaMode === 1 ? 24 : 1;
    if (sideways) does.move(((event.deltaX || event.deltaY) * rate) / view.width);
    else does.zoom(Math.exp(Math.max(Math.min(event.deltaY * rate, 400), -400) * WHEEL_RATE), view.time(x));
  }, { passive: false });

  const middle = () => (view.from + view.to) / 2;
  const zoomIn = ["zoom", ZOOM_STEP];
  const zoomOut = ["zoom", 1 / ZOOM_STEP];
  const KEYS = {
    w: zoomIn, "+": zoomIn, "=": zoomIn, arrowup: zoomIn, s: zoomOut, "-": zoomOut, arrowdown: zoomOut,
    a: ["move", -0.2], d: ["move", 0.2], arrowleft: ["move", -0.2], arrowright: ["move", 0.2],
    0: ["whole"], home: ["whole"], n: ["next", 1], p: ["step", -1], j: ["important", 1], k: ["important", -1],
    i: ["longest", 1], r: ["sums"],
    "[": ["device", -1], "]": ["device", 1], enter: ["zoomToSelection"], escape: ["escape"], "?": ["help"],
  };
  const SHIFTED = { n: ["next", -1], i: ["longest", -1], arrowleft: ["stretch", -0.05], arrowright: ["stretch", 0.05] };
  canvas.addEventListener("keydown", (event) => {
    const key = event.key.toLowerCase();
    const [action, ...by] = (event.shiftKey && SHIFTED[key]) || KEYS[key] || [];
    if (!does[action] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    does[action](...by, middle());
  });
};
