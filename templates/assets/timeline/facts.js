// What cards are made of: facts and buttons.

const factRow = (name, value) => {
  const row = element("div");
  row.append(element("dt", "", name), element("dd", "number", value));
  return row;
};

const cardButton = (text, action) => {
  const button = element("button", "", text);
  button.type = "button";
  button.addEventListener("click", action);
  return button;
};

/** Says on the button for a moment whether the text was copied. */
const copyButton = (text, say) => {
  const button = cardButton(text, async () => {
    button.textContent = (await copyText(say())) ? "Copied" : "Not allowed";
    setTimeout(() => { button.textContent = text; }, 1500);
  });
  return button;
};

const cardButtons = (does, canvas, more) => {
  const buttons = element("div", "buttons");
  buttons.append(
    cardButton("Zoom to it", does.zoomToSelection), ...more,
    cardButton("Close", () => { does.select(null); canvas.focus(); }),
  );
  return buttons;
};

const factsOf = (rows) => {
  const facts = element("dl", "gap-card-facts");
  facts.append(...rows.map(([name, value]) => factRow(name, value)));
  return facts;
};

const timeFacts = (start, end, clock) => [["Length", exactNs(end - start)], ["From", clock.exact(start)], ["To", clock.exact(end)]];
