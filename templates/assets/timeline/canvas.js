// A canvas as large as there is room, drawn again when the room or the theme changes.

const NARROW = 620;

/** The pixels that a canvas may be wide; those right of the names of lanes are the view's. */
const makeRoom = (canvas, view) => {
  const width = Math.max(Math.floor(canvas.parentElement.clientWidth), 200);
  view.left = width < NARROW ? 84 : 132;
  view.width = width - view.left;
  return width;
};

const fit = (canvas, width, height) => {
  const ratio = window.devicePixelRatio || 1;
  canvas.style.height = `${height}px`;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.getContext("2d").setTransform(ratio, 0, 0, ratio, 0, 0);
};

/** Draw again when the room or the theme changes. */
const follow = (stage) => {
  new ResizeObserver(() => { stage.measure(); stage.paintAll(); }).observe(stage.canvas.parentElement);
  new MutationObserver(stage.readTheme)
    .observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", stage.readTheme);
};
