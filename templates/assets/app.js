"use strict";
(function () {
  const root = document.documentElement;

  // Theme: the button names the theme that a click brings.
  const themeButton = document.querySelector("button.theme");
  const systemDark = window.matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : systemDark.matches);
  const nameTheme = () => { themeButton.textContent = isDark() ? "Light theme" : "Dark theme"; };
  if (themeButton) {
    themeButton.hidden = false;
    nameTheme();
    systemDark.addEventListener("change", nameTheme);
    themeButton.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      try { localStorage.setItem("nsysdiag-theme", root.dataset.theme); } catch (error) { /* not kept */ }
      nameTheme();
    });
  }

  // Copy: to the clipboard where allowed, else the text is selected for the reader.
  const select = (element) => {
    element.hidden = false;
    const range = document.createRange();
    range.selectNodeContents(element);
    const selection = window.getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
  };
  const copy = async (button) => {
    const source = document.getElementById(button.dataset.copy);
    const label = button.textContent;
    try {
      await navigator.clipboard.writeText(source.textContent);
      button.textContent = "Copied";
    } catch (error) {
      select(source);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = label; }, 1500);
  };
  for (const button of document.querySelectorAll("button.copy")) {
    button.hidden = false;
    button.addEventListener("click", () => copy(button));
  }

  // Sort: each record is a tbody, so that its rows stay together.
  const records = (table) => Array.from(table.tBodies);
  const value = (body, column) => {
    const cell = body.rows[0].cells[column];
    return "v" in cell.dataset ? Number(cell.dataset.v) : cell.textContent.trim().toLowerCase();
  };
  const compare = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));
  const sort = (table, column, header) => {
    const numeric = header.classList.contains("number");
    const before = header.getAttribute("aria-sort");
    const descending = before ? before === "ascending" : numeric;
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const sign = descending ? -1 : 1;
    const sorted = records(table)
      .map((body) => [value(body, column), body])
      .sort((a, b) => sign * compare(a[0], b[0]));
    for (const [, body] of sorted) table.append(body);
  };
  const addSorting = (table, update) => {
    Array.from(table.tHead.rows[0].cells).forEach((header, column) => {
      if (header.querySelector(".unseen")) return;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...header.childNodes);
      header.append(button);
      button.addEventListener("click", () => { sort(table, column, header); update(); });
    });
  };

  // Filter and "show all": only what matches is shown, and at first only the top of a long table.
  const addFilter = (table, toolbar) => {
    const input = toolbar.querySelector(".filter");
    const more = toolbar.querySelector(".more");
    const shown = toolbar.querySelector(".shown");
    const first = Number(table.dataset.first);
    let all = !more;
    const update = () => {
      const wanted = input.value.trim().toLowerCase();
      let matching = 0;
      let visible = 0;
      for (const body of records(table)) {
        const matches = !wanted || body.textContent.toLowerCase().includes(wanted);
        matching += matches;
        const show = matches && (all || wanted || matching <= first);
        body.hidden = !show;
        visible += show;
      }
      shown.textContent = visible < records(table).length ? `${visible} of ${records(table).length} shown` : "";
    };
    input.addEventListener("input", update);
    if (more) more.addEventListener("click", () => { all = true; more.hidden = true; update(); });
    toolbar.hidden = records(table).length < 6;
    update();
    return update;
  };
  for (const table of document.querySelectorAll("table[data-sortable]")) {
    const toolbar = table.dataset.first ? table.closest(".section").querySelector(".toolbar") : null;
    addSorting(table, toolbar ? addFilter(table, toolbar) : () => {});
  }

  // Print: everything that is folded is opened, and folded again afterwards.
  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = Array.from(document.querySelectorAll("details:not([open])"));
    for (const details of opened) details.open = true;
  });
  window.addEventListener("afterprint", () => { for (const details of opened) details.open = false; });
})();
