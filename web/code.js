// Boxes with text to copy, and a JSON editor with a list of problems.

import { hasToken } from "./api.js";
import { h, mark, say, show } from "./dom.js";
import { keyWords, linesOf, parseText, plainObject } from "./job_document.js";

async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  // Browsers provide no clipboard to pages loaded over plain HTTP from another machine.
  const area = h("textarea", { readonly: true, class: "hidden" });
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  if (!done) throw new Error("not copied");
}

// what: label for screen readers
function copyButton(what, text) {
  const button = h("button", { type: "button", class: "plain", "aria-label": `Copy ${what}` }, "Copy");
  button.addEventListener("click", async () => {
    const focused = document.activeElement;
    say(button, await copy(text()).then(() => "Copied", () => "Not allowed"));
    focused?.focus();
    setTimeout(() => say(button, "Copy"), 2000);
  });
  return button;
}

// {element, set(text)}
export function codeBox(title, what) {
  const text = h("pre", { class: "code", tabindex: 0, role: "group", "aria-label": what });
  const element = h("section", { class: "code-box" },
    h("header", {}, h("h3", {}, title), copyButton(what, () => text.textContent)), text);
  return { element, set: (words) => say(text, words) };
}

// Quotes a word for a POSIX shell.
const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

// The command that posts text to path of this daemon.
export const curlCommand = (text, path) => [`curl --json ${quoted(text)}`, ...(hasToken() ? ['-H "Authorization: Bearer $TRAINCTL_TOKEN"'] : []), location.origin + path].join(" \\\n  ");

// ------------------------------------------------------------------ JSON editor

// typed(object, or null if the text is not an object) is called while typing; what: "A job". Returns {element, text: the textarea,
// set(words), read()}
export function jsonEditor({ id, title, what, rows = 12, typed }) {
  const error = h("p", { id: `${id}-error`, class: "error", hidden: true });
  const text = h("textarea", { id, rows, spellcheck: "false", autocomplete: "off", autocapitalize: "off", "aria-describedby": error.id });
  const complain = (broken) => {
    say(error, broken ? (broken.line ? `Line ${broken.line}: ${broken.error}` : broken.error) : "");
    show(error, Boolean(broken));
    if (broken) mark(text, "aria-invalid", "true");
    else text.removeAttribute("aria-invalid");
  };
  const read = () => {
    const result = parseText(text.value);
    if (!result.error && !plainObject(result.value)) result.error = `${what} is an object: { … }`;
    complain(result.error ? result : null);
    typed(result.error ? null : result.value);
  };
  text.addEventListener("input", read);
  const set = (words) => {
    if (text.value !== words) text.value = words;
    complain(null);
  };
  const element = h("section", { class: "code-box" },
    h("header", {}, h("h3", {}, h("label", { for: id }, title)), copyButton(title, () => text.value)), text, error);
  return { element, text, set, read };
}

// The problems found by the daemon. has(pointer): whether there is a field for it; focus(pointer) focuses it; take(pointer, suggestion).
// Returns {element, update([{pointer, message, suggestion}], the text they refer to)}
export function problemList({ has = () => false, focus, take }) {
  const title = h("h3", {}), list = h("ul", {}), element = h("div", { class: "problems", hidden: true }, title, list);
  const item = ({ pointer, message, suggestion }, line) => {
    const place = has(pointer)
      ? h("button", { type: "button", class: "link", onclick: () => focus(pointer) }, h("code", {}, keyWords(pointer)))
      : h("code", {}, keyWords(pointer));
    return h("li", {}, place, ` ${message}${line ? ` (line ${line})` : ""}`,
      suggestion && take ? h("button", { type: "button", class: "plain", onclick: () => take(pointer, suggestion) }, `Use ${suggestion.startsWith("/") ? keyWords(suggestion) : suggestion}`) : null);
  };
  const update = (problems, text) => {
    const lines = problems.some((one) => !has(one.pointer)) ? linesOf(text) : new Map();
    say(title, problems.length === 1 ? "One problem" : `${problems.length} problems`);
    list.replaceChildren(...problems.map((one) => item(one, has(one.pointer) ? null : lines.get(one.pointer))));
    show(element, problems.length > 0);
  };
  return { element, update };
}
