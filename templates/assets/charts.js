
// Charts: near the view, a drawing is replaced by its figure. Whatever fails on the way, the drawing stays.
(function () {
  const root = document.documentElement;
  const packed = document.getElementById("plotly");
  if (!packed || !window.DecompressionStream || !window.IntersectionObserver) return;

  // plotly.js asks for a style element by this id before it makes one; its rules are in the page's own style.
  const styled = document.createElement("template");
  styled.id = "plotly.js-style-global";
  styled.className = "no-inline-styles";

  const unpack = async () => {
    document.head.append(styled);
    await runPacked(packed, "gzip");
    return window.Plotly;
  };
  let loading = null;
  const load = () => (loading = loading || unpack());

  // Colours of the theme are written as var(--name) in a figure.
  const lookUp = (value, style) => {
    if (typeof value === "string") {
      return value.startsWith("var(--") ? style.getPropertyValue(value.slice(4, -1)).trim() : value;
    }
    if (Array.isArray(value)) return value.map((each) => lookUp(each, style));
    if (!value || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, lookUp(each, style)]));
  };

  // What all figures have in common.
  const FONT = { family: "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif", size: 12, color: "var(--ink)" };
  const COMMON = {
    barmode: "stack", paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: FONT, showlegend: false,
    dragmode: "zoom",
    hoverlabel: {
      bgcolor: "var(--surface)", bordercolor: "var(--line-strong)", font: FONT, align: "left", namelength: -1,
    },
  };

  const config = { displayModeBar: false, displaylogo: false, responsive: true, showTips: false, doubleClick: "reset" };
  const coarse = window.matchMedia("(pointer: coarse)").matches;
  const live = [];

  const paint = (Plotly, chart) => {
    const { data, layout } = chart.figure;
    const made = lookUp({ data, layout: { ...COMMON, ...layout } }, getComputedStyle(root));
    for (const trace of made.data) trace.visible = !chart.hidden.has(trace.legendgroup);
    made.layout.height = chart.height;
    if (coarse) made.layout.dragmode = false; // a finger scrolls
    return Plotly.react(chart.place, made.data, made.layout, config);
  };

  // The entries of the legend below a chart hide and show its bars.
  const addKeys = (Plotly, chart) => {
    const legend = chart.box.parentElement.querySelector("figcaption .legend");
    for (const item of legend ? legend.querySelectorAll("[data-group]") : []) {
      const button = document.createElement("button");
      button.type = "button";
      button.setAttribute("aria-pressed", "true");
      button.append(...item.childNodes);
      item.append(button);
      button.addEventListener("click", () => {
        const group = item.dataset.group;
        if (!chart.hidden.delete(group)) chart.hidden.add(group);
        button.setAttribute("aria-pressed", String(!chart.hidden.has(group)));
        paint(Plotly, chart);
      });
    }
  };

  const replace = async (box) => {
    const place = document.createElement("div");
    try {
      const Plotly = await load();
      const figure = JSON.parse(box.querySelector(".figure").textContent);
      const chart = { box, place, figure, height: box.querySelector(".drawn").offsetHeight, hidden: new Set() };
      place.className = "figure-place";
      place.setAttribute("aria-hidden", "true"); // the drawing and the tables speak for it
      place.style.height = `${chart.height}px`;
      box.append(place);
      box.classList.add("live");
      await paint(Plotly, chart);
      const hint = document.createElement("span");
      hint.className = "chart-hint";
      hint.setAttribute("aria-hidden", "true");
      hint.textContent = "Drag to zoom, double-click to see all";
      if (!coarse) box.append(hint);
      live.push(chart);
      addKeys(Plotly, chart);
    } catch (error) {
      place.remove();
      box.classList.remove("live");
    }
  };

  const whenIdle = (work) => {
    if (window.requestIdleCallback) window.requestIdleCallback(work, { timeout: 500 });
    else setTimeout(work, 50);
  };
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries.filter((each) => each.isIntersecting)) {
      watcher.unobserve(entry.target);
      whenIdle(() => replace(entry.target));
    }
  }, { rootMargin: "400px 0px" });
  for (const figure of document.querySelectorAll(".chart > .figure")) watcher.observe(figure.parentElement);

  const repaint = () => { for (const chart of live) load().then((Plotly) => paint(Plotly, chart)); };
  new MutationObserver(repaint).observe(root, { attributes: true, attributeFilter: ["data-theme"] });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
})();
