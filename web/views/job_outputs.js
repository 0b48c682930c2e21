// Output files of a job for viewing: the table of layers and the predictions. Fetched when opened.

import { getBytes, Problem, words } from "../api.js";
import { h, say, show } from "../dom.js";
import * as f from "../format.js";

const MISTAKES = 100; // shown: the most confident ones

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

export const scrolled = (label, heads, rows, kind = "") => h("div", { class: "scroll", role: "group", tabindex: 0, "aria-label": label }, h("table", { class: kind },
  h("thead", {}, h("tr", {}, ...heads.map(([name, of]) => h("th", { scope: "col", class: of }, name)))), h("tbody", {}, ...rows)));
function mistakes(text) {
  const all = text.split("\n").map(parsed).filter(Boolean), wrong = all.filter((one) => one.label !== one.top1).sort((a, b) => b.p - a.p);
  const summary = `${f.count(all.length - wrong.length)} of ${f.count(all.length)} images were predicted correctly.`;
  const rows = wrong.slice(0, MISTAKES).map((one) => h("tr", {}, h("td", {}, one.name), h("td", { class: "num" }, `${one.label}`),
    h("td", { class: "num" }, `${one.top1}`), h("td", { class: "num" }, f.percent(one.p))));
  const heads = [["Image", ""], ["Class", "num"], ["Predicted class", "num"], ["Probability", "num"]];
  return [h("p", {}, summary),
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
