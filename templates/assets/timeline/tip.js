// The box beside the pointer.

const element = (tag, className, text) => {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
};

/** Shows what pick.js says near a place of the canvas, inside of the window; hides it where there is nothing. */
const showTip = (tip, canvas, said, x, y) => {
  tip.hidden = !said;
  if (!said) return;
  tip.replaceChildren(element("strong", "", said.title), ...said.lines.map((line) => element("span", "", line)));
  const room = tip.offsetParent.clientWidth - tip.offsetWidth - 4;
  const below = canvas.getBoundingClientRect().top + y + 18 + tip.offsetHeight < window.innerHeight;
  tip.style.left = `${Math.max(Math.min(x + 14, room), 0)}px`;
  tip.style.top = `${below ? y + 18 : y - tip.offsetHeight - 10}px`;
};
