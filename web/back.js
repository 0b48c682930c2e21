// Restores the state of a page after Back, Forward or a reload: scroll position, focus, opened and scrolled elements, and what the view
// keeps. Each history entry has a key in its state; its data is kept in the tab.

import { newKey } from "./api.js";
import { nameOf } from "./focus.js";

const KEPT = "traind places"; // [[key, place], …], the most recently left ones last
const MOST = 50;
const STILL_MS = 1000; // without movement for this long, restoring is complete
const SIGHTS = "a, button, h1, h2, summary", BOXES = ".scroll, .log, .submit-side";

const main = document.getElementById("main");
const places = new Map(JSON.parse(sessionStorage.getItem(KEPT) ?? "[]"));
let key = null; // of the current history entry
let coming = null; // while restoring: {place, tasks: not done yet, timer, still}

// ------------------------------------------------------------------ naming elements so that they are found again in a rebuilt page

const pathOf = (element) => (element === main ? "" : `${element.tagName} ${pathOf(element.parentElement)}`);
const namesake = (name) => (element) => `${nameOf(element)} in ${pathOf(element.parentElement)}` === name;
function called(element) {
  const tag = element.tagName, name = `${nameOf(element)} in ${pathOf(element.parentElement)}`;
  return { tag, name, nth: [...main.querySelectorAll(tag)].filter(namesake(name)).indexOf(element) };
}
function find({ tag, name, nth }) {
  const found = [...main.querySelectorAll(tag)].filter(namesake(name))[nth];
  return found?.checkVisibility() ? found : null;
}

// ------------------------------------------------------------------ leaving a page

const inSight = (element) => {
  const { top, bottom } = element.getBoundingClientRect();
  return bottom > top && top >= 0 && bottom <= innerHeight;
};

function seen(view) {
  const focus = main.contains(document.activeElement) && document.activeElement !== main ? document.activeElement : null;
  const sight = focus && inSight(focus) ? focus : [...main.querySelectorAll(SIGHTS)].find((element) => inSight(element) && element.checkVisibility());
  const turned = [...main.querySelectorAll(BOXES)].filter((box) => (box.scrollTop || box.scrollLeft)
    && !(box.role === "log" && box.scrollHeight - box.scrollTop - box.clientHeight < 40)); // a log being followed
  return {
    y: scrollY, view: view.keep?.() ?? null, focus: focus && called(focus), sight: sight && { ...called(sight), top: sight.getBoundingClientRect().top },
    open: [...main.querySelectorAll("details[open]:not(.saved) > summary")].map(called),
    boxes: turned.map((box) => ({ ...called(box), top: box.scrollTop, left: box.scrollLeft })),
  };
}

// view: the mounted view. If restoring was not complete, the rest of the saved place is kept.
export function leave(view) {
  if (!key || !view || coming) return;
  places.delete(key);
  places.set(key, seen(view));
  for (const oldest of [...places.keys()].slice(0, -MOST)) places.delete(oldest);
  sessionStorage.setItem(KEPT, JSON.stringify([...places]));
}

// ------------------------------------------------------------------ entering a page

function done() {
  clearTimeout(coming?.timer);
  coming = null;
}

// Returns the place of the current history entry; null: new entry.
export function enter() {
  done();
  key = history.state?.key ?? newKey();
  history.replaceState({ ...history.state, key }, "");
  return places.get(key) ?? null;
}
// A link to the current page would remove the key from the entry.
document.addEventListener("click", (event) => {
  if (event.target.closest("a")?.href === location.href && !event.ctrlKey && !event.metaKey && !event.shiftKey) event.preventDefault();
});

function opened(one) {
  const summary = find(one);
  if (summary) summary.parentElement.open = true;
  return summary;
}
function scrolled({ top, left, ...one }) {
  const box = find(one);
  if (!box || box.scrollHeight - box.clientHeight < top || box.scrollWidth - box.clientWidth < left) return false;
  box.scrollTo({ top, left, behavior: "instant" });
  return true;
}
function focused(one) {
  const element = find(one);
  if (element && (document.activeElement === document.body || document.activeElement.tagName === "H1")) element.focus({ preventScroll: true });
  return element;
}
function reached({ y }) {
  if (document.documentElement.scrollHeight - innerHeight < y) return false;
  scrollTo({ top: y, behavior: "instant" });
  return true;
}

// Restores what exists so far. The visible part stays in place while the page fills above it.
function settle() {
  if (!coming) return;
  const { place } = coming, before = scrollY;
  coming.tasks = coming.tasks.filter((task) => !task());
  if (!coming.tasks.length && coming.still) return done();
  const sight = !coming.still && find(place.sight);
  if (!sight) return;
  scrollBy({ top: sight.getBoundingClientRect().top - place.sight.top, behavior: "instant" });
  if (coming.timer && scrollY === before) return;
  clearTimeout(coming.timer);
  coming.timer = setTimeout(() => {
    coming.still = true;
    settle();
  }, STILL_MS);
}

export function comeBack(place) {
  const { focus, open, boxes } = place;
  coming = { place, timer: 0, still: !place.sight, tasks: [() => reached(place), ...open.map((one) => () => opened(one)), ...boxes.map((one) => () => scrolled(one)), ...(focus ? [() => focused(focus)] : [])] };
  settle();
}

// Input of the user takes precedence; Back and Forward use Alt.
for (const type of ["keydown", "pointerdown", "wheel", "touchmove"])
  addEventListener(type, (event) => event.altKey || event.key === "Alt" || done(), { capture: true, passive: true });
new MutationObserver(settle).observe(main, { subtree: true, childList: true, attributes: true, attributeFilter: ["hidden"] });
new ResizeObserver(settle).observe(main);
