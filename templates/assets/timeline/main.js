// The timeline put together: the data is unpacked, drawn, and drawn again when something changes.

const listenToButtons = (root, view, does, show) => {
  for (const button of document.querySelectorAll("button.show")) {
    button.hidden = false;
    button.addEventListener("click", () => show(button.dataset));
  }
  const middle = () => (view.from + view.to) / 2;
  const actions = {
    whole: does.whole, in: () => does.zoom(ZOOM_STEP, middle()), out: () => does.zoom(1 / ZOOM_STEP, middle()),
    previous: () => does.step(-1), next: () => does.step(1),
  };
  for (const button of root.querySelectorAll("button[data-do]")) {
    button.addEventListener("click", actions[button.dataset.do]);
  }
};

const startTimeline = async (root, data) => {
  const reader = blockReader(new Uint8Array(await unpacked(data.bytes, "deflate").arrayBuffer()));
  const names = readNames(data.names, reader);
  const threads = data.threads.map((thread, number) => readThread(thread, number, reader));
  const devices = data.devices.map((device) => readDevice(device, names, threads, reader));
  devices[0].open = true;
  const clock = makeClock(BigInt(data.origin));
  const view = makeView(data.end);
  const stage = makeStage(root, data, devices, view, clock);
  const caption = makeCaption(root, data, devices, view, clock);
  const showCard = makeCard(root.querySelector(".gap-card"), stage, data.causes, clock);
  const picker = makePicker(view, clock, data.causes);
  const tip = root.querySelector(".tip");
  let link = null;
  const changed = () => { caption(stage.selection); link.note(view, stage.selection); stage.redraw(); };
  const does = makeActions({ stage, view, clock, devices, picker, showCard, tip, changed });
  link = makeLink(clock, does.goTo);

  const show = (dataset) => {
    does.goTo(does.lookUp(dataset));
    link.note(view, stage.selection, true);
    root.closest("section").scrollIntoView();
    stage.canvas.focus({ preventScroll: true });
  };

  for (const part of root.querySelectorAll(".stage")) part.hidden = false;
  root.classList.add("live");
  stage.measure();
  stage.readTheme();
  listen(stage.canvas, view, does);
  listenToMinimap(stage.minimap, view, does);
  listenToButtons(root, view, does, show);
  follow(stage);
  const wanted = link.read();
  if (wanted) { does.goTo(wanted); root.closest("section").scrollIntoView(); }
  caption(stage.selection);
  stage.paintAll();
  // For tests and the console: draw at once, or nothing but an empty canvas.
  window.nsysdiagTimeline = {
    draw: stage.paint, clear: stage.clear, view, devices, layout: () => stage.layout,
    show: (from, to) => { view.show(from, to); caption(stage.selection); },
  };
};

const timelineRoot = document.getElementById("timeline-view");
if (timelineRoot && "DecompressionStream" in window) {
  startTimeline(timelineRoot, JSON.parse(document.getElementById("timeline-data").textContent));
}
