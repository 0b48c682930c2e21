// All sweeps over job keys (#/sweeps). In the address: shown, how many.

import { get, waiting } from "../api.js";
import { arrange, badge, h, notice, say, setBadge, show } from "../dom.js";
import * as f from "../format.js";
import { watch } from "../live.js";
import { many, moreButton, PAGE, shownOf } from "../more.js";
import { setQuery } from "../place.js";
import { metricFormat, name, running } from "../sweep/sweeps.js";

const COLUMNS = [["Sweep"], ["State"], ["Trials", "num"], ["Best", "num"], ["Started", "num"]];

function row(sweep) {
  const state = badge(), time = h("time", { title: f.date(sweep.created_at) }), { best } = sweep;
  setBadge(state, sweep.state);
  const element = h("tr", { "data-sweep": sweep.id }, h("th", { scope: "row" }, h("span", { class: "id" }, `${sweep.id} `), h("a", { href: `#/sweeps/${sweep.id}` }, name(sweep))),
    h("td", {}, state), h("td", { class: "num" }, f.count(sweep.trial_count)),
    h("td", { class: "num" }, best ? [h("data", { value: best.metric }, metricFormat(sweep.metric)(best.metric)), " ", h("a", { href: `#/jobs/${best.job}` }, `job ${best.job}`)] : f.none),
    h("td", { class: "num" }, time));
  return { element, text: JSON.stringify(sweep), tick: () => say(time, f.ago(sweep.created_at)) };
}

export function mount(main, { query, heading }) {
  heading("Sweeps");
  const rows = new Map(); // id -> row()
  let shown = shownOf(query);
  const body = h("tbody"), summary = h("p", { class: "summary", role: "status" }), wait = notice("Loading the sweeps…");
  const none = notice("No sweeps yet", h("p", {}, "A sweep runs a job with different values of some of its keys and ranks the results."),
    h("p", {}, h("a", { class: "button primary", href: "#/sweeps/new" }, "Start a sweep")));
  const table = h("section", { class: "card" }, h("div", { class: "scroll wide", role: "group", tabindex: 0, "aria-label": "Sweeps" },
    h("table", { class: "sweeps" }, h("caption", { class: "hidden" }, "Sweeps, newest first"),
      h("thead", {}, h("tr", {}, ...COLUMNS.map(([text, kind]) => h("th", { scope: "col", class: kind }, text)))), body)));
  const more = moreButton("Show more sweeps", body, () => {
    shown += PAGE;
    setQuery({ shown });
    watching.again();
  });
  show(none, false);
  show(table, false);
  show(more.element, false);
  main.append(h("div", { class: "title" }, h("h1", { tabindex: -1 }, "Sweeps"), summary, h("div", { class: "actions" },
    h("a", { class: "button", href: "#/sweeps/new" }, "New sweep"))), wait, none, table, more.element);
  function rowOf(sweep) {
    if (rows.get(sweep.id)?.text !== JSON.stringify(sweep)) rows.set(sweep.id, row(sweep));
    rows.get(sweep.id).tick();
    return rows.get(sweep.id).element;
  }
  const watching = watch(async (signal) => {
    const { all: sweeps, next } = await many((what, limit) => get(`/v1/sweeps?limit=${limit}${what}`, signal), "sweeps", "", shown);
    show(wait, false);
    show(none, !sweeps.length);
    show(table, sweeps.length > 0);
    const active = sweeps.filter(running).length;
    say(summary, sweeps.length ? `${f.count(sweeps.length)}${next === null ? "" : " newest"} ${sweeps.length === 1 ? "sweep" : "sweeps"}, ${active} running` : "");
    arrange(body, sweeps.map(rowOf));
    more.update(next !== null);
    return active ? 3000 : 10000;
  }, { periodMs: 3000, wanted: (event) => event.type === "state", done: (error) => error && say(wait.firstChild, waiting(error)) });
  return {
    update: (where) => {
      shown = shownOf(where.query);
      watching.again();
    },
    unmount: watching.stop,
  };
}
