// The selection in words.

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
    const long = ["nvtx", "phases", "steps", "graphs"].includes(lane.kind);
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
