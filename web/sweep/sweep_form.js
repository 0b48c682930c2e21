// A form for a sweep's document, kept in sync with the JSON next to it.

import { h, say, show } from "../dom.js";
import { equal, keyWords, plainObject } from "../job_document.js";

const METRICS = ["top1", "top5", "loss", "images_per_sec", "ttt_seconds"];
const METHODS = { grid: "every combination", random: "points drawn at random", halving: "all points on a small budget, the best on larger ones", tpe: "random points, then points near good ones" };

// Parses "0.1, 0.2", "cosine, poly" or "0.01 to 1 log" to the form used in the document.
function readValues(text) {
  const [, min, max, more] = /^\s*(\S+)\s+to\s+(\S+?)((?:\s+(?:log|integer))*)\s*$/.exec(text) ?? [];
  if (min !== undefined && [min, max].every((x) => Number.isFinite(Number(x))))
    return { min: Number(min), max: Number(max), ...(/log/.test(more) ? { log: true } : {}), ...(/integer/.test(more) ? { integer: true } : {}) };
  try {
    return JSON.parse(`[${text}]`);
  } catch {
    return text.split(",").map((word) => word.trim()).filter(Boolean).map((word) => {
      try {
        return JSON.parse(word);
      } catch {
        return word;
      }
    });
  }
}
function writeValues(values) {
  if (plainObject(values)) return `${values.min} to ${values.max}${values.log ? " log" : ""}${values.integer ? " integer" : ""}`;
  const plain = (x) => typeof x === "string" && x !== "" && !/^[\s"[{]|[,\s]$|,| to /.test(x) && equal(readValues(x), [x]);
  return Array.isArray(values) ? values.map((x) => (plain(x) ? x : JSON.stringify(x))).join(", ") : "";
}

// fields: of the job's schema. changed(document) is called while typing. Returns {element, update(document, or null if the JSON is
// invalid)}
export function sweepForm(fields, changed) {
  let document = {};
  const take = (key, value) => {
    const next = { ...document, [key]: value };
    if (value === undefined || value === "") delete next[key];
    changed(next);
  };
  const field = (title, input, help) => {
    input.id = `sweep-${title.toLowerCase().replaceAll(/\W+/g, "-")}`;
    return h("div", { class: "field" }, h("div", { class: "label" }, h("label", { for: input.id }, title)), input, h("p", { class: "help" }, help));
  };
  const number = (set) => h("input", { inputmode: "decimal", autocomplete: "off", oninput: (event) => {
    const text = event.target.value.trim();
    set(text === "" ? undefined : Number.isFinite(Number(text)) ? Number(text) : text);
  } });
  const select = (words, set) => h("select", { onchange: (event) => set(event.target.value) }, ...words.map((word) => h("option", { value: word }, word)));

  const name = h("input", { autocomplete: "off", oninput: (event) => take("name", event.target.value) });
  const method = select(Object.keys(METHODS), (word) => changed({ ...document, method: word, ...(word === "halving" && !document.budget
    ? { budget: { key: "steps", min: 4, max: 16, eta: 2 } } : {}), ...(word === "halving" ? {} : { budget: undefined }), ...(word === "grid" ? { sampling: undefined } : {}),
    ...(word === "tpe" ? {} : { n_startup: undefined, gamma: undefined }) }));
  const metric = select(METRICS, (word) => take("metric", word));
  const sampling = select(["random", "halton"], (word) => take("sampling", word === "random" ? undefined : word));
  const samples = number((value) => take("samples", value)), together = number((value) => take("concurrency", value));
  const budget = (key) => number((value) => take("budget", { ...document.budget, [key]: value }));
  const unit = select(["steps", "epochs"], (word) => take("budget", { ...document.budget, key: word }));
  const [least, most, eta] = ["min", "max", "eta"].map(budget);
  const rows = h("div", { class: "parameters" }), keys = h("datalist", { id: "sweep-keys" }, ...fields.map(({ pointer }) => h("option", { value: keyWords(pointer) })));
  const samplesField = field("Samples", samples, "points to draw"), samplingField = field("Sampling", sampling, "halton: points spread evenly"), budgetFields = h("div", { class: "fields" },
    field("Budget in", unit, "unit of the budget"), field("Least", least, "of the first rung"), field("Most", most, "of the last rung"), field("Eta", eta, "factor between rungs: more budget, fewer points"));

  // The rows hold the state of the parameters, because one being typed has no key yet.
  const row = (key, values) => {
    const keyInput = h("input", { value: key && keyWords(key), list: keys.id, autocomplete: "off", spellcheck: "false", placeholder: "lr.base", "aria-label": "Key", oninput: () => tell() });
    const valuesInput = h("input", { value: writeValues(values), autocomplete: "off", spellcheck: "false", placeholder: "0.05, 0.1, 0.2", "aria-label": "Values", oninput: () => tell() });
    const element = h("div", { class: "parameter" }, keyInput, valuesInput, h("button", { type: "button", class: "plain", onclick: () => { element.remove(); tell(); } }, "Remove"));
    element.read = () => [keyInput.value.trim(), readValues(valuesInput.value)];
    return element;
  };
  const read = () => Object.fromEntries([...rows.children].map((one) => one.read()).filter(([key]) => key).map(([key, values]) => [keyWords(key), values]));
  const tell = () => take("parameters", read());
  const add = h("button", { type: "button", onclick: () => { rows.append(row("", [])); rows.lastChild.firstChild.focus(); } }, "Add a key");
  const base = h("p", { class: "help" });
  const element = h("section", { class: "card sweep-form" }, field("Name", name, "name of the sweep"), h("h2", {}, "Keys to vary"), keys, rows,
    h("p", { class: "help" }, "Values separated by commas, or a range: 0.01 to 1 log"), h("div", {}, add),
    h("div", { class: "fields" }, field("Method", method, Object.entries(METHODS).map((pair) => pair.join(": ")).join("; ")), field("Metric", metric, "used to rank the trials"),
      samplesField, samplingField, field("Parallel jobs", together, "how many run at the same time")), budgetFields, base);

  const put = (input, value) => {
    const text = value === undefined ? "" : String(value);
    if (input !== globalThis.document.activeElement && input.value !== text) input.value = text;
  };
  const update = (now) => {
    show(element, now !== null);
    if (now === null) return;
    document = now;
    const how = now.method ?? "grid", set = plainObject(now.parameters) ? now.parameters : {};
    for (const [input, value] of [[name, now.name], [method, how], [metric, now.metric ?? "top1"], [samples, now.samples], [together, now.concurrency],
      [unit, now.budget?.key && keyWords(now.budget.key)], [least, now.budget?.min], [most, now.budget?.max], [eta, now.budget?.eta]]) put(input, value);
    const shaped = Object.fromEntries(Object.entries(set).map(([key, values]) => [keyWords(key), values]));
    if (!equal(read(), shaped)) rows.replaceChildren(...Object.entries(set).map(([key, values]) => row(key, values)));
    show(samplesField, how !== "grid");
    show(samplingField, how !== "grid");
    show(budgetFields, how === "halving");
    const { model, data } = plainObject(now.base) ? now.base : {};
    say(base, `Base job (“base” in the JSON): ${model?.arch ?? "resnet50"} on ${data?.train ?? "no data yet"}.`);
  };
  return { element, update };
}
