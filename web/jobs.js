// What is derived from a job as the API tells it.

import { h } from "./dom.js";

export const ended = (job) => ["succeeded", "failed", "cancelled"].includes(job.state);
export const title = (job) => job.name || `job ${job.id}`;

// {value, low, high} in seconds, as of now: the API's estimate less what has passed since it was made. null: unknown.
export function timeLeft(job, askedAtMs) {
  if (ended(job) || !job.time_left) return null;
  const passed = (Date.now() - askedAtMs) / 1000;
  const less = (x) => Math.max(0, x - passed);
  return { value: less(job.time_left.value), low: less(job.time_left.low), high: less(job.time_left.high) };
}

// Who submitted it: the name, or a link to the sweep whose job it is.
// short: without what kind of name it is
export function submitter(job, short = false) {
  const [, sweep] = /^sweep (\d+)$/.exec(job.submitted_by ?? "") ?? [];
  return sweep ? h("a", { href: `#/sweeps/${sweep}` }, job.submitted_by) : (job.submitted_by ?? "").replace(short ? /^(user|token):/ : "", "");
}
