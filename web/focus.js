// Keeps the keyboard focus when the focused element is removed, hidden or disabled: moves it to the corresponding element, otherwise to a
// neighbour, otherwise to the page's heading. Views need not care about this when they update tables and buttons.

const REACHED = "a[href], button:not(:disabled), input:not(:disabled), select:not(:disabled), textarea, summary, [tabindex='0']";

// {element, path: the element and its ancestors with their positions, gone: it could not have the focus meanwhile, below: the focused
// element before the dialog it is in}
let last = null;

const there = (element) => element.isConnected && !element.closest("[hidden], [inert]");
export const nameOf = (element) => [element.tagName, element.id || (element.getAttribute("href") ?? element.getAttribute("aria-label") ?? element.textContent)].join(" ");

function pathOf(element) {
  const path = [];
  for (let one = element; one.parentElement; one = one.parentElement) path.push({ element: one, parent: one.parentElement, place: [...one.parentElement.children].indexOf(one) });
  return path;
}

const reached = (within) => [...within.querySelectorAll(REACHED)].filter((element) => element.checkVisibility({ visibilityProperty: true }));

// Finds the neighbour at this position of an ancestor.
function nearest({ parent, place }, { element, name }) {
  const all = reached(parent), children = [...parent.children];
  const order = [...children.slice(place), ...children.slice(0, place).reverse()].map((child) => all.filter((one) => child.contains(one)));
  return order.flat().find((one) => nameOf(one) === name) ?? order.map((inside) => inside.find((one) => one.tagName === element.tagName) ?? inside[0]).find(Boolean);
}

function move() {
  for (const step of last.path) {
    if (step.parent.id === "main" || step.parent === document.body) break;
    const next = there(step.parent) && nearest(step, last);
    if (next) return next.focus({ preventScroll: true });
  }
  if (last.below) { // the dialog has been closed
    last = last.below;
    return there(last.element) && !last.element.disabled ? last.element.focus({ preventScroll: true }) : move();
  }
  (document.querySelector("#main h1") ?? document.getElementById("main")).focus({ preventScroll: true });
}

function changed(records) {
  if (!last) return;
  const { element } = last, at = document.activeElement;
  if (at !== element && at !== document.body) return;
  if (!there(element)) return move();
  if (records.some(({ type, target }) => type === "childList" && target.contains(element))) last.path = pathOf(element);
  const moved = records.some(({ removedNodes }) => [...removedNodes].some((node) => node.contains(element)));
  if (element.disabled) last.gone = true; // until it is enabled, or hidden
  else if (moved || last.gone) element.focus({ preventScroll: true });
}

function belowDialog(element) {
  const dialog = element.closest("dialog");
  return dialog && last && (dialog.contains(last.element) ? last.below : last);
}

export function keepFocus() {
  addEventListener("focusin", ({ target }) => {
    last = { element: target, name: nameOf(target), path: pathOf(target), gone: false, below: belowDialog(target) };
  });
  addEventListener("pointerdown", ({ target }) => { if (!last?.element.contains(target)) last = null; }); // the user has turned to something else
  new MutationObserver(changed).observe(document.body, { subtree: true, childList: true, attributes: true, attributeFilter: ["hidden", "disabled"] });
}
