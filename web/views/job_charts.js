// The charts of one job: series, x-axis and marks.

import { get } from "../api.js";
import { Chart, ChartGroup, joined } from "../charts/charts.js";
import { choice, h, mark, show } from "../dom.js";
import * as f from "../format.js";
import { HeatMap } from "../charts/heat_map.js";
import { setQuery } from "../place.js";

const POINTS = 700; // per series: about the number of pixels of a chart
const RANK_POINTS = 240;
const ms = (x) => `${f.rate(x)} ms`;

const PHASES = [["data_ms", "data", "--c5"], ["forward_ms", "forward", "--c1"], ["backward_ms", "backward", "--c3"],
  ["comm_ms", "all-reduce (not overlapped)", "--c7"], ["optim_ms", "optimiser", "--c4"], ["rest_ms", "rest", "--c8"]];

const CHARTS = [
  { id: "loss", title: "Loss", axis: "loss", log: true, series: [
    { key: "loss", label: "training", color: "--c1", smooth: true }, { key: "eval_loss", label: "evaluation", color: "--c2", dots: true }] },
  { id: "accuracy", title: "Accuracy", axis: "accuracy", format: (x) => `${f.number(100 * x)} %`, most: 1.02, zero: true, empty: "No evaluation yet.", series: [
    { key: "train_top1", label: "Top-1 in training", color: "--c1", smooth: true, format: f.percent },
    { key: "top1", label: "Top-1", color: "--c3", dots: true, format: f.percent },
    { key: "raw_top1", label: "Top-1, not averaged", color: "--c4", dots: true, dash: [2, 3], format: f.percent }, { key: "top5", label: "Top-5", color: "--c6", dots: true, format: f.percent },
    { key: "published", label: "Top-1, published", color: "--c7", dots: true, dash: [6, 4], format: f.percent }] },
  { id: "images_per_sec", title: "Throughput", unit: "images/s", zero: true, format: f.rate, series: [
    { key: "images_per_sec", label: "all ranks", color: "--c3", smooth: true }] },
  { id: "step_time", title: "Step time", unit: "ms", stacked: true,
    series: PHASES.map(([key, label, color]) => ({ key, label, color, smooth: true, format: ms })) },
  { id: "lr", title: "Learning rate", axis: "learning rate", zero: true, log: true, series: [{ key: "lr", label: "learning rate", color: "--c2" }] },
  { id: "grad_norm", title: "Gradient norm", axis: "L2 norm", log: true, series: [{ key: "grad_norm", label: "L2 norm", color: "--c4", smooth: true }] },
];
const METRICS = "loss,lr,images_per_sec,step_ms,data_ms,forward_ms,backward_ms,comm_ms,optim_ms,grad_norm,top1";

// "0:42", "1:05:30", "12 d", "12 d 3:20": time since the start
function clock(seconds) {
  const s = Math.round(seconds), two = (n) => String(n).padStart(2, "0");
  const minutes = Math.floor(s / 60) % 60, hours = Math.floor(s / 3600);
  if (hours >= 48) return `${Math.floor(hours / 24)} d${s % 86400 ? ` ${hours % 24}:${two(minutes)}` : ""}`;
  return hours ? `${hours}:${two(minutes)}:${two(s % 60)}` : `${minutes}:${two(s % 60)}`;
}

// Epochs completed after this many steps; batch_schedule fill makes them longer in some phases.
function epochAt(plan, step) {
  const phase = plan.phases?.findLast((one) => one.step <= step);
  return phase ? phase.epoch + ((step - phase.step) * (phase.end_epoch - phase.epoch)) / phase.steps : step / plan.steps_per_epoch;
}

// The inverse: steps after this many epochs.
function stepAt(plan, epoch) {
  const phase = plan.phases?.findLast((one) => one.epoch <= epoch);
  return phase ? phase.step + ((epoch - phase.epoch) * phase.steps) / (phase.end_epoch - phase.epoch) : epoch * plan.steps_per_epoch;
}

const WHOLE = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].flatMap((e) => [1, 2, 5].map((n) => n * 10 ** e));
const AXES = {
  step: { name: "step", format: f.count, incrs: WHOLE },
  images: { name: "images", format: f.count, incrs: WHOLE },
  epoch: { name: "epoch", format: (x) => String(Number(x.toFixed(2))),
    incrs: [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, ...WHOLE] },
  time: { name: "time", format: clock, incrs: [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, ...WHOLE.map((days) => 86400 * days)] },
};

// Interpolates ys over increasing xs at `at`; extrapolates from the nearest two beyond the ends.
function between(xs, ys, at) {
  if (xs.length < 2) return ys[0] ?? at;
  let i = xs.findIndex((x) => x >= at);
  i = i < 0 ? xs.length - 1 : Math.max(1, i);
  const share = xs[i] === xs[i - 1] ? 0 : (at - xs[i - 1]) / (xs[i] - xs[i - 1]);
  return ys[i - 1] + share * (ys[i] - ys[i - 1]);
}

// Merges the whole run with the exact steps of the zoomed part.
function refined(whole, part) {
  if (!part?.step.length) return whole;
  const [first, last] = [part.step[0], part.step.at(-1)];
  const before = whole.step.findIndex((s) => s >= first), behind = whole.step.findIndex((s) => s > last);
  const head = before < 0 ? whole.step.length : before, tail = behind < 0 ? whole.step.length : behind;
  const mix = (a, b) => [...a.slice(0, head), ...(b ?? []), ...a.slice(tail)];
  const out = {};
  for (const [key, values] of Object.entries(whole)) if (Array.isArray(values)) out[key] = mix(values, part[key]);
  // Where the part is exact, its steps are their own minimum and maximum.
  for (const side of ["min", "max"]) {
    if (whole[side]) out[side] = Object.fromEntries(Object.entries(whole[side]).map(([key, values]) => [key, mix(values, part[side]?.[key] ?? part[key])]));
  }
  return out;
}

const pause = () => new Promise((resolve) => setTimeout(resolve));

// ------------------------------------------------------------------ bar above the charts

function bar(group, settings, changed) {
  const axis = choice("x-axis", Object.keys(AXES).map((name) => [name, name]), settings.x, (x) => changed({ x, from: null, to: null }));
  const slider = h("input", { type: "range", min: 0, max: 1, step: 0.05, value: settings.smooth });
  slider.addEventListener("input", () => group.setSmoothing(Number(slider.value)));
  slider.addEventListener("change", () => setQuery({ smooth: slider.value === "0.5" ? null : slider.value }));
  const button = (text, label, work) => h("button", { type: "button", "aria-label": label, title: label, onclick: work }, text);
  const all = button("Reset zoom", "Reset zoom", () => group.zoom(null));
  all.disabled = true;
  const logX = h("button", { type: "button", "aria-pressed": false, title: "Logarithmic x-axis", onclick: () => changed({ logx: settings.logx ? null : "1", from: null, to: null }) }, "log x");
  const keys = h("ul", { class: "marks-key" }, ...[["checkpoint", "--muted"], ["restart", "--danger"], ["straggler", "--warn"]].map(([name, color]) =>
    h("li", {}, h("i", { style: `--c: var(${color})` }), name)));
  const element = h("div", { class: "chart-bar", role: "group", "aria-label": "What the charts show" },
    h("span", { class: "quiet" }, "x-axis"), axis.element, logX, h("label", {}, "smoothing", slider),
    h("div", { class: "choice" }, button("−", "Zoom out", () => group.zoomBy(2)), button("+", "Zoom in", () => group.zoomBy(0.5)), all), keys);
  return { element, axis, logX, zoomed: (range) => { all.disabled = !range; } };
}

// ------------------------------------------------------------------ charts

// settings: from the address. {element, update(job, evals, events, signal), apply(query), close()}
export function jobCharts(id, query) {
  const settings = { x: "step", logx: null, smooth: 0.5, from: null, to: null, log: "" };
  const group = new ChartGroup(AXES.step);
  const charts = Object.fromEntries(CHARTS.map((options) => [options.id, new Chart({ ...options, file: `job-${id}-${options.id}` }, group)]));
  const ranks = new HeatMap({ id: "ranks", file: `job-${id}-ranks`, title: "Time each rank worked", unit: "ms per step, without waiting for others" }, group);
  const every = [...Object.values(charts), ranks];
  let run = null; // {job, series, evals, events, rankTimes}
  let part = null, fetchingPart = null;
  let published = null; // accuracies of the job's preset: [[epoch, top1], ...]

  // With another x-axis, the whole run is shown.
  const setX = () => {
    group.logX = settings.logx === "1";
    mark(tools.logX, "aria-pressed", group.logX);
    group.setX(AXES[settings.x]);
    tools.zoomed(null);
  };
  const tools = bar(group, settings, (changes) => {
    Object.assign(settings, changes);
    setQuery(changes);
    setX();
    draw();
  });
  const element = h("section", { class: "stack", "aria-label": "Charts" }, tools.element, h("div", { class: "charts" }, ...every.map((chart) => chart.element)));

  group.zoomed = (range) => {
    tools.zoomed(range);
    setQuery({ from: range ? Number(range[0].toPrecision(7)) : null, to: range ? Number(range[1].toPrecision(7)) : null });
    refine();
  };
  for (const chart of every) {
    chart.logChanged = () => setQuery({ log: every.filter((c) => c.isLog).map((c) => c.options.id).join(",") });
  }

  // x of a step on each axis.
  const xs = (series) => ({
    step: () => series.step,
    images: () => series.images ?? series.step.map((step) => step * (run.job.global_batch ?? 1)), // missing in answers of an older daemon
    epoch: () => series.epoch,
    time: () => series.t.map((t) => t - run.job.started_at),
  })[settings.x]();
  const xOf = (step, t) => {
    if (settings.x === "step") return step;
    if (settings.x === "time" && t) return t - run.job.started_at;
    return between(run.series.step, xs(run.series), step);
  };

  // The charts of a long run show means; when the user zooms in, the steps themselves are fetched.
  async function refine() {
    fetchingPart?.abort();
    if (!group.range || !run?.series.downsampled) {
      if (part) part = null, draw();
      return;
    }
    // A mean is placed at the middle of its steps: at the end of the curve, half of them come after it.
    const x = xs(run.series), step = (at) => Math.max(0, Math.round(between(x, run.series.step, at)));
    const from = group.range[0] <= x[0] ? 0 : step(group.range[0]), to = group.range[1] >= x.at(-1) ? Number.MAX_SAFE_INTEGER : step(group.range[1]);
    const mine = (fetchingPart = new AbortController());
    part = await get(`/v1/jobs/${id}/metrics?names=${METRICS}&from=${from}&to=${to}&points=${POINTS}`, mine.signal).catch(() => null);
    if (fetchingPart === mine) draw();
  }

  function marks(events) {
    const words = {
      checkpoint: (e) => ["checkpoint", `checkpoint at step ${f.count(e.step)}`],
      straggler: (e) => ["straggler", `rank ${e.rank} on ${e.host} held up the others`],
      run_start: (e) => (e.attempt > 1 ? ["restart", `attempt ${e.attempt} began`] : null),
      failed: (e) => ["restart", `attempt ${e.attempt} failed`],
    };
    return events.map((e) => {
      const found = words[e.type]?.(e);
      if (!found) return null;
      const series = run.series;
      const step = e.step ?? (series.t.length > 1 ? between(series.t, series.step, Math.min(e.t, series.t.at(-1))) : 0);
      return { x: xOf(step, e.t), kind: found[0], label: found[1] };
    }).filter(Boolean);
  }

  function target() {
    const { job } = run, wish = job.spec?.eval?.target_top1;
    if (!(wish > 0)) return { lines: [], spans: [], note: "" };
    const lines = [{ y: wish, label: `target ${f.percent(wish)}`, color: "--c3" }], { step, met_step: met, within_run: within, seconds } = job.target ?? {};
    const at = (n) => `step ${f.count(n)} (epoch ${epochAt(job.plan, n).toFixed(2)})`;
    if (met != null) return { lines, spans: [], note: `The target was reached by ${at(met)}.` };
    if (job.finished_at) return { lines, spans: [], note: "The target was not reached." };
    if (step?.value == null) return { lines, spans: [], note: "" };
    const spans = within ? [{ from: xOf(step.low), to: xOf(Math.min(step.high, job.train_steps)), label: "target expected", color: "--c3" }] : [];
    return { lines, spans, note: `At this pace the target will be met at ${at(Math.round(step.value))}, between ${f.count(step.low)} and ${f.count(step.high)}` +
      (!within ? `: beyond this run's ${f.count(job.train_steps)} steps.`
        : seconds?.value == null ? "." : `; in ${f.duration(seconds.value)}, between ${f.duration(seconds.low)} and ${f.duration(seconds.high)}.`) };
  }

  const remarked = (about) => (published.length ? { ...about, note: `${about.note} The published curve is that of preset ${run.job.spec.preset}.`.trim() } : about);

  function rest(series) {
    return series.step_ms.map((all, i) => {
      const sum = PHASES.slice(0, -1).reduce((total, [key]) => total + (series[key][i] ?? 0), 0);
      return all === null ? null : Math.max(0, all - sum);
    });
  }

  // Merges training and evaluation steps on one x; the columns of minimum and maximum belong to the training.
  function lossData(series, x, evals, ex) {
    const columns = [series.loss, ...(series.min ? [series.min.loss, series.max.loss] : [])];
    const [all, loss, ...more] = joined([[x, ...columns], [ex, evals.map((e) => e.loss)]]);
    const evaluated = more.pop();
    return { x: all, y: { loss, eval_loss: evaluated }, ...(more.length ? { min: { loss: more[0] }, max: { loss: more[1] } } : {}) };
  }

  // Draws each chart in a task of its own, so that the page stays responsive.
  let drawing = 0;
  async function draw() {
    if (!run) return;
    const mine = ++drawing, { job, evals, events, rankTimes } = run;
    const series = refined(run.series, group.range ? part : null), x = xs(series);
    const ex = evals.map((e) => ({ step: e.step, images: e.images_seen ?? xOf(e.step), epoch: e.epoch, time: e.t - job.started_at })[settings.x]);
    const events_ = marks(events), y = { ...series, rest_ms: rest(series) };
    group.whole = x.length > 1 ? [x[0], Math.max(x.at(-1), ex.at(-1) ?? 0)] : null;
    const warm = job.plan?.warmup_steps > 0 ? [{ from: x[0], to: xOf(job.plan.warmup_steps), label: "warm-up", color: "--c2" }] : [];
    const plain = { x, y, min: series.min, max: series.max, marks: events_ };
    const work = [
      () => charts.loss.update({ ...lossData(series, x, evals, ex), marks: events_ }),
      () => charts.accuracy.update({ ...accuracy(series, x, evals, ex), marks: events_, ...remarked(target()) }),
      () => charts.images_per_sec.update(plain),
      () => charts.step_time.update(plain),
      () => charts.lr.update({ ...plain, spans: warm }),
      () => charts.grad_norm.update(plain),
      () => ranks.update({ x: rankTimes.step.map((step, i) => ({ step, images: xOf(step), epoch: rankTimes.epoch[i], time: rankTimes.t[i] - job.started_at })[settings.x]),
        rows: rankTimes.rank_busy_ms, marks: events_.filter((m) => m.kind === "straggler") }),
    ];
    show(ranks.element, rankTimes.world > 1);
    for (const one of work) {
      one();
      await pause();
      if (mine !== drawing) return;
    }
  }

  // Omits the training curve if the worker did not report it, and what was published for epochs to come.
  function accuracy(series, x, evals, ex) {
    const trains = series.top1?.some((v) => v !== null), end = group.whole?.[1] ?? -Infinity;
    const points = published.map(([epoch, top1]) => [xOf(stepAt(run.job.plan, epoch)), top1]).filter(([at]) => at <= end * (1 + 1e-9));
    const [all, top1, top5, raw_top1, theirs, train_top1, ...more] = joined([
      [ex, evals.map((e) => e.top1), evals.map((e) => e.top5), evals.map((e) => e.raw_top1 ?? null)], [points.map(([at]) => at), points.map(([, y]) => y)],
      ...(trains ? [[x, series.top1, ...(series.min ? [series.min.top1, series.max.top1] : [])]] : [])]);
    return { x: all, y: { ...(trains ? { train_top1 } : {}), top1, top5, raw_top1, published: theirs }, ...(more.length ? { min: { train_top1: more[0] }, max: { train_top1: more[1] } } : {}) };
  }

  function apply(from) {
    settings.x = AXES[from.get("x")] ? from.get("x") : "step";
    settings.logx = from.get("logx") === "1" ? "1" : null;
    settings.smooth = Math.min(1, Math.max(0, Number(from.get("smooth") ?? 0.5) || 0));
    const range = [from.get("from"), from.get("to")].map((text) => (text === null ? NaN : Number(text)));
    tools.axis.set(settings.x);
    tools.element.querySelector("input[type=range]").value = settings.smooth;
    group.smoothing = settings.smooth;
    setX();
    for (const chart of every) if (chart.isLog !== (from.get("log") ?? "").split(",").includes(chart.options.id)) chart.setLog(!chart.isLog);
    if (range[0] < range[1]) group.zoom(range);
    draw();
  }
  apply(query);

  return {
    element, apply,
    update: async (job, evals, events, signal) => {
      const [series, rankTimes] = await Promise.all([get(`/v1/jobs/${id}/metrics?names=${METRICS}&points=${POINTS}`, signal),
        job.plan?.world_size > 1 ? get(`/v1/jobs/${id}/ranks?points=${RANK_POINTS}`, signal) : { world: 1, step: [], epoch: [], t: [], rank_busy_ms: [] }]);
      published ??= job.spec?.preset ? (await get("/v1/presets", signal)).presets.find(({ name }) => name === job.spec.preset)?.top1_by_epoch ?? [] : [];
      const first = !run;
      run = { job, evals, events, series, rankTimes };
      if (first && group.range) refine();
      await draw();
    },
    close: () => every.forEach((chart) => chart.close()),
  };
}
