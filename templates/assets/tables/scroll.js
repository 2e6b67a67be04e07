// Tables wider than the page, without rows to stop at: the frame in which they scroll can be reached by keyboard.

const setReach = (frame) => {
  const wide = frame.scrollWidth > frame.clientWidth && !frame.querySelector("table[data-sortable]");
  if (!wide) { for (const name of ["tabindex", "role", "aria-label"]) frame.removeAttribute(name); return; }
  frame.tabIndex = 0;
  frame.setAttribute("role", "group");
  frame.setAttribute("aria-label", cellText(frame.querySelector("caption")).split(/[.:;]/)[0]);
};

const reachScrollers = () => {
  const observer = new ResizeObserver((entries) => { for (const { target } of entries) setReach(target); });
  for (const frame of document.querySelectorAll(".scroll")) observer.observe(frame);
};
