// The window and the selection in words: for the reader, for a screen reader, and as a command.

/** How much of the visible time of a device or a thread has every slice. */
const exactShare = ({ start, end, exact }, view) => {
  const [from, to] = [Math.max(view.from, start), Math.min(view.to, end)];
  if (to <= from) return 1;
  let covered = 0;
  for (let at = firstAbove(exact.reach, from); at < exact.count && exact.start[at] < to; at += 1) {
    covered += Math.min(exact.end[at], to) - Math.max(exact.start[at], from);
  }
  return covered / (to - from);
};

const ALL_OF_IT = 0.9999;

/** Does the page hold every slice of a device or a thread? */
const isWhole = (each) => exactShare(each, { from: each.start, to: each.end }) >= ALL_OF_IT;

/** Writes them into the page. */
const makeCaption = (root, data, devices, view, clock) => {
  const [now, detail, command, canvas] = [".stage-now", ".stage-detail", "#timeline-command", ".lanes"]
    .map((selector) => root.querySelector(selector));

  const windowText = () => {
    const step = view.span() / 1000;
    return `${clock.seconds(view.from, step)} to ${clock.seconds(view.to, step)}, ${shortNs(view.span())}`;
  };

  const openText = () => {
    const open = devices.filter((device) => device.open).map((device) => device.key);
    return devices.length > 1 ? `. Open: ${open.join(", ") || "none"}` : "";
  };

  const selectionText = (selection) => {
    if (!selection) return "";
    const { device, at, lane, range } = selection;
    const [start, end] = spanOf(selection);
    if (range) return `. Selected: ${shortNs(end - start)}`;
    if (lane) return `. Selected: ${nameOf(selection) || TITLES[lane.kind]}, ${exactNs(end - start)}, ${laneTitle(selection)}`;
    return `. Selected: gap of ${exactNs(end - start)} on ${device.key}, ${data.causes[device.gaps.kinds[at]].title}`;
  };

  const detailText = () => {
    const shown = devices.filter((device) => device.open).flatMap((device) => [device, ...device.threads]);
    const least = Math.min(1, ...shown.map((each) => exactShare(each, view)));
    if (least >= ALL_OF_IT) return "Every slice of this window is exact. A report of this window alone:";
    const share = `${(least * 100).toFixed(1)}%`;
    return `Slices are exact in ${share} of this window, elsewhere drawn as shares. This window in more detail:`;
  };

  return (selection) => {
    const [from, to] = [clock.absolute(view.from), clock.absolute(view.to)];
    now.textContent = windowText() + openText() + selectionText(selection);
    detail.textContent = detailText();
    command.textContent = `${data.command} --from ${from}ns --to ${to}ns -o detail.html`;
    const gap = isGap(selection) ? `${selection.device.number}.${clock.absolute(spanOf(selection)[0])}` : "";
    Object.assign(canvas.dataset, { from, to, gap });
  };
};
