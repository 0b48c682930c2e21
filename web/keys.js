// Keyboard shortcuts of the whole page: / focuses the search and Escape leaves it, ? lists the shortcuts.

import { h } from "./dom.js";

const KEYS = [[["/"], "Search"], [["Esc"], "Clear and leave the search; close a dialog"], [["j", "k"], "Next or previous job in the list"], [["Enter"], "Open the job that has the focus"],
  [["←", "→"], "In a chart: move along the curve"], [["Shift ←", "Shift →"], "In a chart: move the range shown"], [["+", "-", "0"], "In a chart: zoom in, zoom out, reset"], [["?"], "Show this list"]];

export function showKeys() {
  if (document.querySelector("dialog[open]")) return;
  const list = h("dl", { class: "keys" }, ...KEYS.flatMap(([keys, text]) => [h("dt", {}, ...keys.map((key) => h("kbd", {}, key))), h("dd", {}, text)]));
  const dialog = h("dialog", { "aria-labelledby": "keys-title" }, h("h2", { id: "keys-title" }, "Keyboard shortcuts"), list,
    h("form", { method: "dialog", class: "actions" }, h("button", { class: "primary" }, "Close")));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

function leaveSearch(event) {
  const { target } = event;
  event.preventDefault();
  if (target.value) {
    target.value = "";
    for (const type of ["input", "change"]) target.dispatchEvent(new Event(type, { bubbles: true }));
  }
  target.blur();
}

export function listenToKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" && event.target.matches("input[type=search]")) return leaveSearch(event);
    if (event.target.closest("input, select, textarea, dialog")) return;
    const search = event.key === "/" && [...document.querySelectorAll("main input[type=search]")].find((field) => field.checkVisibility());
    if (!search && event.key !== "?") return;
    event.preventDefault();
    if (search) search.select();
    else showKeys();
  });
}
