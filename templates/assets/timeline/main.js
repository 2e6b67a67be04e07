// The timeline put together: the data is unpacked, drawn, and drawn again when something changes.

const listenToButtons = (root, view, does, show) => {
  for (const button of document.querySelectorAll("button.show")) {
    button.hidden = false;
    button.addEventListener("click", () => show(button.dataset));
  }
  const middle = () => (view.from + view.to) / 2;
  const actions = {
    whole: does.whole, in: () => does.zoom(ZOOM_STEP, middle()), out: () => does.zoom(1 / ZOOM_STEP, middle()),
    previous: () => does.step(-1), next: () => does.step(1), important: () => does.important(1), longest: () => does.longest(1), sums: does.sums,
    found: () => does.find(1), "found-before": () => does.find(-1),
  };
  for (const button of root.querySelectorAll("button[data-do]")) {
    button.addEventListener("click", actions[button.dataset.do]);
  }
};

/** What there is to do with a search, and what there is to read. */
const addSearch = (root, does, search, stage, changed) => {
  const canvas = stage.canvas;
  does.look = (text) => { search.set(text); stage.marks = search.starts; };
  does.find = (way) => search.step(way);
  /** The next match where something is searched, else the next gap. */
  does.next = (way) => { if (search.found.length) search.step(way); else does.step(way); };
  does.escape = () => {
    if (stage.selection) { does.select(null); return; }
    does.look("");
    changed();
  };
  does.help = () => {
    const help = root.querySelector(".stage-keys");
    help.open = !help.open;
    if (help.open) help.scrollIntoView({ block: "nearest" });
  };
  search.listen(does, changed, () => canvas.focus({ preventScroll: true }));
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
    event.preventDefault();
    search.focus();
  });
};

const startTimeline = async (root, data) => {
  const reader = blockReader(new Uint8Array(await unpacked(data.bytes, "deflate").arrayBuffer()));
  const names = readNames(data.names, reader);
  const threads = data.threads.map((thread, number) => readThread(thread, number, reader));
  const devices = data.devices.map((device) => readDevice(device, names, threads, reader));
  devices[0].open = true;
  const clock = makeClock(BigInt(data.origin));
  const view = makeView(data.end);
  view.show(Math.min(...devices.map(({ start }) => start)), Math.max(...devices.map(({ end }) => end)));
  const stage = makeStage(root, data, devices, view, clock);
  const caption = makeCaption(root, data, devices, view, clock);
  const showCard = makeCard(root.querySelector(".gap-card"), stage, data, devices, clock);
  const search = makeSearch(root, devices, data.causes, view);
  const picker = makePicker(view, clock, data.causes);
  const tip = root.querySelector(".tip");
  let link = null;
  const changed = () => { caption(stage.selection); note(); stage.redraw(); };
  const note = (push) => link.note(view, stage.selection, search.text, push);
  const does = makeActions({ stage, view, clock, devices, picker, showCard, tip, changed });
  addSearch(root, does, search, stage, changed);
  const bring = (wanted, text) => {
    does.look(text);
    if (wanted) does.goTo(wanted);
  };
  link = makeLink(clock, bring);

  const show = (dataset) => {
    does.goTo(does.lookUp(dataset));
    note(true);
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
  bring(wanted, link.text());
  if (wanted) root.closest("section").scrollIntoView();
  caption(stage.selection);
  stage.paintAll();
  // For tests and the console: draw at once, or nothing but an empty canvas.
  window.nsysdiagTimeline = {
    draw: stage.paint, clear: stage.clear, view, devices, search, causes: data.causes, layout: () => stage.layout, selection: () => stage.selection,
    show: (from, to) => { view.show(from, to); caption(stage.selection); },
  };
};

const timelineRoot = document.getElementById("timeline-view");
if (timelineRoot && "DecompressionStream" in window) {
  startTimeline(timelineRoot, JSON.parse(document.getElementById("timeline-data").textContent));
}
