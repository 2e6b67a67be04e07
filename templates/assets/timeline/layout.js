// Which lanes are drawn, and where.

const HEIGHTS = {
  device: 22, work: 14, compute: 13, communication: 13, copies: 13, gaps: 24, stream: 16, metric: 30,
  thread: 20, steps: 13, nvtx: 15, mpi: 14, api: 14, os: 14, off_cpu: 9,
};
const TITLES = {
  work: "Work", compute: "Compute", communication: "Communication", copies: "Copies", gaps: "Idle by cause",
  steps: "Steps", nvtx: "NVTX", mpi: "MPI", api: "CUDA calls", os: "OS calls", off_cpu: "Off the CPU",
};
const MOST_DEVICES = 24;

const hasShare = (levels) => levels.some((value) => value > 0);

/** The lanes of a device between its heading and those of its threads. */
const deviceLanes = (device) => [
  ...device.lanes.filter((lane) => lane.kind === "steps").map((lane) => ({ type: "steps", lane, label: TITLES.steps })),
  ...WORK.filter((kind) => device.present[kind]).map((kind) => ({ type: kind })),
  { type: "gaps" },
  ...device.lanes.filter((lane) => lane.kind === "stream").flatMap((lane) => lane.tracks.map((rows, track) => (
    { type: "stream", lane, rows, track, label: track ? "" : lane.label }
  ))),
  ...device.metrics.map((curve) => ({ type: "metric", curve, label: curve.title })),
];

/** The lanes of a device's threads; `home` knows the device that shows a thread, a later one says where that is. */
const threadLanes = (device, home) => device.threads.flatMap((thread) => {
  if (home.has(thread)) return [{ type: "thread", label: `${thread.label}: see ${home.get(thread).key}` }];
  home.set(thread, device);
  const lanes = thread.lanes.map((lane) => ({
    type: lane.kind, lane, thread, label: lane.kind === "nvtx" && lane.depth ? "" : TITLES[lane.kind],
  }));
  return [{ type: "thread", thread, label: thread.label }, ...lanes];
});

/** All lanes with `y`, `height` and the device they are of, and the height of them all. */
const layOut = (devices) => {
  const items = [];
  const home = new Map();
  let y = AXIS_HEIGHT;
  const place = (device, item) => {
    const height = HEIGHTS[item.type];
    if (item.track) y -= 2;
    items.push({ label: TITLES[item.type] || "", thread: null, ...item, device, y, height });
    y += height + (item.type === "nvtx" ? 1 : 3);
  };
  for (const device of devices.slice(0, MOST_DEVICES)) {
    place(device, { type: "device", label: `${device.key}  ${device.name}` });
    const folded = [{ type: "work" }, { type: "gaps" }];
    for (const item of device.open ? [...deviceLanes(device), ...threadLanes(device, home)] : folded) place(device, item);
    y += 8;
  }
  return { items, height: y };
};

/** The item at a height, null between them. */
const itemAt = (layout, y) => layout.items.find((item) => y >= item.y - 1 && y < item.y + item.height + 2) || null;
