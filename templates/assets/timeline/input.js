// Mouse, wheel, touch and keys.

const ZOOM_STEP = 0.6;
const WHEEL_RATE = 0.0016;
const CLICK_PIXELS = 4;

/** Wires a canvas; `at` gives a pointer's place on it, `does` what there is to do. */
const listen = (canvas, view, does) => {
  let drag = null;

  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    const { x, y } = place(event);
    drag = { x, y, last: x, range: event.shiftKey, moved: false };
    canvas.setPointerCapture(event.pointerId);
  });

  canvas.addEventListener("pointermove", (event) => {
    const { x, y } = place(event);
    if (!drag) { does.hover(x, y); return; }
    drag.moved = drag.moved || Math.abs(x - drag.x) + Math.abs(y - drag.y) >= CLICK_PIXELS;
    if (!drag.moved) return;
    does.leave();
    if (drag.range) does.range(drag.x, x); else does.move((drag.last - x) / view.width);
    drag.last = x;
  });

  const release = (event) => {
    if (!drag) return;
    const { x, y } = place(event);
    const done = drag;
    drag = null;
    if (event.type === "pointercancel") { does.range(null); return; }
    if (!done.moved) does.click(x, y);
    else if (done.range) does.zoomTo(done.x, x);
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", () => does.leave());
  canvas.addEventListener("dblclick", (event) => { const { x, y } = place(event); does.enter(x, y); });

  canvas.addEventListener("wheel", (event) => {
    const { x } = place(event);
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
    0: () => does.whole(), home: () => does.whole(), n: () => does.step(1), p: () => does.step(-1),
    "[": () => does.device(-1), "]": () => does.device(1),
    enter: () => does.zoomToGap(), escape: () => does.select(null),
  };
  canvas.addEventListener("keydown", (event) => {
    const action = event.ctrlKey || event.metaKey || event.altKey ? null : KEYS[event.key.toLowerCase()];
    if (!action) return;
    event.preventDefault();
    action();
  });
};

/** The strip of the whole run: press or drag to look there. */
const listenToMinimap = (canvas, view, does) => {
  let offset = null;
  const time = (event) => {
    const box = canvas.getBoundingClientRect();
    return ((event.clientX - box.left) / box.width) * view.end;
  };
  canvas.addEventListener("pointerdown", (event) => {
    const at = time(event);
    offset = at >= view.from && at < view.to ? at - (view.from + view.to) / 2 : 0;
    canvas.setPointerCapture(event.pointerId);
    does.center(at - offset);
  });
  canvas.addEventListener("pointermove", (event) => { if (offset !== null) does.center(time(event) - offset); });
  const stop = () => { offset = null; };
  canvas.addEventListener("pointerup", stop);
  canvas.addEventListener("pointercancel", stop);
};
