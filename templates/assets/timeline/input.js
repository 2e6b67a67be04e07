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
  const zoomIn = () => does.zoom(ZOOM_STEP, middle());
  const zoomOut = () => does.zoom(1 / ZOOM_STEP, middle());
  const KEYS = {
    w: zoomIn, "+": zoomIn, "=": zoomIn, arrowup: zoomIn, s: zoomOut, "-": zoomOut, arrowdown: zoomOut,
    a: () => does.move(-0.2), d: () => does.move(0.2), arrowleft: () => does.move(-0.2), arrowright: () => does.move(0.2),
    0: () => does.whole(), home: () => does.whole(), n: () => does.next(1), p: () => does.step(-1),
    i: () => does.longest(1), r: () => does.sums(), "[": () => does.device(-1), "]": () => does.device(1),
    enter: () => does.zoomToSelection(), escape: () => does.escape(), "?": () => does.help(),
  };
  const SHIFTED = {
    n: () => does.next(-1), i: () => does.longest(-1), arrowleft: () => does.stretch(-0.05), arrowright: () => does.stretch(0.05),
  };
  canvas.addEventListener("keydown", (event) => {
    const key = event.key.toLowerCase();
    const action = (event.shiftKey && SHIFTED[key]) || KEYS[key];
    if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    action();
  });
};
