// Who woke whom in a gap, and which call launched an operation, as arrows over the lanes.

/** Draws the wake chains of gaps, and launches. */
const makeArrows = (brush, view) => {
  const { context, fill } = brush;

  const ink = () => {
    context.strokeStyle = brush.theme.ink;
    fill(brush.theme.ink);
    context.lineWidth = 1.5;
  };

  /** The wake chain of a gap: arrows from each waker's lanes to those of the thread that it woke. */
  const wakes = (layout, device, start) => {
    ink();
    for (const [gap, from, to, at] of device.wakes) {
      if (gap !== start || at < view.from || at > view.to) continue;
      const lanes = (number) => layout.items.filter((each) => each.thread && each.thread.number === number);
      const [source, target] = [lanes(from), lanes(to)];
      if (!source.length || !target.length) continue;
      arrow(view.x(at), middleOf(source), middleOf(target));
    }
  };

  const middleOf = (items) => {
    const calls = items.find((each) => each.type === "os") || items[items.length - 1];
    return calls.y + calls.height / 2;
  };

  const arrow = (x, y, end) => {
    const way = end < y ? -1 : 1;
    context.beginPath();
    context.moveTo(x, y);
    context.bezierCurveTo(x + 22, y, x + 22, end, x + 4, end);
    context.stroke();
    context.beginPath();
    context.arc(x, y, 3, 0, 2 * Math.PI);
    context.fill();
    context.beginPath();
    context.moveTo(x, end);
    context.lineTo(x + 8, end - 4 - way);
    context.lineTo(x + 8, end + 4 - way);
    context.fill();
  };

  /** From a call, on the item of its lane, up to the operation that it launched. */
  const launch = (time, calls, start, stream) => {
    const [x, y, end, top] = [view.x(time), calls.y, view.x(start), stream.y + stream.height];
    if (Math.max(x, end) < view.left || Math.min(x, end) > view.left + view.width) return;
    ink();
    context.beginPath();
    context.moveTo(x, y);
    context.bezierCurveTo(x, (y + top) / 2, end, (y + top) / 2, end, top + 4);
    context.stroke();
    context.beginPath();
    context.moveTo(end, top);
    context.lineTo(end - 4, top + 7);
    context.lineTo(end + 4, top + 7);
    context.fill();
  };
  return { wakes, launch };
};
