// Elements, and components shared by several views.

import * as f from "./format.js";

// h("p", {class: "x", onclick}, "text", node): creates an element. Attributes: true sets it; false, null and undefined omit it (except for
// aria-…); on… adds a listener. Null children are omitted.
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") element.style.cssText = value; // as an attribute, the page's policy would block it
    else if (name.startsWith("aria-") && typeof value === "boolean") element.setAttribute(name, String(value));
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null));
  return element;
}

// These change the page only where something differs, to keep selections, avoid repeated announcements by screen readers and save layout.
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
export function mark(element, name, value) {
  if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
}
// Puts the elements into body in this order without touching those that are in place.
export function arrange(body, elements) {
  const keep = new Set(elements);
  for (const child of [...body.children]) if (!keep.has(child)) child.remove();
  elements.forEach((element, i) => {
    if (body.children[i] !== element) body.insertBefore(element, body.children[i] ?? null);
  });
}

export function show(element, visible) {
  if (element.hidden === visible) element.hidden = !visible;
}

// A number of the API formatted for people; its value attribute is exact.
export function datum(attributes = {}) {
  return h("data", { value: "", ...attributes }, f.none);
}
export function setDatum(element, value, text) {
  mark(element, "value", value ?? "");
  say(element, text);
}

// A job's state: setBadge(badge(), "running").
export const badge = () => h("span", { class: "badge" });
export function setBadge(element, state) {
  mark(element, "data-state", state);
  say(element, state);
}

// A progress bar of a job with text below it.
export function meter(label) {
  const bar = h("progress", { max: 1, value: 0, "aria-label": label });
  const words = h("span", { class: "words" });
  return { element: h("div", { class: "meter" }, bar, words), bar, words };
}
// Progress of a job and its total: steps, or images of an evaluation.
const doneOf = (job) => (job.train_steps > 0 ? [Math.min(job.step ?? 0, job.train_steps), job.train_steps]
  : job.eval_images > 0 ? [Math.min(job.evaluated_images ?? 0, job.eval_images), job.eval_images] : [0, 1]);
export function progressOf(job) {
  const [done, all] = doneOf(job);
  return done / all;
}
export function setMeter({ bar, words }, job) {
  const share = progressOf(job), [ready, all] = doneOf(job);
  if (bar.value !== share) bar.value = share;
  mark(bar, "data-state", job.state);
  const done = job.train_steps ? `${f.count(job.step ?? 0)} of ${f.count(job.train_steps)} steps`
    : job.eval_images ? `${f.count(job.evaluated_images)} of ${f.count(job.eval_images)} images` : "";
  say(words, done ? `${Math.floor((100 * ready) / all)} % · ${done}${!job.train_steps && job.step > 0 ? `, weights of step ${f.count(job.step)}` : ""}` : f.none);
}

// A card shown instead of other content: loading, empty, not found.
export function notice(title, ...rest) {
  return h("div", { class: "notice card" }, h("h2", {}, title), ...rest);
}

// A group of buttons of which one is pressed: {element, set(value)}; choices: [[value, words], …]
export function choice(label, choices, value, chosen) {
  const buttons = choices.map(([name, words]) => h("button", {
    type: "button", "aria-pressed": String(name === value), onclick: () => { set(name); chosen(name); },
  }, words));
  const set = (name) => buttons.forEach((button, i) => mark(button, "aria-pressed", choices[i][0] === name));
  return { element: h("div", { class: "choice", role: "group", "aria-label": label }, ...buttons), set };
}

// Offers a generated file for download.
export function download(name, type, content) {
  const url = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}
