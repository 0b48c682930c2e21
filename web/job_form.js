// A form for the keys of a job, generated from the daemon's schema. The form has no state of its own: it shows a document and reports
// changes.

import { h, mark, say, show } from "./dom.js";
import { equal, inherited, keyWords, readText, valueAt, writeText } from "./job_document.js";

const TITLES = { "": "Job", model: "Model", data: "Data", cluster: "Cluster", lr: "Learning rate", optimizer: "Optimizer", eval: "Evaluation", ema: "Averaged weights",
  checkpoint: "Checkpoints", comm: "Communication", profile: "Profile", restart: "Restart", log: "Log",
  tensorboard: "TensorBoard" };
const FIRST = ["", "data", "model", "cluster", "lr"]; // groups
// Main settings, shown first, with shorter help.
const BASIC = { "/data/train": "A folder of TFRecord shards, or of a folder of images per class, or “synthetic”: random images.", "/data/eval": "In the same formats; null: no evaluation.",
  "/model/arch": "By its torchvision name.", "/epochs": "Passes over the training images.", "/batch_per_worker": "Images that a worker processes at a time." };

// Labels of keys whose last word is not descriptive.
const LABELS = {
  "reproduces": "Reproduces job", "after": "After jobs", "continues": "Continues job", "stop_at": "Part of the steps", "model.arch": "Network", "model.width": "Width factor", "model.stem": "First layers", "model.init": "Initial weights", "model.freeze": "Frozen parts", "model.bn_decay": "Batch norm decay",
  "model.blur_pool": "Low-pass filters (BlurPool)", "model.bn_init": "Initial batch norm weights", "model.zero_init_residual": "Zero-initialise residual blocks", "model.winograd": "Winograd convolutions", "model.gemm": "Matrix products", "data.train": "Training data", "data.eval": "Evaluation data",
  "data.train_images": "Training images", "data.eval_images": "Evaluation images", "data.preprocess": "Preprocessing", "data.augment": "Augmentation", "data.random_crop": "Random crops",
  "data.random_flip": "Mirrored images", "data.flip": "Choice of mirrored images", "data.locality": "Location of the data", "data.mixup": "MixUp",
  "data.cutmix": "CutMix", "data.auto_augment": "Automatic augmentation", "data.auto_augment_ops": "Operations of RandAugment", "data.auto_augment_magnitude": "Strength of RandAugment", "data.color_jitter": "Colour jitter", "data.hue_jitter": "Hue jitter", "data.random_erasing": "Random erasing",
  "cluster.bind": "Binding to cores", "cluster.smt": "Use hardware threads",
  "cluster.interface": "Network interface", "cluster.ssh_port": "SSH port", "cluster.partition": "Slurm partition", "cluster.account": "Slurm account", "cluster.constraint": "Slurm constraint",
  "cluster.mpi_prefix": "Open MPI folder", "cluster.mpi_args": "Arguments of mpirun", "cluster.env": "Environment variables", "accumulate_steps": "Accumulated batches", "steps_rounding": "Rounding of steps",
  "lr.base": "Base learning rate", "lr.warmup_epochs": "Warm-up epochs", "ema.warmup": "Warm-up of the average", "lr.scaling": "Scaling with the batch", "lr.head_factor": "Factor for the classifier", "lr.start": "First learning rate", "lr.power": "Power of the decay", "lr.end": "Final learning rate", "lr.gamma": "Factor of the decay",
  "lr.staircase": "Decay in steps", "lr.patience": "Evaluations of a plateau", "lr.threshold": "Smallest improvement", "lr.cooldown": "Evaluations after a reduction", "optimizer.name": "Optimizer", "optimizer.nesterov": "Nesterov momentum", "optimizer.decay_bn": "Weight decay of batch norm", "optimizer.lars_eta": "LARS trust coefficient", "optimizer.clip_norm": "Largest norm of the gradients",
  "optimizer.eps": "Epsilon", "optimizer.lr_decay": "Decay of the learning rate", "eval.every_epochs": "Epochs between evaluations", "eval.batch": "Evaluation batch", "eval.monitor": "Better evaluations by", "eval.patience": "Evaluations before an early end", "eval.min_delta": "Smallest improvement", "eval.target_top1": "Target Top-1",
  "eval.predictions": "Write predictions", "eval.image_size": "Evaluation image size", "eval.resize": "Shorter side of evaluation images", "eval.flip": "Evaluate mirror images too", "ema.decay": "Decay of the average", "ema.half_life": "Half-life of the average", "ema.every": "Steps between updates", "ema.from_epoch": "First epoch",
  "checkpoint.every_epochs": "Epochs between checkpoints", "checkpoint.every_steps": "Steps between checkpoints", "checkpoint.keep": "Checkpoints to keep", "checkpoint.keep_best": "Best checkpoints to keep", "checkpoint.disable": "No checkpoints",
  "comm.fusion_bytes": "Bucket size", "comm.overlap": "Overlap with the backward pass", "comm.core": "Core for communication", "comm.dtype": "Number format of gradients", "profile.steps": "Steps to trace",
  "log.every_seconds": "Seconds between log lines", "log.every_steps": "Steps between log lines", "tensorboard.every_steps": "Steps between summaries", "restart.max": "Maximum restarts",
  "restart.on_fewer_nodes": "With fewer nodes", "restart.grow": "Grow again", "restart.grow_seconds": "Seconds before it grows", "notify": "Notifications", "loss": "Loss function",
};
const labelOf = (field) => LABELS[keyWords(field.pointer)] ?? field.key[0].toUpperCase() + field.key.slice(1).replaceAll("_", " ");

const required = (field) => field.pointer === "/data/train";
const fieldId = (pointer) => "job" + pointer.replaceAll("/", "-");

// An input, select or checkbox. set(own value, inherited value, from: default or preset) shows; changed(value) reports; undefined: the
// inherited one.
function textInput(field, id, changed) {
  const lines = field.pointer === "/note"; // the only multi-line text
  const input = h(lines ? "textarea" : "input", { id, rows: lines ? 3 : null, list: field.known ?? null, autocomplete: "off", spellcheck: lines ? null : "false",
    inputmode: { number: "decimal", integer: "numeric" }[field.type] ?? null });
  input.addEventListener("input", () => changed(readText(field, input.value)));
  let now = [];
  // Do not update while the user is typing: "1e" may become 1e-4, "0." 0.5, and "90", which equals the default and thus is not an own
  // value, 905.
  const typing = (read, own, other) => own === undefined && input === document.activeElement && equal(read, other);
  const set = (own, other) => {
    now = [own, other];
    mark(input, "placeholder", required(field) && !other ? "" : inWords(field, other));
    const read = readText(field, input.value);
    if (!equal(read, own) && !typing(read, own, other)) input.value = writeText(own);
  };
  input.addEventListener("blur", () => set(...now));
  return { input, set };
}

function choiceInput(field, id, changed) {
  const bad = (value) => field.takes && !field.takes.includes(value);
  const choices = field.derived ? ["", ...field.choices] : field.choices;
  const options = choices.map((value) => h("option", { value, disabled: bad(value) }));
  const input = h("select", { id }, ...options);
  let now;
  input.addEventListener("change", () => changed(input.value === now ? undefined : input.value));
  const set = (own, other, from) => {
    now = other ?? "";
    options.forEach((option) => say(option, (option.value || inWords(field, other ?? (field.derived ? undefined : null))) + (option.value === other ? ` (${from})` : bad(option.value) ? " (not in this version)" : "")));
    const value = own === undefined ? other : own;
    if (input.value !== value) input.value = choices.includes(value) ? value : "";
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

// Describes the value used if the field is empty.
const inWords = (field, value) => (value === undefined ? "from the data" : value === null ? "none" : writeText(value) || "none");
function origin(field, { value, from }, preset) {
  const text = inWords(field, value);
  return from === "preset" ? `${preset}: ${text}` : required(field) ? "required" : `default: ${text}`;
}

function fieldRow(field, changed) {
  const id = fieldId(field.pointer);
  const { input, set } = kindOf(field)(field, id, (value) => changed(field.pointer, value));
  const from = h("span", { class: "from" }), problem = h("p", { class: "error", id: `${id}-problem`, hidden: true });
  const help = h("p", { class: "help", id: `${id}-help` }, BASIC[field.pointer] ?? field.help), label = labelOf(field);
  const reset = h("button", { type: "button", class: "plain", onclick: () => {
    changed(field.pointer, undefined);
    input.focus();
  } });
  input.setAttribute("aria-describedby", help.id);
  const element = h("div", { class: `field ${field.type}`, "data-pointer": field.pointer },
    h("div", { class: "label" }, field.type === "boolean" ? input : null, h("label", { for: id }, label), h("code", {}, keyWords(field.pointer)), h("span", { class: "unit" }, label.toLowerCase().includes(field.unit) ? "" : field.unit), from, reset),
    field.type === "boolean" ? null : input, problem, help);
  const update = (document, preset, presetName) => {
    const own = valueAt(document, field.pointer), other = inherited(field, preset);
    set(own, other.value, other.from);
    say(from, origin(field, other, presetName));
    const words = other.value === undefined ? "Derive from the data" : `Reset to ${inWords(field, other.value)}`;
    say(reset, words);
    mark(reset, "aria-label", `${words}: ${label}`);
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
  return { field, label, element, input, update, complain };
}

function group(name, rows) {
  const told = h("span", { class: "told" });
  const element = h("details", { class: "group" },
    h("summary", {}, h("h2", {}, TITLES[name] ?? name), name ? h("code", {}, name) : null, told),
    h("div", { class: "fields" }, ...rows.map((row) => row.element)));
  const update = (problems) => {
    const own = rows.filter((row) => row.element.classList.contains("own")).length;
    say(told, [problems && `${problems} ${problems === 1 ? "problem" : "problems"}`, own && `${own} set`].filter(Boolean).join(", "));
    told.classList.toggle("error", problems > 0);
  };
  return { element, rows, update };
}

// "Steps: 16"; checked boxes need no value.
const valueWords = (value) => (value === true ? "" : `: ${value === false ? "off" : value === null ? "none" : writeText(value).slice(0, 60)}`);
// Buttons that lead to settings: the name, and the value if any.
const leads = (element, title, rows, focus, text = () => "") => {
  element.replaceChildren(...(rows.length ? [title, ...rows.map((row) => h("button", { type: "button", class: "link", onclick: () => focus(row.field.pointer) }, row.label + text(row)))] : []));
  show(element, rows.length > 0);
};

// changed(pointer, value) is called while typing; value undefined: remove the key. Returns {element, update(document, preset, its name),
// complain(problems), focus(pointer), has(pointer)}
export function jobForm(fields, changed) {
  const rows = fields.map((field) => fieldRow(field, changed)), isBasic = (row) => row.field.pointer in BASIC;
  const basic = Object.keys(BASIC).map((pointer) => rows.find((row) => row.field.pointer === pointer)).filter(Boolean), rest = rows.filter((row) => !isBasic(row));
  const names = [...new Set(rest.map((row) => row.field.group))];
  const order = [...FIRST, ...names.filter((name) => !FIRST.includes(name))];
  const groups = order.map((name) => group(name, rest.filter((row) => row.field.group === name)));
  const find = h("input", { type: "search", id: "find-key", placeholder: "Name, key or description", "aria-label": "Search the settings" });
  const none = h("p", { class: "quiet", role: "status", hidden: true }, "No settings match."), above = h("p", { class: "leads", hidden: true }), also = h("p", { class: "leads", hidden: true });
  const told = h("span", { class: "told" });
  const all = h("details", { class: "card all" }, h("summary", {}, h("h2", {}, "All settings"), told), h("div", { class: "find" }, find), above, none, ...groups.map((one) => one.element));
  const opened = new Map();
  find.addEventListener("input", () => {
    const words = find.value.toLowerCase().trim();
    const matches = ({ field, label }) => `${label} ${keyWords(field.pointer)} ${field.pointer} ${field.help}`.toLowerCase().includes(words);
    if (words && !opened.size) groups.forEach((one) => opened.set(one, one.element.open));
    for (const row of rest) show(row.element, matches(row));
    for (const one of groups) {
      const some = one.rows.some((row) => !row.element.hidden);
      show(one.element, some);
      one.element.open = words ? some : opened.get(one) ?? one.element.open;
    }
    leads(above, "Above: ", words ? basic.filter(matches) : [], focus);
    show(none, !rows.some((row) => (isBasic(row) ? matches(row) : !row.element.hidden)));
    if (!words) opened.clear();
  });
  const rowOf = (pointer) => rows.find((row) => row.field.pointer === pointer || pointer.startsWith(row.field.pointer + "/"));

  const tellGroups = (isWrong) => {
    groups.forEach((one) => one.update(one.rows.filter(isWrong).length));
    const wrong = rest.filter(isWrong).length, own = rest.filter((row) => row.element.classList.contains("own")).length;
    say(told, [wrong && `${wrong} ${wrong === 1 ? "problem" : "problems"}`, own && `${own} set`].filter(Boolean).join(", "));
    told.classList.toggle("error", wrong > 0);
  };
  const complain = (problems) => {
    const texts = new Map();
    for (const { pointer, message } of problems) {
      const row = rowOf(pointer);
      if (row) texts.set(row, [texts.get(row), message].filter(Boolean).join("; "));
    }
    rows.forEach((row) => row.complain(texts.get(row) ?? ""));
    tellGroups((row) => texts.has(row));
  };
  const update = (document, ...more) => {
    rows.forEach((row) => row.update(document, ...more));
    leads(also, "Also set: ", rest.filter((row) => row.element.classList.contains("own")), focus, (row) => valueWords(valueAt(document, row.field.pointer)));
    tellGroups((row) => row.input.hasAttribute("aria-invalid"));
  };
  function focus(pointer) {
    const row = rowOf(pointer);
    if (!row) return false;
    if (row.element.hidden) {
      find.value = "";
      find.dispatchEvent(new Event("input"));
    }
    for (let box = row.element.closest("details"); box; box = box.parentElement.closest("details")) box.open = true;
    row.input.focus();
    row.input.scrollIntoView({ block: "center" });
    return true;
  }
  return { element: h("div", { class: "job-form" }, h("section", { class: "card basic", "aria-label": "The main settings" }, h("div", { class: "fields" }, ...basic.map((row) => row.element)), also), all),
    update, complain, focus, has: (pointer) => Boolean(rowOf(pointer)) };
}
