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

  const line = (time, y, height) => {
    fill(brush.theme.muted);
    context.fillRect(Math.round(view.x(time)), y, 1, height);
  };
  return { axis, band, line };
};
