// The cluster as a whole: numbers, throughput over time, nodes and queue.

import { get } from "../api.js";
import { Chart, ChartGroup } from "../charts/charts.js";
import { daemonTime } from "../clock.js";
import { choice, datum, h, mark, say, setDatum, show } from "../dom.js";
import * as f from "../format.js";
import { startWords, title } from "../jobs.js";
import { watch } from "../live.js";
import { nodesTable, nodesWords } from "../nodes.js";
import { setQuery } from "../place.js";

const THROUGHPUT_MS = 10000, FAILED_MS = 15000; // between polls
const QUEUE_SHOWN = 50;
const HOURS = { 1: "1 h", 6: "6 h", 24: "24 h", 168: "7 d" };

const clock = (t) => new Date(t * 1000).toLocaleTimeString("sv-SE", { hour: "2-digit", minute: "2-digit" });
const day = (t) => new Date(t * 1000).toLocaleDateString("sv-SE").slice(5) + " " + clock(t);
// Returns ticks at whole multiples of incr seconds of local time, also in time zones of 45 minutes and across changes of summer time.
const east = (t) => -60 * new Date(t * 1000).getTimezoneOffset(); // seconds that local time is ahead of UTC
export function clockTicks(from, to, incr) {
  const ticks = [];
  for (let wall = Math.ceil((from + east(from)) / incr) * incr; ; wall += incr) {
    const t = wall - east(wall - east(from));
    if (t > to) return ticks;
    ticks.push(t);
  }
}
const MINUTES = [1, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880].map((minutes) => 60 * minutes);

// ------------------------------------------------------------------ numbers at the top

function numbers() {
  const names = [["running", "Running"], ["queued", "Queued"], ["speed", "Images/s now"], ["slots", "Slots used"], ["failed", "Failed in 24 h"]];
  const values = Object.fromEntries(names.map(([key]) => [key, datum({ "data-key": key })]));
  const element = h("dl", { class: "tiles five" }, ...names.map(([key, name]) => h("div", { class: "tile card" }, h("dt", {}, name), h("dd", {}, values[key]))));
  const look = watch(async (signal) => {
    const { total } = await get(`/v1/jobs?state=failed&finished_after=${Math.floor(daemonTime()) - 86400}&limit=1`, signal);
    setDatum(values.failed, total, f.count(total));
    mark(values.failed, "data-some", total > 0);
    return FAILED_MS;
  }, { periodMs: 2000, wanted: (event) => event.type === "state" });
  return { element, values, close: look.stop };
}

// ------------------------------------------------------------------ throughput

const hoursOf = (query) => (HOURS[query.get("hours")] ? Number(query.get("hours")) : 1);

// {element, apply(query), close()}
function throughput(query) {
  let hours = hoursOf(query);
  const axis = (format, space) => ({ name: "time", short: "at", format, incrs: MINUTES, ticks: clockTicks, space });
  const ofDay = axis(clock), ofDays = axis(day, 100), group = new ChartGroup(ofDay);
  const chart = new Chart({ id: "throughput", title: "Throughput", unit: "of all jobs", axis: "images/s", zero: true, format: f.rate, empty: "No training yet.",
    series: [{ key: "images_per_sec", label: "all jobs", color: "--c3", fill: true }] }, group);
  const spans = choice("Time shown", Object.entries(HOURS), String(hours), (value) => {
    hours = Number(value);
    setQuery({ hours: hours === 1 ? null : hours });
    look.again();
  });
  chart.legend.before(spans.element);
  const look = watch(async (signal) => {
    const series = await get(`/v1/throughput?seconds=${3600 * hours}&points=180`, signal);
    const x = hours > 24 ? ofDays : ofDay;
    if (group.x !== x) group.setX(x);
    // Omit the newest bin if it covers too little time.
    const n = series.t.length, young = n > 1 && series.t[n - 1] - series.t[n - 2] < series.bin_seconds / 3;
    // After the daemon's start, the idle time before is left out, except for a sixth of the span.
    const first = series.images_per_sec.findIndex((rate) => rate > 0), from = Math.max(0, Math.min(first - 1, Math.floor((n * 5) / 6)));
    const some = (values) => values.slice(from, young ? -1 : undefined);
    chart.update({ x: some(series.t), y: { images_per_sec: some(series.images_per_sec) } });
    return THROUGHPUT_MS;
  }, { periodMs: THROUGHPUT_MS, wanted: (event) => event.type === "run_start" });
  const apply = (now) => {
    if (hoursOf(now) === hours) return;
    hours = hoursOf(now);
    spans.set(String(hours));
    look.again();
  };
  return { element: chart.element, apply, close: () => { look.stop(); chart.close(); } };
}

// ------------------------------------------------------------------ nodes

// told(sums over all nodes) is called after each poll
function nodesCard(told) {
  const summary = h("span", { class: "quiet" });
  const table = nodesTable({ columns: ["node", "check", "slots", "gflops", "checked"], first: 50, told: (sums) => {
    told(sums);
    say(summary, nodesWords(sums));
  } });
  const element = h("section", { class: "card nodes" }, h("header", {}, h("h2", {}, "Nodes"), summary), table.element);
  return { element, close: table.close };
}

// ------------------------------------------------------------------ queue

function queueCard() {
  const list = h("ol", { class: "queue" }), none = h("p", { class: "quiet" }, "The queue is empty.");
  const scroll = h("div", { class: "scroll", role: "group", tabindex: 0, "aria-label": "Queue" }, list);
  const element = h("section", { class: "card queue-card" }, h("header", {}, h("h2", {}, "Queue")), none, scroll);
  let text = "";
  const tell = (jobs) => {
    const waiting = jobs.filter((job) => job.state === "queued")
      .sort((a, b) => (a.estimated_start ?? Infinity) - (b.estimated_start ?? Infinity) || b.priority - a.priority || a.id - b.id);
    show(none, waiting.length === 0);
    show(scroll, waiting.length > 0);
    const shown = waiting.slice(0, QUEUE_SHOWN), starts = shown.map((job) => `${job.slots} ${job.slots === 1 ? "slot" : "slots"}, ${startWords(job) ?? "start unknown"}`);
    const now = JSON.stringify([waiting.length, shown.map((job) => [job.id, job.name])]);
    if (now === text) return [...list.querySelectorAll(".start")].forEach((start, i) => say(start, starts[i]));
    text = now;
    list.replaceChildren(...shown.map((job, i) => h("li", {}, h("a", { href: `#/jobs/${job.id}` }, title(job)), h("span", { class: "quiet start" }, starts[i]))),
      ...(waiting.length > QUEUE_SHOWN ? [h("li", { class: "quiet" }, `and ${waiting.length - QUEUE_SHOWN} more`)] : []));
  };
  return { element, tell };
}

// {element, tell(active jobs), apply(query), close()}
export function clusterStrip(query) {
  const top = numbers(), chart = throughput(query), queue = queueCard();
  const nodes = nodesCard((sums) => setDatum(top.values.slots, sums.slots_used, `${sums.slots_used} of ${sums.slots}`));
  const element = h("section", { class: "cluster stack", "aria-label": "The cluster" }, top.element,
    h("div", { class: "strip" }, chart.element, nodes.element, queue.element));
  const tell = (jobs) => {
    const is = (...states) => jobs.filter((job) => states.includes(job.state));
    const training = is("running", "evaluating");
    const speed = is("running").reduce((sum, job) => sum + (job.images_per_sec ?? 0), 0);
    setDatum(top.values.running, training.length + is("starting").length, f.count(training.length + is("starting").length));
    setDatum(top.values.queued, is("queued").length, f.count(is("queued").length));
    setDatum(top.values.speed, speed, training.length ? f.rate(speed) : f.none);
    queue.tell(jobs);
  };
  return { element, tell, apply: chart.apply, close: () => { top.close(); chart.close(); nodes.close(); } };
}
