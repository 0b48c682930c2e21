// A new sweep over job keys: #/sweeps/new, #/sweeps/new?base=JOB, #/sweeps/new?from=SWEEP

import { get, newKey, post, Problem, waiting, words } from "../api.js";
import { codeBox, curlCommand, jsonEditor, problemList } from "../code.js";
import { h, notice, say, show } from "../dom.js";
import { fieldsOf, keyWords, pretty, sparse, TEST_JOB, valueAt, withValue } from "../job_document.js";
import { watch } from "../live.js";
import { sweepForm } from "../sweep/sweep_form.js";
import { sweepPlan } from "../sweep/sweep_plan.js";
import { trialsOf } from "../sweep/sweeps.js";

const EXAMPLES = [
  ["Grid", "Every combination of the values.", (base) => ({ name: "grid", base, parameters: { "lr.base": [0.05, 0.1, 0.2], "optimizer.momentum": [0.8, 0.9] }, metric: "loss", concurrency: 1 })],
  ["Random", "Points drawn at random from lists and ranges.", (base) => ({ name: "random", base, method: "random", samples: 8, seed: 1,
    parameters: { "lr.base": { min: 0.01, max: 1, log: true }, "optimizer.momentum": { min: 0.8, max: 0.99 }, "lr.decay": ["poly", "cosine"] }, metric: "loss", concurrency: 1 })],
  ["Halving", "All points on a small budget; the best are promoted to larger ones.", (base) => ({ name: "halving", base, method: "halving", samples: 9, seed: 1,
    parameters: { "lr.base": { min: 0.01, max: 1, log: true } }, budget: { key: "steps", min: 4, max: 16, eta: 2 }, metric: "loss", concurrency: 1 })],
  ["Bayesian", "Random points first, then points near those with good results (TPE).", (base) => ({ name: "bayesian", base, method: "tpe", samples: 20, n_startup: 10, seed: 1,
    parameters: { "lr.base": { min: 0.01, max: 1, log: true }, "optimizer.momentum": { min: 0.8, max: 0.99 } }, metric: "loss", concurrency: 1 })],
];


// The base of the examples: the differences of a job from the defaults, or a small job.
async function baseOf(id, fields, signal) {
  if (!id) return TEST_JOB;
  const [job, { presets }] = await Promise.all([get(`/v1/jobs/${encodeURIComponent(id)}`, signal), get("/v1/presets", signal)]);
  const { name: _name, ...spec } = job.spec;
  return sparse(fields, spec, presets.find((one) => one.name === spec.preset)?.document ?? null);
}

// One draft for each sweep or job to start from.
const draftName = (from, base) => ["traind-sweep-draft", from && `from-${from}`, base && `base-${base}`].filter(Boolean).join("-");

// beginnings: [[title, words, document of the base]]; the first is shown if there is no draft.
function build(main, title, { fields, base, beginnings, draft }) {
  let document = null, busy = false, gone = false, key;
  const told = h("p", { class: "help", role: "status" }), failure = h("p", { class: "error", role: "alert", hidden: true });
  const button = h("button", { type: "button", class: "primary" }, "Start the sweep");
  const trouble = problemList({ take: (pointer, suggestion) => {
    // A key of the job in "base" or of the parameters; otherwise one of the group that contains the invalid one.
    const meant = !suggestion.startsWith("/") ? `${pointer.slice(0, pointer.lastIndexOf("/"))}/${suggestion}`
      : pointer.startsWith("/parameters/") ? `/parameters/${keyWords(suggestion)}` : `/base${suggestion}`;
    editor.set(pretty(withValue(withValue(document, pointer, undefined), meant, valueAt(document, pointer))));
    editor.read();
  } });
  const curl = codeBox("curl", "the curl line"), cost = sweepPlan();
  const form = sweepForm(fields, (now) => {
    editor.set(pretty(now));
    editor.read();
  });
  const typed = (now) => {
    document = now;
    form.update(now);
    key = newKey(); // for this text: a retry after a lost answer returns the same sweep
    trouble.update([], editor.text.value);
    show(failure, false);
    const count = now && trialsOf(now);
    say(told, !now ? "" : count ? `${count} ${count === 1 ? "job" : "jobs"}, ${now.concurrency ?? 1} in parallel.` : "");
    curl.set(now ? curlCommand(pretty(now), "/v1/sweeps") : "");
    cost.ask(now);
    sessionStorage.setItem(draft, editor.text.value); // as typed, whether valid JSON or not
  };
  const editor = jsonEditor({ id: "sweep-json", title: "JSON", what: "A sweep", rows: 16, typed });
  button.addEventListener("click", async () => {
    if (busy) return;
    if (!document) return editor.text.focus();
    busy = button.disabled = true;
    try {
      const sweep = await post("/v1/sweeps", document, { headers: { "Idempotency-Key": key } });
      sessionStorage.removeItem(draft);
      if (!gone) location.hash = `#/sweeps/${sweep.id}`;
    } catch (error) {
      const problems = error instanceof Problem ? error.document?.errors ?? [] : [];
      trouble.update(problems, editor.text.value);
      say(failure, problems.length ? "Not started; see the problems listed." : words(error));
      show(failure, true);
      editor.text.focus();
    }
    busy = button.disabled = false;
  });
  const example = ([name, text, make]) => h("li", {}, h("button", { type: "button", onclick: () => { editor.set(pretty(make(base))); editor.read(); } }, name), h("span", { class: "help" }, text));
  main.replaceChildren(h("div", { class: "title" }, title),
    h("div", { class: "submit" }, h("div", { class: "submit-form" }, form.element, h("section", { class: "card" }, editor.element)),
      h("div", { class: "submit-side" }, h("section", { class: "card" }, h("h2", {}, "Start from"), h("ul", { class: "examples" }, ...beginnings.map(example)),
        h("p", { class: "help" }, "“base” is a job; “parameters” are its keys with the values to try. “metric” is used to rank the trials: top1, top5, loss, images_per_sec or ttt_seconds.")),
      // Placed above elements that appear and disappear with the cost, so that the button does not move under the pointer.
      h("div", { class: "submit-bar" }, button, told, failure), trouble.element, cost.element, h("section", { class: "card codes" }, curl.element))));
  editor.set(sessionStorage.getItem(draft) ?? pretty(beginnings[0][2](base)));
  editor.read();
  return () => {
    gone = true;
    cost.stop();
  };
}

export function mount(main, { query, heading }) {
  heading("New sweep");
  let leave;
  const abort = new AbortController(), from = query.get("from"), base = query.get("base"), title = h("h1", { tabindex: -1 }, "New sweep"), wait = notice("Loading…");
  main.append(h("div", { class: "title" }, title), wait);
  const watching = watch(async (signal) => {
    if (wait.isConnected) {
      const fields = fieldsOf(await get("/v1/schema/job", signal));
      const [job, sweep] = await Promise.all([baseOf(base, fields, signal), from ? get(`/v1/sweeps/${encodeURIComponent(from)}`, signal) : null]);
      const original = sweep ? [[`Sweep ${from}`, "As it was.", () => sweep.document]] : [];
      if (!abort.signal.aborted)
        leave = build(main, title, { fields, base: sweep?.document.base ?? job, beginnings: [...original, ...EXAMPLES], draft: draftName(from, base) });
    } else await get("/healthz", signal);
    return 5000;
  }, { periodMs: 2000, done: (error) => {
    if (error && wait.isConnected) wait.replaceChildren(h("h2", {}, waiting(error)),
      error instanceof Problem ? h("p", {}, h("a", { href: "#/sweeps/new" }, "A new sweep")) : "");
  } });
  return { unmount: () => {
    abort.abort();
    leave?.();
    watching.stop();
  } };
}
