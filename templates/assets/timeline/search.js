// Search: every slice and gap whose name, or cause, holds a text.

const MOST_GROUPS = 12;

/** For each text whether it holds `wanted`, in lower case. */
const holding = (texts, wanted) => Uint8Array.from(texts, (text) => (text.toLowerCase().includes(wanted) ? 1 : 0));

/** Selections in order of time; a thread of several devices counts once. */
const matchesOf = (devices, causes, text) => {
  const wanted = text.trim().toLowerCase().replace(/…$/, "");
  if (!wanted) return [];
  const named = holding(devices[0].names, wanted);
  const caused = holding(causes.map((cause) => cause.title), wanted);
  const seen = new Set();
  const found = [];
  for (const device of devices) {
    const { gaps } = device;
    for (let at = 0; at < gaps.count; at += 1) if (caused[gaps.kinds[at]]) found.push({ device, at });
    for (const { lane, thread } of lanesOf(device)) {
      const { rows } = lane;
      if (!rows.names || seen.has(lane)) continue;
      seen.add(lane);
      for (let at = 0; at < rows.count; at += 1) if (named[rows.names[at]]) found.push({ device, thread, lane, at });
    }
  }
  const starts = Float64Array.from(found, (each) => spanOf(each)[0]);
  const order = Uint32Array.from(starts.keys()).sort((a, b) => starts[a] - starts[b] || a - b);
  return Array.from(order, (place) => found[place]);
};

/** Matches of one name in lanes of one kind: name, kind, where and how long. */
const groupsOf = (found, causes) => {
  const kinds = new Map();
  found.forEach((each, place) => {
    const { device, lane, at } = each;
    const [start, end] = spanOf(each);
    const kind = lane ? lane.kind : "gap";
    const key = lane ? lane.rows.names[at] : device.gaps.kinds[at];
    if (!kinds.has(kind)) kinds.set(kind, new Map());
    const groups = kinds.get(kind);
    if (!groups.has(key)) {
      const name = lane ? nameOf(each) : causes[key].title;
      const what = kind === "steps" ? `${TITLES.steps} of ${device.key}` : lane ? TITLES[kind] || "GPU" : "Gap";
      groups.set(key, { what, name, ns: 0, places: [] });
    }
    const group = groups.get(key);
    group.ns += end - start;
    group.places.push(place);
  });
  return [...kinds.values()].flatMap((groups) => [...groups.values()]);
};

/** Names that differ by numbers alone as one. */
const folded = (groups) => {
  const found = new Map();
  for (const { what, name, ns, places } of groups) {
    const form = name.replace(/\d+/g, "#");
    const key = `${what}\n${form}`;
    const one = found.get(key);
    found.set(key, one ? { what, name: form, ns: one.ns + ns, places: one.places.concat(places) } : { what, name, ns, places });
  }
  for (const { places } of found.values()) places.sort((a, b) => a - b);
  return [...found.values()];
};

/** The field, the number of matches and their list; `does.pick` shows a match. */
const makeSearch = (root, devices, causes, view) => {
  const [field, count, list] = [".search-text", ".search-count", ".search-list"].map((name) => root.querySelector(name));
  const search = { found: [], starts: new Float64Array(0), at: -1, text: "" };
  let pick = null;

  const told = () => {
    if (!search.text) return "";
    const held = devices.every((device) => isWhole(device) && device.threads.every(isWhole)) ? "" : " on this page";
    if (!search.found.length) return `no match${held}`;
    return `${search.at < 0 ? "" : `${grouped(String(search.at + 1))} of `}${grouped(String(search.found.length))}${held}`;
  };

  const go = (place) => {
    search.at = place;
    count.textContent = told();
    pick(search.found[place]);
  };

  /** The place in `places` after the present one, or from the window on; after the last one the first. */
  const after = (places) => {
    const now = search.at >= 0 ? search.at : firstFrom(search.starts, view.from) - 1;
    const next = places[firstAbove(places, now)];
    return next === undefined ? places[0] : next;
  };

  const row = (group) => {
    const button = element("button", "", group.name || group.what);
    button.type = "button";
    button.title = group.name;
    button.addEventListener("click", () => go(after(group.places)));
    const item = element("li");
    item.append(button, element("span", "quiet number", `${group.what}, ${grouped(String(group.places.length))} ×, ${shortNs(group.ns)}`));
    return item;
  };

  /** Everything that holds the text; the list of names under the field. */
  search.set = (text) => {
    search.text = text.trim();
    search.found = matchesOf(devices, causes, text);
    search.starts = Float64Array.from(search.found, (each) => spanOf(each)[0]);
    search.at = -1;
    if (field.value !== text) field.value = text;
    count.textContent = told();
    const every = groupsOf(search.found, causes);
    const groups = (every.length > MOST_GROUPS ? folded(every) : every).sort((a, b) => b.ns - a.ns);
    list.replaceChildren(...groups.slice(0, MOST_GROUPS).map(row));
    if (groups.length > MOST_GROUPS) {
      list.append(element("li", "quiet", `and ${grouped(String(groups.length - MOST_GROUPS))} more names`));
    }
    list.hidden = !search.found.length;
  };

  search.step = (way) => {
    const last = search.found.length - 1;
    if (last < 0) return;
    const first = firstFrom(search.starts, view.from) - (way > 0 ? 0 : 1);
    const next = search.at < 0 ? first : search.at + way;
    go(next < 0 ? last : next > last ? 0 : next);
  };

  search.focus = () => { field.focus(); field.select(); };

  /** `does.show` selects a match; `changed` has the address follow; `leave` goes back to the lanes. */
  search.listen = (does, changed, leave) => {
    pick = does.show;
    field.addEventListener("input", () => { does.look(field.value); changed(); });
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter") search.step(event.shiftKey ? -1 : 1);
      else if (event.key === "Escape") leave();
      else return;
      event.preventDefault();
    });
  };
  return search;
};
