"use strict";
// The state of the page in its address: #ANCHOR&KEY=VALUE&KEY=VALUE. Each part of the page owns keys of its own, and
// what the others wrote stays. A plain #ANCHOR, as in a link of the page, moves the reader and leaves the state alone.
// Entries of the history that this page wrote are marked, so that going back differs from following a link.

const address = (() => {
  const SETTLE_MS = 120;
  const MARK = { nsysdiag: "address" };
  const fields = new Map();
  const listeners = [];
  let anchor = "";
  let own = "";
  let timer = 0;

  const decoded = (text) => {
    try { return decodeURIComponent(text); } catch (error) { return text; }
  };

  const read = () => {
    own = location.hash;
    const pieces = own.slice(1).split("&").filter(Boolean);
    const pairs = pieces.filter((piece) => piece.includes("="));
    anchor = decoded(pieces.find((piece) => !piece.includes("=")) || "");
    return pairs.map((pair) => [decoded(pair.slice(0, pair.indexOf("="))), decoded(pair.slice(pair.indexOf("=") + 1))]);
  };

  const replace = (pairs) => {
    fields.clear();
    for (const [key, value] of pairs) fields.set(key, value);
  };

  const format = () => {
    const pairs = Array.from(fields, ([key, value]) => `${encodeURIComponent(key)}=${encodeURIComponent(value)}`);
    return `#${[...(anchor ? [encodeURIComponent(anchor)] : []), ...pairs].join("&")}`;
  };

  const keep = (push) => {
    const target = own || location.pathname + location.search;
    try {
      if (push) history.pushState(MARK, "", target); else history.replaceState(MARK, "", target);
    } catch (error) { /* some viewers forbid it */ }
  };

  const write = (push) => {
    clearTimeout(timer);
    const wanted = format();
    const changed = wanted !== (own || "#");
    own = wanted === "#" ? "" : wanted;
    if (changed || !history.state) keep(push);
  };

  /** Opens what is folded around the anchor, or in a finding, and goes there: a browser does not know it beside a state. */
  const reveal = () => {
    const element = anchor && document.getElementById(anchor);
    if (!element) return;
    for (let at = element; at; at = at.parentElement) if (at.nodeName === "DETAILS") at.open = true;
    for (const fold of element.querySelectorAll(":scope > :is(details.fold, details.more), :scope > :is(h2, h3) + details")) fold.open = true;
    for (const old of document.querySelectorAll(".target")) old.classList.remove("target");
    element.classList.add("target");
    element.scrollIntoView({ behavior: "instant" });
  };

  const follow = () => {
    if (location.hash === own) return;
    clearTimeout(timer);
    const pairs = read();
    const isLink = !history.state && anchor && !pairs.length;
    if (!isLink) {
      replace(pairs);
      for (const listener of listeners) listener();
    }
    write(false);
    reveal();
  };

  replace(read());
  keep(false);
  window.addEventListener("hashchange", follow);
  window.addEventListener("popstate", follow);

  return {
    get: (key) => fields.get(key),
    keys: () => Array.from(fields.keys()),
    /** Sets keys, or takes them out where the value is null; written once things are quiet, or at once as a new place. */
    set: (values, push = false) => {
      for (const [key, value] of Object.entries(values)) {
        if (value === null) fields.delete(key); else fields.set(key, String(value));
      }
      clearTimeout(timer);
      if (push) { anchor = ""; write(true); } else timer = setTimeout(() => write(false), SETTLE_MS);
    },
    /** Calls back when the reader brings another state. */
    onChange: (listener) => { listeners.push(listener); },
    reveal,
  };
})();
