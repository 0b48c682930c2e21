// Filters of the list of jobs that can be kept: tags and saved views; and actions on several jobs.

import { patch, post, words as wordsOf } from "../api.js";
import { ask } from "../ask.js";
import { h, mark, say, show } from "../dom.js";
import { compareWords } from "../jobs.js";
import { tagWords } from "../labels.js";
import { href } from "../place.js";

const KEPT = "traind views"; // in this browser: [[name, "#/?tag=x"], …]

function kept() {
  try {
    return JSON.parse(localStorage.getItem(KEPT) ?? "[]").filter(([name, to]) => typeof name === "string" && /^#\/(groups)?(\?|$)/.test(to));
  } catch {
    return []; // written by another program, or no storage
  }
}

// Saved views: links to this page, stored in the browser.
function savedViews() {
  const list = h("ul", { class: "views" }), none = h("p", { class: "quiet" }, "None yet. A view is a link: state, words, tags and order.");
  const element = h("details", { class: "saved" }, h("summary", {}, "Views"));
  const save = h("button", { type: "button" }, "Save this view…"), copy = h("button", { type: "button" }, "Copy link");
  // Reads the stored views again, because another tab may have changed them.
  const store = (name, ...view) => {
    localStorage.setItem(KEPT, JSON.stringify([...kept().filter(([other]) => other !== name), ...view]));
    fill();
  };
  const fill = () => {
    const views = kept();
    show(none, !views.length);
    list.replaceChildren(...views.map(([name, to]) => h("li", {}, h("a", { href: to }, name),
      h("button", { type: "button", class: "tool", "aria-label": `Remove the view ${name}`, onclick: () => store(name) }, "×"))));
  };
  save.addEventListener("click", async () => {
    const field = h("input", { required: true, maxlength: 60 }), to = location.hash || "#/";
    const work = async () => {
      const name = field.value.trim();
      if (!name) throw new Error("A view needs a name.");
      store(name, [name, to]);
    };
    await ask({ title: "Save this view", text: "The view is stored in this browser. Its link works for everyone who may see the jobs.",
      more: h("div", { class: "fields" }, h("label", {}, "Name", field)), yes: "Save", no: "Cancel", kind: "primary", work });
  });
  copy.addEventListener("click", async () => {
    const done = await navigator.clipboard?.writeText(location.href).then(() => true, () => false);
    say(copy, done ? "Copied" : location.href);
    setTimeout(() => say(copy, "Copy link"), 3000);
  });
  element.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    element.open = false;
    element.firstChild.focus();
  });
  const elsewhere = () => (element.isConnected ? fill() : removeEventListener("storage", elsewhere));
  addEventListener("storage", elsewhere);
  element.append(h("div", { class: "menu card" }, list, none, h("div", { class: "actions" }, save, copy)));
  fill();
  return element;
}

// changed({tag}): the filter has changed. {elements, update({q, tag})}
export function findBar(changed) {
  const chips = h("span", { class: "chips asked" });
  const groups = h("a", { class: "button", href: "#/groups" }, "Groups");
  const update = ({ q, tag }) => {
    mark(groups, "href", href("/groups", { q, tag }));
    if (chips.dataset.tag === tag) return;
    chips.dataset.tag = tag;
    const tags = tagWords(tag);
    chips.replaceChildren(...tags.map((one) => h("button", { type: "button", class: "chip", "aria-label": `Also show jobs without the tag ${one}`,
      onclick: () => changed({ tag: tags.filter((other) => other !== one).join(",") }) }, one, h("span", { "aria-hidden": "true" }, " ×"))));
  };
  return { elements: [chips, groups, savedViews()], update };
}

// Runs work for each id, also after failures, and reports all errors together.
async function each(ids, work) {
  const failed = [];
  for (const id of ids) await work(id).catch((error) => failed.push(`job ${id}: ${wordsOf(error)}`));
  if (failed.length) throw new Error(failed.join("; "));
}

// Actions on the checked jobs. changed(): poll again; clear(): uncheck all. {element, update(ids, jobs)}
export function bulkBar(changed, clear) {
  let ids = [], active = [];
  const words = h("span", { class: "count", role: "status" }), failure = h("span", { class: "error", role: "alert", hidden: true });
  const told = (text) => {
    say(failure, text);
    show(failure, text !== "");
  };
  const comparison = h("a", { class: "button primary" });
  const button = (text, kind, work) => h("button", { type: "button", class: kind, onclick: () => { told(""); work(); } }, text);
  const tag = button("Tag…", "", async () => {
    const add = h("input", { autocapitalize: "off" }), remove = h("input", { autocapitalize: "off" }), these = ids;
    const work = () => each(these, (id) => patch(`/v1/jobs/${id}`, { add_tags: tagWords(add.value), remove_tags: tagWords(remove.value) }));
    await ask({ title: `Tag ${these.length === 1 ? `job ${these[0]}` : `${these.length} jobs`}`, text: "Tags consist of letters, digits and _.-:/ and are separated by commas.",
      more: h("div", { class: "fields" }, h("label", {}, "Add", add), h("label", {}, "Remove", remove)), yes: "Change the tags", no: "Cancel", kind: "primary", work });
    changed();
  });
  const cancel = button("Cancel…", "danger", async () => {
    const these = active;
    await ask({ title: `Cancel ${these.length} ${these.length === 1 ? "job" : "jobs"}?`, text: `Running jobs finish their step and write a checkpoint, unless checkpoints are disabled: ${these.join(", ")}.`,
      yes: these.length === 1 ? "Cancel the job" : "Cancel the jobs", no: "Keep them", work: () => each(these, (id) => post(`/v1/jobs/${id}/cancel`)) });
    changed();
  });
  const element = h("div", { class: "bulk", hidden: true, role: "group", "aria-label": "Selected jobs" },
    words, comparison, tag, cancel, button("Clear selection", "", clear), failure);
  const update = (picked, jobs) => {
    if (ids.join() !== [...picked].join()) told(""); // the message was about another selection
    ids = [...picked];
    active = ids.filter((id) => !["succeeded", "failed", "cancelled"].includes(jobs.get(id)?.state));
    show(element, ids.length > 0);
    say(words, `${ids.length} selected`);
    show(comparison, ids.length > 1);
    say(comparison, compareWords(ids.length));
    mark(comparison, "href", href("/compare", { ids: ids.join(",") }));
    show(cancel, active.length > 0);
  };
  return { element, update };
}
