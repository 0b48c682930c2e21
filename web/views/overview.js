// The overview: all jobs (#/).

import { get } from "../api.js";
import { badge, datum, h, mark, meter, notice, say, setBadge, setDatum, setMeter } from "../dom.js";
import * as f from "../format.js";
import { ended, timeLeft, title } from "../jobs.js";
import { watch } from "../live.js";

const COLUMNS = [["Job", ""], ["State", ""], ["Progress", ""], ["Top-1", "num"], ["Images/s", "num"],
                 ["Time left", "num"], ["Submitted", "num"]];

function jobRow(id) {
  const name = h("a", { href: `#/jobs/${id}` });
  const state = badge(), reason = h("span", { class: "reason" }), bar = meter(`progress of job ${id}`);
  const [top1, speed, left, submitted] = [datum(), datum(), datum(), h("time")];
  const cell = (label, kind, ...children) => h("td", { "data-label": label, class: kind }, ...children);
  const element = h("tr", { "data-job": id },
    h("th", { scope: "row" }, h("div", {}, h("span", { class: "id" }, `${id}`), name)),
    cell("State", "state", state, reason), cell("Progress", "progress", bar.element),
    cell("Top-1", "num", top1), cell("Images/s", "num", speed), cell("Time left", "num", left),
    cell("Submitted", "num", submitted));
  const update = (job, asked) => {
    say(name, title(job));
    setBadge(state, job.state);
    say(reason, job.state === "succeeded" ? "" : job.reason ?? "");
    reason.title = job.reason ?? "";
    setMeter(bar, job);
    setDatum(top1, job.top1, f.percent(job.top1));
    setDatum(speed, job.images_per_sec, f.rate(job.images_per_sec));
    const seconds = timeLeft(job, asked)?.value ?? null;
    setDatum(left, seconds, f.duration(seconds));
    say(submitted, f.ago(job.created_at));
    submitted.title = f.date(job.created_at);
  };
  return { element, update };
}

const FILTERS = [["all", () => true], ["active", (job) => !ended(job)], ["finished", ended]];

function emptyList() {
  const command = `curl --json '{"data": {"train": "synthetic"}, "steps": 20}' \\\n  ${location.origin}/v1/jobs`;
  return notice("No jobs yet", h("p", {}, "Submit one from a terminal; it appears here by itself:"),
    h("pre", { tabindex: 0 }, command));
}

export function mount(main, { heading }) {
  const rows = new Map();
  let jobs = [], asked = 0, filter = "all";
  const body = h("tbody");
  const summary = h("p", { class: "summary" });
  const table = h("table", { class: "jobs card", hidden: true },
    h("caption", { class: "hidden" }, "Jobs, the newest first"),
    h("thead", {}, h("tr", {}, ...COLUMNS.map(([text, kind]) => h("th", { scope: "col", class: kind }, text)))),
    body);
  const wait = notice("Loading the jobs…");
  const empty = emptyList(), nothing = notice("No job of this kind");
  const buttons = FILTERS.map(([name]) => h("button", {
    type: "button", "aria-pressed": name === filter,
    onclick: () => { filter = name; show(); },
  }, name));
  const filters = h("div", { class: "choice filters", role: "group", "aria-label": "Which jobs" }, ...buttons);
  filters.hidden = empty.hidden = nothing.hidden = true;
  main.replaceChildren(h("div", { class: "title" }, h("h1", { tabindex: -1 }, "Jobs"), summary, filters),
    wait, empty, nothing, table);
  heading("traind");

  function show() {
    buttons.forEach((button) => mark(button, "aria-pressed", button.textContent === filter));
    const shown = jobs.filter(FILTERS.find(([name]) => name === filter)[1]);
    for (const job of shown) {
      if (!rows.has(job.id)) rows.set(job.id, jobRow(job.id));
      rows.get(job.id).update(job, asked);
    }
    const elements = shown.map((job) => rows.get(job.id).element);
    if (elements.length !== body.children.length || elements.some((e, i) => e !== body.children[i]))
      body.replaceChildren(...elements);
    wait.hidden = true;
    filters.hidden = jobs.length === 0;
    empty.hidden = jobs.length > 0;
    nothing.hidden = jobs.length === 0 || shown.length > 0;
    table.hidden = shown.length === 0;
    const active = jobs.filter((job) => !ended(job)).length;
    say(summary, jobs.length ? `${jobs.length} ${jobs.length === 1 ? "job" : "jobs"}, ${active} active` : "");
  }

  const look = watch(async (signal) => {
    jobs = (await get("/v1/jobs?limit=200", signal)).jobs;
    asked = Date.now();
    show();
  }, {
    wanted: () => true,
    done: (error) => {
      if (error && !wait.hidden) say(wait.firstChild, "No answer yet from traind; trying again…");
    },
  });
  return { unmount: look.stop };
}
