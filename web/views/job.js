// One job (#/jobs/3).

import { get, getBytes, post, words } from "../api.js";
import { ask } from "../ask.js";
import { Chart, ChartGroup } from "../charts.js";
import { badge, datum, facts, h, mark, meter, notice, say, setBadge, setDatum, setMeter } from "../dom.js";
import * as f from "../format.js";
import { ended, timeLeft } from "../jobs.js";
import { watch } from "../live.js";

const LOG_CHARS_MAX = 100000; // of the log's end that the page keeps

const TILES = [
  ["Top-1", "top1", (job) => f.percent(job.top1)],
  ["Top-5", "top5", (job) => f.percent(job.top5)],
  ["Loss", "loss", (job) => f.number(job.loss)],
  ["Images/s", "images_per_sec", (job) => f.rate(job.images_per_sec)],
  ["Epoch", "epoch", (job) => (job.epoch == null ? f.none : job.epoch.toFixed(2))],
];
const CHARTS = [
  { id: "loss", title: "Loss", log: true, series: [{ key: "loss", label: "training", color: "--c1", smooth: true }] },
  { id: "images_per_sec", title: "Throughput", unit: "images/s", zero: true, format: f.rate,
    series: [{ key: "images_per_sec", label: "images/s", color: "--c3", smooth: true }] },
  { id: "lr", title: "Learning rate", zero: true, series: [{ key: "lr", label: "learning rate", color: "--c2", fill: true }] },
];

function tiles() {
  const entries = TILES.map(([title, key]) => {
    const value = datum({ "data-key": key });
    return { value, element: h("div", { class: "tile card" }, h("dt", {}, title), h("dd", {}, value)) };
  });
  const timeTitle = h("dt", {}, "Time left"), time = datum({ "data-key": "time" });
  const element = h("dl", { class: "tiles" },
    h("div", { class: "tile card" }, timeTitle, h("dd", {}, time)), ...entries.map((e) => e.element));
  const update = (job, asked) => {
    TILES.forEach(([, key, format], i) => setDatum(entries[i].value, job[key], format(job)));
    const left = timeLeft(job, asked)?.value ?? null;
    say(timeTitle, ended(job) ? "Time to train" : "Time left");
    if (ended(job)) setDatum(time, job.ttt_seconds, f.duration(job.ttt_seconds));
    else setDatum(time, left, f.duration(left));
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
    const yes = await ask({
      title: `Cancel job ${id}?`, text: "Its training stops. What it has written so far stays.",
      yes: "Cancel the job", no: "Keep it running", work: () => post(`/v1/jobs/${id}/cancel`),
    });
    if (yes) say(button, "Cancelling…");
    button.disabled = yes;
  });
  return button;
}

// Goes on from the newest checkpoint; the page then begins anew.
function resumeButton(id, resumed) {
  const button = h("button", { type: "button", hidden: true }, "Resume");
  button.addEventListener("click", async () => {
    button.disabled = true;
    await post(`/v1/jobs/${id}/resume`).then(resumed, (e) => say(button, words(e)));
    button.disabled = false;
  });
  return button;
}

// {step: [...], loss: [...], ...}, null where there is none
async function fetchSeries(id, signal) {
  const names = CHARTS.flatMap((chart) => chart.series.map((s) => s.key));
  return get(`/v1/jobs/${id}/metrics?names=${names.join(",")}&points=1500`, signal);
}

export function mount(main, { params, heading }) {
  const id = Number(params[0]);
  const title = h("h1", { tabindex: -1 }, `Job ${id}`), state = badge();
  const cancel = cancelButton(id), resume = resumeButton(id, () => look.again());
  const reason = h("p", { class: "why", role: "status" });
  const bar = meter(`progress of job ${id}`), numbers = tiles(), plan = facts("Plan");
  const group = new ChartGroup();
  const charts = CHARTS.map((kind) => new Chart(kind, group));
  const evals = evalsTable(), log = logView(id);
  const content = h("div", { class: "content stack", hidden: true }, bar.element, numbers.element,
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
    if (ended(job)) {
      cancel.disabled = false;
      say(cancel, "Cancel…");
    }
    resume.hidden = !["failed", "cancelled"].includes(job.state) || !job.checkpoint_step;
    setMeter(bar, job);
    numbers.update(job, Date.now());
    plan.update(planFacts(job));
  };
  const look = watch(async (signal) => {
    const job = await get(`/v1/jobs/${id}`, signal);
    show(job);
    const [series, list] = await Promise.all([fetchSeries(id, signal),
      get(`/v1/jobs/${id}/evals`, signal), log.update(signal)]);
    charts.forEach((chart) => chart.update({ x: series.step, y: series, min: series.min, max: series.max }));
    evals.update(list.evals);
    // What has ended changes no more, but for words that are written late.
    return ended(job) ? 10000 : 1200;
  }, {
    periodMs: 1200,
    wanted: (event) => event.job === id,
    done: (error) => {
      if (error?.status === 404) {
        wait.replaceChildren(h("h2", {}, `There is no job ${id}`), h("p", {}, h("a", { href: "#/" }, "All jobs")));
        wait.hidden = false;
        content.hidden = true;
      } else if (error && !wait.hidden) {
        say(wait.firstChild, "No answer yet from traind; trying again…");
      }
    },
  });
  return {
    unmount: () => {
      look.stop();
      charts.forEach((chart) => chart.close());
    },
  };
}
