// Lists that are longer than what is shown of them at first. In the address: shown, how many.

import { h, show } from "./dom.js";

export const PAGE = 200;
export const MOST_ASKED = 1000; // by one request, as the daemon gives them
const MOST_SHOWN = 10000; // by an address

// How many of the list an address asks for.
export const shownOf = (query) => Math.min(MOST_SHOWN, PAGE * Math.max(1, Math.ceil(Number(query.get("shown")) / PAGE) || 1));

// So many of a list, by as few requests as the daemon allows. ask(what, limit) -> a page, which has them by the name that is given.
//   {all, next: null: there are no more}
export async function many(ask, name, what, atMost) {
  const all = [];
  let page = { next: "" };
  while (page.next !== null && all.length < atMost) {
    page = await ask(what + (page.next && `&after=${encodeURIComponent(page.next)}`), Math.min(MOST_ASKED, atMost - all.length));
    all.push(...page[name]);
  }
  return { all, next: page.next };
}

// The button for a page more of the rows in body. grow(rows that are there): it was pressed.
//   {element, update(rest)}: the rows are made; rest: there are more
export function moreButton(words, body, grow) {
  let before = 0;
  const element = h("button", { type: "button", class: "more", onclick: () => {
    before = body.children.length;
    grow(before);
  } }, words);
  return {
    element,
    update: (rest) => {
      const first = before ? body.children[before] : null; // of those that are new here
      if (first) {
        before = 0;
        if (document.activeElement === element) (first.querySelector("th a, th button, th[tabindex]") ?? first.querySelector("input")).focus({ preventScroll: true });
      }
      show(element, rest);
    },
  };
}
