// The lane of idle time: gaps by cause, exact at every level, and what they divide into.

const makeGapPainter = (brush, view, causes) => {
  const { context, palette, inks, fill, label, mostOf, shares } = brush;

  /** All gaps where they are all there; elsewhere shares, and the long ones over them. */
  const gaps = (item) => {
    const { device, y, height } = item;
    const { gaps: all } = device;
    const to = Math.min(view.to, device.end);
    let from = Math.max(view.from, device.start);
    if (all.count < all.total) {
      const { exact } = device;
      for (let at = firstAbove(exact.reach, from); at < exact.count && exact.start[at] < to; at += 1) {
        const begin = Math.max(exact.start[at], from);
        const end = Math.min(exact.end[at], to);
        if ((end - begin) / view.perPixel() < 2) continue;
        thinned(device, y, height, from, begin);
        gapRows(all, y, height, begin, end, true);
        from = end;
      }
      thinned(device, y, height, from, to);
    } else {
      gapRows(all, y, height, from, to, true);
    }
    if (device.slices) slices(device.slices, device.names, y, height, Math.max(view.from, device.start), to);
  };

  const thinned = (device, y, height, from, to) => {
    if (to <= from) return;
    shares(device, device.shares.idle, y, height, from, to, "", device.shares.cause);
    gapRows(device.gaps, y, height, from, to, false);
  };

  /** Every gap that is at least a pixel wide; shorter ones of one column together, in the colour of the leading cause. */
  const gapRows = (all, y, height, from, to, alone) => {
    const right = view.left + view.width;
    let i = firstAbove(all.reach, from);
    while (i < all.count && all.start[i] < to) {
      const x = view.x(all.start[i]);
      const end = view.x(all.end[i]);
      if (end - x >= 1) {
        const begin = Math.max(x, view.left);
        fill(palette[all.kinds[i]]);
        context.fillRect(begin, y, Math.max(Math.min(end, right) - begin, 0), height);
        label(causes[all.kinds[i]].title, x, end - x, y, height, inks[all.kinds[i]]);
        i += 1;
        continue;
      }
      const column = Math.floor(x);
      const next = Math.max(firstFrom(all.start, view.time(column + 1), i), i + 1);
      const stop = next - 1 > i && view.x(all.end[next - 1]) - view.x(all.start[next - 1]) >= 1 ? next - 1 : next;
      if (alone && column >= view.left) {
        const share = Math.min((all.sum[stop] - all.sum[i]) / view.perPixel(), 1);
        const high = Math.max(height * share, 2);
        fill(palette[mostOf(all, i, stop)]);
        context.fillRect(column, y + height - high, 1, high);
      }
      i = stop;
    }
  };

  /** What gaps divide into, where it can be seen. */
  const slices = (lane, names, y, height, from, to) => {
    const right = view.left + view.width;
    for (let i = firstAbove(lane.reach, from); i < lane.count && lane.start[i] < to; i += 1) {
      const x = Math.max(view.x(lane.start[i]), view.left);
      const end = Math.min(view.x(lane.end[i]), right);
      if (end - x < 1) {
        i = Math.max(firstFrom(lane.start, view.time(Math.floor(view.x(lane.start[i])) + 1), i + 1) - 1, i);
        continue;
      }
      const cause = lane.kinds[i];
      fill(palette[cause]);
      context.fillRect(x, y, end - x, height);
      const title = causes[cause].title;
      const text = names[lane.names[i]];
      const both = (end - x) / CHARACTER > title.length + text.length + 6;
      label(both && text && text !== title ? `${title}: ${text}` : title, x, end - x, y, height, inks[cause]);
    }
  };
  return gaps;
};
