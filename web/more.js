// Lists of which only a part is shown at first. In the address: shown, the number of rows.

import { h, show } from "./dom.js";

export const PAGE = 200;
export const MOST_ASKED = 1000; // per request, the daemon's limit
const MOST_SHOWN = 10000; // requested by an address

// Number of rows requested by an address.
export const shownOf = (query) => Math.min(MOST_SHOWN, PAGE * Math.max(1, Math.ceil(Number(query.get("shown")) / PAGE) || 1));

// Gets this many items of a list with as few requests as possible. ask(what, limit) -> a page, whose items are in the named member. Returns
// {all, next: null if there are no more}
export async function many(ask, name, what, atMost) {
  const all = [];
  let page = { next: "" };
  while (page.next !== null && all.length < atMost) {
    page = await ask(what + (page.next && `&after=${encodeURIComponent(page.next)}`), Math.min(MOST_ASKED, atMost - all.length));
    all.push(...page[name]);
  }
  return { all, next: page.next };
}

// The button that adds a page of rows to body. grow(number of rows so far): it was pressed. Returns {element, update(rest)}: call it when
// the rows exist; rest: there are more
export function moreButton(words, body, grow) {
  let before = 0;
  const element = h("button", { type: "button", class: "more", onclick: () => {
    before = body.children.length;
    grow(before);
  } }, words);
  return {
    element,
    update: (rest) => {
      const first = before ? body.children[before] : null; // the first of the new rows
      if (first) {
        before = 0;
        if (document.activeElement === element) (first.querySelector("th a, th button, th[tabindex]") ?? first.querySelector("input")).focus({ preventScroll: true });
      }
      show(element, rest);
    },
  };
}
