// Usage and limits per user (#/users).

import { get, waiting } from "../api.js";
import { h, notice, say, show } from "../dom.js";
import * as f from "../format.js";
import { watch } from "../live.js";
import { href } from "../place.js";

const COLUMNS = [["User"], ["Share of usage"], ["Slot-hours", "num"], ["Running", "num"], ["Slots", "num"], ["Queued", "num"]];
const NOBODY = "without a token";

function userRow(use) {
  const name = use.user ?? NOBODY;
  const cell = (value, text) => h("td", { class: "num" }, h("data", { value }, text));
  return h("tr", { "data-user": use.user ?? "" }, h("th", { scope: "row" }, use.user ? h("a", { href: href("/", { q: use.user }) }, name) : name),
    h("td", { class: "share" }, h("div", { class: "meter" }, h("progress", { max: 1, value: use.share, "aria-label": `share of ${name}` })), h("data", { value: use.share }, f.percent(use.share))),
    cell(use.slot_hours, f.number(use.slot_hours)), ...["running", "slots", "queued"].map((key) => cell(use[key], use[key] ? f.count(use[key]) : f.none)));
}

const LIMITS = [["max_running_per_user", "running jobs"], ["max_slots_per_user", "slots"], ["max_queued_per_user", "queued jobs"]];

function limitWords(usage) {
  const limits = LIMITS.filter(([key]) => usage[key] > 0).map(([key, what]) => `${f.count(usage[key])} ${what}`);
  const hours = usage.fair_share_half_life_hours, days = hours >= 48 && hours % 24 === 0;
  return [limits.length ? `Limits per user: ${limits.join(", ")}.` : "No per-user limits are set.",
    `Usage decays with a half-life of ${days ? `${f.number(hours / 24)} days` : `${f.number(hours)} hours`}.`,
    usage.fair_share_weight > 0 ? `A user with all of the usage loses ${f.number(usage.fair_share_weight)} priority points.` : "It does not affect queue order."].join(" ");
}

export function mount(main, { heading }) {
  heading("Users");
  const body = h("tbody"), summary = h("p", { class: "summary", role: "status" }), limits = h("p", { class: "lead" });
  const wait = notice("Loading the users…"), none = notice("No jobs have run yet");
  const table = h("section", { class: "card" }, h("div", { class: "scroll wide", role: "group", tabindex: 0, "aria-label": "Users" }, h("table", { class: "users" }, h("caption", { class: "hidden" }, "Users, largest share first"),
    h("thead", {}, h("tr", {}, ...COLUMNS.map(([text, kind]) => h("th", { scope: "col", class: kind }, text)))), body)));
  main.append(h("div", { class: "title" }, h("h1", { tabindex: -1 }, "Users"), summary), limits, wait, none, table);
  for (const element of [none, table]) show(element, false);
  let known = "";
  const look = watch(async (signal) => {
    const usage = await get("/v1/usage", signal), text = JSON.stringify(usage);
    show(wait, false);
    show(none, !usage.users.length);
    show(table, usage.users.length > 0);
    say(summary, usage.users.length ? `${f.count(usage.users.length)} ${usage.users.length === 1 ? "user" : "users"}` : "");
    say(limits, limitWords(usage));
    if (text === known) return;
    known = text;
    body.replaceChildren(...[...usage.users].sort((a, b) => b.share - a.share || b.queued - a.queued).map(userRow));
  }, { periodMs: 3000, wanted: (event) => event.type === "state", done: (error) => error && !wait.hidden && say(wait.firstChild, waiting(error)) });
  return { unmount: look.stop };
}
