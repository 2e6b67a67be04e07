// Both sides of a step below each other, and between them how far the one after is behind.

const STEP_HEIGHTS = { heading: 20, stream: 18, idle: 20, differs: 12, behind: 64 };
const BETWEEN = 3;

/** All lanes with `y` and `height`, and the height of them all. */
const layOutSteps = (data) => {
  const items = [];
  let y = AXIS_HEIGHT;
  const place = (type, more) => {
    items.push({ type, y, height: STEP_HEIGHTS[type], ...more });
    y += STEP_HEIGHTS[type] + BETWEEN;
  };
  const side = (name) => {
    place("heading", { side: name });
    data[name].streams.forEach((label, stream) => place("stream", { side: name, stream, label }));
    place("idle", { side: name, label: "Idle" });
    place("differs", { side: name, label: "Differs" });
  };
  side("before");
  place("behind", { label: "Later by" });
  side("after");
  return { items, height: y };
};

const makeStepPainter = (brush, view, names, causeNames) => {
  const { context, fill, rows } = brush;

  const stream = (item, step) => {
    const ink = brush.theme["on-part"];
    rows(step.streams[item.stream].rows, names, item.y, item.height, view.from, view.to, brush.theme.work, [ink, ink, ink]);
  };

  const idle = (item, step) => {
    rows(step.idle.rows, causeNames, item.y, item.height, view.from, view.to, brush.palette, brush.inks);
  };

  /** What is longer in the upper half, what is shorter in the lower one. */
  const differs = (item, step) => {
    const half = item.height / 2;
    const [alone, longer, shorter] = step.differing;
    rows(alone, null, item.y, item.height, view.from, view.to, brush.theme.accent, "");
    rows(longer, null, item.y, half, view.from, view.to, brush.theme.high, "");
    rows(shorter, null, item.y + half, half, view.from, view.to, brush.theme.good, "");
  };

  /** The line, and the area between it and 0: up is behind, down is ahead. Points of one pixel are drawn once. */
  const behind = (item, { time, ns, low, high }) => {
    const room = item.height - 6;
    const level = (value) => item.y + 3 + (room * (high - value)) / Math.max(high - low, 1);
    const zero = level(0);
    const right = view.left + view.width;
    const trace = (close) => {
      context.beginPath();
      let last = -Infinity;
      const first = Math.max(firstAbove(time, view.from) - 1, 0);
      let at = first;
      for (; at < time.length; at += 1) {
        const x = view.x(time[at]);
        if (x - last < 0.5 && at + 1 < time.length && x < right) continue;
        if (at === first && close) context.moveTo(x, zero);
        if (at === first && !close) context.moveTo(x, level(ns[at])); else context.lineTo(x, level(ns[at]));
        last = x;
        if (x > right) break;
      }
      if (close) context.lineTo(last, zero);
    };
    context.save();
    context.beginPath();
    context.rect(view.left, item.y, view.width, item.height);
    context.clip();
    for (const [color, from, to] of [["high", item.y, zero], ["good", zero, item.y + item.height]]) {
      context.save();
      context.beginPath();
      context.rect(view.left, from, view.width, to - from);
      context.clip();
      trace(true);
      fill(brush.theme[color]);
      context.globalAlpha = 0.3;
      context.fill();
      context.restore();
    }
    fill(brush.theme["line-strong"]);
    context.fillRect(view.left, zero, view.width, 1);
    trace(false);
    context.strokeStyle = brush.theme.ink;
    context.lineWidth = 1.25;
    context.stroke();
    context.restore();
    fill(brush.theme.muted);
    if (high > 0) context.fillText(fitting(signedNs(high), view.left + 8), 0, item.y + 30);
    if (low < 0) context.fillText(fitting(signedNs(low), view.left + 8), 0, item.y + item.height - 8);
  };

  /** What is behind the end of a shorter step is no part of it. */
  const ground = (item, length) => {
    const end = Math.min(view.x(length), view.left + view.width);
    if (end <= view.left) return;
    fill(brush.theme.sunken);
    context.fillRect(view.left, item.y, end - view.left, item.height);
  };

  /** One lane of a pair of steps; `title` is that of its side. */
  return (item, pair, title) => {
    fill(item.type === "heading" ? brush.theme.ink : brush.theme.muted);
    if (item.type === "heading") { context.fillText(title, 0, item.y + item.height / 2 + 2); return; }
    const top = item.type === "behind" ? item.y + 10 : item.y + item.height / 2 + 0.5;
    context.fillText(fitting(item.label, view.left + 6), 0, top);
    const step = item.side ? pair[item.side] : pair.after;
    ground(item, step.length);
    if (item.type === "stream") stream(item, step);
    else if (item.type === "idle") idle(item, step);
    else if (item.type === "differs") differs(item, step);
    else behind(item, pair.behind);
  };
};
