// Output files of a job for viewing: the table of layers and the predictions. Fetched when opened.

import { getBytes, Problem, words } from "../api.js";
import { h, say, show } from "../dom.js";
import * as f from "../format.js";

const MISTAKES = 100; // shown: the most confident ones
const CLASSES = 100, MATRIX = 30; // shown: the worst classes; no matrix above this number

// fill(text) creates elements from the file.
function output(title, path, fill) {
  const told = h("p", { class: "quiet", role: "status" }), place = h("div");
  const element = h("section", { class: "card folded", hidden: true }, h("details", { ontoggle: (event) => event.target.open && load() }, h("summary", {}, h("h2", {}, title)), told, place));
  async function load() {
    say(told, "Loading…");
    try {
      place.replaceChildren(...fill(new TextDecoder().decode(await getBytes(path))));
      say(told, "");
    } catch (error) {
      place.replaceChildren();
      say(told, error instanceof Problem && error.status === 404 ? "Not written yet." : words(error));
    }
  }
  return element;
}

// Parses a line of predictions.csv: "file",label,top1,p, with quotes doubled in the name, and an apostrophe before what a spreadsheet would
// take for a formula.
function parsed(line) {
  const [, name, label, top1, p] = /^"((?:[^"]|"")*)",(-?\d+),(\d+),(\S+)$/.exec(line) ?? [];
  return name === undefined ? null : { name: name.replaceAll('""', '"').replace(/^'(?='*[=+\-@\t\r])/, ""), label: Number(label), top1: Number(top1), p: Number(p) };
}

const scrolled = (label, heads, rows, kind = "") => h("div", { class: "scroll", role: "group", tabindex: 0, "aria-label": label }, h("table", { class: kind },
  h("thead", {}, h("tr", {}, ...heads.map(([name, of]) => h("th", { scope: "col", class: of }, name)))), h("tbody", {}, ...rows)));
const num = (value) => h("td", { class: "num" }, value);

// Counts how images of each class were predicted: [{label, images, right, taken: Map(class -> images)}], by class.
export function classesOf(all) {
  const classes = new Map();
  for (const { label, top1 } of all) {
    if (!classes.has(label)) classes.set(label, { label, images: 0, right: 0, taken: new Map() });
    const one = classes.get(label);
    one.images++;
    one.right += label === top1;
    one.taken.set(top1, (one.taken.get(top1) ?? 0) + 1);
  }
  return [...classes.values()].sort((a, b) => a.label - b.label);
}

function classTable(classes) {
  const share = (one) => one.right / one.images, worst = [...classes].sort((a, b) => share(a) - share(b)).slice(0, CLASSES);
  return scrolled("Top-1 by class", [["Class", "num"], ["Images", "num"], ["Top-1", "num"], ["Most often predicted as", ""]], worst.map((one) => {
    const [other, times] = [...one.taken].filter(([taken]) => taken !== one.label).sort((a, b) => b[1] - a[1])[0] ?? [];
    return h("tr", {}, num(`${one.label}`), num(f.count(one.images)), num(f.percent(share(one))), h("td", {}, times ? `${other} (${f.count(times)} ${times === 1 ? "image" : "images"})` : f.none));
  }));
}

// A row for each class, a column for each predicted class.
function confusionMatrix(classes) {
  const names = [...new Set(classes.flatMap((one) => [one.label, ...one.taken.keys()]))].sort((a, b) => a - b);
  if (names.length > MATRIX) return null;
  const cell = (one, name) => {
    const count = one.taken.get(name) ?? 0;
    return h("td", { class: name === one.label ? "num right" : "num", style: `--s: ${Math.round((40 * count) / one.images)}%` }, count ? f.count(count) : "");
  };
  return scrolled("Confusion matrix", [["Class", "num"], ...names.map((name) => [`${name}`, "num"])],
    classes.map((one) => h("tr", {}, h("th", { scope: "row", class: "num" }, `${one.label}`), ...names.map((name) => cell(one, name)))), "confusion");
}

function mistakes(text) {
  const all = text.split("\n").map(parsed).filter(Boolean), classes = classesOf(all.filter(({ label }) => label >= 0)), matrix = confusionMatrix(classes), wrong = all.filter((one) => one.label !== one.top1).sort((a, b) => b.p - a.p);
  const summary = `${f.count(all.length - wrong.length)} of ${f.count(all.length)} images were predicted correctly.`;
  const rows = wrong.slice(0, MISTAKES).map((one) => h("tr", {}, h("td", {}, one.name), h("td", { class: "num" }, `${one.label}`),
    h("td", { class: "num" }, `${one.top1}`), h("td", { class: "num" }, f.percent(one.p))));
  const heads = [["Image", ""], ["Class", "num"], ["Predicted class", "num"], ["Probability", "num"]];
  return [h("p", {}, summary),
    ...(matrix ? [h("h3", {}, "Confusion matrix"), h("p", { class: "quiet" }, "Rows: the class of the images. Columns: the class predicted."), matrix] : []),
    ...(classes.length ? [h("h3", {}, classes.length > CLASSES ? `Top-1 of the ${CLASSES} worst classes` : "Top-1 by class, worst first"), classTable(classes)] : []),
    wrong.length ? h("h3", {}, "Mistakes") : null, h("p", {}, wrong.length ? `The ${wrong.length > MISTAKES ? `${MISTAKES} ` : ""}most confident first.` : ""),
    wrong.length ? scrolled("Mistakes", heads, rows) : null].filter(Boolean);
}

// {element, update(job)}
export function outputs(id) {
  const layers = output("Layers", `/v1/jobs/${id}/layers`, (text) => [h("pre", { class: "log", tabindex: 0, "aria-label": "Layers" }, text)]);
  const predictions = output("Predictions", `/v1/jobs/${id}/predictions`, mistakes);
  const element = h("div", { class: "stack" }, layers, predictions);
  return {
    element,
    update: (job) => {
      show(layers, Boolean(job.spec?.profile?.steps));
      show(predictions, Boolean(job.spec?.eval?.predictions));
    },
  };
}
