// Values derived from a job of the API.

import { daemonTime } from "./clock.js";
import { h } from "./dom.js";
import * as f from "./format.js";

export const ended = (job) => ["succeeded", "failed", "cancelled"].includes(job.state);
export const evaluates = (job) => job.spec?.mode === "eval"; // and does not train
export const title = (job) => job.name || `job ${job.id}`;

// Returns {value, low, high} in seconds as of now: the API's estimate minus the time since. null: unknown.
export function timeLeft(job, askedAtMs) {
  if (ended(job) || !job.time_left) return null;
  const passed = (Date.now() - askedAtMs) / 1000;
  const less = (x) => Math.max(0, x - passed);
  return { value: less(job.time_left.value), low: less(job.time_left.low), high: less(job.time_left.high) };
}

// The expected start of a waiting job, in the same words everywhere; null: unknown, or not waiting.
export const startWords = (job) => (job.state === "queued" && job.estimated_start ? `starts in ${f.duration(Math.max(0, job.estimated_start - daemonTime()))}` : null);

export const MOST_COMPARED = 20; // jobs per comparison, the daemon's limit
export const compareWords = (count) => `Compare ${count > MOST_COMPARED ? `${MOST_COMPARED} of ` : ""}${f.count(count)} jobs`;

// Resources used by a job: "1.2 kWh (measured), 3.1 J per image; 4.5 node-hours; 3.2 EUR"; "" before it runs.
export function tookWords(job) {
  if (job.node_hours == null) return "";
  const energy = job.kwh == null ? "not measured" : `${f.kwh(job.kwh)} (${job.energy_source})`;
  return [`Energy: ${energy}${job.joules_per_image == null ? "" : `, ${f.number(job.joules_per_image)} J per image`}`,
    `${f.number(job.node_hours)} node-hours`, job.cost == null ? "" : f.money(job.cost, job.currency)].filter(Boolean).join("; ");
}

// The submitter: the name, or a link to the sweep that submitted the job. short: omit the kind of name
export function submitter(job, short = false) {
  const [, sweep] = /^sweep (\d+)$/.exec(job.submitted_by ?? "") ?? [];
  return sweep ? h("a", { href: `#/sweeps/${sweep}` }, job.submitted_by) : (job.submitted_by ?? "").replace(short ? /^(user|token):/ : "", "");
}
