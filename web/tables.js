// Tables as files, and a table for selecting jobs.

import { get, waiting } from "./api.js";
import { arrange, badge, h, notice, say, setBadge, show } from "./dom.js";
import * as f from "./format.js";
import { title } from "./jobs.js";
import { watch } from "./live.js";
import { many, moreButton, PAGE } from "./more.js";

// A table of the newest jobs with check boxes; those in ids are checked. chosen(ids) is called when the button labelled words is pressed.
// Returns {element, picked() -> ids, stop}
export function pickJobs({ words, least, most, ids = [], chosen }) {
  const picked = new Set(ids), rows = new Map(), body = h("tbody");
  const button = h("button", { type: "button", class: "primary", onclick: () => chosen([...picked]) }, words);
  const count = h("p", { class: "quiet", role: "status" });
  const wait = notice("Loading the jobs…"), none = notice("No jobs yet", h("p", {}, h("a", { href: "#/submit" }, "Submit one")));
  const table = h("section", { class: "card" }, h("div", { class: "scroll wide tall", role: "group", tabindex: 0, "aria-label": "Jobs" }, h("table", { class: "pick" }, h("thead", {}, h("tr", {},
    h("th", { scope: "col" }, h("span", { class: "hidden" }, "Chosen")), ...["Job", "State"].map((name) => h("th", { scope: "col" }, name)),
    ...["Top-1", "Images/s", "Submitted"].map((name) => h("th", { scope: "col", class: "num" }, name)))), body)), h("div", { class: "actions" }, count, button));
  let shown = PAGE;
  const more = moreButton("Show more jobs", body, () => {
    shown += PAGE;
    watching.again();
  });
  const told = () => {
    button.disabled = picked.size < least || picked.size > most;
    say(count, picked.size < least ? `Choose at least ${least}.` : picked.size > most ? `Choose at most ${most}.` : `${picked.size} chosen`);
  };
  const row = (id) => {
    const tick = h("input", { type: "checkbox", id: `pick-${id}`, checked: picked.has(id), onchange: () => {
      if (tick.checked) picked.add(id);
      else picked.delete(id);
      told();
    } });
    const name = h("span"), state = badge(), cells = Array.from({ length: 3 }, () => h("td", { class: "num" }));
    const element = h("tr", {}, h("td", {}, tick), h("th", { scope: "row" }, h("label", { for: tick.id }, h("span", { class: "id" }, `${id} `), name)), h("td", {}, state), ...cells);
    return { element, update: (job) => {
      say(name, title(job));
      setBadge(state, job.state);
      [f.percent(job.top1), f.rate(job.images_per_sec), f.ago(job.created_at)].forEach((text, i) => say(cells[i], text));
    } };
  };
  const watching = watch(async (signal) => {
    const { all: jobs, next } = await many((what, limit) => get(`/v1/jobs?limit=${limit}${what}`, signal), "jobs", "", shown);
    for (const job of jobs) {
      if (!rows.has(job.id)) rows.set(job.id, row(job.id));
      rows.get(job.id).update(job);
    }
    arrange(body, jobs.map((job) => rows.get(job.id).element));
    more.update(next !== null);
    show(wait, false);
    show(none, !jobs.length);
    show(table, jobs.length > 0);
  }, { periodMs: 5000, wanted: (event) => event.type === "state", done: (error) => error && !wait.hidden && say(wait.firstChild, waiting(error)) });
  for (const element of [none, table, more.element]) show(element, false);
  told();
  return { element: h("div", { class: "picker" }, wait, none, table, more.element), picked: () => [...picked], stop: watching.stop };
}
