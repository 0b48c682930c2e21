// A question in a dialog.

import { words } from "./api.js";
import { h, say, show } from "./dom.js";

// more: an element below the text. On yes does work() and shows there what went wrong. True once it was done.
export function ask({ title, text, more = null, yes, no, kind = "danger", work }) {
  const error = h("p", { class: "error", role: "alert", hidden: true });
  const go = h("button", { type: "button", class: kind }, yes);
  const dialog = h("dialog", { "aria-labelledby": "ask-title" }, h("h2", { id: "ask-title" }, title), h("p", {}, text), more, error,
    h("div", { class: "actions" }, h("button", { type: "button", onclick: () => dialog.close() }, no), go));
  go.addEventListener("click", async () => {
    go.disabled = true;
    await work().then(() => dialog.close("done"), (e) => {
      say(error, words(e));
      show(error, true);
    });
    go.disabled = false;
  });
  document.body.append(dialog);
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "done");
    });
    dialog.showModal();
  });
}
