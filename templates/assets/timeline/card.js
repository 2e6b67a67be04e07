// The selection in words. Of a gap its row in the table of gaps where it has one, else what the timeline knows of it.

const MOST_SLICES = 6;

const factRow = (name, value) => {
  const row = element("div");
  row.append(element("dt", "", name), element("dd", "number", value));
  return row;
};

/** A copy of what the table of gaps says of it; null where the table does not list it. */
const evidenceOf = (rows, key) => {
  const row = rows.get(key);
  const list = row ? row.querySelector(".slices") : null;
  return list ? list.cloneNode(true) : null;
};

/** The last slice of any stream that ends at or before a moment, and the first that starts at or after it. */
const operationsAround = (device, start, end) => {
  let before = null;
  let after = null;
  for (const lane of device.lanes) {
    if (lane.kind !== "stream") continue;
    const { rows } = lane;
    const next = firstFrom(rows.start, end);
    if (next < rows.count && (!after || rows.start[next] < after.time)) {
      after = { time: rows.start[next], name: device.names[rows.names[next]] };
    }
    for (let at = next - 1; at >= 0 && at >= next - 8; at -= 1) {
      if (rows.end[at] <= start && (!before || rows.end[at] > before.time)) {
        before = { time: rows.end[at], name: device.names[rows.names[at]] };
      }
    }
  }
  return {
    before: before && before.time === start ? before.name : null,
    after: after && after.time === end ? after.name : null,
  };
};

/** Title, length and ends of a gap. */
const cardHead = (device, at, causes, clock) => {
  const [start, end] = [device.gaps.start[at], device.gaps.end[at]];
  const cause = causes[device.gaps.kinds[at]];
  const head = element("p", "gap-card-title");
  const swatch = element("span", "gap-card-swatch");
  swatch.style.background = cause.color;
  head.append(swatch, element("strong", "", `${shortNs(end - start)} idle on ${device.key}`), ` · ${cause.title}`);
  return [head, factsOf(timeFacts(start, end, clock))];
};

const cardButton = (text, action) => {
  const button = element("button", "", text);
  button.type = "button";
  button.addEventListener("click", action);
  return button;
};

/** Says on the button for a moment whether the text was copied. */
const copyButton = (text, say) => {
  const button = cardButton(text, async () => {
    button.textContent = (await copyText(say())) ? "Copied" : "Not allowed";
    setTimeout(() => { button.textContent = text; }, 1500);
  });
  return button;
};

const cardButtons = (does, canvas, more) => {
  const buttons = element("div", "buttons");
  buttons.append(
    cardButton("Zoom to it", does.zoomToSelection), ...more,
    cardButton("Close", () => { does.select(null); canvas.focus(); }),
  );
  return buttons;
};

const factsOf = (rows) => {
  const facts = element("dl", "gap-card-facts");
  facts.append(...rows.map(([name, value]) => factRow(name, value)));
  return facts;
};

const timeFacts = (start, end, clock) => [["Length", exactNs(end - start)], ["From", clock.exact(start)], ["To", clock.exact(end)]];

/** The NVTX ranges of a thread around a moment, the outermost first. */
const rangesAround = (device, thread, time) => thread.lanes
  .filter((lane) => lane.kind === "nvtx")
  .map((lane) => [lane, rowAt(lane.rows, time, 0)])
  .filter(([, at]) => at >= 0)
  .map(([lane, at]) => device.names[lane.rows.names[at]]);

/** The gaps that end where an operation of this name starts, the longest first. */
const waitsBefore = (device, number) => {
  const { gaps } = device;
  const found = new Set();
  let count = 0;
  for (const { rows, kind } of device.lanes) {
    if (kind !== "stream") continue;
    for (let at = 0; at < rows.count; at += 1) {
      if (rows.names[at] !== number) continue;
      count += 1;
      const gap = firstFrom(gaps.end, rows.start[at]);
      if (gap < gaps.count && gaps.end[gap] === rows.start[at]) found.add(gap);
    }
  }
  const length = (gap) => gaps.end[gap] - gaps.start[gap];
  return { count, waits: [...found].sort((a, b) => length(b) - length(a) || a - b) };
};

const nvtxRow = (device, thread, time) => {
  const ranges = rangesAround(device, thread, time);
  return ranges.length ? [factRow("NVTX", ranges.join(" › "))] : [];
};

/** Grid or bytes of an operation, its launch and the ranges around that. */
const operationRows = (chosen, does) => {
  const { lane: { rows }, at, device } = chosen;
  const found = [];
  const amount = rows.amounts ? rows.amounts[at] : 0;
  const threads = rows.blocksOf ? rows.blocksOf[at] : 0;
  const whole = rows.end[at] - rows.start[at];
  if (rows.kinds[at] === COPIES && amount) {
    found.push(factRow("Bytes", `${grouped(String(amount))} (${sizeText(amount)}), ${rateText({ bytes: amount, whole })}`));
  } else if (threads) {
    found.push(factRow("Grid", `${grouped(String(amount))} blocks of ${grouped(String(threads))} threads`));
  }
  const launch = launchOf(chosen);
  if (!launch) return [...found, factRow("Launch", "not among the calls on this page")];
  const before = rows.start[at] - launch.lane.rows.start[launch.at];
  const row = factRow("Launch", `${nameOf(launch)}, ${launch.thread.label}, ${shortNs(before)} before it starts: `);
  row.lastChild.append(cardButton("Show", () => does.show(launch)));
  return [...found, row, ...nvtxRow(device, launch.thread, launch.lane.rows.start[launch.at])];
};

/** What a call or a range launched, as far as the page holds it: how many, from when to when, and how long they ran. */
const launchedRows = (device, thread, start, end, several, does) => {
  const found = launchedBy(device, thread, start, end);
  if (!found.length) return [];
  const parts = found.map(({ lane: { rows }, places }) => (
    makeRows(Float64Array.from(places, (at) => rows.start[at]), Float64Array.from(places, (at) => rows.end[at]))
  ));
  const busy = unionOf(parts);
  const count = parts.reduce((sum, part) => sum + part.count, 0);
  const [from, to] = [busy.start[0], busy.end[busy.count - 1]];
  const held = isWhole(device) && exactShare(thread, { from: start, to: end }) >= ALL_OF_IT;
  const row = factRow(
    several ? `On ${device.key}` : "On the GPU",
    `${held ? "" : "at least "}${grouped(String(count))} ${count > 1 ? "operations" : "operation"} launched in it: `
    + `${shortNs(busy.sum[busy.count])} busy, `
    + `${shortNs(to - from)} from the first to the last `,
  );
  row.lastChild.append(cardButton("Sums", () => { does.show({ range: [from, to] }); }));
  return [row];
};

/** The ranges around a call, and what a call or a range launched. */
const threadRows = ({ device, thread, lane, at }, devices, does) => {
  const [start, end] = [lane.rows.start[at], lane.rows.end[at]];
  const found = lane.kind === "nvtx" ? [] : nvtxRow(device, thread, start);
  if (lane.kind !== "nvtx" && lane.kind !== "api") return found;
  const until = lane.kind === "api" ? start + 1 : end;
  return [...found, ...devices.flatMap((each) => launchedRows(each, thread, start, until, devices.length > 1, does))];
};

const MOST_WAITS = 6;

/** Where operations of this name follow idle time: a button for each of the longest gaps. */
const waitRows = (device, number, does) => {
  const { gaps } = device;
  const { count, waits } = waitsBefore(device, number);
  const total = waits.reduce((sum, gap) => sum + gaps.end[gap] - gaps.start[gap], 0);
  const held = isWhole(device) && gaps.count === gaps.total;
  const row = factRow("Idle before it", (held ? "" : "of those on this page ") + (waits.length
    ? `${grouped(String(waits.length))} of ${grouped(String(count))} times, ${shortNs(total)} in all; longest: ` : "never"));
  for (const at of waits.slice(0, MOST_WAITS)) {
    row.lastChild.append(cardButton(shortNs(gaps.end[at] - gaps.start[at]), () => does.show({ device, at })), " ");
  }
  return row;
};

/** What shows the selection in `card`, or hides it where there is none. */
const makeCard = (card, stage, data, devices, clock) => {
  const bodies = document.querySelectorAll("tbody[data-gap]");
  const tableRows = new Map(Array.from(bodies, (body) => [body.dataset.gap, body]));
  const { causes } = data;

  const gapCard = ({ device, at }, does) => {
    const [start, end] = spanOf({ device, at });
    const known = evidenceOf(tableRows, `${device.number}.${clock.absolute(start)}`);
    const more = [cardButton("‹ Gap", () => does.step(-1)), cardButton("Gap ›", () => does.step(1))];
    return [
      ...cardHead(device, at, causes, clock), cardButtons(does, stage.canvas, more),
      known || unlisted(device, start, end, causes),
    ];
  };

  /** Sums of [from, to), as buttons to take them away and as tables. */
  const sumsCard = (from, to, title, of, does) => {
    const sums = of.map((device) => deviceSums(device, from, to, causes));
    const options = `--from ${clock.absolute(from)}ns --to ${clock.absolute(to)}ns`;
    const command = element("p", "gap-card-window");
    command.hidden = true;
    command.append(element("code", "", options), " ", copyButton("Copy", () => options));
    const more = [
      copyButton("Copy as Markdown", () => sumsMarkdown(title, sums)),
      cardButton("As window", () => { command.hidden = !command.hidden; }),
    ];
    return [cardButtons(does, stage.canvas, more), command, ...drawnSums(sums)];
  };

  const rangeCard = ({ range: [from, to] }, does) => {
    const title = `${shortNs(to - from)} from ${clock.seconds(from, (to - from) / 1000)} to ${clock.seconds(to, (to - from) / 1000)}`;
    const open = devices.filter((device) => device.open);
    const head = element("p", "gap-card-title");
    head.append(element("strong", "", title));
    return [head, factsOf(timeFacts(from, to, clock)), ...sumsCard(from, to, title, open.length ? open : devices, does)];
  };

  const sliceCard = (chosen, does) => {
    const { device, lane, thread, at } = chosen;
    const [start, end] = spanOf(chosen);
    const name = nameOf(chosen) || TITLES[lane.kind];
    const head = element("p", "gap-card-title");
    head.append(element("strong", "", name), ` · ${laneTitle(chosen)}`);
    const facts = factsOf([...timeFacts(start, end, clock)]);
    const more = element("dl", "slices");
    if (lane.kind === "stream") more.append(...operationRows(chosen, does), waitRows(device, lane.rows.names[at], does));
    if (thread) more.append(...threadRows(chosen, devices, does));
    const title = `${name}, ${shortNs(end - start)} from ${clock.exact(start)}`;
    const long = lane.kind === "nvtx" || lane.kind === "steps";
    const rest = long ? sumsCard(start, end, title, [device], does) : [cardButtons(does, stage.canvas, [])];
    const meanwhile = lane.kind === "nvtx" ? [element("p", "quiet", "While it lasted, the GPU did:")] : [];
    return [head, facts, rest[0], more, ...meanwhile, ...rest.slice(1)];
  };

  return (chosen, does) => {
    card.hidden = !chosen;
    if (!chosen) return;
    const make = chosen.range ? rangeCard : chosen.lane ? sliceCard : gapCard;
    card.replaceChildren(...make(chosen, does));
  };
};

/** The slices of a gap by cause and name, most time first; none where the report holds none. */
const slicesOf = (device, start, end) => {
  const total = new Map();
  const lane = device.slices;
  for (let at = lane ? firstFrom(lane.start, start) : 0; lane && at < lane.count && lane.end[at] <= end; at += 1) {
    const key = `${lane.kinds[at]} ${lane.names[at]}`;
    total.set(key, (total.get(key) || 0) + lane.end[at] - lane.start[at]);
  }
  const rows = [...total].map(([key, ns]) => [...key.split(" ").map(Number), ns]);
  return rows.sort((a, b) => b[2] - a[2]).slice(0, MOST_SLICES);
};

/** A gap that the table does not list: what it divides into, its neighbours, and how to learn more. */
const unlisted = (device, start, end, causes) => {
  const list = element("dl", "slices");
  for (const [cause, name, ns] of slicesOf(device, start, end)) {
    const text = device.names[name];
    list.append(factRow(causes[cause].title, text ? `${exactNs(ns)}, ${text}` : exactNs(ns)));
  }
  const { before, after } = operationsAround(device, start, end);
  if (before) list.append(factRow("Previous", before));
  if (after) list.append(factRow("Next", after));
  list.append(factRow("More", "The table of gaps on this page omits this gap; the command below describes it."));
  return list;
};
