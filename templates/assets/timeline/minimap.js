// The whole run in little.

/** A device's strip of the whole run: idle time by cause from below, above it what ran most. */
const drawStrip = (context, device, y, height, scale, theme, palette) => {
  const last = device.shares.idle.length - 1;
  const idle = device.shares.idle[last];
  const cause = device.shares.cause[last];
  const work = WORK.map((kind) => device.shares[kind][last]);
  const size = ((device.end - device.start) / idle.length) * scale;
  context.fillStyle = theme.sunken;
  context.fillRect(device.start * scale, y, (device.end - device.start) * scale, height);
  for (let at = 0; at < idle.length; at += 1) {
    // Whole pixels: fractions of neighbours would leave a seam between them.
    const x = Math.round(device.start * scale + at * size);
    const wide = Math.max(Math.round(device.start * scale + (at + 1) * size) - x, 1);
    const low = (height * idle[at]) / 255;
    let most = 0;
    for (let kind = 1; kind < work.length; kind += 1) if (work[kind][at] > work[most][at]) most = kind;
    const high = Math.min((height * work[most][at]) / 255, height - low);
    context.fillStyle = theme.work[most];
    context.fillRect(x, y + height - low - high, wide, high);
    context.fillStyle = palette[device.causes[cause[at]]] || theme.idle;
    context.fillRect(x, y + height - low, wide, low);
  }
};

/** The whole run in a strip for each device, and the visible part of it. */
const drawMinimap = (context, width, height, devices, view, theme, palette) => {
  context.clearRect(0, 0, width, height);
  const strip = height / devices.length;
  devices.forEach((device, at) => {
    drawStrip(context, device, at * strip, strip - 1, width / view.end, theme, palette);
  });
  const from = (view.from / view.end) * width;
  const to = Math.max((view.to / view.end) * width, from + 3);
  context.fillStyle = theme.surface;
  context.globalAlpha = 0.62;
  context.fillRect(0, 0, from, height);
  context.fillRect(to, 0, width - to, height);
  context.globalAlpha = 1;
  context.strokeStyle = theme.accent;
  context.lineWidth = 2;
  context.strokeRect(from + 1, 1, Math.max(to - from - 2, 1), height - 2);
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
