// The visible window and the selection in the address: #t=START-END&g=DEVICE.START, in ns of the trace's clock.

const LINK = /^#t=(-?\d{1,19})-(-?\d{1,19})(?:&g=(\d{1,4})\.(-?\d{1,19}))?$/;
const SETTLE_MS = 150;

const makeLink = (clock, apply) => {
  let timer = 0;
  let own = location.hash;

  const write = (hash, push) => {
    clearTimeout(timer);
    own = hash;
    try {
      if (push) history.pushState(null, "", hash); else history.replaceState(null, "", hash);
    } catch (error) { /* some viewers forbid it */ }
  };

  const format = (view, selection) => {
    const time = `#t=${clock.absolute(view.from)}-${clock.absolute(view.to)}`;
    if (!selection) return time;
    return `${time}&g=${selection.device.number}.${clock.absolute(selection.device.gaps.start[selection.at])}`;
  };

  /** Write it once things are quiet, in place of the last one; or at once as a place to come back to. */
  const note = (view, selection, push = false) => {
    clearTimeout(timer);
    if (push) write(format(view, selection), true);
    else timer = setTimeout(() => write(format(view, selection), false), SETTLE_MS);
  };

  const read = () => {
    const found = LINK.exec(location.hash);
    if (!found) return null;
    const [, from, to, number, start] = found;
    const begin = start === undefined ? null : clock.relative(start);
    return { from: clock.relative(from), to: clock.relative(to), number: Number(number), start: begin };
  };

  const follow = () => {
    if (location.hash === own) return;
    own = location.hash;
    clearTimeout(timer);
    const wanted = read();
    if (wanted) apply(wanted);
  };
  window.addEventListener("hashchange", follow);
  window.addEventListener("popstate", follow);
  return { note, read };
};
