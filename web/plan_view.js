// The plan of a job document in words, and its learning rate as a curve.

import { h, mark, say, show } from "./dom.js";
import * as f from "./format.js";

const SVG = "http://www.w3.org/2000/svg";
const svg = (tag, attributes = {}, ...children) => {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
};

const many = (n, one, more = one + "s") => `${f.count(n)} ${n === 1 ? one : more}`;

function band(values, format) {
  if (values?.value == null) return null;
  return values.low === values.high ? format(values.value) : `${format(values.value)}, between ${format(values.low)} and ${format(values.high)}`;
}

// What a finished job has measured is better than an unknown speed at the time of planning.
const unknown = (measured, format) => (measured == null ? "unknown" : `${format(measured)}, measured`);

// Returns [[name, words, the plan's key], …]; spec: the document with its defaults; job: a finished job, for its measured values
function lines(plan, spec, job) {
  const { cluster } = spec;
  const batch = [cluster.nodes > 1 && many(cluster.nodes, "node"), many(cluster.workers_per_node, "worker"),
    many(spec.batch_per_worker, "image"), spec.accumulate_steps > 1 && many(spec.accumulate_steps, "batch", "batches")].filter(Boolean).join(" × ");
  return [
    ["Training images", plan.train_images && f.count(plan.train_images), "train_images"],
    ["Global batch", plan.global_batch && `${f.count(plan.global_batch)} = ${batch}`, "global_batch"],
    ["Steps", plan.train_steps && `${f.count(plan.train_steps)}, ${f.count(plan.steps_per_epoch)} per epoch`, "train_steps"],
    ["Warm-up", plan.train_steps && (plan.warmup_steps ? many(plan.warmup_steps, "step") : "none"), "warmup_steps"],
    ["Image sizes", plan.image_sizes && plan.image_sizes.map(({ step, size }) => (step ? `${size} from step ${f.count(step)}` : `${size}`)).join(", ") +
      `: ${f.percent(plan.size_cost)} of the arithmetic at the last`, "image_sizes"],
    ...(plan.phases ?? []).map((phase, i) => [`Phase ${i + 1}`, `${many(phase.steps, "step")} of ${f.count(phase.global_batch)} images (${f.count(phase.batch_per_worker)} a worker) ` +
      `of ${phase.image_size} pixels, epochs ${f.number(phase.epoch)} to ${f.number(phase.end_epoch)}, learning rate ${f.number(phase.first_lr)} to ${f.number(phase.last_lr)}`, "phases"]),
    ["Peak learning rate", plan.peak_lr !== null && f.number(plan.peak_lr), "peak_lr"],
    ["Evaluation images", plan.eval_images > 0 && f.count(plan.eval_images), "eval_images"],
    ["Memory per worker", plan.memory_bytes_per_worker && `${f.size(plan.memory_bytes_per_worker)} (estimate)`, "memory_bytes_per_worker"],
    ["Images/s", band(plan.predicted?.images_per_sec ?? plan.predicted?.images_per_second, f.rate) ?? unknown(job?.images_per_sec, f.rate), "predicted"],
    ["Time", band(plan.predicted?.ttt_seconds, f.duration) ?? unknown(job?.ttt_seconds, f.duration), "predicted"],
    ["Energy", band(plan.predicted?.kwh, f.kwh), "predicted"],
    ["Cost", band(plan.predicted?.cost, (cost) => f.money(cost, plan.predicted.currency)), "predicted"],
  ].filter(([, words]) => words);
}

// The curve with its warm-up shaded, and ten of its values as a table; data: plan.lr_curve of POST /v1/plan.
function curve() {
  const warm = svg("rect", { class: "warm", y: 0, height: 100 }), path = svg("path", { class: "rate" });
  const picture = svg("svg", { viewBox: "0 0 300 100", preserveAspectRatio: "none", role: "img" }, warm, path);
  const top = h("span", { class: "top" }), last = h("span"), body = h("tbody");
  const element = h("figure", { class: "curve" }, h("figcaption", {}, h("span", {}, "Learning rate"), top), picture,
    h("p", { class: "ends" }, h("span", {}, "step 0"), last),
    h("details", {}, h("summary", {}, "As a table"), h("table", {}, h("thead", {}, h("tr", {},
      h("th", { scope: "col", class: "num" }, "Step"), h("th", { scope: "col", class: "num" }, "Learning rate"))), body)));
  const update = (plan) => {
    const points = plan.lr_curve ?? [];
    show(element, points.length > 0);
    if (points.length === 0) return;
    const T = plan.train_steps, high = Math.max(...points.map(([, rate]) => rate), Number.MIN_VALUE);
    const x = (s) => (300 * s) / Math.max(1, T - 1), y = (rate) => 98 - (94 * rate) / high;
    mark(path, "d", points.map(([s, rate], i) => `${i ? "L" : "M"}${x(s).toFixed(2)} ${y(rate).toFixed(2)}`).join(""));
    mark(warm, "width", Math.min(300, x(plan.warmup_steps)).toFixed(2));
    const peak = plan.phases ? high : plan.peak_lr; // a phase with larger batches may have a higher one
    say(top, `peak ${f.number(peak)}`);
    say(last, `step ${f.count(T - 1)}`);
    const end = f.number(points.at(-1)[1]);
    mark(picture, "aria-label", `Learning rate: from ${f.number(points[0][1])}` +
      (plan.warmup_steps ? `, ${f.number(plan.phases ? points.find(([s]) => s >= plan.warmup_steps)?.[1] ?? peak : peak)} after ${many(plan.warmup_steps, "step")} of warm-up` : "") + `, ${end} at step ${f.count(T - 1)}`);
    const rows = new Set([...Array(10).keys()].map((i) => Math.round((i * (points.length - 1)) / 9)));
    rows.add(points.findIndex(([s]) => s === plan.warmup_steps));
    body.replaceChildren(...points.filter((_, i) => rows.has(i)).map(([s, rate]) =>
      h("tr", {}, h("td", { class: "num" }, f.count(s)), h("td", { class: "num" }, f.number(rate)))));
  };
  return { element, update };
}

// Explains a number: what it is, how it is calculated, what would change it, and the source.
function explanation(key, { formula, inputs, value, meaning, change, note, source }) {
  const text = (x) => (typeof x === "string" ? x : typeof x === "number" ? f.number(x) : JSON.stringify(x));
  const given = Object.entries(inputs ?? {}).map(([name, x]) => `${name} = ${text(x)}`).join(", ");
  const line = (words, kind) => (words ? h("p", kind ? { class: kind } : {}, ...words) : null);
  return h("div", {}, h("dt", {}, h("code", {}, typeof value === "number" ? `${key} = ${Number.isInteger(value) ? f.count(value) : f.number(value)}` : key)),
    h("dd", {}, line(meaning && [meaning]), line([h("code", {}, formula), given ? ` with ${given}` : ""]), line(note && [note]),
      line(change && ["To change it: ", change]), line(source && ["Source: ", source], "quiet")));
}

// {element, update(plan, spec)}
export function planView() {
  const list = h("dl", { class: "facts" }), warnings = h("ul", { class: "warnings" }), line = curve();
  const how = h("p", { class: "quiet" }); // how to have a speed measured
  const why = h("dl", { class: "why-list" });
  const element = h("div", { class: "plan" }, list, how, warnings, line.element, h("details", {}, h("summary", {}, "How these are calculated"),
      h("div", { class: "scroll", role: "group", tabindex: 0, "aria-label": "How these are calculated" }, why)));
  const update = (plan, spec, job) => {
    list.replaceChildren(...lines(plan, spec, job).flatMap(([name, words, key]) => [h("dt", {}, name), h("dd", { "data-key": key }, words)]));
    say(how, plan.predicted?.ttt_seconds?.value == null && !job ? `Images/s: ${plan.explain?.predicted?.note ?? ""}` : "");
    show(how, how.textContent !== "" && plan.train_steps > 0);
    warnings.replaceChildren(...(plan.warnings ?? []).map((text) => h("li", {}, text)));
    show(warnings, warnings.children.length > 0);
    line.update(plan);
    why.replaceChildren(...Object.entries(plan.explain ?? {}).map(([key, one]) => explanation(key, one)));
  };
  return { element, update };
}
