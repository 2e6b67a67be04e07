// Colours of the page's theme, and text that fits.

const WORK = ["compute", "communication", "copies"];
const LABEL_ROOM = 30;
const CHARACTER = 6.1;
const COLORS = [
  "ground", "surface", "sunken", "ink", "muted", "line", "line-strong", "accent", "accent-soft", "on-part", "idle",
  "compute", "communication", "copies", "nvtx", "api", "os", "off-cpu", "high", "good",
];

/** The colours of the page's theme as it is now. */
const readTheme = (element) => {
  const style = getComputedStyle(element);
  const theme = { font: `11px ${style.fontFamily}` };
  for (const name of COLORS) theme[name] = style.getPropertyValue(`--${name}`).trim();
  theme.work = WORK.map((kind) => theme[kind]);
  return theme;
};

const linear = (channel) => (channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4);

/** Black or white, whichever stands out more from #rrggbb. */
const inkOn = (color) => {
  const part = (at) => linear(parseInt(color.slice(at, at + 2), 16) / 255);
  const light = 0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5);
  return (light + 0.05) / 0.05 > 1.05 / (light + 0.05) ? "#000000" : "#ffffff";
};

/** As much of a name as fits into so many pixels. */
const fitting = (name, width) => {
  const room = Math.floor((width - 8) / CHARACTER);
  if (room < 3) return "";
  return name.length <= room ? name : `${name.slice(0, room - 1)}…`;
};
