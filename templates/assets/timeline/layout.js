// Which lanes are drawn, and where.

const HEIGHTS = {
  device: 22, work: 14, compute: 13, communication: 13, copies: 13, gaps: 24, stream: 16, metric: 30,
  thread: 20, phases: 13, start: 14, steps: 13, graphs: 13, host_functions: 13,
  nvtx: 15, openacc: 14, openmp: 14, mpi: 14, api: 14, os: 14, off_cpu: 9,
};
const TITLES = {
  work: "Work", compute: "Compute", communication: "Communication", copies: "Copies", gaps: "Idle by cause",
  phases: "Phases", start: "Start-up", steps: "Steps", graphs: "CUDA graphs", host_functions: "Host functions", nvtx: "NVTX",
  openacc: "OpenACC", openmp: "OpenMP", mpi: "MPI", api: "CUDA calls", os: "OS calls", off_cpu: "Off the CPU",
};
const MOST_DEVICES = 24;

const hasShare = (levels) => levels.some((value) => value > 0);

/** The lanes of one kind, each in as many rows as it has tracks. */
const tracked = (device, kind) => device.lanes.filter((lane) => lane.kind === kind).flatMap((lane) => (
  lane.tracks.map((rows, track) => ({ type: kind, lane, rows, track, label: track ? "" : lane.label || TITLES[kind] }))
));

/** The lanes of a device between its heading and those of its threads. */
const deviceLanes = (device) => [
  ...tracked(device, "steps"),
  ...WORK.filter((kind) => device.present[kind]).map((kind) => ({ type: kind })),
  { type: "gaps" },
  ...["graphs", "stream", "host_functions"].flatMap((kind) => tracked(device, kind)),
  ...device.metrics.map((curve) => ({ type: "metric", curve, label: curve.title })),
];

/** The lanes of a device's threads; `home` knows the device that shows a thread, a later one says where that is. */
const threadLanes = (device, home) => device.threads.flatMap((thread) => {
  if (home.has(thread)) return [{ type: "thread", label: `${thread.label}: see ${home.get(thread).key}` }];
  home.set(thread, device);
  const lanes = thread.lanes.map((lane) => ({
    type: lane.kind, lane, thread, label: lane.depth ? "" : TITLES[lane.kind],
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
