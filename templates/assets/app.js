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
      address.set({ theme: root.dataset.theme });
      nameTheme();
    });
    address.onChange(() => {
      const linked = address.get("theme");
      if (linked === "light" || linked === "dark") root.dataset.theme = linked;
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
    const done = await copyText(source.textContent);
    if (!done) select(source);
    button.textContent = done ? "Copied" : "Selected";
    setTimeout(() => { button.textContent = label; }, 1500);
  };
  for (const button of document.querySelectorAll("button.copy")) {
    button.hidden = false;
    button.addEventListener("click", () => copy(button));
  }

  // Print: what is folded is opened, and folded again afterwards.
  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = Array.from(document.querySelectorAll("details:not([open])"));
    for (const details of opened) details.open = true;
  });
  window.addEventListener("afterprint", () => { for (const details of opened) details.open = false; });
})();
