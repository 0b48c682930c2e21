// A row of the overview, and its columns.

import { badge, datum, h, mark, meter, progressOf, say, setBadge, setDatum, setMeter } from "../dom.js";
import * as f from "../format.js";
import { tagChips } from "../labels.js";
import { startWords, submitter, timeLeft, title } from "../jobs.js";

const STATES = ["running", "evaluating", "starting", "queued", "failed", "cancelled", "succeeded"];

// value(job, askedAtMs): sort key of the column
export const COLUMNS = [
  { key: "id", name: "Job", kind: "", value: (job) => job.id },
  { key: "state", name: "State", kind: "", value: (job) => STATES.indexOf(job.state) },
  { key: "progress", name: "Progress", kind: "", value: progressOf },
  { key: "top1", name: "Top-1", kind: "num", value: (job) => job.top1 },
  { key: "best_top1", name: "Best", kind: "num best", value: (job) => job.best_top1 },
  { key: "images_per_sec", name: "Images/s", kind: "num", value: (job) => job.images_per_sec },
  { key: "left", name: "Time left", kind: "num", value: (job, asked) => timeLeft(job, asked)?.value ?? null },
  { key: "submitted_by", name: "Who", kind: "who", value: (job) => job.submitted_by ?? null },
  { key: "created_at", name: "Submitted", kind: "num", value: (job) => job.created_at },
];

// picked(checked): the box was changed. {element, update(job, askedAtMs)}
export function jobRow(id, picked) {
  const tick = h("input", { type: "checkbox", "aria-label": `Select job ${id}`, onchange: () => picked(tick.checked) });
  const chips = tagChips();
  const best = datum(), when = h("span", { class: "band" });
  const name = h("a", { href: `#/jobs/${id}` });
  const state = badge(), reason = h("span", { class: "reason" }), bar = meter(`progress of job ${id}`);
  const [top1, speed, left, band, who, submitted] = [datum(), datum(), datum(), h("span", { class: "band" }), h("span"), h("time")];
  const cell = (label, kind, ...children) => h("td", { "data-label": label, class: kind }, ...children);
  const element = h("tr", { "data-job": id },
    h("th", { scope: "row" }, h("div", {}, tick, h("span", { class: "id" }, `${id}`), h("div", {}, name, h("div", { class: "marks" }, chips.element)))),
    cell("State", "state", state, reason), cell("Progress", "progress", bar.element),
    cell("Top-1", "num", top1), cell("Best", "num best", best, when), cell("Images/s", "num", speed), cell("Time left", "num", left, band),
    cell("Who", "who", who), cell("Submitted", "num", submitted));
  const update = (job, asked) => {
    say(name, title(job));
    setBadge(state, job.state);
    const why = [job.imported_from && "imported", job.state !== "succeeded" && job.reason].filter(Boolean).join(": ");
    say(reason, why);
    mark(reason, "title", why);
    setMeter(bar, job);
    chips.update(job.tags);
    setDatum(best, job.best_top1, f.percent(job.best_top1));
    say(when, job.best_top1 === null ? "" : `step ${f.count(job.best_top1_step)}`);
    setDatum(top1, job.top1, f.percent(job.top1));
    setDatum(speed, job.images_per_sec, f.rate(job.images_per_sec));
    const time = timeLeft(job, asked);
    setDatum(left, time?.value ?? null, f.duration(time?.value));
    say(band, time?.high ? `${f.duration(time.low)} to ${f.duration(time.high)}` : startWords(job)
      ?? (job.ttt_seconds ? `took ${f.duration(job.ttt_seconds)}` : ""));
    if (who.dataset.by !== (job.submitted_by ?? "")) who.replaceChildren(job.submitted_by ? submitter(job, true) : f.none);
    mark(who, "title", job.submitted_by ?? "");
    mark(who, "data-by", job.submitted_by ?? "");
    say(submitted, f.ago(job.created_at));
    mark(submitted, "title", f.date(job.created_at));
  };
  const tickIt = (is) => { tick.checked = is; };
  return { element, update, tick: tickIt };
}
