// The keys of a job as a form, made from the daemon's schema. The form has no state of its own: it shows a document, and
// tells what is changed in it.

import { h, mark, say, show } from "./dom.js";
import { equal, inherited, keyWords, readText, valueAt, writeText } from "./job_document.js";

const TITLES = { "": "Job", model: "Model", data: "Data", cluster: "Cluster", lr: "Learning rate", optimizer: "Optimizer", eval: "Evaluation", ema: "Averaged weights",
  checkpoint: "Checkpoints", comm: "Communication", profile: "Profile", restart: "Restart", log: "Log",
  tensorboard: "TensorBoard" };
const NARROW = matchMedia("(max-width: 860px)"); // as in submit.css
const OPEN = () => (NARROW.matches ? ["", "data"] : ["", "data", "model", "cluster", "lr"]); // what most people change
const FIRST = ["data", "", "model", "cluster", "lr"];

const required = (field) => field.pointer === "/data/train";
const fieldId = (pointer) => "job" + pointer.replaceAll("/", "-");

// A text, a choice or a tick. set(own value, inherited value, from: default or preset) shows, changed(value) tells; undefined: the inherited one.
function textInput(field, id, changed) {
  const lines = field.pointer === "/note"; // the only text of several lines
  const input = h(lines ? "textarea" : "input", { id, rows: lines ? 3 : null, autocomplete: "off", spellcheck: lines ? null : "false",
    inputmode: { number: "decimal", integer: "numeric" }[field.type] ?? null });
  input.addEventListener("input", () => changed(readText(field, input.value)));
  let now = [];
  // Not while someone types: "1e" is on its way to 1e-4, "0." to 0.5, and "90", which is the default and so no value of its own, to 905.
  const typing = (read, own, other) => own === undefined && input === document.activeElement && equal(read, other);
  const set = (own, other) => {
    now = [own, other];
    mark(input, "placeholder", writeText(other) !== "null" ? writeText(other) : required(field) ? "" : "none");
    const read = readText(field, input.value);
    if (!equal(read, own) && !typing(read, own, other)) input.value = writeText(own);
  };
  input.addEventListener("blur", () => set(...now));
  return { input, set };
}

function choiceInput(field, id, changed) {
  const bad = (value) => field.takes && !field.takes.includes(value);
  const options = field.choices.map((value) => h("option", { value, disabled: bad(value) }, value));
  const input = h("select", { id }, ...options);
  let now;
  input.addEventListener("change", () => changed(input.value === now ? undefined : input.value));
  const set = (own, other, from) => {
    now = other;
    options.forEach((option) => say(option, option.value + (option.value === other ? ` (${from})` : bad(option.value) ? " (not in this version)" : "")));
    const value = own === undefined ? other : own;
    if (input.value !== value) input.value = field.choices.includes(value) ? value : "";
  };
  return { input, set };
}

function tickInput(field, id, changed) {
  const input = h("input", { id, type: "checkbox" });
  let now;
  input.addEventListener("change", () => changed(input.checked === now ? undefined : input.checked));
  const set = (own, other) => {
    now = other;
    input.checked = own === undefined ? other : own === true;
  };
  return { input, set };
}

const kindOf = (field) => (field.choices ? choiceInput : field.type === "boolean" ? tickInput : textInput);

// What holds where nothing is entered.
const inWords = (value) => (value === null ? "none" : writeText(value) || "none");
function origin(field, { value, from }, preset) {
  const text = inWords(value);
  return from === "preset" ? `${preset}: ${text}` : required(field) ? "required" : `default: ${text}`;
}

function fieldRow(field, changed) {
  const id = fieldId(field.pointer);
  const { input, set } = kindOf(field)(field, id, (value) => changed(field.pointer, value));
  const from = h("span", { class: "from" }), problem = h("p", { class: "error", id: `${id}-problem`, hidden: true });
  const help = h("p", { class: "help", id: `${id}-help` }, field.help);
  const reset = h("button", { type: "button", class: "plain", onclick: () => {
    changed(field.pointer, undefined);
    input.focus();
  } });
  input.setAttribute("aria-describedby", help.id);
  const element = h("div", { class: `field ${field.type}`, "data-pointer": field.pointer },
    h("div", { class: "label" }, field.type === "boolean" ? input : null, h("label", { for: id }, field.key), h("span", { class: "unit" }, field.unit), from, reset),
    field.type === "boolean" ? null : input, problem, help);
  const update = (document, preset, presetName) => {
    const own = valueAt(document, field.pointer), other = inherited(field, preset);
    set(own, other.value, other.from);
    say(from, origin(field, other, presetName));
    say(reset, `Reset to ${inWords(other.value)}`);
    mark(reset, "aria-label", `Reset to ${inWords(other.value)}: ${field.key}`);
    element.classList.toggle("own", own !== undefined);
    show(from, own === undefined);
    show(reset, own !== undefined);
  };
  const complain = (text) => {
    say(problem, text);
    show(problem, text !== "");
    if (text) mark(input, "aria-invalid", "true");
    else input.removeAttribute("aria-invalid");
    mark(input, "aria-describedby", text ? `${problem.id} ${help.id}` : help.id);
  };
  return { field, element, input, update, complain };
}

function group(name, rows) {
  const told = h("span", { class: "told" });
  const element = h("details", { class: "card group", open: OPEN().includes(name) },
    h("summary", {}, h("h2", {}, TITLES[name] ?? name), name ? h("code", {}, name) : null, told),
    h("div", { class: "fields" }, ...rows.map((row) => row.element)));
  const update = (problems) => {
    const own = rows.filter((row) => row.element.classList.contains("own")).length;
    say(told, [problems && `${problems} ${problems === 1 ? "problem" : "problems"}`, own && `${own} set`].filter(Boolean).join(", "));
    told.classList.toggle("error", problems > 0);
  };
  return { element, rows, update };
}

// changed(pointer, value) is called as someone types; value undefined: take the key out.
//   {element, update(document, preset, its name), complain(problems), focus(pointer)}
export function jobForm(fields, changed) {
  const names = [...new Set(fields.map((field) => field.group))];
  const order = [...FIRST, ...names.filter((name) => !FIRST.includes(name))];
  const rows = fields.filter((field) => field.pointer !== "/preset").map((field) => fieldRow(field, changed));
  const groups = order.map((name) => group(name, rows.filter((row) => row.field.group === name)));
  const find = h("input", { type: "search", id: "find-key", placeholder: "Find a key", "aria-label": "Find a key" });
  const none = h("p", { class: "quiet", role: "status", hidden: true }, "No settings match.");
  const opened = new Map();
  find.addEventListener("input", () => {
    const words = find.value.toLowerCase().trim();
    if (words && !opened.size) groups.forEach((one) => opened.set(one, one.element.open));
    for (const row of rows) show(row.element, `${keyWords(row.field.pointer)} ${row.field.pointer} ${row.field.help}`.toLowerCase().includes(words));
    for (const one of groups) {
      const some = one.rows.some((row) => !row.element.hidden);
      show(one.element, some);
      one.element.open = words ? some : opened.get(one) ?? one.element.open;
    }
    show(none, !rows.some((row) => !row.element.hidden));
    if (!words) opened.clear();
  });
  const rowOf = (pointer) => rows.find((row) => row.field.pointer === pointer || pointer.startsWith(row.field.pointer + "/"));

  const complain = (problems) => {
    const texts = new Map();
    for (const { pointer, message } of problems) {
      const row = rowOf(pointer);
      if (row) texts.set(row, [texts.get(row), message].filter(Boolean).join("; "));
    }
    rows.forEach((row) => row.complain(texts.get(row) ?? ""));
    groups.forEach((one) => one.update(one.rows.filter((row) => texts.has(row)).length));
  };
  const update = (...now) => {
    rows.forEach((row) => row.update(...now));
    groups.forEach((one) => one.update(one.rows.filter((row) => row.input.hasAttribute("aria-invalid")).length));
  };
  const focus = (pointer) => {
    const row = rowOf(pointer);
    if (!row) return false;
    if (row.element.hidden) {
      find.value = "";
      find.dispatchEvent(new Event("input"));
    }
    row.element.closest("details").open = true;
    row.input.focus();
    row.input.scrollIntoView({ block: "center" });
    return true;
  };
  return { element: h("div", { class: "job-form" }, h("div", { class: "find" }, find), none, ...groups.map((one) => one.element)),
    update, complain, focus, has: (pointer) => Boolean(rowOf(pointer)) };
}
