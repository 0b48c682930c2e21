// The dashboard: the list of jobs (#/) and one job (#/jobs/3).

import { get, getBytes, poll, post, Problem } from "./api.js";
import { Chart } from "./charts.js";
import * as f from "./format.js";

const main = document.getElementById("main");
const ended = (job) => ["succeeded", "failed", "cancelled"].includes(job.state);
const LOG_CHARS_MAX = 100000; // of the log's end that the page keeps

// h("p", {class: "x", onclick}, "text", node): an element.
function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

// Touches the page only where something changed, so that selections and screen readers stay calm.
function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
function mark(element, name, value) {
  if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
}

// A number of the API, shown in people's units; value keeps it exact.
function datum(attributes = {}) {
  return h("data", { value: "", ...attributes }, f.none);
}
function setDatum(element, value, text) {
  mark(element, "value", value ?? "");
  say(element, text);
}

// ------------------------------------------------------------------ what is derived from a job

const progress = (job) => (job.train_steps > 0 ? Math.min(1, (job.step ?? 0) / job.train_steps) : 0);

// One step's speed is noisy: a running mean a job, so that the time left does not jump.
const speeds = new Map();
function secondsLeft(job) {
  if (ended(job) || !(job.images_per_sec > 0) || job.step >= job.train_steps) return null;
  const batch = job.global_batch;
  const known = speeds.get(job.id) ?? { step: -1, speed: job.images_per_sec };
  if (job.step !== known.step)
    known.speed += (known.step < 0 ? 1 : 0.2) * (job.images_per_sec - known.speed);
  known.step = job.step;
  speeds.set(job.id, known);
  return batch ? ((job.train_steps - job.step) * batch) / known.speed : null;
}

// ------------------------------------------------------------------ pieces of both pages

function badge() {
  return h("span", { class: "badge" });
}
function setBadge(element, state) {
  mark(element, "data-state", state);
  say(element, state);
}

function meter(label) {
  const bar = h("progress", { max: 1, value: 0, "aria-label": label });
  const words = h("span", { class: "words" });
  return { element: h("div", { class: "meter" }, bar, words), bar, words };
}
function setMeter({ bar, words }, job) {
  const share = progress(job);
  if (bar.value !== share) bar.value = share;
  mark(bar, "data-state", job.state);
  say(words, job.train_steps ? `${Math.floor(100 * share)} % · ${f.count(job.step ?? 0)} of ${f.count(job.train_steps)} steps` : f.none);
}

function notice(title, ...rest) {
  return h("div", { class: "notice card" }, h("h2", {}, title), ...rest);
}

const connection = document.getElementById("connection");
function report(error) {
  const lost = error && !(error instanceof Problem);
  document.body.classList.toggle("stale", Boolean(lost));
  mark(connection, "data-state", lost ? "lost" : error ? "error" : "live");
  say(connection, lost ? "no answer from traind, trying again…" : error ? error.message : "live");
}

function heading(title) {
  document.title = title === "traind" ? title : `${title} – traind`;
}

// ------------------------------------------------------------------ the list

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
  const update = (job) => {
    say(name, job.name || `job ${id}`);
    setBadge(state, job.state);
    say(reason, job.state === "succeeded" ? "" : job.reason ?? "");
    reason.title = job.reason ?? "";
    setMeter(bar, job);
    setDatum(top1, job.top1, f.percent(job.top1));
    setDatum(speed, job.images_per_sec, f.rate(job.images_per_sec));
    const seconds = secondsLeft(job);
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

function listPage() {
  const rows = new Map();
  let jobs = [], filter = "all";
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
  const filters = h("div", { class: "filters", role: "group", "aria-label": "Which jobs" }, ...buttons);
  filters.hidden = empty.hidden = nothing.hidden = true;
  main.replaceChildren(h("div", { class: "title" }, h("h1", { tabindex: -1 }, "Jobs"), summary, filters),
    wait, empty, nothing, table);
  heading("traind");

  function show() {
    buttons.forEach((button) => mark(button, "aria-pressed", button.textContent === filter));
    const shown = jobs.filter(FILTERS.find(([name]) => name === filter)[1]);
    for (const job of shown) {
      if (!rows.has(job.id)) rows.set(job.id, jobRow(job.id));
      rows.get(job.id).update(job);
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

  return poll(async (signal) => {
    jobs = (await get("/v1/jobs?limit=200", signal)).jobs;
    show();
  }, 1500, (error) => {
    report(error);
    if (!wait.hidden && error) say(wait.firstChild, "No answer yet from traind; trying again…");
  }, () => true);
}

// ------------------------------------------------------------------ one job

const TILES = [
  ["Top-1", "top1", (job) => f.percent(job.top1)],
  ["Top-5", "top5", (job) => f.percent(job.top5)],
  ["Loss", "loss", (job) => f.number(job.loss)],
  ["Images/s", "images_per_sec", (job) => f.rate(job.images_per_sec)],
  ["Epoch", "epoch", (job) => (job.epoch == null ? f.none : job.epoch.toFixed(2))],
];
const CHARTS = [
  { title: "Loss", key: "loss", color: "--loss", smoothed: true },
  { title: "Images per second", key: "images_per_sec", unit: "images/s", color: "--speed", smoothed: true, zero: true },
  { title: "Learning rate", key: "lr", color: "--rate", zero: true },
];

function tiles() {
  const entries = TILES.map(([title, key]) => {
    const value = datum({ "data-key": key });
    return { value, element: h("div", { class: "tile card" }, h("dt", {}, title), h("dd", {}, value)) };
  });
  const timeTitle = h("dt", {}, "Time left"), time = datum({ "data-key": "time" });
  const element = h("dl", { class: "tiles" },
    h("div", { class: "tile card" }, timeTitle, h("dd", {}, time)), ...entries.map((e) => e.element));
  const update = (job) => {
    TILES.forEach(([, key, format], i) => setDatum(entries[i].value, job[key], format(job)));
    const left = secondsLeft(job);
    say(timeTitle, ended(job) ? "Time to train" : "Time left");
    if (ended(job)) setDatum(time, job.ttt_seconds, f.duration(job.ttt_seconds));
    else setDatum(time, left, f.duration(left));
  };
  return { element, update };
}

function facts(title) {
  const list = h("dl", { class: "facts" });
  const element = h("section", { class: "card" }, h("h2", {}, title), list);
  const update = (entries) => {
    const text = JSON.stringify(entries);
    if (list.dataset.text === text) return;
    list.dataset.text = text;
    list.replaceChildren(...entries.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
  };
  return { element, update };
}

// "4 min 52 s, between 4 min 20 s and 5 min 30 s"
function band(values, format) {
  if (values?.value == null) return null;
  return `${format(values.value)}, between ${format(values.low)} and ${format(values.high)}`;
}

function planFacts(job) {
  const plan = job.plan ?? {}, spec = job.spec ?? {};
  const entries = [
    ["Model", spec.model && `${spec.model.arch}, ${spec.model.image_size} × ${spec.model.image_size}, ${f.count(spec.model.classes)} classes`],
    ["Data", spec.data?.train],
    ["Training images", plan.train_images && f.count(plan.train_images)],
    ["Global batch", plan.global_batch && `${f.count(plan.global_batch)} over ${f.count(plan.world_size)} ${plan.world_size === 1 ? "rank" : "ranks"}`],
    ["Steps", plan.train_steps && `${f.count(plan.train_steps)}, ${f.count(plan.steps_per_epoch)} an epoch, ${f.count(plan.warmup_steps)} of warm-up`],
    ["Learning rate", plan.peak_lr !== undefined && `peak ${f.number(plan.peak_lr)}, from ${f.number(plan.start_lr)}${spec.lr ? `, ${spec.lr.decay} decay` : ""}`],
    ["Memory a worker", plan.memory_bytes_per_worker && `${f.size(plan.memory_bytes_per_worker)} (estimate)`],
    ["Predicted time", band(plan.predicted?.ttt_seconds, f.duration)],
    ["Warnings", plan.warnings?.join("; ")],
    ["Submitted", job.created_at && f.date(job.created_at)],
    ["Started", job.started_at && f.date(job.started_at)],
    ["Finished", job.finished_at && f.date(job.finished_at)],
    ["Run directory", job.run_dir],
  ];
  return entries.filter(([, value]) => value);
}

function evalsTable() {
  const body = h("tbody");
  const names = ["Step", "Epoch", "Top-1", "Top-5", "Loss", "Images"];
  const table = h("table", {}, h("caption", { class: "hidden" }, "Evaluations"),
    h("thead", {}, h("tr", {}, ...names.map((name) => h("th", { scope: "col", class: "num" }, name)))), body);
  const none = h("p", { class: "quiet" }, "None yet.");
  const element = h("section", { class: "card evals" }, h("h2", {}, "Evaluations"), none,
    h("div", { class: "scroll", role: "group", tabindex: 0, "aria-label": "Evaluations" }, table));
  const update = (evals) => {
    none.hidden = evals.length > 0;
    table.hidden = evals.length === 0;
    if (body.children.length === evals.length) return;
    const cell = (value, text) => h("td", { class: "num" }, h("data", { value: value ?? "" }, text));
    body.replaceChildren(...evals.map((e) => h("tr", {}, cell(e.step, f.count(e.step)),
      cell(e.epoch, e.epoch == null ? f.none : e.epoch.toFixed(2)), cell(e.top1, f.percent(e.top1)),
      cell(e.top5, f.percent(e.top5)), cell(e.loss, f.number(e.loss)), cell(e.images, f.count(e.images)))));
  };
  return { element, update };
}

function logView(id) {
  const text = h("pre", { class: "log", tabindex: 0, role: "log", "aria-label": "Log", "aria-live": "off" });
  const none = h("p", { class: "quiet" }, "Nothing yet.");
  const element = h("section", { class: "card" },
    h("header", {}, h("h2", {}, "Log"), h("a", { href: `/v1/jobs/${id}/log` }, "all of it")), none, text);
  const decoder = new TextDecoder();
  let from = 0;
  const update = async (signal) => {
    const bytes = await getBytes(`/v1/jobs/${id}/log?from=${from}`, signal);
    from += bytes.byteLength;
    none.hidden = from > 0;
    text.hidden = from === 0;
    if (!bytes.byteLength) return;
    // Follow the end, unless someone has scrolled up to read.
    const atEnd = text.scrollHeight - text.scrollTop - text.clientHeight < 40;
    let all = text.textContent + decoder.decode(bytes, { stream: true });
    if (all.length > LOG_CHARS_MAX) all = all.slice(all.indexOf("\n", all.length - LOG_CHARS_MAX) + 1);
    text.textContent = all;
    if (atEnd) text.scrollTop = text.scrollHeight;
  };
  return { element, update };
}

function cancelButton(id) {
  const button = h("button", { type: "button", class: "danger", hidden: true }, "Cancel…");
  button.addEventListener("click", async () => {
    const yes = await ask(`Cancel job ${id}?`, "Its training stops. What it has written so far stays.",
      () => post(`/v1/jobs/${id}/cancel`));
    if (yes) say(button, "Cancelling…");
    button.disabled = yes;
  });
  return button;
}

// Goes on from the newest checkpoint; the page then begins anew.
function resumeButton(id) {
  const button = h("button", { type: "button", hidden: true }, "Resume");
  button.addEventListener("click", async () => {
    button.disabled = true;
    await post(`/v1/jobs/${id}/resume`).then(() => route(false), (e) =>
      say(button, e instanceof Problem ? e.message : "No answer from traind. Try again."));
    button.disabled = false;
  });
  return button;
}

// Asks in the dialog; on yes does work() and shows there what went wrong. True once it was done.
function ask(title, text, work) {
  const [dialog, yes, no, error] = ["ask", "ask-yes", "ask-no", "ask-error"].map((id) => document.getElementById(id));
  say(document.getElementById("ask-title"), title);
  say(document.getElementById("ask-text"), text);
  error.hidden = true;
  dialog.returnValue = "";
  return new Promise((resolve) => {
    no.onclick = () => dialog.close();
    yes.onclick = async () => {
      yes.disabled = true;
      await work().then(() => dialog.close("done"), (e) => {
        error.textContent = e instanceof Problem ? e.message : "No answer from traind. Try again.";
        error.hidden = false;
      });
      yes.disabled = false;
    };
    dialog.onclose = () => resolve(dialog.returnValue === "done");
    dialog.showModal();
  });
}

// {step: [...], loss: [...], ...}, null where there is none
async function fetchSeries(id, signal) {
  const names = CHARTS.map((kind) => kind.key);
  return get(`/v1/jobs/${id}/metrics?names=${names.join(",")}&points=1500`, signal);
}

function jobPage(id) {
  const title = h("h1", { tabindex: -1 }, `Job ${id}`), state = badge();
  const cancel = cancelButton(id), resume = resumeButton(id);
  const reason = h("p", { class: "why", role: "status" });
  const bar = meter(`progress of job ${id}`), numbers = tiles(), plan = facts("Plan");
  const charts = CHARTS.map((kind) => new Chart(kind));
  const evals = evalsTable(), log = logView(id);
  const content = h("div", { class: "content", hidden: true }, bar.element, numbers.element,
    h("div", { class: "charts" }, ...charts.map((chart) => chart.element)),
    h("div", { class: "columns" }, plan.element, evals.element), log.element);
  const wait = notice(`Loading job ${id}…`);
  main.replaceChildren(h("nav", { class: "crumbs", "aria-label": "Where you are" }, h("a", { href: "#/" }, "Jobs"), ` / ${id}`),
    h("div", { class: "title" }, title, state, cancel, resume), reason, wait, content);
  heading(`Job ${id}`);

  const show = (job) => {
    wait.hidden = true;
    content.hidden = false;
    say(title, job.name || `Job ${id}`);
    heading(`${job.name || "Job"} #${id}`);
    setBadge(state, job.state);
    say(reason, job.reason ?? "");
    mark(reason, "data-state", job.state);
    cancel.hidden = ended(job);
    resume.hidden = !["failed", "cancelled"].includes(job.state) || !job.checkpoint_step;
    setMeter(bar, job);
    numbers.update(job);
    plan.update(planFacts(job));
  };
  const stop = poll(async (signal) => {
    const job = await get(`/v1/jobs/${id}`, signal);
    show(job);
    const [series, list] = await Promise.all([fetchSeries(id, signal),
      get(`/v1/jobs/${id}/evals`, signal), log.update(signal)]);
    charts.forEach((chart) => chart.update(series.step, series[chart.kind.key]));
    evals.update(list.evals);
    // What has ended changes no more, but for words that are written late.
    return ended(job) ? 10000 : 1200;
  }, 1200, (error) => {
    report(error);
    if (error?.status === 404) {
      wait.replaceChildren(h("h2", {}, `There is no job ${id}`),
        h("p", {}, h("a", { href: "#/" }, "All jobs")));
      wait.hidden = false;
      content.hidden = true;
    } else if (error && !wait.hidden) {
      say(wait.firstChild, "No answer yet from traind; trying again…");
    }
  }, (event) => event.job === id);
  return () => {
    stop();
    charts.forEach((chart) => chart.close());
  };
}

// ------------------------------------------------------------------ which page

let leave = () => {};
function route(moved) {
  leave();
  const job = /^#\/jobs\/([1-9][0-9]{0,15})$/.exec(location.hash);
  leave = job ? jobPage(Number(job[1])) : listPage();
  // Whoever navigates by keyboard or by ear starts at the new page's heading.
  if (moved) {
    scrollTo(0, 0);
    main.querySelector("h1")?.focus();
  }
}
addEventListener("hashchange", () => {
  if (location.hash !== "#main") route(true);
});
route(false);
