// Jobs and cost of a sweep, requested from the daemon while its document is typed.

import { post, Problem, words } from "../api.js";
import { h, say, show } from "../dom.js";
import * as f from "../format.js";

const PAUSE_MS = 400; // after a key press
const HEADINGS = ["Rung", "Budget", "Jobs", "Parallel jobs", "Images", "Time", "Slot-hours"];

const band = (values, format) => (values?.value == null ? null
  : values.low === values.high ? format(values.value) : `${format(values.value)}, between ${format(values.low)} and ${format(values.high)}`);

function facts(plan) {
  return [
    ["Jobs", `${f.count(plan.jobs)} for ${f.count(plan.points)} ${plan.points === 1 ? "point" : "points"}`],
    ["Images", `${f.count(plan.images)} to train on, ${f.count(plan.evaluated_images)} to evaluate`],
    ["Time", plan.jobs_without_speed ? "unknown: no speed of these jobs has been measured" : `${band(plan.seconds, f.duration)}, if no other job runs`],
    ["Slot-hours", band(plan.slot_hours, f.number)],
    ["Node-hours", band(plan.node_hours, f.number)],
    ["Energy", band(plan.kwh, f.kwh)],
    ["Cost", band(plan.cost, (cost) => f.money(cost, plan.currency))],
  ].filter(([, text]) => text);
}

// {element, ask(document, or null if the JSON is invalid), stop()}
export function sweepPlan() {
  const list = h("dl", { class: "facts" }), warnings = h("ul", { class: "warnings" }), hint = h("p", { class: "quiet" }), body = h("tbody");
  const table = h("div", { class: "scroll", role: "group", tabindex: 0, "aria-label": "The rungs" },
    h("table", {}, h("thead", {}, h("tr", {}, ...HEADINGS.map((text) => h("th", { scope: "col", class: "num" }, text)))), body));
  const element = h("section", { class: "card plan-card sweep-cost", "aria-label": "Estimated cost" }, h("h2", {}, "Estimated cost"), hint, list, table, warnings);
  let timer, abort;
  const clear = (text) => {
    say(hint, text);
    show(hint, text !== "");
    for (const part of [list, table, warnings]) show(part, text === "");
  };
  const update = (plan) => {
    clear("");
    list.replaceChildren(...facts(plan).flatMap(([name, text]) => [h("dt", {}, name), h("dd", {}, text)]));
    show(table, plan.rungs.length > 1);
    body.replaceChildren(...plan.rungs.map((one) => h("tr", {}, ...[one.rung, f.number(one.budget), f.count(one.jobs), one.side_by_side, f.count(one.images),
      f.duration(one.seconds.value), f.number(one.slot_hours.value)].map((text) => h("td", { class: "num" }, String(text))))));
    warnings.replaceChildren(...plan.warnings.map((text) => h("li", {}, text)));
    show(warnings, plan.warnings.length > 0);
  };
  const fetch = async (document) => {
    const { signal } = abort = new AbortController();
    try {
      const plan = await post("/v1/sweeps/plan", document, { signal });
      if (!signal.aborted) update(plan);
    } catch (error) {
      if (signal.aborted) return;
      const [first] = error instanceof Problem ? error.document?.errors ?? [] : [];
      clear(first ? `No plan, because of ${first.pointer}: ${first.message}` : words(error));
    }
  };
  const stop = () => {
    clearTimeout(timer);
    abort?.abort();
  };
  const ask = (document) => {
    stop();
    if (document) timer = setTimeout(fetch, PAUSE_MS, document);
    else clear("No plan: the JSON is not valid.");
  };
  clear("No plan yet.");
  return { element, ask, stop };
}
