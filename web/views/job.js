// Page of one job (#/jobs/3). In the address: x, logx, smooth, from, to, log of the charts; find, attempt of the log; evaluation of the mistakes
// by class.

import { get, post, waiting, words } from "../api.js";
import { badge, h, mark, meter, notice, say, setBadge, setMeter, show } from "../dom.js";
import * as f from "../format.js";
import { ended, startWords, submitter, tookWords } from "../jobs.js";
import { editLabels, tagChips } from "../labels.js";
import { hear, watch } from "../live.js";
import { listHref } from "../place.js";
import { planView } from "../plan_view.js";
import { jobActions } from "./job_actions.js";
import { jobCharts } from "./job_charts.js";
import { confusionCard } from "./job_confusion.js";
import { checkpointsCard, evalsCard, eventsCard, filesCard, forecastCard, stragglerWords, tiles } from "./job_facts.js";
import { logView } from "./job_log.js";
import { noticesCard } from "./job_notices.js";
import { outputs } from "./job_outputs.js";
import { listed, provenanceCard } from "./job_provenance.js";

const PERIOD_MS = 1500; // between polls
const LIVE_MS = 250; // between displays of steps reported by the stream

const optimizerWords = (o) => [o.name, ["sgd", "sgdw", "lars", "rmsprop"].includes(o.name) && `momentum ${o.momentum}`,
  `weight decay ${o.weight_decay}`].filter(Boolean).join(", ");

// Differences from plain fp32; null if there are none.
const precisionWords = ({ precision = "fp32", loss_scale: scale = 1, comm = {} }) => {
  const more = [scale !== 1 && `loss scale ${scale}`, comm.dtype && comm.dtype !== "fp32" && `gradients summed in ${comm.dtype}`].filter(Boolean);
  return precision === "fp32" && !more.length ? null : [precision, ...more].join(", ");
};

// "224 × 224"; for several sizes, the list or the ramp as written
const sizeWords = (size) => (typeof size === "number" ? `${size} × ${size}` : JSON.stringify(size));

// Model, data and origin of the job, shown next to its plan.
function about(job) {
  const { spec = {} } = job;
  return [
    ["Model", spec.model && `${spec.model.arch}, ${sizeWords(spec.model.image_size)}, ${f.count(spec.model.classes)} classes, ${spec.precision ?? "fp32"}`],
    ["Precision", precisionWords(spec)],
    ["Data", spec.data?.train],
    ["Optimiser", spec.optimizer && optimizerWords(spec.optimizer)],
    ["Gradients", job.gradients?.message],
    ["Submitted", job.created_at && f.date(job.created_at)],
    ["By", job.submitted_by && submitter(job)],
    ["Imported", job.imported_from && `job ${job.imported_from.job} of another daemon${job.imported_from.submitted_by ? `, submitted there by ${job.imported_from.submitted_by}` : ""}, ${f.date(job.imported_from.imported_at)}`],
    ["Reproduces", spec.reproduces && `job ${spec.reproduces}`],
    ["After", spec.after?.length > 0 && !job.imported_from && h("span", {}, ...listed(spec.after))],
    ["Continues", spec.continues && !job.imported_from && h("span", {}, ...listed([spec.continues]))],
    ["Priority", job.priority !== 0 && `${job.priority}`],
    ["Started", job.started_at && f.date(job.started_at)],
    ["Finished", job.finished_at && f.date(job.finished_at)],
  ].filter(([, value]) => value);
}

// Plans the job again, with its learning rate and, if it is waiting, predictions from speeds measured since it was submitted. The data need
// not be counted again; a missing count is 0 in the plan and null in a document. null: it can no longer be planned.
async function planAnew({ spec, plan, state }) {
  const data = { ...spec.data, train_images: plan.train_images || null, eval_images: plan.eval_images || null };
  try {
    const { lr_curve, predicted, explain } = await post("/v1/plan", { ...spec, data });
    return state === "queued" ? { ...plan, lr_curve, predicted, explain: { ...plan.explain, predicted: explain.predicted } } : { ...plan, lr_curve };
  } catch {
    return null;
  }
}

function planCard() {
  const list = h("dl", { class: "facts" }), plan = planView();
  const element = h("section", { class: "card" }, h("h2", {}, "Plan"), list, plan.element);
  let text = "";
  const update = (job) => {
    const now = JSON.stringify([job.plan, about(job).filter(([, value]) => typeof value === "string"), ended(job)]);
    if (now === text || !job.plan) return;
    text = now;
    list.replaceChildren(...about(job).flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
    plan.update(job.plan, job.spec, ended(job) ? job : null);
    planAnew(job).then((anew) => anew && now === text && plan.update(anew, job.spec, ended(job) ? job : null));
  };
  return { element, update };
}

// For a running job that has lost a node, and one waiting on the daemon's machine.
const growWords = (job) => (job.grows_to ? `${job.spec.cluster.nodes} of ${job.grows_to} nodes: grows when more of its hosts answer and are free` : "");
const placeWords = (job) => (job.queue_position ? `, place ${job.queue_position} of ${job.queue_length} in the queue` : "");

export function mount(main, { params, query, heading }) {
  const id = Number(params[0]);
  const title = h("h1", { tabindex: -1 }, `Job ${id}`), state = badge();
  const refused = h("p", { class: "error", role: "alert", hidden: true });
  const failed = (error) => {
    say(refused, error ? words(error) : "");
    show(refused, Boolean(error));
  };
  const changed = () => {
    failed(null);
    look.again();
  };
  const actions = jobActions(id, changed, failed);
  const reason = h("p", { class: "why", role: "status" });
  const slow = h("p", { class: "why slow", role: "status" });
  const label = h("p", { class: "quiet", hidden: true }), took = h("p", { class: "quiet took" });
  const chips = tagChips();
  const note = h("p", { class: "note" }), edit = h("button", { type: "button", class: "edit" }, "Edit name, tags and note…");
  edit.addEventListener("click", async () => {
    const now = await get(`/v1/jobs/${id}`).catch(failed);
    if (now && await editLabels(now)) changed();
  });
  const labels = h("div", { class: "labels", hidden: true }, chips.element, edit, note);
  const bar = meter(`progress of job ${id}`), numbers = tiles(), plan = planCard(), charts = jobCharts(id, query);
  const evals = evalsCard(), forecast = forecastCard(), checkpoints = checkpointsCard(id), events = eventsCard(id), notices = noticesCard(id), files = filesCard(id), log = logView(id, query, () => look.again()), confusion = confusionCard(id, query), written = outputs(id), provenance = provenanceCard(id);
  const columns = h("div", { class: "columns" }, h("div", { class: "stack" }, plan.element, files.element),
    h("div", { class: "stack" }, evals.element, forecast.element, checkpoints.element, events.element, notices.element));
  const buttons = h("div", { class: "actions" }, ...actions.elements);
  const content = h("div", { class: "stack", hidden: true }, bar.element, numbers.element, charts.element, columns, confusion.element, written.element, provenance.element, log.element);
  plan.element.append(took);
  // Before a job has begun, there is nothing but its plan.
  const arrange = (begun) => {
    for (const element of [bar.element, numbers.element, took, charts.element, confusion.element, written.element, log.element]) show(element, begun);
  };
  const wait = notice(`Loading job ${id}…`);
  main.replaceChildren(h("nav", { class: "crumbs", "aria-label": "Where you are" }, h("a", { href: listHref() }, "Jobs"), ` / ${id}`),
    h("div", { class: "title" }, title, state, buttons), labels, reason, slow, refused, label, wait, content);
  heading(`Job ${id}`);

  let job = null, asked = 0;
  const tell = () => {
    show(wait, false);
    show(content, true);
    say(title, job.name || `Job ${id}`);
    heading(`${job.name || "Job"} #${id}`);
    setBadge(state, job.state);
    const why = [(job.reason ?? "") + placeWords(job), growWords(job), startWords(job)];
    say(reason, job.state === "succeeded" ? "" : why.filter(Boolean).join("; "));
    mark(reason, "data-state", job.state);
    say(label, job.failure_label ? `Failure label: ${job.failure_label}` : "");
    show(label, Boolean(job.failure_label));
    chips.update(job.tags);
    say(note, job.note ?? "");
    show(note, Boolean(job.note));
    show(labels, true);
    actions.update(job);
    arrange(job.attempt > 0);
    setMeter(bar, job);
    numbers.update(job, asked);
    say(took, tookWords(job));
  };

  // The stream reports each step: the numbers change at once, the charts at the next poll.
  let timer = 0;
  const deafen = hear((event) => {
    if (event.job !== id || event.type !== "step" || !job || ended(job)) return;
    for (const key of ["step", "epoch", "loss", "lr", "images_per_sec"]) if (key in event) job[key] = event[key];
    timer ||= setTimeout(() => { timer = 0; tell(); }, LIVE_MS);
  });

  // Removed, or never existed: nothing can be done with it.
  const gone = () => {
    look.stop();
    deafen();
    clearTimeout(timer);
    wait.replaceChildren(h("h2", {}, `There is no job ${id}`), h("p", {}, h("a", { href: listHref() }, "All jobs")));
    show(wait, true);
    for (const element of [content, state, buttons, labels, reason, slow, refused, label]) show(element, false);
  };
  let isThere = true;

  const look = watch(async (signal) => {
    job = await get(`/v1/jobs/${id}`, signal).catch((error) => {
      isThere = error.status !== 404;
      throw error;
    });
    asked = Date.now();
    tell();
    plan.update(job);
    files.update(job);
    forecast.update(job, signal);
    written.update(job);
    provenance.update(job);
    const [list, all] = await Promise.all([get(`/v1/jobs/${id}/evals`, signal), events.update(signal), log.update(job, signal)]);
    evals.update(list.evals);
    confusion.update(list.evals);
    say(slow, all.filter((e) => e.type === "straggler" && e.attempt === job.attempt).slice(-3).map(stragglerWords).join("\n"));
    await Promise.all([checkpoints.update(all, signal), notices.update(job, signal)]);
    await charts.update(job, list.evals, all, signal);
    // An ended job no longer changes, except for files written late.
    return ended(job) ? 10000 : PERIOD_MS;
  }, {
    periodMs: PERIOD_MS,
    wanted: (event) => event.job === id,
    done: (error) => {
      if (!isThere) gone();
      else if (error && !wait.hidden) say(wait.firstChild, waiting(error));
    },
  });
  return {
    update: (place) => {
      charts.apply(place.query);
      log.apply(place.query);
      confusion.apply(place.query);
    },
    unmount: () => {
      look.stop();
      deafen();
      clearTimeout(timer);
      charts.close();
    },
  };
}
