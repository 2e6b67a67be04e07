// A mouse, a pen, or fingers on the canvas: one drags, two zoom, a press without a move selects.

const CLICK_PIXELS = 4;
const PINCH_LEAST = 10;

/** Where two fingers are: their middle on the axis of time, and how far they are apart. */
const spreadOf = ([one, other]) => ({
  middle: (one.x + other.x) / 2,
  apart: Math.max(Math.hypot(one.x - other.x, one.y - other.y), PINCH_LEAST),
});

/** Wires the pointers of a canvas; `does` is what there is to do. */
const listenToPointers = (canvas, view, does) => {
  const pressed = new Map();
  let drag = null;

  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };

  /** A drag from here on; one that follows a pinch is no click any more. */
  const begin = ({ x, y }, range, moved) => { drag = { x, y, last: x, range, moved }; };

  /** What is between the fingers stays there. */
  const pinch = (before, after) => {
    const [from, to] = [spreadOf(before), spreadOf(after)];
    does.zoom(from.apart / to.apart, view.time(from.middle));
    does.move((from.middle - to.middle) / view.width);
  };

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || pressed.size === 2) return;
    pressed.set(event.pointerId, place(event));
    canvas.setPointerCapture(event.pointerId);
    if (pressed.size === 1) { begin(place(event), event.shiftKey, false); return; }
    drag = null;
    does.range(null);
    does.leave();
  });

  canvas.addEventListener("pointermove", (event) => {
    const { x, y } = place(event);
    if (!pressed.has(event.pointerId)) {
      if (!pressed.size) does.hover(x, y);
      return;
    }
    const before = [...pressed.values()];
    pressed.set(event.pointerId, { x, y });
    if (pressed.size === 2) { pinch(before, [...pressed.values()]); return; }
    drag.moved = drag.moved || Math.abs(x - drag.x) + Math.abs(y - drag.y) >= CLICK_PIXELS;
    if (!drag.moved) return;
    does.leave();
    if (drag.range) does.range(drag.x, x); else does.move((drag.last - x) / view.width);
    drag.last = x;
  });

  const press = (event, { x, y }) => {
    does.click(x, y);
    if (event.pointerType === "touch") does.hover(x, y); // a finger cannot hover
  };

  const release = (event) => {
    if (!pressed.delete(event.pointerId)) return;
    const done = drag;
    drag = null;
    const [left] = pressed.values();
    if (left) { begin(left, false, true); return; }
    if (event.type === "pointercancel") { does.range(null); return; }
    const { x } = place(event);
    if (!done.moved) press(event, place(event));
    else if (done.range) does.take(done.x, x);
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", (event) => { if (event.pointerType !== "touch") does.leave(); });
  canvas.addEventListener("dblclick", (event) => { const { x, y } = place(event); does.enter(x, y); });

  // Two fingers belong to the timeline also where they move up and down, which for one finger scrolls the page.
  canvas.addEventListener("touchmove", (event) => {
    if (event.touches.length > 1 && event.cancelable) event.preventDefault();
  }, { passive: false });
};
