// Page of one sweep: #/sweeps/3?x=lr.base&log=x&brush=lr.base:0.1:0.4

import { get, post, waiting } from "../api.js";
import { ask } from "../ask.js";
import { badge, download, h, mark, notice, say, setBadge, show } from "../dom.js";
import * as f from "../format.js";
import { watch } from "../live.js";
import { href, setQuery } from "../place.js";
import { axisOf, canBeLog, parallel, placeOf, scatter, valueAtPlace, wordOf } from "../sweep/sweep_plots.js";
import { axisFormat, bestTrials, metricFormat, metricWords, name, outcome, placeOfTrial, running } from "../sweep/sweeps.js";
import { keyWords, pretty, writeText } from "../job_document.js";

const BUDGET = "budget", RESULT = "result";
const COMPARED = 5; // number of the best compared by the button

// A brush is [low, high] for numbers, or a Set of words. In the address: name:low:high, name=word
// word, separated by commas. Words are encoded, because those of lists contain commas.
function readBrushes(text) {
  const brushes = new Map();
  for (const part of (text ?? "").split(",").filter(Boolean)) {
    const words = /^([^=]+)=(.*)$/.exec(part), range = /^(.+):([^:]*):([^:]*)$/.exec(part);
    if (range && !words) brushes.set(range[1], [range[2] === "" ? -Infinity : Number(range[2]), range[3] === "" ? Infinity : Number(range[3])]);
    else if (words) brushes.set(words[1], new Set(words[2].split("|").map(decoded)));
  }
  return brushes;
}
function decoded(word) {
  try {
    return decodeURIComponent(word);
  } catch {
    return word; // typed by hand
  }
}
const end = (x) => (Number.isFinite(x) ? String(x) : "");
const writeBrushes = (brushes) => [...brushes].map(([key, b]) => (b instanceof Set ? `${key}=${[...b].map(encodeURIComponent).join("|")}` : `${key}:${end(b[0])}:${end(b[1])}`)).join(",") || null;
const passes = (brush, value) => (brush instanceof Set ? brush.has(wordOf(value)) : typeof value === "number" && value >= brush[0] && value <= brush[1]);

// The value of a trial on an axis.
function valueOf(trial, key) {
  if (key === RESULT) return trial.metric;
  return key === BUDGET ? trial.budget : trial.point[key] ?? null;
}

// ------------------------------------------------------------------ table

function trialsCard(page) {
  const head = h("tr"), body = h("tbody"), shown = h("span", { class: "where" });
  const element = h("section", { class: "card trials" }, h("header", {}, h("h2", {}, "Trials, best first"), shown, h("div", { class: "tools" },
    h("button", { type: "button", class: "tool", "aria-label": "Download the trials as csv", onclick: () => download(`sweep-${page.id}.csv`, "text/csv", f.csv(page.rows())) }, "csv"))),
    h("div", { class: "scroll wide", role: "group", tabindex: 0, "aria-label": "Trials" }, h("table", {}, h("thead", {}, head), body)));
  const row = (trial, place) => {
    const state = badge(), words = outcome(trial, page.sweep.trials), best = page.isBest(trial);
    setBadge(state, words);
    mark(state, "data-state", { promoted: "succeeded", "not promoted": "passed", stopped: "cancelled", submitted: "running", waiting: "queued" }[words] ?? words);
    return h("tr", { class: best ? "winner" : "", "data-job": trial.job ?? "", "data-trial": `${trial.number}.${trial.rung}` },
      h("td", { class: "num" }, trial.metric === null ? f.none : f.count(place)),
      h("td", { class: "num best-of" }, h("data", { value: trial.metric ?? "" }, page.format(trial.metric)), best ? h("span", {}, " ★", h("span", { class: "hidden" }, " the best")) : null), ...page.keys.map((key) => h("td", { class: typeof valueOf(trial, key) === "number" ? "num" : "" },
        h("data", { value: writeText(valueOf(trial, key)) }, typeof valueOf(trial, key) === "number" ? f.number(valueOf(trial, key)) : wordOf(valueOf(trial, key))))),
      h("td", {}, state, trial.reason ? h("span", { class: "reason" }, trial.reason) : null), h("td", {}, trial.job ? h("a", { href: `#/jobs/${trial.job}` }, `job ${trial.job}`) : f.none));
  };
  let known = "";
  const update = () => {
    const text = JSON.stringify([page.sweep.trials, [...page.brushes].map(([k, b]) => [k, b instanceof Set ? [...b] : b])]);
    const kept = page.sweep.trials.filter((trial) => page.keeps(trial));
    say(shown, page.brushes.size ? `${f.count(kept.length)} of ${f.count(page.sweep.trials.length)}` : "");
    if (text === known) return;
    known = text;
    const numeric = (key) => page.sweep.trials.every((t) => ["number", "object"].includes(typeof valueOf(t, key)));
    head.replaceChildren(h("th", { scope: "col", class: "num" }, "Place"), h("th", { scope: "col", class: "num" }, metricWords(page.sweep.document.metric)), ...page.keys.map((key) => h("th", { scope: "col", class: numeric(key) ? "num" : "" },
      page.called(key))),
      h("th", { scope: "col" }, "State"), h("th", { scope: "col" }, "Job"));
    body.replaceChildren(...page.sweep.trials.map((trial, i) => [trial, placeOfTrial(page.sweep.trials, i)]).filter(([trial]) => page.keeps(trial)).map(([trial, i]) => row(trial, i)));
  };
  return { element, update };
}

// ------------------------------------------------------------------ filters: the brushes, by keyboard

function filtersCard(page) {
  const box = h("div", { class: "filters" }), clear = h("button", { type: "button", class: "plain", onclick: () => { page.brushes.clear(); page.brushed(); } }, "Clear filters");
  const element = h("details", { class: "filter-box" }, h("summary", {}, "Filter by numbers"), box, clear);
  const fields = new Map();
  const range = (axis) => {
    const make = (i, words) => h("input", { inputmode: "decimal", size: 8, "aria-label": `${axis.title}, ${words}`, onchange: (event) => {
      const now = page.brushes.get(axis.name) ?? [-Infinity, Infinity], text = event.target.value.trim();
      const value = text === "" || Number.isNaN(Number(text)) ? [-Infinity, Infinity][i] : Number(text);
      const next = i ? [now[0], value] : [value, now[1]];
      if (next.every((x) => !Number.isFinite(x))) page.brushes.delete(axis.name);
      else page.brushes.set(axis.name, next);
      page.brushed();
    } });
    const inputs = [make(0, "at least"), make(1, "at most")];
    const set = () => {
      const brush = page.brushes.get(axis.name) ?? [-Infinity, Infinity];
      inputs.forEach((input, i) => { if (input !== document.activeElement) input.value = Number.isFinite(brush[i]) ? f.number(brush[i]) : ""; });
    };
    return { element: h("div", { class: "filter" }, h("span", { class: "name" }, axis.title), inputs[0], "to", inputs[1]), set };
  };
  const choices = (axis) => {
    const ticks = axis.words.map((_word) => h("input", { type: "checkbox", onchange: () => {
      const kept = new Set(axis.words.filter((_, i) => ticks[i].checked));
      if (kept.size === axis.words.length) page.brushes.delete(axis.name);
      else page.brushes.set(axis.name, kept);
      page.brushed();
    } }));
    const set = () => axis.words.forEach((word, i) => { ticks[i].checked = page.brushes.get(axis.name)?.has(word) ?? true; });
    return { element: h("div", { class: "filter", role: "group", "aria-label": axis.title }, h("span", { class: "name" }, axis.title),
      ...axis.words.map((word, i) => h("label", {}, ticks[i], word))), set };
  };
  let known = "";
  const update = (axes) => {
    const text = JSON.stringify(axes.map((axis) => [axis.name, axis.words ?? null]));
    if (text !== known) {
      fields.clear();
      for (const axis of axes) fields.set(axis.name, axis.words ? choices(axis) : range(axis));
      box.replaceChildren(...[...fields.values()].map((one) => one.element));
      known = text;
    }
    for (const one of fields.values()) one.set();
    show(clear, page.brushes.size > 0);
  };
  return { element, update };
}

// ------------------------------------------------------------------ page

class Page {
  constructor(main, id, query, heading) {
    Object.assign(this, { id, heading, sweep: null, keys: [], brushes: readBrushes(query.get("brush")) });
    this.x = query.get("x");
    this.logs = new Set((query.get("log") ?? "").split("").filter((c) => "xy".includes(c)));
    this.userLog = query.has("log");
    this.scatter = scatter(`sweep-${id}-scatter`, "Scatter", (point) => { if (point.job) location.hash = `#/jobs/${point.job}`; });
    this.parallel = parallel(`sweep-${id}-parallel`, "Parallel coordinates", (axis, range) => this.brush(axis, range));
    this.filters = filtersCard(this);
    this.trials = trialsCard(this);
    this.build(main);
    this.watching = watch((signal) => this.look(signal), { periodMs: 2000,
      wanted: (event) => event.type === "state" && (!this.sweep || running(this.sweep)), done: (error) => this.told(error) });
  }

  build(main) {
    this.title = h("h1", { tabindex: -1 }, `Sweep ${this.id}`);
    this.state = badge();
    this.summary = h("p", { class: "summary" });
    this.best = h("p", { class: "lead" });
    this.cancel = h("button", { type: "button", class: "danger", hidden: true, onclick: () => this.askCancel() }, "Cancel…");
    this.compare = h("a", { class: "button", hidden: true }, "Compare the best");
    this.select = h("select", { "aria-label": "Horizontal axis of the scatter", onchange: () => { this.x = this.select.value; setQuery({ x: this.x }); this.draw(); } });
    this.logX = this.logBox("x", "log x");
    this.logY = this.logBox("y", "log y");
    this.metric = h("span");
    this.scatter.element.append(h("p", { class: "help" }, "● result  ○ not promoted  ✕ no result  ◯ best trial. Click a point to open its job."));
    this.scatter.controls.append(h("label", {}, this.metric, "by", this.select), this.logX.element, this.logY.element);
    this.parallel.controls.append(h("p", { class: "help" }, "Drag along an axis to filter; click the axis to remove the filter."));
    this.parallel.element.append(this.filters.element);
    this.document = h("pre", { class: "code", tabindex: 0, role: "group", "aria-label": "The sweep's document" });
    this.wait = notice(`Loading sweep ${this.id}…`);
    this.content = h("div", { class: "stack", hidden: true }, this.best, h("div", { class: "charts even" }, this.scatter.element, this.parallel.element), this.trials.element,
      h("section", { class: "card" }, h("details", {}, h("summary", {}, "The sweep's document"), this.document)));
    main.append(h("nav", { class: "crumbs", "aria-label": "Where you are" }, h("a", { href: "#/sweeps" }, "Sweeps"), ` / ${this.id}`),
      h("div", { class: "title" }, this.title, this.state, this.summary, h("div", { class: "actions" },
        this.compare, h("a", { class: "button", href: `#/sweeps/new?from=${this.id}` }, "Clone with changes"), this.cancel)), this.wait, this.content);
  }

  logBox(which, words) {
    const input = h("input", { type: "checkbox", onchange: () => {
      if (input.checked) this.logs.add(which);
      else this.logs.delete(which);
      this.userLog = true;
      setQuery({ log: [...this.logs].join("") || "-" });
      this.draw();
    } });
    return { input, element: h("label", {}, input, words) };
  }

  async look(signal) {
    this.sweep = await get(`/v1/sweeps/${this.id}`, signal);
    const { trials, document, best } = this.sweep;
    this.format = metricFormat(document.metric);
    this.keys = [...Object.keys(document.parameters), ...(document.budget ? [BUDGET] : [])];
    this.ranges = document.parameters;
    if (!this.keys.includes(this.x)) [this.x] = this.keys;
    say(this.title, name(this.sweep));
    this.heading(`${name(this.sweep)} – sweep ${this.id}`);
    setBadge(this.state, this.sweep.state);
    const ended = trials.filter((t) => !["waiting", "submitted"].includes(t.state)).length;
    say(this.summary, `${document.method}, ${f.count(ended)} of ${f.count(trials.length)} trials ended${this.sweep.reason ? `: ${this.sweep.reason}` : ""}`);
    const alike = bestTrials(this.sweep), point = (one) => [Object.entries(one.point).map(([key, v]) => `${keyWords(key)} ${typeof v === "number" ? f.number(v) : wordOf(v)}`).join(", "),
      " (", h("a", { href: `#/jobs/${one.job}` }, `job ${one.job}`), ")"];
    this.best.replaceChildren(...(best ? [`Best ${metricWords(document.metric)}: `, h("strong", {}, this.format(best.metric)), ...(alike.length > 1
      ? [`, reached by ${f.count(alike.length)} trials: `, ...alike.slice(0, COMPARED).flatMap((one, i) => [i ? "; " : "", ...point(one)]), alike.length > COMPARED ? "; …" : ""] : [" with ", ...point(best)])] : ["No result yet."]));
    const first = trials.filter((t) => t.job && t.metric !== null).slice(0, COMPARED).map((t) => t.job);
    show(this.compare, first.length > 1);
    mark(this.compare, "href", href("/compare", { ids: first.join(",") }));
    show(this.cancel, running(this.sweep));
    say(this.metric, metricWords(document.metric));
    say(this.document, pretty(document));
    show(this.wait, false);
    show(this.content, true);
    this.draw();
    return running(this.sweep) ? 2000 : 10000; // the page's header shows "live", so keep polling
  }

  isBest({ rung, metric }) { return rung === this.sweep.best?.rung && metric === this.sweep.best.metric; }
  keeps(trial) { return [...this.brushes].every(([key, brush]) => passes(brush, valueOf(trial, key))); }
  rows() {
    return [["place", ...this.keys.map((key) => this.called(key)), this.sweep.document.metric, "rung", "state", "job"],
      ...this.sweep.trials.map((t, i) => [placeOfTrial(this.sweep.trials, i), ...this.keys.map((key) => writeText(valueOf(t, key))), t.metric, t.rung, outcome(t, this.sweep.trials), t.job])];
  }

  // 0: the worst result, 1: the best
  goodness(trial) {
    const results = this.sweep.trials.map((t) => t.metric).filter((v) => v !== null);
    const low = Math.min(...results), high = Math.max(...results);
    if (trial.metric === null || low === high) return 1;
    const share = (trial.metric - low) / (high - low);
    return this.sweep.document.goal === "min" ? 1 - share : share;
  }

  // The display name of an axis: a parameter or another quantity.
  called(key) { return key === BUDGET ? keyWords(this.sweep.document.budget.key) : key === RESULT ? metricWords(this.sweep.document.metric) : keyWords(key); }
  axis(key, log) { return { ...axisOf(key, this.sweep.trials.map((t) => valueOf(t, key)), log), title: this.called(key) }; }
  canLog(key) { return canBeLog(this.sweep.trials.map((t) => valueOf(t, key))); }

  // Keys drawn from a log range, and results that differ by orders of magnitude, start with a log axis.
  usualLogs() {
    const results = this.sweep.trials.map((t) => t.metric).filter((v) => v !== null);
    return new Set([this.ranges[this.x]?.log && "x", this.canLog(RESULT) && Math.max(...results) > 30 * Math.min(...results) && "y"].filter(Boolean));
  }

  draw() {
    if (!this.userLog) this.logs = this.usualLogs();
    const options = JSON.stringify([this.keys, this.x]);
    if (this.select.dataset.options !== options)
      this.select.replaceChildren(...this.keys.map((key) => h("option", { value: key, selected: key === this.x }, this.called(key))));
    this.select.dataset.options = options;
    for (const [box, key, which] of [[this.logX, this.x, "x"], [this.logY, RESULT, "y"]]) {
      box.input.disabled = !this.canLog(key);
      box.input.checked = this.logs.has(which) && this.canLog(key);
    }
    this.drawPictures();
    this.filters.update([...this.keys.map((key) => this.axis(key, false)), { ...this.axis(RESULT, false), name: RESULT }].filter((axis) => axis.words?.length !== 1));
    this.trials.update();
  }

  drawPictures() {
    const { trials, document } = this.sweep, ended = trials.filter((t) => !["waiting", "submitted"].includes(t.state));
    const x = this.axis(this.x, this.logs.has("x")), y = { ...this.axis(RESULT, this.logs.has("y")), format: axisFormat(document.metric) };
    if (y.words) Object.assign(y, { words: undefined, min: 0, max: 1 }); // no result yet
    const kept = trials.filter((t) => this.keeps(t)).length;
    const many = `${kept === trials.length ? f.count(trials.length) : `${f.count(kept)} of ${f.count(trials.length)}`} trials`;
    const common = (t) => ({ goodness: this.goodness(t), faint: !this.keeps(t), best: this.isBest(t) });
    const points = ended.map((t) => ({ ...common(t), x: valueOf(t, this.x), y: t.metric, job: t.job, open: t.state === "stopped" || outcome(t, trials) === "not promoted",
      words: `job ${t.job ?? f.none}: ${metricWords(document.metric)} ${this.format(t.metric)} at ${wordOf(valueOf(t, this.x))}` }));
    this.scatter.update({ x, y, points }, `${metricWords(document.metric)} against ${this.called(this.x)} of ${many}; the table of trials has the numbers`);
    const axes = [...this.keys.map((key) => ({ ...this.axis(key, this.ranges[key]?.log), key, name: this.called(key) })),
      { ...y, name: metricWords(document.metric), key: RESULT }];
    const lines = ended.map((t) => ({ ...common(t), values: [...this.keys, RESULT].map((key) => valueOf(t, key)), failed: t.metric === null && t.state !== "stopped" }));
    this.parallel.update({ axes, lines, brushes: this.places(axes) }, `${many} as lines over ${axes.map((axis) => axis.name).join(", ")}; the table of trials has the numbers`);
  }

  // The brushes as positions on their axes.
  places(axes) {
    const places = new Map();
    for (const axis of axes) {
      const brush = this.brushes.get(axis.key ?? axis.name);
      if (!brush) continue;
      const at = brush instanceof Set ? axis.words?.map((word, i) => [word, i / Math.max(1, axis.words.length - 1)]).filter(([word]) => brush.has(word)).map(([, p]) => p) ?? []
        : brush.map((v, i) => (Number.isFinite(v) ? Math.max(0, Math.min(1, placeOf(axis, Math.max(axis.min, Math.min(axis.max, v))) ?? 0)) : i));
      if (at.length) places.set(axis.name, [Math.min(...at), Math.max(...at)]);
    }
    return places;
  }

  brush(axis, range) {
    const key = axis.key ?? axis.name;
    if (!range) this.brushes.delete(key);
    else if (axis.words) {
      const last = Math.max(1, axis.words.length - 1);
      this.brushes.set(key, new Set(axis.words.filter((_, i) => i / last >= range[0] - 0.02 && i / last <= range[1] + 0.02)));
    } else {
      this.brushes.set(key, range.map((place, i) => (place <= 0.03 && i === 0 ? -Infinity : place >= 0.97 && i === 1 ? Infinity : Number(valueAtPlace(axis, place).toPrecision(4)))));
    }
    // While dragging only the plots are updated; table and address follow at the end.
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.drawPictures();
    });
    clearTimeout(this.rest);
    this.rest = setTimeout(() => this.brushed(), 120);
  }
  brushed() {
    setQuery({ brush: writeBrushes(this.brushes) });
    this.draw();
  }

  async askCancel() {
    const yes = await ask({ title: `Cancel sweep ${this.id}?`, text: "Its running jobs are cancelled and no further ones are started. Results so far are kept.",
      yes: "Cancel the sweep", no: "Keep running", work: () => post(`/v1/sweeps/${this.id}/cancel`) });
    if (yes) this.watching.again();
  }

  told(error) {
    if (!error || this.wait.hidden) return;
    const gone = error.status === 404;
    if (gone) this.watching.stop();
    this.wait.replaceChildren(h("h2", {}, gone ? `There is no sweep ${this.id}` : waiting(error)), gone ? h("p", {}, h("a", { href: "#/sweeps" }, "All sweeps")) : "");
  }

  leave() {
    this.watching.stop();
    clearTimeout(this.rest);
    cancelAnimationFrame(this.frame);
    this.scatter.close();
    this.parallel.close();
  }
}

export function mount(main, { params, query, heading }) {
  heading(`Sweep ${params[0]}`);
  const page = new Page(main, Number(params[0]), query, heading);
  return { unmount: () => page.leave() };
}
