// Facts about a job other than its charts: numbers, evaluations, checkpoints, events, files.

import { get, Problem } from "../api.js";
import { daemonTime } from "../clock.js";
import { datum, h, say, setDatum, show } from "../dom.js";
import { fileLink } from "../files.js";
import * as f from "../format.js";
import { ended, evaluates, timeLeft } from "../jobs.js";

// ------------------------------------------------------------------ numbers at the top

const TILES = [
  ["Top-1", "top1", (job) => f.percent(job.top1)],
  ["Top-5", "top5", (job) => f.percent(job.top5)],
  ["Loss", "loss", (job) => f.number(job.loss)],
  ["Images/s", "images_per_sec", (job) => f.rate(job.images_per_sec)],
  ["Epoch", "epoch", (job) => (job.epoch == null ? f.none : job.epoch.toFixed(2))],
  ["Learning rate", "lr", (job) => f.number(job.lr)],
];

// {element, update(job, askedAtMs)}
export function tiles() {
  const tile = (title, value, more) => h("div", { class: "tile card" }, h("dt", {}, title), h("dd", {}, value), more ?? null);
  const values = TILES.map(([, key]) => datum({ "data-key": key }));
  const timeTitle = h("span"), time = datum({ "data-key": "time" }), band = h("dd", { class: "band" });
  const element = h("dl", { class: "tiles" }, tile(timeTitle, time, band), ...TILES.map(([title], i) => tile(title, values[i])));
  const update = (job, asked) => {
    TILES.forEach(([, key, format], i) => setDatum(values[i], job[key], format(job)));
    const left = timeLeft(job, asked);
    const start = job.state === "queued" && job.estimated_start ? Math.max(0, job.estimated_start - daemonTime()) : null;
    say(timeTitle, ended(job) ? (evaluates(job) ? "Time to evaluate" : "Time to train") : job.state === "queued" ? "Starts in" : "Time left");
    if (job.state === "queued") setDatum(time, job.estimated_start, f.duration(start));
    else if (ended(job)) setDatum(time, job.ttt_seconds, f.duration(job.ttt_seconds));
    else setDatum(time, left?.value ?? null, f.duration(left?.value));
    say(band, left?.high ? `${f.duration(left.low)} to ${f.duration(left.high)}` : "");
  };
  return { element, update };
}

// ------------------------------------------------------------------ tables

// A card with a table, and a text to show if it is empty. columns: [[title, class]]. Returns {element, fill(rows), refused(words)} folded:
// collapsed under its heading
export function tableCard(title, columns, empty, classes = "", folded = false) {
  const body = h("tbody"), none = h("p", { class: "quiet" }, empty);
  const table = h("table", {}, h("caption", { class: "hidden" }, title),
    h("thead", {}, h("tr", {}, ...columns.map(([name, kind]) => h("th", { scope: "col", class: kind }, name)))), body);
  const scroll = h("div", { class: "scroll", role: "group", tabindex: 0, "aria-label": title }, table);
  const element = h("section", { class: `card ${classes}` }, ...(folded ? [h("details", {}, h("summary", {}, h("h2", {}, title)), none, scroll)] : [h("h2", {}, title), none, scroll]));
  const fill = (rows) => {
    say(none, empty);
    show(none, rows.length === 0);
    show(scroll, rows.length > 0);
    body.replaceChildren(...rows);
  };
  const refused = (words) => {
    fill([]);
    say(none, words);
  };
  fill([]);
  return { element, fill, refused };
}

// With averaged weights (ema), also shows the accuracy of the raw weights.
export function evalsCard() {
  const table = (names) => tableCard("Evaluations", names.map((name) => [name, "num"]), "None yet.", "evals");
  const cell = (value, text) => h("td", { class: "num" }, h("data", { value: value ?? "" }, text));
  let card = table(["Step", "Epoch", "Top-1", "Top-5", "Loss", "Images"]), known = "[]", raw = false;
  const element = h("div", {}, card.element);
  return {
    element,
    update: (evals) => {
      const text = JSON.stringify(evals); // an evaluation may be replaced, after a resume or by averaged weights
      if (text === known) return;
      known = text;
      if (!raw && evals.some((e) => e.raw_top1 != null)) {
        raw = true;
        card = table(["Step", "Epoch", "Top-1", "Not averaged", "Top-5", "Loss", "Images"]);
        element.replaceChildren(card.element);
      }
      card.fill([...evals].reverse().map((e) => h("tr", {}, cell(e.step, f.count(e.step)), cell(e.epoch, e.epoch == null ? f.none : e.epoch.toFixed(2)),
        cell(e.top1, f.percent(e.top1)), raw ? cell(e.raw_top1, f.percent(e.raw_top1)) : null, cell(e.top5, f.percent(e.top5)), cell(e.loss, f.number(e.loss)), cell(e.images, f.count(e.images)))));
    },
  };
}

const ESTIMATES = { ttt_seconds: "time to train", time_left: "time left", target: "until the target" };

// Accuracy of the estimates for a finished job, next to that of all jobs.
export function forecastCard() {
  const card = tableCard("Forecasts", [["Of", ""], ["At", "num"], ["Predicted", "num"], ["Range", "num"], ["Actual", "num"], ["Error", "num"], ["All jobs", "num"]], "None.", "forecasts folded", true);
  const percent = (x) => (x == null ? f.none : `${x > 0 ? "+" : ""}${Math.round(100 * x)} %`);
  let filled = false;
  show(card.element, false);
  const rows = ({ ttt_seconds: whole, time_left: left, target }) => [...(whole ? [["ttt_seconds", whole]] : []), ...left.map((one) => ["time_left", one]), ...(target ?? []).map((one) => ["target", one])];
  return {
    element: card.element,
    update: async (job, signal) => {
      if (filled || !job.forecast) return;
      const { scores } = await get("/v1/forecasts", signal).catch(() => ({ scores: [] }));
      const all = (of, share) => scores.find((score) => score.of === of && score.share === (share ?? null));
      const list = rows(job.forecast);
      filled = true;
      show(card.element, list.length > 0);
      card.fill(list.map(([of, one]) => {
        const median = all(of, one.share);
        return h("tr", {}, h("td", {}, evaluates(job) && of === "ttt_seconds" ? "time to evaluate" : ESTIMATES[of]), ...[one.share ? `${Math.round(100 * one.share)} %` : "start", f.duration(one.value),
          `${f.duration(one.low)} to ${f.duration(one.high)}`, f.duration(one.actual), percent(one.error),
          median?.median_error == null ? f.none : `${Math.round(100 * median.median_error)} % (${f.count(median.jobs)} ${median.jobs === 1 ? "job" : "jobs"})`].map((text) => h("td", { class: "num" }, text)));
      }));
    },
  };
}

export function checkpointsCard(id) {
  const card = tableCard("Checkpoints", [["Step", "num"], ["Epoch", "num"], ["Top-1", "num"], ["Written", ""], ["Size", "num"], ["Weights", ""]], "None yet.", "checkpoints");
  let text = "", written = 0, supported = true;
  return {
    element: card.element,
    update: async (events, signal) => {
      const count = events.filter((e) => e.type === "checkpoint").length;
      if (!supported || count === written) return;
      const { checkpoints } = await get(`/v1/jobs/${id}/checkpoints`, signal).catch((error) => {
        if (!(error instanceof Problem)) throw error;
        if (error.status === 501) supported = false; // an older daemon has no such route
        show(card.element, supported);
        card.refused(error.message); // the rest of the page does not depend on it
        text = "";
        return { checkpoints: null };
      });
      if (!checkpoints) return; // will be requested again
      written = count;
      if (JSON.stringify(checkpoints) === text) return;
      text = JSON.stringify(checkpoints);
      const num = (words) => h("td", { class: "num" }, words);
      card.fill(checkpoints.map((c) => h("tr", {}, num(f.count(c.step)), num(c.epoch == null ? f.none : c.epoch.toFixed(2)), num(`${f.percent(c.top1)}${c.best === 1 ? " (best)" : c.best ? ` (best ${c.best})` : ""}`),
        h("td", {}, f.date(c.written)), num(f.size(c.bytes)),
        h("td", {}, ...(c.complete ? [["download", "", "safetensors", "weights"], ["ONNX", "?format=onnx", "onnx", "ONNX model"]].flatMap(([words, query, suffix, what], k) =>
          [k ? " " : "", fileLink(words, `/v1/jobs/${id}/checkpoints/${c.step}${query}`, `job-${id}-step-${c.step}.${suffix}`, { "aria-label": `download the ${what} of step ${c.step}` })]) : ["incomplete"])))));
    },
  };
}

// ------------------------------------------------------------------ events

const SHOWN = ["state", "run_start", "gradients", "checkpoint", "straggler", "warning", "run_stop", "failed", "resume", "labels"];

// Events of older workers have no message.
export const stragglerWords = (e) => e.message ?? `rank ${e.rank} on ${e.host} is slower than the others: ${f.number(e.busy_ms)} ms a step against ${f.number(e.median_ms)} ms, most of it in ${e.phase}`;

const WORDS = {
  state: (e) => `${e.state}${e.reason ? `: ${e.reason}` : ""}${e.by ? ` (by ${e.by})` : ""}`,
  run_start: (e) => `attempt ${e.attempt} started training`,
  gradients: (e) => e.message,
  checkpoint: (e) => `checkpoint at step ${f.count(e.step)}`,
  straggler: stragglerWords,
  warning: (e) => e.message ?? "a warning",
  run_stop: (e) => `attempt ${e.attempt} ended: ${e.status ?? ""}${e.reason ? `, ${e.reason}` : ""}`,
  failed: (e) => `attempt ${e.attempt} failed${e.reason ? `: ${e.reason}` : ""}`,
  labels: (e) => `${["name", "tags", "note", "starred"].filter((key) => key in e).map((key) => (key === "note" ? "note" : `${key}: ${e[key] === null ? "none" : [e[key]].flat().join(", ") || "none"}`)).join("; ")}${e.by ? ` (by ${e.by})` : ""}`,
  resume: () => "resumed from its newest checkpoint",
};

// Keeps the job's events except its steps. {element, update(signal) -> events}
export function eventsCard(id) {
  const card = tableCard("Events", [["When", ""], ["Event", ""], ["Details", ""]], "None yet.", "events");
  const events = [];
  let after = 0;
  return {
    element: card.element,
    update: async (signal) => {
      const before = events.length;
      for (;;) {
        const page = await get(`/v1/jobs/${id}/events?types=${SHOWN.join(",")}&after=${after}&limit=5000`, signal);
        events.push(...page.events);
        after = page.events.at(-1)?.id ?? after;
        if (page.next === null) break;
      }
      if (events.length !== before) {
        const shown = events.slice(-200).reverse(), days = new Set(shown.map((e) => f.date(e.t).slice(0, 10)));
        const when = (t) => (days.size > 1 ? f.date(t) : f.date(t).slice(11)); // for a run of several days, the time of day alone is ambiguous
        card.fill(shown.map((e) => h("tr", { "data-type": e.type }, h("td", { class: "when" }, h("time", { title: f.date(e.t) }, when(e.t))),
          h("td", { class: "type" }, e.type.replaceAll("_", " ")), h("td", {}, WORDS[e.type](e)))));
      }
      return events;
    },
  };
}

// ------------------------------------------------------------------ files

export function filesCard(id) {
  const trace = h("li", { hidden: true }, fileLink("Trace", `/v1/jobs/${id}/trace`, `job-${id}-trace.json`),
    h("span", { class: "quiet" }, " of the profiled steps. Open it with “Load profile…” in the Performance panel of Chromium's developer tools, or with Perfetto."));
  const layers = h("li", { hidden: true }, fileLink("Layers", `/v1/jobs/${id}/layers`, `job-${id}-layers.txt`), h("span", { class: "quiet" }, " of the profiled steps: time, GFLOP/s and GB/s of each"));
  const predictions = h("li", { hidden: true }, fileLink("Predictions", `/v1/jobs/${id}/predictions`, `job-${id}-predictions.csv`),
    h("span", { class: "quiet" }, " of the last evaluation, one image per line"));
  const line = (text, path, name, what) => h("li", {}, fileLink(text, path, name), h("span", { class: "quiet" }, ` ${what}`));
  const list = h("ul", { class: "files" },
    line("CSV", `/v1/jobs/${id}/metrics?format=csv&points=20000`, `job-${id}.csv`, "of all series, by step"),
    line("TensorBoard", `/v1/jobs/${id}/tensorboard`, `events.out.tfevents.job-${id}`, "event file"),
    line("MLPerf log", `/v1/jobs/${id}/mllog`, `job-${id}-mllog.txt`, "MLPerf-format log"),
    line("JSON", `/v1/jobs/${id}`, `job-${id}.json`, "document, plan and results"), trace, layers, predictions);
  const where = h("code"), element = h("section", { class: "card" }, h("h2", {}, "Files"), list, h("p", { class: "quiet" }, "Run directory ", where));
  return {
    element,
    update: (job) => {
      show(trace, Boolean(job.spec?.profile?.steps));
      show(layers, Boolean(job.spec?.profile?.steps));
      show(predictions, Boolean(job.spec?.eval?.predictions));
      say(where, job.run_dir ?? "");
    },
  };
}
