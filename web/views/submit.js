// A new job: its keys as a form and as JSON, kept in sync, next to the plan that the daemon recalculates while the user types.

import { get, newKey, post, Problem, waiting, words } from "../api.js";
import { ask } from "../ask.js";
import { codeBox, curlCommand, jsonEditor, problemList } from "../code.js";
import { h, notice, say, show } from "../dom.js";
import * as f from "../format.js";
import { differences, effective, fieldsOf, inOrder, keyWords, plainObject, pretty, sparse, TEST_JOB, valueAt, withValue, writeText } from "../job_document.js";
import { jobForm } from "../job_form.js";
import { title as titleOf } from "../jobs.js";
import { watch } from "../live.js";
import { planView } from "../plan_view.js";

const PAUSE_MS = 250; // after a key press, before a plan is requested
const AGAIN_MS = 2000; // if the daemon did not answer
const LONG_SECONDS = 86400; // jobs predicted to take longer have to be confirmed
const KNOWN_MOST = 100; // data sets of earlier jobs

// ------------------------------------------------------------------ draft kept until the tab is closed

const draftName = (clone) => `traind-draft${clone ? `-${clone}` : ""}`;
function loadDraft(clone) {
  try {
    return JSON.parse(sessionStorage.getItem(draftName(clone)));
  } catch {
    return null;
  }
}

// ------------------------------------------------------------------ starting points

// What a document says of the data, if it names any.
const keptData = ({ data }) => (data?.train ? { data: Object.fromEntries(Object.entries(data).filter(([key]) => ["train", "eval", "train_images", "eval_images"].includes(key))) } : {});

// [[value, words, text, function from the current document to the new one], …] in groups: {"": [...], Examples: [...], Presets: [...]}
function beginnings({ original, last, examples, presets, trained }, specOf) {
  const folder = trained.find((path) => /fashion-mnist\/train\/?$/.test(path))?.replace(/\/train\/?$/, "");
  // Uses the data of an earlier job, otherwise of the form, otherwise left to be filled in.
  const example = (one) => (now) => {
    const { train: _train, eval: _eval, ...data } = one.data;
    return folder ? JSON.parse(JSON.stringify(one).replaceAll("@DATA@", folder)) : { ...one, data: { ...keptData(now).data, ...data } };
  };
  return {
    "": [["", "An empty document", "Every setting has its default.", () => ({})],
      original && ["clone", `Job ${original.id}: ${titleOf(original)}`, "The job as it was submitted.", () => specOf(original)],
      last && last.id !== original?.id && ["last", `The last job: ${titleOf(last)}`, `Job ${last.id} as it was submitted.`, async () => specOf(await get(`/v1/jobs/${last.id}`))]].filter(Boolean),
    Examples: [["test", "Quick test: random images", "A small network on random images for a few seconds, to check that everything works.", () => TEST_JOB],
      ...examples.map((one) => [one.name, `${one.name}: ${one.model.arch}, ${one.steps ? `${f.count(one.steps)} steps` : `${f.number(one.epochs)} epochs`}`,
        `Fashion-MNIST as prepared by ./quickstart in _data/fashion-mnist.${folder ? "" : " Enter the absolute paths of its folders train and validation below."}`, example(one)])],
    Presets: presets.map(({ name }) => [`preset:${name}`, name, "", (now) => ({ preset: name, ...keptData(now) })]),
  };
}

// The job of a preset as the daemon predicted it: on these nodes, with the preset's own global batch.
const fastestJob = ({ nodes, target, preset }, own) => (now) => ({ preset: preset.preset, global_batch: preset.global_batch, accumulate_steps: "auto",
  cluster: { nodes }, eval: { target_top1: target, ...(preset.epochs < own.epochs ? { stop_at_target: true } : {}) }, ...keptData(now) });

// Why a preset is the fastest, in words.
function fastestWords({ nodes, presets: [first, second] }) {
  const on = `on ${nodes === 1 ? "one node" : `${f.count(nodes)} nodes`}`, work = `the arithmetic of ${f.number(first.epochs_at_224)} epochs of 224x224 pixels`;
  if (first.problem) return `No time can be predicted: ${first.problem}. ${first.preset} (${f.percent(first.top1)} as published) needs the least arithmetic: ${work}.`;
  return `${first.preset} (${f.percent(first.top1)} as published) is predicted to take ${f.duration(first.ttt_seconds.value)} ${on}, with ${work}.` +
    (second?.ttt_seconds?.value ? ` Next: ${second.preset}, ${f.duration(second.ttt_seconds.value)}.` : "");
}

// Fills in the preset that reaches an accuracy first.
function fastestCard(presets, chosen) {
  const input = (id, label, value, more) => {
    const element = h("input", { id, type: "text", inputmode: "decimal", autocomplete: "off", size: 8, value, ...more });
    return { element, row: h("div", { class: "field" }, h("div", { class: "label" }, h("label", { for: id }, label)), element) };
  };
  const target = input("fastest-target", "Top-1 on ImageNet, %", "75.9"), nodes = input("fastest-nodes", "Nodes", "16");
  const speed = input("fastest-speed", "Images/s of a node", null, { placeholder: "as measured", "aria-describedby": "fastest-help" });
  const button = h("button", {}, "Choose the fastest"), why = h("p", { role: "status" }), failure = h("p", { class: "error", role: "alert", hidden: true }), body = h("tbody");
  const headings = ["Preset", "Published", "Batch", "Epochs", "At 224", "Time", "Node-hours"].map((text) => h("th", { scope: "col" }, text));
  const table = h("div", { class: "scroll", role: "group", tabindex: 0, "aria-label": "Presets by time", hidden: true }, h("table", {}, h("thead", {}, h("tr", {}, ...headings)), body));
  const row = (one) => h("tr", {}, h("th", { scope: "row", title: one.source }, one.preset), ...[f.percent(one.top1),
    ...(one.epochs === undefined ? [] : [f.count(one.global_batch), f.number(one.epochs), f.number(one.epochs_at_224), ...(one.problem ? [] : [f.duration(one.ttt_seconds.value), f.number(one.node_hours.value)])])]
    .map((text) => h("td", {}, text)), one.problem ? h("td", { colspan: one.epochs === undefined ? 5 : 2 }, one.problem) : null);
  const choose = async () => {
    const asked = new URLSearchParams({ target: target.element.value.trim(), nodes: nodes.element.value.trim() });
    if (speed.element.value.trim()) asked.set("node_speed", speed.element.value.trim());
    show(failure, false);
    button.disabled = true;
    try {
      const answer = await get(`/v1/presets/times?${asked}`), [preset] = answer.presets;
      body.replaceChildren(...answer.presets.map(row));
      show(table, true);
      if (preset?.epochs === undefined) throw new Error("No preset reaches this accuracy on these nodes; the reasons stand in the table.");
      say(why, fastestWords(answer));
      await chosen(`preset:${preset.preset}`, fastestJob({ ...answer, preset }, presets.find(({ name }) => name === preset.preset).document));
    } catch (error) {
      say(why, "");
      say(failure, words(error));
      show(failure, true);
    }
    button.disabled = false;
  };
  const form = h("form", { onsubmit: (event) => { event.preventDefault(); choose(); } }, target.row, nodes.row, speed.row, button);
  return h("details", { class: "card fastest" }, h("summary", {}, "Fastest to accuracy"), form,
    h("p", { id: "fastest-help", class: "help" }, "The speed is that of ResNet-50 at 224 pixels. Each published recipe keeps its global batch."), why, failure, table);
}

// chosen(value, make): make returns the new document for the current one. {element, update(value, preset's name, fields, whether it can be
// undone)}
function startCard(groups, presets, chosen, undo) {
  const all = Object.values(groups).flat(), option = ([value, text]) => h("option", { value }, text);
  const select = h("select", { id: "start-from", "aria-describedby": "start-text" }, ...Object.entries(groups).flatMap(([name, list]) =>
    (name ? [h("optgroup", { label: name }, ...list.map(option))] : list.map(option))));
  select.addEventListener("change", () => chosen(select.value, all.find(([value]) => value === select.value)[3]));
  const text = h("p", { id: "start-text", class: "help" }), body = h("tbody"), back = h("button", { type: "button", class: "plain", onclick: undo }, "Undo");
  const sets = h("details", {}, h("summary", {}, "What the preset sets"), h("div", { class: "scroll", role: "group", tabindex: 0, "aria-label": "What the preset sets" },
    h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Key"), h("th", { scope: "col" }, "Value"))), body)));
  const element = h("section", { class: "card start" }, h("div", { class: "label" }, h("label", { for: select.id }, "Start from"), back), select, text, sets);
  const update = (value, name, fields, undoable) => {
    const preset = presets.find((one) => one.name === name), from = all.find(([one]) => one === value) ?? all[0];
    if (select.value !== from[0]) select.value = from[0];
    say(text, preset ? `${preset.description} Source: ${preset.source}.` : from[2]);
    show(back, undoable);
    show(sets, Boolean(preset));
    body.replaceChildren(...(preset ? fields : []).filter((field) => valueAt(preset.document, field.pointer) !== undefined)
      .map((field) => h("tr", {}, h("th", { scope: "row" }, h("code", {}, keyWords(field.pointer))), h("td", {}, writeText(valueAt(preset.document, field.pointer))))));
  };
  return { element, update };
}

// ------------------------------------------------------------------ changes of a clone

function changesCard(original) {
  const body = h("tbody"), none = h("p", { class: "quiet" }, "No changes yet.");
  const table = h("table", {}, h("thead", {}, h("tr", {}, ...["Key", `Job ${original.id}`, "Now"].map((text) => h("th", { scope: "col" }, text)))), body);
  const element = h("section", { class: "card changes" }, h("h2", {}, "Changed from ", h("a", { href: `#/jobs/${original.id}` }, original.name || `job ${original.id}`)),
    none, h("div", { class: "scroll", role: "group", tabindex: 0, "aria-label": "Changes" }, table));
  const update = (fields, spec) => {
    // A job of an older daemon lacks keys added later, which have their defaults.
    const rows = differences(fields, effective(fields, original.spec, null), spec);
    show(none, !rows.length);
    show(table, rows.length > 0);
    body.replaceChildren(...rows.map(({ pointer, before, after }) => h("tr", {}, h("th", { scope: "row" }, h("code", {}, keyWords(pointer))),
      h("td", {}, writeText(before)), h("td", {}, h("strong", {}, writeText(after))))));
  };
  return { element, update };
}

// ------------------------------------------------------------------ page

const trainctlLine = (text) =>
  `trainctl ${location.origin === "http://127.0.0.1:7077" ? "" : `--server ${location.origin} `}submit - <<'JSON'\n${text}\nJSON`;

class Page {
  constructor(main, title, { schema, presets, original, known, ...more }) {
    const special = { "/preset": { choices: ["", ...presets.map(({ name }) => name)] }, "/data/train": { known: "known-train" }, "/data/eval": { known: "known-eval" } };
    this.fields = fieldsOf(schema).map((field) => ({ ...field, ...special[field.pointer] }));
    this.presets = presets;
    this.original = original;
    this.problems = [];
    this.known = Object.entries(known).map(([name, paths]) => h("datalist", { id: `known-${name}` }, ...[...paths, "synthetic"].map((value) => h("option", { value }))));
    this.form = jobForm(this.fields, (pointer, value) => this.change(withValue(this.document, pointer, value)));
    this.begun = startCard(beginnings({ original, presets, trained: known.train, ...more }, (job) => this.specOf(job)), presets, (...what) => this.startFrom(...what), () => this.undo());
    this.editor = jsonEditor({ id: "job-json", title: "JSON", what: "A job", typed: (document) => this.typed(document) });
    this.editor.text.addEventListener("change", () => this.document && !this.broken && this.editor.set(pretty(this.document)));
    this.plan = planView();
    this.trouble = problemList({ has: this.form.has, focus: this.form.focus, take: (...what) => this.take(...what) });
    this.changes = original ? changesCard(original) : null;
    this.curl = codeBox("curl", "the curl line");
    this.trainctl = codeBox("trainctl", "the trainctl line");
    this.build(main, title);
    this.start();
    this.watching = watch(async (signal) => this.room(await get("/readyz", signal)), { periodMs: 5000 });
  }

  build(main, title) {
    this.status = h("p", { class: "hidden", role: "status" });
    this.failure = h("p", { class: "error", role: "alert", hidden: true });
    this.button = h("button", { type: "button", class: "primary", onclick: () => this.submit() }, "Submit the job");
    this.planHint = h("p", { class: "quiet", hidden: true });
    this.short = h("p", { class: "short", "aria-hidden": "true" });
    this.slots = h("p", { class: "help" });
    const anew = h("button", { type: "button", onclick: () => { this.forget(); this.start(); } }, "Clear the form");
    this.left = h("div", { class: "submit-form" }, this.begun.element, fastestCard(this.presets, (...what) => this.startFrom(...what)), this.changes?.element ?? null, this.form.element, ...this.known);
    main.replaceChildren(h("div", { class: "title" }, title, this.status, h("div", { class: "actions" }, anew)),
      h("div", { class: "submit" }, this.left,
        h("div", { class: "submit-side" },
          // Placed above elements that appear and disappear with the plan, so that the button does not move under the pointer.
          h("div", { class: "submit-bar" }, this.short, this.button, this.slots, this.failure),
          h("section", { class: "card plan-card", "aria-label": "Plan" }, h("h2", {}, "Plan"), this.trouble.element, this.planHint, this.plan.element),
          h("section", { class: "card codes", "aria-label": "The document" }, h("p", { class: "help" }, "Only what differs from the defaults is sent."),
            this.editor.element, this.curl.element, this.trainctl.element))));
  }

  get clone() { return this.original?.id; }

  // The differences of a job from the defaults and its preset. A clone does not wait for the jobs that the original waited for.
  specOf({ spec: { after: _after, ...spec } }) { return sparse(this.fields, spec, this.presetDocument(spec)); }

  // Starts with the draft, the original, or an empty document.
  start() {
    const draft = loadDraft(this.clone);
    this.problems = [];
    this.before = null;
    this.from = draft?.from ?? (this.original ? "clone" : "");
    this.change(plainObject(draft?.document) ? draft.document : this.original ? this.specOf(this.original) : {}, false, 0);
    if (draft?.key) this.key = draft.key;
    if (draft?.broken) {
      this.editor.text.value = draft.broken;
      this.editor.read();
    }
  }

  async startFrom(from, make) {
    const before = { document: this.document, from: this.from };
    try {
      const document = await make(this.document);
      this.from = from;
      this.change(document, false, 0);
      this.before = Object.keys(before.document).length ? before : null;
    } catch (error) {
      this.fail(words(error));
    }
    this.tellStart();
  }
  undo() {
    this.from = this.before.from;
    this.change(this.before.document, false, 0);
  }
  tellStart() { this.begun.update(this.from, this.document.preset, this.fields, Boolean(this.before)); }

  forget() { sessionStorage.removeItem(draftName(this.clone)); }
  keep() {
    const broken = this.broken ? this.editor.text.value : null;
    sessionStorage.setItem(draftName(this.clone), JSON.stringify({ document: this.document, key: this.key, from: this.from, broken }));
  }

  presetDocument(document = this.document) { return this.presets.find((one) => one.name === document.preset)?.document ?? null; }

  // Changes by the form update the JSON; changes of the JSON leave the text as typed.
  change(document, byText = false, pauseMs = PAUSE_MS) {
    this.document = inOrder(this.fields, sparse(this.fields, document, this.presetDocument(document)));
    this.setBroken(false);
    this.key = newKey();
    if (!byText) this.editor.set(pretty(this.document));
    this.form.update(this.document, this.presetDocument(), this.document.preset);
    this.before = null;
    this.tellStart();
    const text = pretty(this.document);
    this.curl.set(curlCommand(text, "/v1/jobs"));
    this.trainctl.set(trainctlLine(text));
    this.changes?.update(this.fields, this.spec());
    show(this.failure, false);
    this.keep();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.ask(), pauseMs);
  }
  spec() { return effective(this.fields, this.document, this.presetDocument()); }

  typed(document) {
    if (document) return this.change(document, true);
    this.setBroken(true);
    this.keep();
  }

  // While the text is not valid JSON, the form is locked: its document is an older one and would overwrite the text.
  setBroken(broken) {
    this.broken = broken;
    this.left.inert = broken;
    if (!broken) return;
    clearTimeout(this.timer);
    this.abort?.abort();
    this.trouble.update([], "");
    this.told("The form is locked until the JSON is valid.", false);
  }

  // Replaces an unknown key by the suggested one, or a value.
  take(pointer, suggestion) {
    const renamed = suggestion.startsWith("/") && !this.form.has(pointer);
    const value = valueAt(this.document, pointer);
    this.change(renamed ? withValue(withValue(this.document, pointer, undefined), suggestion, value) : withValue(this.document, pointer, suggestion));
    this.form.focus(renamed ? suggestion : pointer);
  }

  async ask() {
    this.abort?.abort();
    const { signal } = (this.abort = new AbortController());
    const { document } = this;
    if (!Object.keys(document).length) return this.begin();
    try {
      const plan = await post("/v1/plan", document, { signal });
      if (signal.aborted) return;
      this.complain([]);
      this.planned = { key: this.key, plan };
      this.plan.update(plan, this.spec());
      this.told("", true);
      say(this.short, [plan.global_batch && `${f.count(plan.global_batch)} images a step`, plan.train_steps && `${f.count(plan.train_steps)} steps`,
        plan.predicted?.ttt_seconds?.value && f.duration(plan.predicted.ttt_seconds.value)].filter(Boolean).join(" · "));
      say(this.status, `Plan: ${plan.train_steps ?? 0} steps of ${plan.global_batch ?? 0} images`);
    } catch (error) {
      if (signal.aborted) return;
      this.refused(error);
    }
  }

  // status text of the plan, and whether it is the plan of the current document
  told(text, current) {
    say(this.planHint, text);
    show(this.planHint, text !== "");
    this.plan.element.classList.toggle("old", !current);
  }

  // Nothing has been entered yet.
  begin() {
    this.complain([]);
    show(this.plan.element, false);
    this.told("Choose what to start from, or enter the training data: a folder, or “synthetic” for random images. The plan appears here.", false);
    say(this.short, "");
  }

  refused(error) {
    const problems = error instanceof Problem ? error.document?.errors ?? [] : [];
    show(this.plan.element, this.plan.element.querySelector("dd") !== null);
    this.complain(problems);
    this.told(problems.length ? "" : words(error), false);
    say(this.status, problems.length ? `${problems.length} problems` : words(error));
    if (!(error instanceof Problem)) this.timer = setTimeout(() => this.ask(), AGAIN_MS);
  }

  complain(problems) {
    this.problems = problems;
    if (problems.length) say(this.short, problems.length === 1 ? "One problem" : `${problems.length} problems`);
    this.form.complain(problems);
    this.trouble.update(problems, this.editor.text.value);
    if (!problems.length) show(this.plan.element, true);
  }

  async submit() {
    if (this.button.disabled) return;
    if (this.broken) return this.fail("The JSON is not valid yet.", this.editor.text);
    clearTimeout(this.timer); // this text is submitted
    this.button.disabled = true;
    say(this.button, "Submitting…");
    try {
      if (!await this.confirmed()) throw null;
      // The key belongs to the document: a second click, or a retry after a lost answer, returns the same job.
      const job = await post("/v1/jobs", this.document, { headers: { "Idempotency-Key": this.key } });
      this.forget();
      if (!this.gone) location.hash = `#/jobs/${job.id}`;
    } catch (error) {
      const problems = error instanceof Problem ? error.document?.errors ?? [] : [];
      if (problems.length) this.complain(problems);
      if (error) this.fail(problems.length ? `Not submitted: ${problems.length === 1 ? "there is a problem" : `there are ${problems.length} problems`}.` : words(error));
      if (problems.length) this.form.focus(problems[0].pointer);
    }
    this.button.disabled = false;
    say(this.button, "Submit the job");
  }
  // Asks the user to confirm a job that takes days.
  async confirmed() {
    const { key } = this;
    // Problems of the document are shown by the submission.
    const { predicted } = this.planned?.key === key ? this.planned.plan : await post("/v1/plan", this.document).catch(() => ({}));
    const { value, low, high } = predicted?.ttt_seconds ?? {};
    return !(value > LONG_SECONDS) || ask({ title: `Submit a job of ${f.duration(value)}?`,
      text: `It is predicted to take between ${f.duration(low)} and ${f.duration(high)}. Fewer epochs, smaller images, a smaller network or more workers shorten it.`,
      yes: "Submit the job", no: "Back to the form", kind: "primary", work: async () => {} });
  }
  fail(text, focus) {
    say(this.failure, text);
    show(this.failure, true);
    focus?.focus();
  }

  // Shows next to the button whether the job would have to wait. The page's header shows whether the daemon answers.
  room({ slots, jobs }) {
    const free = slots.total - slots.used;
    say(this.slots, `${free} of ${slots.total} slots ${slots.total === 1 ? "is" : "are"} free${jobs.queued ? `, ${jobs.queued} ${jobs.queued === 1 ? "job is" : "jobs are"} queued` : ""}.`);
  }

  leave() {
    this.gone = true;
    this.watching.stop();
    clearTimeout(this.timer);
    this.abort?.abort();
  }
}

async function load(query, signal) {
  const clone = query.get("clone");
  const paths = async (key) => (await get(`/v1/jobs?group=${key}&limit=${KNOWN_MOST}`, signal)).groups.map(({ value }) => value).filter((value) => value && value !== "synthetic");
  const [schema, { presets }, original, { jobs: [last] }, train, evaluated, examples] = await Promise.all([get("/v1/schema/job", signal), get("/v1/presets", signal),
    clone ? get(`/v1/jobs/${encodeURIComponent(clone)}`, signal) : null, get("/v1/jobs?limit=1", signal), paths("data.train"), paths("data.eval"),
    get("examples.json", signal).catch(() => [])]);
  return { schema, presets, original, last, known: { train, eval: evaluated }, examples: examples.filter((one) => one.model) }; // not those of sweeps
}

export function mount(main, { query, heading }) {
  const abort = new AbortController();
  const clone = query.get("clone");
  let page = null, timer = 0, looking = null;
  const name = clone ? `Clone of job ${clone}` : "New job", title = h("h1", { tabindex: -1 }, name);
  heading(name);
  const wait = notice("Loading the form…");
  main.replaceChildren(h("div", { class: "title" }, title), wait);
  const begin = async () => {
    try {
      page = new Page(main, title, await load(query, abort.signal));
    } catch (error) {
      if (abort.signal.aborted) return;
      const gone = clone && error.status === 404;
      wait.replaceChildren(h("h2", {}, gone ? `There is no job ${clone} to clone` : waiting(error)),
        gone ? h("p", {}, error.message) : "", gone ? h("p", {}, h("a", { href: "#/submit" }, "A new job")) : "");
      if (gone) looking = watch((alive) => get("/healthz", alive), { periodMs: 5000 });
      else timer = setTimeout(begin, AGAIN_MS);
    }
  };
  begin();
  return {
    unmount: () => {
      clearTimeout(timer);
      abort.abort();
      looking?.stop();
      page?.leave();
    },
  };
}
