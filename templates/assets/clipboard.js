// Text to the clipboard, also where the newer way is forbidden.

const copyByCommand = (text) => {
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "unseen";
  area.setAttribute("aria-hidden", "true");
  const before = document.activeElement;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  if (before) before.focus({ preventScroll: true });
  return done;
};

/** Is the text on the clipboard? */
const copyText = async (text) => {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch (error) {
    try { return copyByCommand(text); } catch (refused) { return false; }
  }
};
