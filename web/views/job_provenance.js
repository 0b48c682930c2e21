// Provenance of a job, and whether it is bit-identical to the job it reproduces. Fetched when opened.

import { get, words } from "../api.js";
import { h, say, show } from "../dom.js";
import { fileLink } from "../files.js";
import * as f from "../format.js";
import { ended } from "../jobs.js";

const short = (hex) => (hex ? h("code", { title: hex }, hex.slice(0, 12)) : null);
export const jobLink = (id) => h("a", { href: `#/jobs/${id}` }, `job ${id}`);
export const listed = (ids) => ids.flatMap((id, i) => (i ? [", ", jobLink(id)] : [jobLink(id)]));

function dataWords(data) {
  return data && h("span", {}, `${data.path}, ${f.count(data.images)} images, index `, short(data.xxh128), `, changed ${f.date(data.changed)}`);
}

const rows = (entries) => entries.filter(([, value]) => value !== null && value !== undefined && value !== "")
  .flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]);

// Names and values needed only for comparisons.
function more(title, entries) {
  return h("details", {}, h("summary", {}, title), h("dl", { class: "facts" }, ...rows(entries)));
}

function machineView(machine) {
  return [
    h("h3", {}, machine.hosts.join(", ")),
    h("dl", { class: "facts" }, ...rows([
      ["Processor", machine.cpu], ["Workers", `${machine.ranks}`], ["Kernels", [machine.kernels, machine.bf16].filter(Boolean).join(", ")],
      ["OpenBLAS", machine.openblas], ["MPI", machine.mpi], ["train-worker", h("span", {}, `${machine.version}, build `, short(machine.build_id))],
      ["Linux", machine.kernel], ["Microcode", machine.microcode],
    ])),
    more("Libraries", Object.entries(machine.libraries).map(([name, id]) => [name, short(id)])),
    more("Environment", Object.entries(machine.environment)),
    more("Features of the processor", [["Flags", machine.flags], ["OpenBLAS's build", machine.openblas_config]]),
  ];
}

function attemptView(attempt, several) {
  const { result } = attempt;
  return h("div", {}, several ? h("h3", {}, `Attempt ${attempt.attempt}, ${f.date(attempt.started_at)}`) : null,
    h("dl", { class: "facts" }, ...rows([
      ["Workers", `${attempt.world_size} with ${attempt.threads_per_worker} thread${attempt.threads_per_worker === 1 ? "" : "s"} each`],
      ["Batch", `${f.count(attempt.batch_per_worker)} a worker${attempt.accumulate_steps > 1 ? `, ${attempt.accumulate_steps} times a step` : ""}`],
      ["Gradients", attempt.gradients], ["Winograd", attempt.winograd && h("code", {}, attempt.winograd)],
      ["Initial weights", attempt.weights && h("span", {}, `${attempt.weights.path}, `, short(attempt.weights.xxh128))],
      ["Training data", dataWords(attempt.data.train)], ["Evaluation data", dataWords(attempt.data.eval)],
      ["Weights", result && short(result.weights)], ["Losses", result && short(result.losses)], ["Evaluations", result && short(result.evaluations)],
    ])), ...attempt.machines.flatMap(machineView));
}

const SAME = { true: "bit-identical", false: "differ", null: "unknown" };
const VERDICTS = { same: "bit-identical", differs: "the results differ" }; // for others the answer contains a text

function differenceRow({ words: name, values, may_change_bits: may }) {
  return h("tr", {}, h("th", { scope: "row" }, name), ...values.map((value) => h("td", {}, value ?? f.none)), h("td", {}, may ? "possible cause" : "no effect"));
}

function reproductionView(answer) {
  const all = [...answer.documents.map(({ pointer, values }) => ({ words: pointer.slice(1).replaceAll("/", "."), values: values.map((v) => (v === null ? null : JSON.stringify(v))), may_change_bits: true })),
    ...answer.differences];
  return [
    h("p", {}, "Reproduces ", jobLink(answer.reproduces), `: ${VERDICTS[answer.verdict] ?? answer.words}.`),
    answer.verdict === "running" ? null : h("p", { class: "quiet" }, ["weights", "losses", "evaluations"].map((key) => `${key} ${SAME[answer.same[key]]}`).join(", "),
      answer.first_step ? `; the first step that differs is ${f.count(answer.first_step)}` : ""),
    all.length && answer.verdict === "differs" ? h("div", { class: "scroll", role: "group", tabindex: 0, "aria-label": "What differs" }, h("table", {},
      h("thead", {}, h("tr", {}, ...["What differs", `Job ${answer.reproduces}`, `Job ${answer.job}`, ""].map((text) => h("th", { scope: "col" }, text)))),
      h("tbody", {}, ...all.map(differenceRow)))) : null,
  ].filter(Boolean);
}

// {element, update(job)}
export function provenanceCard(id) {
  const told = h("p", { class: "quiet", role: "status" }), compared = h("div"), place = h("div");
  const link = h("p", { class: "files" }, fileLink("provenance.json", `/v1/jobs/${id}/provenance`, `job-${id}-provenance.json`));
  let shown = null, wanted = "", of = null;
  const element = h("section", { class: "card folded provenance", hidden: true },
    h("details", { ontoggle: (event) => event.target.open && load() }, h("summary", {}, h("h2", {}, "Provenance")), told, compared, place, link));

  async function load() {
    const now = wanted;
    if (now === shown) return;
    if (shown === null) say(told, "Loading…");
    try {
      const answer = await get(`/v1/jobs/${id}/provenance`);
      const attempts = answer.attempts.map((attempt) => attemptView(attempt, answer.attempts.length > 1));
      compared.replaceChildren(...(of ? reproductionView(await get(`/v1/jobs/${id}/reproduction`)) : []),
        ...(answer.reproduced_by.length ? [h("p", {}, "Reproduced by ", ...listed(answer.reproduced_by))] : []));
      place.replaceChildren(...attempts);
      say(told, attempts.length ? "" : "The run has recorded nothing yet.");
      shown = now;
    } catch (error) {
      say(told, words(error));
    }
  }

  return {
    element,
    update: (job) => {
      of = job.spec?.reproduces ?? null;
      wanted = JSON.stringify([job.attempt, ended(job), job.step > 0]);
      show(element, job.attempt > 0);
      if (element.firstChild.open) load();
    },
  };
}
