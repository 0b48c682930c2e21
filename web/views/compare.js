// Comparison of several jobs: #/compare?ids=1,2,3&x=epoch&hide=2&base=1&scaling=nodes&published=1&simulated=1

import { get, waiting } from "../api.js";
import { Chart, ChartGroup, joined } from "../charts/charts.js";
import { badge, choice, download, h, mark, notice, setBadge, show } from "../dom.js";
import * as f from "../format.js";
import { ScalingCards } from "../charts/scaling.js";
import { pickJobs } from "../tables.js";
import { ended, evaluates, MOST_COMPARED, title } from "../jobs.js";
import { tagChips } from "../labels.js";
import { watch } from "../live.js";
import { href, setQuery } from "../place.js";
import { keyWords, writeText } from "../job_document.js";

const POINTS = 1000; // per series

// ------------------------------------------------------------------ charts

const WHOLE = [1, 2, 5].flatMap((n) => [0, 1, 2, 3, 4, 5, 6, 7].map((e) => n * 10 ** e)).sort((a, b) => a - b);
const X = {
  step: { name: "step", words: "Step", format: f.count, incrs: WHOLE, of: (s) => s.step },
  images: { name: "images", words: "Images seen", format: f.count, incrs: [...WHOLE, 1e8, 2e8, 5e8, 1e9, 2e9, 5e9], of: (s) => s.images },
  epoch: { name: "epoch", words: "Epoch", format: (x) => f.number(x), incrs: [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, ...WHOLE], of: (s) => s.epoch },
  time: { name: "time", words: "Wall time", format: (x) => f.duration(x), incrs: [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400, 43200, 86400, 172800, 604800],
    of: (s, began) => s.t.map((t) => t - began) },
};
const CHARTS = [
  { key: "loss", title: "Training loss", axis: "loss", log: true, smooth: true },
  { key: "top1", title: "Top-1", axis: "Top-1", format: f.percent, dots: true, evals: true },
  { key: "images_per_sec", title: "Throughput", unit: "images/s", zero: true, format: f.rate, smooth: true },
  { key: "lr", title: "Learning rate", axis: "learning rate", zero: true },
];
const called = (job) => `${job.id} ${job.name ?? ""}`.trim();
const DASHES = [undefined, undefined, undefined, [7, 4], [2, 3], [9, 3, 2, 3], [12, 4], [4, 4]];

// Colour and dash by position in the list: eight of each, so that distant jobs never differ in colour only.
const look = (i) => ({ color: `--c${(i % 8) + 1}`, dash: i < 8 ? DASHES[i] : [3 + (i % 5), 3] });

function seriesOf(jobs, chart, hidden) {
  return jobs.map((job, i) => ({ key: `job${job.id}`, label: called(job), smooth: chart.smooth, dots: chart.dots, ...look(i) }))
    .filter((_, i) => !hidden.has(jobs[i].id));
}

// {x, y: {job1: […], …}} of one metric for the visible jobs
function chartData(jobs, chart, x, hidden) {
  const tables = jobs.filter((job) => !hidden.has(job.id)).map((job) => {
    const source = chart.evals ? columns(job.evals) : job.series;
    return { job, xs: X[x].of(source, job.started_at), ys: source[chart.key] };
  });
  if (!tables.some((table) => table.xs.length)) return { x: [], y: {} };
  const [xs, ...ys] = joined(tables.map((table) => [table.xs, table.ys]));
  return { x: xs, y: Object.fromEntries(tables.map(({ job }, i) => [`job${job.id}`, [...ys[i]].map((v) => v ?? null)])) };
}
const columns = (rows) => ({ ...Object.fromEntries(["step", "epoch", "t", "top1"].map((key) => [key, rows.map((row) => row[key])])), images: rows.map((row) => row.images_seen) });

// ------------------------------------------------------------------ results and differences

const workers = (job) => job.plan?.world_size ?? null;
const RESULTS = [
  ["Workers", workers, f.count, 0], ["Global batch", (job) => job.global_batch, f.count, 0], ["Steps", (job) => job.step, f.count, 0],
  ["Top-1", (job) => job.top1, f.percent, 1], ["Best Top-1", (job) => job.best_top1, f.percent, 1], ["Best at step", (job) => job.best_top1_step, f.count, 0], ["Top-5", (job) => job.top5, f.percent, 1], ["Loss", (job) => job.loss, f.number, -1],
  ["Images/s", (job) => job.images_per_sec, f.rate, 1], ["Time to train", (job) => (evaluates(job) ? null : job.ttt_seconds), f.duration, -1],
  ["J per image", (job) => job.joules_per_image, f.number, -1], ["Energy", (job) => job.kwh, f.kwh, -1],
  ["Node-hours", (job) => job.node_hours, f.number, -1], ["Cost", (job) => job.cost, f.number, -1],
];

function bestOf(jobs, value, sign) {
  const values = jobs.map(value).filter((v) => v !== null && v !== undefined);
  return sign === 0 || values.length < 2 || new Set(values).size < 2 ? null : sign > 0 ? Math.max(...values) : Math.min(...values);
}

// Difference from the base job: "+1.20 pp" for a percentage, "+12 %" for others.
export function deltaWords(value, base, format) {
  if (value === null || base === null || (format !== f.percent && !base)) return "";
  const delta = format === f.percent ? 100 * (value - base) : (100 * (value - base)) / Math.abs(base);
  const words = Math.abs(delta).toFixed(format === f.percent ? 2 : Math.abs(delta) < 10 ? 1 : 0);
  return `${Number(words) === 0 ? "±" : delta > 0 ? "+" : "−"}${words} ${format === f.percent ? "pp" : "%"}`;
}

const scroll = (label, table) => h("div", { class: "scroll wide", role: "group", tabindex: 0, "aria-label": label }, table);
const tool = (words, label, work) => h("button", { type: "button", class: "tool", "aria-label": label, onclick: work }, words);

// toggled(id): show or hide in the charts; based(id): job to compare with, null: none
function resultsCard(toggled, based) {
  const head = h("tr"), body = h("tbody");
  const select = h("select", { onchange: () => based(Number(select.value) || null) });
  let rows = [], known = "";
  const names = ["Job", "State", ...RESULTS.map(([name]) => name)];
  const element = h("section", { class: "card results" }, h("header", {}, h("h2", {}, "Results"), h("label", { class: "quiet" }, "Baseline ", select),
    tool("csv", "Download the results as csv", () => download("results.csv", "text/csv", f.csv([["id", "name", "tags", "note", ...names.slice(1)], ...rows])))),
    scroll("Results", h("table", {}, h("thead", {}, head), body)));
  const row = (job, i, jobs, told, hidden, base) => {
    const tick = h("input", { type: "checkbox", checked: !hidden.has(job.id), "aria-label": `Show job ${job.id} in the charts`, "data-job": job.id, onchange: () => toggled(job.id) });
    const chips = tagChips();
    chips.update(job.tags);
    const state = badge(), swatch = h("i", { class: look(i).dash ? "swatch dashed" : "swatch" });
    setBadge(state, job.state);
    swatch.style.setProperty("--c", `var(${look(i).color})`);
    return h("tr", { "data-job": job.id }, h("td", {}, h("span", { class: "key" }, tick, swatch)),
      h("th", { scope: "row" }, h("span", { class: "id" }, `${job.id} `), h("a", { href: `#/jobs/${job.id}` }, title(job)), chips.element, job.note ? h("p", { class: "note", title: job.note }, job.note) : null), h("td", { class: "state" }, state),
      ...told.map(([name, value, format, sign]) => {
        const v = value(job) ?? null, best = v !== null && v === bestOf(jobs, value, sign);
        const delta = base && base !== job && sign ? deltaWords(v, value(base) ?? null, format) : "";
        return h("td", { class: best ? "num best" : "num", "data-label": name }, h("data", { value: v ?? "" }, format(v)), best ? h("span", { class: "hidden" }, " (best)") : null,
          delta ? h("span", { class: "delta", "data-good": /^±/.test(delta) ? null : String(/^\+/.test(delta) === sign > 0) }, delta) : null);
      }));
  };
  const update = (jobs, hidden, baseId) => {
    // Omit the state column if all jobs succeeded.
    mark(element, "data-states", jobs.some((job) => job.state !== "succeeded"));
    const base = jobs.find((job) => job.id === baseId), choices = [["", "none"], ...jobs.map((job) => [job.id, called(job)])];
    if (select.dataset.of !== JSON.stringify(choices)) select.replaceChildren(...choices.map(([value, words]) => h("option", { value }, words)));
    select.dataset.of = JSON.stringify(choices);
    select.value = base?.id ?? "";
    rows = jobs.map((job) => [job.id, job.name, job.tags.join(" "), job.note, job.state, ...RESULTS.map(([, value]) => value(job))]);
    const text = JSON.stringify([rows, [...hidden], base?.id]);
    if (text === known) return;
    known = text;
    const told = RESULTS.filter(([, value]) => jobs.some((job) => (value(job) ?? null) !== null)); // omit rows that no job has
    head.replaceChildren(h("th", { scope: "col" }, "Shown"), h("th", { scope: "col" }, "Job"), h("th", { scope: "col", class: "state" }, "State"),
      ...told.map(([name]) => h("th", { scope: "col", class: "num" }, name)));
    body.replaceChildren(...jobs.map((job, i) => row(job, i, jobs, told, hidden, base)));
  };
  return { element, update };
}

function differencesCard() {
  const head = h("tr"), body = h("tbody"), none = h("p", { class: "quiet" }, "Their documents are the same.");
  let rows = [];
  const table = scroll("Differences", h("table", {}, h("thead", {}, head), body));
  const element = h("section", { class: "card differences" }, h("header", {}, h("h2", {}, "Differences"),
    tool("csv", "Download the differences as csv", () => download("differences.csv", "text/csv", f.csv(rows)))), none, table);
  const update = (jobs, differences) => {
    rows = [["key", ...jobs.map((job) => `job ${job.id}`)], ...differences.map(({ pointer, values }) => [keyWords(pointer), ...values.map(writeText)])];
    show(none, !differences.length);
    show(table, differences.length > 0);
    head.replaceChildren(h("th", { scope: "col" }, "Key"), ...jobs.map((job) => h("th", { scope: "col" }, called(job))));
    body.replaceChildren(...differences.map(({ pointer, values }) => h("tr", {}, h("th", { scope: "row" }, h("code", {}, keyWords(pointer))),
      ...values.map((value, i) => h("td", { "data-label": called(jobs[i]) }, writeText(value) || f.none)))));
  };
  return { element, update };
}

// Differences between the programs, hardware and data of the runs: {differences, unknown} of the answer.
function runsCard() {
  const head = h("tr"), body = h("tbody"), told = h("p", { class: "quiet" });
  let rows = [];
  const table = scroll("Differences of their runs", h("table", {}, h("thead", {}, head), body));
  const csvTool = tool("csv", "Download the differences of the runs as csv", () => download("runs.csv", "text/csv", f.csv(rows)));
  const element = h("section", { class: "card differences runs" }, h("header", {}, h("h2", {}, "Computed with"), csvTool), table, told);
  const update = (jobs, { differences, unknown }) => {
    rows = [["what", ...jobs.map((job) => `job ${job.id}`), "may change bits"], ...differences.map(({ what, values, may_change_bits: may }) => [what, ...values, may])];
    show(table, differences.length > 0);
    show(csvTool, differences.length > 0);
    const missing = unknown.length ? `Nothing was recorded about the ${unknown.length === 1 ? "run of job" : "runs of jobs"} ${unknown.join(", ")}.` : "";
    const same = !differences.length && unknown.length + 1 < jobs.length ? "No difference recorded in programs, hardware or data. " : "";
    told.textContent = same + missing;
    show(told, told.textContent !== "");
    head.replaceChildren(h("th", { scope: "col" }, "What"), ...jobs.map((job) => h("th", { scope: "col" }, called(job))), h("th", { scope: "col" }, "Bits"));
    body.replaceChildren(...differences.map(({ words, values, may_change_bits: may }) => h("tr", {}, h("th", { scope: "row" }, words),
      ...values.map((value, i) => h("td", { "data-label": called(jobs[i]) }, value ?? f.none)), h("td", { "data-label": "Bits" }, may ? "may differ" : "stay the same"))));
  };
  return { element, update };
}

// ------------------------------------------------------------------ page

function idsOf(query) {
  const ids = (query.get("ids") ?? "").split(",").map(Number).filter((id) => Number.isSafeInteger(id) && id > 0);
  return [...new Set(ids)];
}

function chooser(main, heading, kept) {
  heading("Compare");
  main.replaceChildren(h("div", { class: "title" }, h("h1", { tabindex: -1 }, "Compare")));
  const picker = pickJobs({ words: "Compare", least: 2, most: MOST_COMPARED, ids: kept?.picked, chosen: (ids) => { location.hash = href("/compare", { ids: ids.join(",") }); } });
  main.append(h("p", { class: "lead" }, "Choose two or more jobs to overlay their curves and list the differences of their documents and runs."), picker.element);
  return { keep: () => ({ picked: picker.picked() }), unmount: picker.stop };
}

class Page {
  constructor(main, all, query) {
    const ids = all.slice(0, MOST_COMPARED);
    this.ids = ids;
    this.left = all.length - ids.length;
    this.loaded = new Map(); // id -> job with series and evals
    this.x = query.get("x") in X ? query.get("x") : "step";
    this.base = Number(query.get("base")) || null; // the job that the others are compared with
    this.hidden = new Set((query.get("hide") ?? "").split(",").filter(Boolean).map(Number));
    this.group = new ChartGroup(X[this.x]);
    this.charts = CHARTS.map((kind) => new Chart({ ...kind, id: `compare-${kind.key}`, series: [] }, this.group));
    this.results = resultsCard((id) => this.toggle(id), (id) => this.setBase(id));
    this.differences = differencesCard();
    this.runs = runsCard();
    this.scaling = new ScalingCards({ by: query.get("scaling"), beside: ["published", "simulated"].filter((name) => query.get(name) === "1") }, (name, value) => setQuery({ [name]: value }));
    this.build(main);
    this.watching = watch((signal) => this.look(signal), { periodMs: 2000, wanted: (event) => ids.includes(event.job), done: (error) => this.told(error) });
  }

  build(main) {
    this.axis = choice("Horizontal axis", Object.entries(X).map(([name, { words }]) => [name, words]), this.x, (name) => this.setX(name));
    this.wait = notice("Loading the jobs…");
    this.content = h("div", { class: "stack", hidden: true }, this.results.element, h("div", { class: "charts even" }, ...this.charts.map((c) => c.element)),
      this.scaling.element, this.differences.element, this.runs.element);
    const other = h("a", { class: "button", href: "#/compare" }, "Other jobs");
    main.replaceChildren(h("div", { class: "title" }, h("h1", { tabindex: -1 }, `Compare ${this.ids.length === 1 ? "job" : "jobs"} ${this.ids.join(", ")}`),
      h("div", { class: "actions" }, this.axis.element, other)),
      ...(this.left ? [h("p", { class: "lead" }, `Only ${MOST_COMPARED} jobs are compared at a time: ${this.left} of the chosen ones ${this.left === 1 ? "is" : "are"} left out.`)] : []), this.wait, this.content);
  }

  async look(signal) {
    const { jobs, differences, provenance } = await get(`/v1/compare?ids=${this.ids.join(",")}`, signal);
    await Promise.all(jobs.map(async (summary) => {
      const known = this.loaded.get(summary.id);
      if (known && ended(known) && known.state === summary.state && known.attempt === summary.attempt) {
        Object.assign(known, { name: summary.name, tags: summary.tags, note: summary.note }); // these may change even after the end
        return;
      }
      const [job, series, { evals }] = await Promise.all([get(`/v1/jobs/${summary.id}`, signal),
        get(`/v1/jobs/${summary.id}/metrics?names=loss,lr,images_per_sec&points=${POINTS}`, signal), get(`/v1/jobs/${summary.id}/evals`, signal)]);
      this.loaded.set(summary.id, { ...job, series, evals });
    }));
    this.given = differences;
    this.provenance = provenance;
    show(this.wait, false);
    show(this.content, true);
    this.draw();
    return [...this.loaded.values()].every(ended) ? 10000 : 2000;
  }

  draw() {
    const jobs = this.ids.map((id) => this.loaded.get(id)).filter(Boolean);
    this.results.update(jobs, this.hidden, this.base);
    this.differences.update(jobs, this.given);
    this.runs.update(jobs, this.provenance);
    this.scaling.update(jobs, this.given);
    const data = CHARTS.map((kind) => chartData(jobs, kind, this.x, this.hidden));
    const low = Math.min(...data.map(({ x }) => x[0] ?? Infinity)), high = Math.max(...data.map(({ x }) => x.at(-1) ?? -Infinity));
    this.group.whole = low < high ? [low, high] : null; // a single evaluation is a point at its x, not in the middle of its own axis
    CHARTS.forEach((kind, i) => {
      const series = seriesOf(jobs, kind, this.hidden), keys = series.map((s) => s.key + s.label).join();
      if (this.charts[i].keys !== keys) this.charts[i].setSeries(series);
      this.charts[i].keys = keys;
      this.charts[i].update(data[i]);
    });
  }

  setX(name) {
    this.x = name;
    setQuery({ x: name === "step" ? null : name });
    this.group.x = X[name];
    this.group.range = null;
    this.charts.forEach((chart) => chart.drop());
    this.draw();
  }

  setBase(id) {
    this.base = id;
    setQuery({ base: id });
    this.draw();
  }

  toggle(id) {
    if (!this.hidden.delete(id)) this.hidden.add(id);
    setQuery({ hide: [...this.hidden].join(",") || null });
    this.draw();
  }

  told(error) {
    if (!error || this.wait.hidden) return;
    const gone = [400, 404].includes(error.status);
    if (gone) this.watching.stop();
    this.wait.replaceChildren(h("h2", {}, gone ? "These jobs cannot be compared" : waiting(error)),
      ...(gone ? [h("p", {}, error.message), h("p", {}, h("a", { href: "#/compare" }, "Choose others"))] : []));
  }

  leave() {
    this.watching.stop();
    this.charts.forEach((chart) => chart.close());
    this.scaling.close();
  }
}

export function mount(main, { query, heading, kept }) {
  const ids = idsOf(query);
  if (!ids.length) return chooser(main, heading, kept);
  heading(`Compare ${ids.join(", ")}`);
  const page = new Page(main, ids, query);
  return { unmount: () => page.leave() };
}
