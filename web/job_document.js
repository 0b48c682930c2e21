// The job document in the page: its keys (from the daemon's schema), defaults, presets and differences. No DOM.

// "/lr/base" -> ["lr", "base"]
const steps = (pointer) => pointer.split("/").slice(1).map((s) => s.replaceAll("~1", "/").replaceAll("~0", "~"));

// Formats a key as people write it: "/lr/base" or "lr.base" as "lr.base", "/cluster/hosts/1" as "cluster.hosts[1]"; other keys are quoted.
export function keyWords(key) {
  if (!key) return "the document";
  if (!key.startsWith("/")) return key;
  return steps(key).map((step, i) => (i && /^\d+$/.test(step) ? `[${step}]` : `${i ? "." : ""}${/^[\w-]+$/.test(step) ? step : `"${step}"`}`)).join("");
}

export function valueAt(document, pointer) {
  return steps(pointer).reduce((at, key) => (at !== null && typeof at === "object" ? at[key] : undefined), document);
}

// Returns a copy with the value at the pointer; undefined removes the key and objects that become empty.
export function withValue(document, pointer, value) {
  const set = (object, [key, ...rest]) => {
    const copy = { ...object };
    const below = rest.length ? set(plainObject(copy[key]) ? copy[key] : {}, rest) : value;
    if (below === undefined || (rest.length && !Object.keys(below).length)) delete copy[key];
    else copy[key] = below;
    return copy;
  };
  return set(document, steps(pointer));
}

export const plainObject = (x) => x !== null && typeof x === "object" && !Array.isArray(x);
export const equal = (a, b) => JSON.stringify(a) === JSON.stringify(b);

// A job that runs for a few seconds on random images.
export const TEST_JOB = { data: { train: "synthetic", train_images: 512 }, model: { arch: "resnet18", image_size: 32, classes: 10 }, batch_per_worker: 8, steps: 16, lr: { warmup_epochs: 0 }, checkpoint: { disable: true } };

// ------------------------------------------------------------------ schema

// Extracts from a description in the schema: the unit, and values not supported by this version.
function readDescription(text) {
  const unit = / Unit: ([^.]+)\./.exec(text), takes = / This version takes: (\[.*\])$/.exec(text);
  return {
    help: text.replace(/ This version takes: \[.*\]$/, "").replace(/ Unit: [^.]+\./, ""),
    unit: unit ? unit[1] : "", derived: / Default: from the training data/.test(text), // its default depends on the data
    takes: takes ? JSON.parse(takes[1]) : null,
  };
}

function fieldOf(pointer, schema) {
  const types = [schema.type].flat();
  return {
    pointer, ...readDescription(schema.description ?? ""), group: pointer.split("/").slice(1, -1).join("/"),
    key: pointer.split("/").at(-1), type: types.find((t) => t !== "null"), types, nullable: types.includes("null"),
    fallback: schema.default ?? null, choices: schema.enum ?? null, items: schema.items?.type ?? null,
  };
}

// Returns all keys of a job, top-level ones first: [{pointer, group, key, type, nullable, fallback, choices, help, unit, takes}]
export function fieldsOf(schema, at = "") {
  const here = [], below = [];
  for (const [key, part] of Object.entries(schema.properties)) {
    const pointer = `${at}/${key}`;
    if (part.properties) below.push(...fieldsOf(part, pointer));
    else here.push(fieldOf(pointer, part));
  }
  return [...here, ...below];
}

// ------------------------------------------------------------------ values and their sources

// The value used if the document does not set the key: the preset's, otherwise the default.
export function inherited(field, preset) {
  const value = preset && field.pointer !== "/preset" ? valueAt(preset, field.pointer) : undefined;
  return value === undefined ? { value: field.derived ? undefined : field.fallback, from: "default" } : { value, from: "preset" };
}

export function effective(fields, document, preset) {
  let all = {};
  for (const one of fields)
    all = withValue(all, one.pointer, valueAt(document, one.pointer) ?? own(document, one, preset));
  return all;
}
function own(document, field, preset) {
  return valueAt(document, field.pointer) === null ? null : inherited(field, preset).value;
}

// Reduces a complete document to what differs from preset and defaults; keeps keys unknown to the schema.
export function sparse(fields, document, preset) {
  let rest = document;
  for (const one of fields)
    if (equal(valueAt(document, one.pointer), inherited(one, preset).value)) rest = withValue(rest, one.pointer, undefined);
  return rest;
}

// Sorts the keys in schema order, followed by unknown ones.
export function inOrder(fields, document) {
  let sorted = {};
  for (const { pointer } of fields) {
    const value = valueAt(document, pointer);
    if (value !== undefined) sorted = withValue(sorted, pointer, value);
  }
  const add = (into, from) => {
    for (const [key, value] of Object.entries(from)) {
      if (!(key in into)) into[key] = value;
      else if (plainObject(value) && plainObject(into[key])) add(into[key], value);
    }
    return into;
  };
  return add(sorted, document);
}

// Returns [{pointer, before, after}] for two complete documents.
export function differences(fields, before, after) {
  return fields.map(({ pointer }) => ({ pointer, before: valueAt(before, pointer), after: valueAt(after, pointer) }))
    .filter((d) => !equal(d.before, d.after));
}

// ------------------------------------------------------------------ text of a field

// Separators between items of a list, except commas inside brackets such as "n[1-3,7]".
const BETWEEN = /\s*,\s*(?![^[\]]*\])|\s+/;

// Converts typed text to JSON. Other text remains a string, which the daemon then rejects with its own message.
export function readText(field, text) {
  const words = text.trim();
  if (words === "") return undefined;
  if (words === "null" && field.nullable) return null;
  if (field.type === "string") return words;
  if (field.type === "object" && !words.startsWith("{")) return pairs(words);
  if (field.type === "array" && !words.startsWith("[")) {
    const list = words.split(BETWEEN).map((word) => (field.items === "string" ? word : number(word)));
    return field.items !== "string" && equal(list, [words]) ? words : list; // a word instead of numbers
  }
  if (field.type === "array" || field.type === "object" || (field.types?.includes("array") && /^[[{]/.test(words))) {
    try {
      return JSON.parse(words);
    } catch {
      return words;
    }
  }
  return number(words);
}
// Parses "A=1 B=x" as in a shell; values with spaces must be written as JSON.
function pairs(words) {
  const list = words.split(/\s+/).map((word) => /^([^=]+)=(.*)$/.exec(word));
  return list.every(Boolean) ? Object.fromEntries(list.map(([, name, value]) => [name, value])) : words;
}
function number(words) {
  return /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(words) ? Number(words) : words;
}

export function writeText(value) {
  if (value === undefined) return "";
  if (Array.isArray(value) && value.some((x) => x !== null && typeof x === "object")) return JSON.stringify(value);
  if (Array.isArray(value)) return value.every((x) => typeof x !== "string" || !BETWEEN.test(x)) ? value.join(", ") : JSON.stringify(value);
  if (plainObject(value))
    return Object.values(value).every((x) => typeof x === "string" && !/\s/.test(x)) ? Object.entries(value).map((pair) => pair.join("=")).join(" ")
      : JSON.stringify(value);
  return typeof value === "string" ? value : JSON.stringify(value);
}

// ------------------------------------------------------------------ JSON text

// A key without a value is none, as for JSON.stringify.
const entriesOf = (object) => Object.entries(object).filter(([, value]) => value !== undefined);
// Formats JSON as a person would write it: lists and small objects on one line.
export function pretty(value, indent = "") {
  const line = oneLine(value), deeper = `${indent}  `;
  if (!value || typeof value !== "object" || (indent && !Object.values(value).some((v) => v && typeof v === "object") && line.length < 56)) return line;
  const parts = Array.isArray(value) ? value.map((v) => deeper + pretty(v, deeper)) : entriesOf(value).map(([key, v]) => `${deeper}${JSON.stringify(key)}: ${pretty(v, deeper)}`);
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  return parts.length ? `${open}\n${parts.join(",\n")}\n${indent}${close}` : open + close;
}
function oneLine(value) {
  if (Array.isArray(value)) return `[${value.map(oneLine).join(", ")}]`;
  if (plainObject(value)) return `{${entriesOf(value).map(([key, v]) => `${JSON.stringify(key)}: ${oneLine(v)}`).join(", ")}}`;
  return JSON.stringify(value);
}

// Returns {value}, or {error, line} if the text is not JSON.
export function parseText(text) {
  try {
    return { value: JSON.parse(text) };
  } catch (error) {
    return { error: words(error.message), line: lineOf(error.message, text) };
  }
}
const words = (message) => message.replace(/^JSON\.parse: /, "").replace(/,? ?(in JSON )?at (position|line) .*$/s, "")
  .replace(/, "?[^]*"? is not valid JSON$/, "");

function lineOf(message, text) {
  const line = /line (\d+)/.exec(message), position = /position (\d+)/.exec(message);
  if (line) return Number(line[1]);
  return text.slice(0, position ? Number(position[1]) : text.trimEnd().length).split("\n").length;
}

// Returns the line on which the value of each pointer begins, for valid JSON.
export function linesOf(text) {
  const lines = new Map([["", 1]]), stack = [];
  let line = 1, key = null;
  const here = () => stack.map((s) => `/${s.key}`).join("");
  for (const [token] of text.matchAll(/\n|"(?:[^"\\]|\\.)*"|[{}[\]:,]|[^\s{}[\]:,"]+/g)) {
    const top = stack.at(-1);
    if (token === "\n") line++;
    else if (token === "}" || token === "]") stack.pop();
    else if (token === ",") { if (top?.list) top.key++; else if (top) key = null; }
    else if (token === ":") lines.set(here(), line);
    else if (top && !top.list && key === null) {
      key = JSON.parse(token);
      top.key = key.replaceAll("~", "~0").replaceAll("/", "~1");
      lines.set(here(), line);
    } else {
      if (top?.list) lines.set(here(), line);
      if (token === "{" || token === "[") { stack.push({ list: token === "[", key: 0 }); key = null; }
    }
  }
  return lines;
}
