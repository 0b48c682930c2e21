// Scaling with workers or nodes: images/s and efficiency of jobs, with a line for each batch per worker, next to the ideal and, on request,
// to published results.

import { Chart, ChartGroup } from "./charts.js";
import { choice, h, say, show } from "../dom.js";
import * as f from "../format.js";
import { keyWords } from "../job_document.js";
import { SIMULATED } from "./simulated.js";

const BY = {
  workers: { words: "Workers", one: "worker", many: "workers", of: (run) => run.workers },
  nodes: { words: "Nodes", one: "node", many: "nodes", of: (run) => run.nodes },
};

// ResNet-50 on ImageNet with CPUs, two workers per node. SURFsara's single-node speed is its share of 16,400 images/s at the stated
// efficiency of 81 %.
const PUBLISHED = [
  { key: "surfsara", label: "SURFsara and Intel 2018, 2 x 8160 per node", source: "ResNet-50 BKM: 16,400 images/s on 256 nodes, 81 % efficiency",
    points: [{ nodes: 1, workers: 2, rate: 16400 / 256 / 0.81 }, { nodes: 256, workers: 512, rate: 16400 }] },
];

// Results that can be shown for comparison, by their name in the address.
const BESIDE = {
  published: { words: "Published figures", lines: PUBLISHED.map((one) => ({ ...one, color: "--violet", points: true, at: one.points })),
    note: PUBLISHED.map(({ label, source }) => `${label}: ${source}.`).join(" ") },
  simulated: { words: "Simulated clusters", lines: SIMULATED.map((one, i) => ({ ...one, color: `--c${4 + i}`, dash: [4, 4], dots: true, points: false, at: one.points })),
    note: "Simulated: ResNet-50 on clusters of such nodes, 100 Gbit/s, no jitter (doc/scaling.md)." },
};

const batchOf = (job) => job.plan.global_batch / job.plan.world_size;

// Returns [{nodes, workers, batch, rate}] of the jobs that have a speed, ordered by batch.
function runsOf(jobs) {
  return jobs.filter((job) => job.plan?.world_size && job.plan.global_batch && job.images_per_sec > 0)
    .map((job) => ({ nodes: job.spec?.cluster?.nodes ?? 1, workers: job.plan.world_size, batch: batchOf(job), rate: job.images_per_sec }))
    .sort((a, b) => a.batch - b.batch);
}

// Returns {x: counts, best: {batch: {x: rate}}, one: speed per worker or node of the smallest run}, or null if all runs have the same size.
// Efficiency is relative to the best of the smallest runs, whatever its batch.
function scaling(runs, by) {
  const x = [...new Set(runs.map(by))].sort((a, b) => a - b), best = new Map();
  if (x.length < 2) return null;
  for (const run of runs) {
    const rates = best.get(run.batch) ?? best.set(run.batch, new Map()).get(run.batch);
    rates.set(by(run), Math.max(rates.get(by(run)) ?? 0, run.rate));
  }
  const one = Math.max(...runs.filter((run) => by(run) === x[0]).map((run) => run.rate)) / x[0];
  return { x, best, one };
}

const lineOf = (batch, i) => ({ key: `b${batch}`, label: `${f.number(batch)} images per worker`, color: `--c${(i % 7) + 1}`, dots: true });

function dataOf({ x, best, one }, by, references) {
  const all = [...new Set([...x, ...references.flatMap(({ at }) => at.map(by))])].sort((a, b) => a - b);
  const rate = { ideal: all.map((n) => one * n) }, share = {};
  for (const [batch, rates] of best) {
    rate[`b${batch}`] = all.map((n) => rates.get(n) ?? null);
    share[`b${batch}`] = all.map((n) => (rates.has(n) ? rates.get(n) / n / one : null));
  }
  for (const { key, at } of references) {
    const rates = new Map(at.map((point) => [by(point), point.rate])), first = at[0].rate / by(at[0]);
    rate[key] = all.map((n) => rates.get(n) ?? null);
    share[key] = all.map((n) => (rates.has(n) ? rates.get(n) / n / first : null));
  }
  return { x: all, rate, share };
}

export class ScalingCards {
  // set(name, value): stores a choice in the address
  constructor({ by, beside }, set) {
    this.by = by in BY ? by : "workers";
    this.beside = new Set(beside);
    this.set = set;
    this.group = new ChartGroup(this.axis());
    this.speed = new Chart({ id: "scaling", title: "Scaling", unit: "images/s", log: true, startsLog: true, format: f.rate, series: [] }, this.group);
    this.share = new Chart({ id: "efficiency", title: "Efficiency", unit: "of the ideal", axis: "efficiency", zero: true, format: (x) => `${Math.round(100 * x)} %`, series: [] }, this.group);
    this.note = h("p", { class: "quiet" });
    this.choice = choice("Scaling by", Object.entries(BY).map(([name, { words }]) => [name, words]), this.by, (name) => this.choose({ by: name }));
    const ticks = Object.entries(BESIDE).map(([name, { words }]) => h("label", { class: "tick" },
      h("input", { type: "checkbox", checked: this.beside.has(name), onchange: (event) => this.lay(name, event.currentTarget.checked) }), ` ${words}`));
    this.element = h("div", { class: "scaling", hidden: true },
      h("div", { class: "actions" }, this.choice.element, ...ticks),
      h("div", { class: "charts" }, this.speed.element, this.share.element), this.note);
  }

  axis() {
    const { many } = BY[this.by];
    return { name: many, format: f.count, log: true };
  }

  lay(name, wanted) {
    if (wanted) this.beside.add(name);
    else this.beside.delete(name);
    this.choose({});
  }

  choose(what) {
    Object.assign(this, what);
    this.set("scaling", this.by === "workers" ? null : this.by);
    for (const name of Object.keys(BESIDE)) this.set(name, this.beside.has(name) ? "1" : null);
    this.group.setX(this.axis());
    this.draw();
  }

  update(jobs, differences) {
    this.runs = runsOf(jobs);
    this.differences = differences;
    this.draw();
  }

  draw() {
    const { of: by, one: single, many } = BY[this.by], found = scaling(this.runs, by);
    const either = Object.values(BY).some(({ of }) => scaling(this.runs, of));
    show(this.element, either);
    if (!either) return;
    const beside = Object.keys(BESIDE).filter((name) => this.beside.has(name)).map((name) => BESIDE[name]);
    const references = beside.flatMap(({ lines }) => lines);
    const lines = found ? [...found.best.keys()].map(lineOf) : [];
    const data = found ? dataOf(found, by, references) : { x: [], rate: {}, share: {} };
    this.fill(this.speed, [{ key: "ideal", label: "ideal", color: "--c8", dash: [6, 4] }, ...lines, ...references], { x: data.x, y: data.rate });
    this.fill(this.share, [...lines, ...references], { x: data.x, y: data.share, lines: found ? [{ y: 1, label: "" }] : [] });
    say(this.note, found ? this.words(found.x[0], found.x[0] === 1 ? single : many, beside) : `All of these jobs have the same number of ${many}.`);
  }

  fill(chart, series, data) {
    const keys = series.map((s) => s.key + s.label).join();
    if (chart.keys !== keys) chart.setSeries(series);
    chart.keys = keys;
    chart.update(data);
  }

  words(fewest, name, beside) {
    const others = this.differences.map((d) => d.pointer)
      .filter((pointer) => !/^\/(name|cluster\/.*|priority|restart\/.*|checkpoint\/.*|batch_per_worker|global_batch|accumulate_steps)$/.test(pointer));
    return `The ideal is the best speed on ${f.count(fewest)} ${name}, scaled linearly.` +
      (others.length ? ` These runs differ in more than their size: ${others.map(keyWords).join(", ")}.` : "") +
      beside.map(({ note }) => ` ${note}`).join("");
  }

  close() {
    [this.speed, this.share].forEach((chart) => chart.close());
  }
}
