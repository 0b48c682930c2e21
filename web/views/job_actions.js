// Actions on a job: the buttons next to its title.

import { get, post, remove } from "../api.js";
import { ask } from "../ask.js";
import { h, mark, say, show } from "../dom.js";
import * as f from "../format.js";
import { ended } from "../jobs.js";
import { href, listHref } from "../place.js";

// The effect of cancelling, depending on the job's state.
function cancelWords(job) {
  if (job.state === "queued" && job.attempt === 0) return "The job has not started; it leaves the queue at once.";
  if (job.state === "queued") return "The job leaves the queue at once. Its checkpoints are kept, so you can resume it later.";
  const { mode, checkpoint } = job.spec ?? {};
  if (mode === "eval") return "The workers stop at once, without a result. The job cannot be resumed.";
  if (checkpoint?.disable) return "The workers finish the current step and stop. This job writes no checkpoints, so it cannot be resumed.";
  return "The workers finish the current step and write a checkpoint. You can resume the job from there later.";
}

function removeWords(job) {
  return `Its run directory is deleted permanently: checkpoints, weights, logs, predictions. So are its results and charts here.${job.checkpoint_step
    ? ` Its newest checkpoint is of step ${f.count(job.checkpoint_step)}.` : ""}`;
}

// changed(): an action was done, poll again. failed(error): it failed. Returns {elements, update(job)}
export function jobActions(id, changed, failed) {
  let job = null;
  const button = (text, classes, work) => {
    const element = h("button", { type: "button", class: classes, hidden: true }, text);
    element.addEventListener("click", () => work(element));
    return element;
  };
  // Acts at once, without confirmation.
  const direct = (text, path) => button(text, "", async (element) => {
    element.disabled = true;
    await post(`/v1/jobs/${id}/${path()}`).then(changed, failed);
    element.disabled = false;
  });
  const resume = direct("Resume", () => "resume"), hold = direct("Hold", () => (job.held_at ? "release" : "hold"));
  const cancel = button("Cancel…", "danger", async (element) => {
    const yes = await ask({ title: `Cancel job ${id}?`, text: cancelWords(job), yes: "Cancel the job", no: "Keep running", work: () => post(`/v1/jobs/${id}/cancel`) });
    if (yes) say(element, "Cancelling…");
    element.disabled = yes;
  });
  const priority = button("Priority…", "", async () => {
    const field = h("input", { type: "number", min: -1000, max: 1000, step: 1, value: job.priority, required: true });
    const work = () => post(`/v1/jobs/${id}/priority`, { priority: field.valueAsNumber });
    if (await ask({ title: `Priority of job ${id}`, text: "Higher priorities start first. Each point is worth an hour of waiting, unless the administrator has changed this.",
      more: h("p", {}, h("label", {}, "Priority ", field)), yes: "Set the priority", no: "Cancel", kind: "primary", work })) changed();
  });
  const clear = button("Delete…", "danger", async () => {
    const now = await get(`/v1/jobs/${id}`).catch(failed);
    if (now && await ask({ title: `Delete job ${id}?`, text: removeWords(now), yes: "Delete the job", no: "Keep it", work: () => remove(`/v1/jobs/${id}`) }))
      location.hash = listHref();
  });
  const clone = h("a", { class: "button", href: href("/submit", { clone: id }), hidden: true }, "Clone with changes");
  const update = (now) => {
    job = now;
    const over = ended(job), waits = job.state === "queued" && !job.slurm;
    show(clone, true);
    show(resume, ["failed", "cancelled"].includes(job.state) && Boolean(job.checkpoint_step));
    show(hold, waits);
    say(hold, job.held_at ? "Release" : "Hold");
    mark(hold, "title", job.held_at ? "" : "The job stays in the queue and does not start until you release it.");
    show(priority, waits);
    show(cancel, !over);
    show(clear, over);
    if (over) {
      cancel.disabled = false;
      say(cancel, "Cancel…");
    }
  };
  return { elements: [clone, resume, hold, priority, cancel, clear], update };
}
