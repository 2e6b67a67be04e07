// What is over the lanes: the axis of time, bands, a line.

const AXIS_HEIGHT = 24;

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

  /** A frame around one slice. */
  const frame = (from, to, y, height) => {
    const x = Math.max(view.x(from), view.left - 2);
    const end = Math.min(view.x(to), view.left + view.width + 2);
    if (end < view.left || x > view.left + view.width) return;
    context.strokeStyle = brush.theme.ink;
    context.lineWidth = 2;
    context.strokeRect(x - 1, y - 1, Math.max(end - x, 1) + 2, height + 2);
  };

  /** Moments under the axis, `times` in order: one mark for each column of pixels. */
  const marks = (times) => {
    fill(brush.theme.accent);
    for (let at = firstFrom(times, view.from); at < times.length && times[at] < view.to;) {
      const x = Math.floor(view.x(times[at]));
      context.fillRect(x - 1, AXIS_HEIGHT - 7, 2, 6);
      at = Math.max(firstFrom(times, view.time(x + 2), at), at + 1);
    }
  };

  const line = (time, y, height) => {
    fill(brush.theme.muted);
    context.fillRect(Math.round(view.x(time)), y, 1, height);
  };
  return { axis, band, frame, marks, line };
};
