// Runs before the first paint, so that the page never flashes in the other theme.
(function () {
  var root = document.documentElement;
  root.classList.add("js");
  try {
    var theme = localStorage.getItem("nsysdiag-theme");
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
  } catch (error) { /* storage may be forbidden; the system's theme stays */ }
})();
