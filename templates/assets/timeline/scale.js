// From time to pixels and back, and numbers to text.

const LEAST_SPAN_NS = 10;

/** The visible window [from, to) of [0, end), drawn from `left` over `width` pixels. */
const makeView = (end) => {
  const view = { from: 0, to: end, end, left: 0, width: 1 };
  view.span = () => view.to - view.from;
  view.perPixel = () => (view.to - view.from) / view.width;
  view.x = (time) => view.left + ((time - view.from) / (view.to - view.from)) * view.width;
  view.time = (x) => view.from + ((x - view.left) / view.width) * (view.to - view.from);

  /** Show [from, to), moved and widened as far as it must be. */
  view.show = (from, to) => {
    const middle = (from + to) / 2;
    const span = Math.min(Math.max(to - from, Math.min(LEAST_SPAN_NS, end)), end);
    view.from = Math.min(Math.max(middle - span / 2, 0), end - span);
    view.to = view.from + span;
  };
  view.move = (share) => view.show(view.from + share * view.span(), view.to + share * view.span());

  /** Zoom around a moment that stays where it is; a factor below 1 zooms in. */
  view.zoom = (factor, around) => {
    const span = Math.min(Math.max(view.span() * factor, Math.min(LEAST_SPAN_NS, end)), end);
    const share = (around - view.from) / view.span();
    const from = Math.min(Math.max(around - share * span, 0), end - span);
    view.from = from;
    view.to = from + span;
  };
  return view;
};

const grouped = (digits) => digits.replace(/\B(?=(\d{3})+(?!\d))/g, ",");

const threeDigits = (value) => {
  if (value >= 99.95) return grouped(value.toFixed(0));
  return value >= 9.995 ? value.toFixed(1) : value.toFixed(2);
};

/** A duration to three digits: 1.23 ms. */
const shortNs = (ns) => {
  if (ns >= 999.5e6) return `${threeDigits(ns / 1e9)} s`;
  if (ns >= 999.5e3) return `${threeDigits(ns / 1e6)} ms`;
  if (ns >= 999.5) return `${threeDigits(ns / 1e3)} µs`;
  return `${Math.round(ns)} ns`;
};

/** A duration with all its digits: 1,234,567 ns. */
const exactNs = (ns) => `${grouped(String(Math.round(ns)))} ns`;

/** Moments of the trace's own clock, which may be too large for plain numbers. */
const makeClock = (origin) => {
  const absolute = (time) => BigInt(Math.round(time)) + origin;
  const relative = (text) => Number(BigInt(text) - origin);
  const signed = (value) => (value < 0n ? `-${grouped(String(-value))}` : grouped(String(value)));
  const exact = (time) => `${signed(absolute(time))} ns`;
  /** In seconds, with as many digits as `step` (ns) asks for. */
  const seconds = (time, step) => {
    const digits = Math.min(Math.max(9 - Math.floor(Math.log10(Math.max(step, 1))), 0), 9);
    const value = absolute(time);
    const size = value < 0n ? -value : value;
    const fraction = String(size % 1000000000n).padStart(9, "0").slice(0, digits);
    const whole = `${value < 0n ? "-" : ""}${grouped(String(size / 1000000000n))}`;
    return `${whole}${digits ? `.${fraction}` : ""} s`;
  };
  /** How far the origin is behind a whole number of steps. */
  const shift = (step) => Number(((origin % BigInt(step)) + BigInt(step)) % BigInt(step));
  return { absolute, relative, exact, seconds, shift };
};

/** A step of 1, 2 or 5 times a power of ten, at least `least`. */
const roundStep = (least) => {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  for (const factor of [1, 2, 5, 10]) if (factor * power >= least) return factor * power;
  return 10 * power;
};

/** Round moments of [from, to), at least `least` ns apart, with labels that all differ: no digit of the step is lost. */
const axisTicks = (clock, from, to, least) => {
  const step = roundStep(least);
  const shift = clock.shift(step);
  const ticks = [];
  for (let time = Math.ceil((from + shift) / step) * step - shift; time < to; time += step) {
    ticks.push({ time, label: clock.seconds(time, step) });
  }
  return ticks;
};
