// The visible window and the selection in the address: t=START-END and g=DEVICE.START, in ns of the trace's clock.

const WINDOW = /^(-?\d{1,19})-(-?\d{1,19})$/;
const GAP = /^(\d{1,4})\.(-?\d{1,19})$/;

const makeLink = (clock, apply) => {
  const formatGap = ({ device, at }) => `${device.number}.${clock.absolute(device.gaps.start[at])}`;

  /** Write it once things are quiet; or at once as a place to come back to. */
  const note = (view, selection, push = false) => {
    const time = `${clock.absolute(view.from)}-${clock.absolute(view.to)}`;
    address.set({ t: time, g: selection ? formatGap(selection) : null }, push);
  };

  const read = () => {
    const window = WINDOW.exec(address.get("t") || "");
    if (!window) return null;
    const gap = GAP.exec(address.get("g") || "") || [];
    const start = gap[2] === undefined ? null : clock.relative(gap[2]);
    return { from: clock.relative(window[1]), to: clock.relative(window[2]), number: Number(gap[1]), start };
  };

  address.onChange(() => {
    const wanted = read();
    if (wanted) apply(wanted);
  });
  return { note, read };
};
