// What is over the lanes: the axis of time, bands, arrows.

const makeOverlay = (brush, view) => {
  const { context, fill } = brush;

  const axis = (clock, height) => {
    context.textAlign = "center";
    for (const { time, label } of axisTicks(clock, view.from, view.to, view.perPixel() * 110)) {
      const x = Math.round(view.x(time)) + 0.5;
      if (x < view.left) continue;
      fill(brush.theme.line);
      context.fillRect(x, AXIS_HEIGHT - 6, 1, height - AXIS_HEIGHT + 6);
      fill(brush.theme.muted);
      if (x > view.left + 30 && x < view.left + view.width - 30) context.fillText(label, x, 9);
    }
    context.textAlign = "left";
  };

  /** The wake chain of a gap: arrows from each waker's lanes to those of the thread that it woke. */
  const arrows = (layout, device, start) => {
    context.strokeStyle = brush.theme.ink;
    fill(brush.theme.ink);
    context.lineWidth = 1.5;
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

  /** A band over all lanes of a device, or over everything. */
  const band = (from, to, y, height, color) => {
    const x = Math.max(view.x(from), view.left);
    const end = Math.min(view.x(to), view.left + view.width);
    if (end < view.left || x > view.left + view.width) return;
    fill(color);
    context.globalAlpha = 0.14;
    context.fillRect(x, y, Math.max(end - x, 1), height);
    context.globalAlpha = 1;
    context.fillRect(x - 1, y, 1.5, height);
    context.fillRect(Math.max(end, x + 1), y, 1.5, height);
  };

  const line = (time, y, height) => {
    fill(brush.theme.muted);
    context.fillRect(Math.round(view.x(time)), y, 1, height);
  };
  return { axis, arrows, band, line };
};
