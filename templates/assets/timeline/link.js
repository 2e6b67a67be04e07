// The visible window in the address, t=START-END, what is selected, and what is searched, q=TEXT. A gap is g=DEVICE.START,
// a slice s=DEVICE.LANE.START, a range r=START-END; times are ns of the trace's clock.

const WINDOW = /^(-?\d{1,19})-(-?\d{1,19})$/;
const GAP = /^(\d{1,4})\.(-?\d{1,19})$/;
const SLICE = /^(\d{1,4})\.(\d{1,4})\.(-?\d{1,19})$/;

const makeLink = (clock, apply) => {
  const formatRange = ([from, to]) => `${clock.absolute(from)}-${clock.absolute(to)}`;

  const formatSelected = (selection) => {
    const none = { g: null, s: null, r: null };
    if (!selection) return none;
    if (selection.range) return { ...none, r: formatRange(selection.range) };
    const { device, lane } = selection;
    const start = clock.absolute(spanOf(selection)[0]);
    if (!lane) return { ...none, g: `${device.number}.${start}` };
    return { ...none, s: `${device.number}.${lanesOf(device).findIndex((each) => each.lane === lane)}.${start}` };
  };

  /** Write it once things are quiet; or at once as a place to come back to. */
  const note = (view, selection, text, push = false) => {
    address.set({ t: formatRange([view.from, view.to]), ...formatSelected(selection), q: text || null }, push);
  };

  /** The two times of a key; null where it says none. */
  const readRange = (key) => {
    const [, ...times] = WINDOW.exec(address.get(key) || "") || [];
    return times.length ? times.map(clock.relative) : null;
  };

  /** Numbers and, last, a moment. */
  const readPlace = (key, form) => {
    const [, ...parts] = form.exec(address.get(key) || "") || [];
    return parts.length ? [...parts.slice(0, -1).map(Number), clock.relative(parts[parts.length - 1])] : null;
  };

  /** Null where the address has no window; `text` is what is searched all the same. */
  const read = () => {
    const window = readRange("t");
    const range = readRange("r");
    return window && {
      from: window[0], to: window[1], gap: readPlace("g", GAP), slice: readPlace("s", SLICE),
      range: range && range[1] > range[0] ? range : null,
    };
  };
  const text = () => address.get("q") || "";

  address.onChange(() => {
    const wanted = read();
    apply(wanted, text());
  });
  return { note, read, text };
};
