// Runs before the first paint, so that the page never flashes in the other theme.
(function () {
  var root = document.documentElement;
  root.classList.add("js");
  var theme = null;
  try { theme = localStorage.getItem("nsysdiag-theme"); } catch (error) { /* may be forbidden; the system's theme stays */ }
  var linked = /[#&]theme=(light|dark)(?:&|$)/.exec(location.hash);
  if (linked) theme = linked[1];
  if (theme === "light" || theme === "dark") root.dataset.theme = theme;
})();
