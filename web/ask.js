// Confirmation dialogs.

import { words } from "./api.js";
import { h, say, show } from "./dom.js";

// more: an element below the text. On yes, or Enter in a field, runs work() and shows its error. Resolves to true once it is done. The
// dialog belongs to the current page and is closed with it.
export function ask({ title, text, more = null, yes, no, kind = "danger", work }) {
  const error = h("p", { class: "error", role: "alert", hidden: true });
  const go = h("button", { class: kind }, yes);
  const form = h("form", {}, h("h2", { id: "ask-title" }, title), h("p", {}, text), more, error,
    h("div", { class: "actions" }, h("button", { type: "button", onclick: () => dialog.close() }, no), go));
  const dialog = h("dialog", { "aria-labelledby": "ask-title" }, form), leave = () => dialog.close();
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    go.disabled = true;
    await work().then(() => dialog.close("done"), (e) => {
      say(error, words(e));
      show(error, true);
    });
    go.disabled = false;
  });
  document.body.append(dialog);
  addEventListener("hashchange", leave);
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      removeEventListener("hashchange", leave);
      dialog.remove();
      resolve(dialog.returnValue === "done");
    });
    dialog.showModal();
  });
}
