// Values derived from a sweep of the API.

import { number, percent, rate, duration } from "../format.js";

export const running = (sweep) => sweep.state === "running";
export const name = (sweep) => sweep.name || `sweep ${sweep.id}`;

// Display names of the metrics, spelled as on the rest of the page.
const WORDS = { top1: "Top-1", top5: "Top-5", loss: "Loss", images_per_sec: "Images/s", ttt_seconds: "Time to train" };
export const metricWords = (metric) => WORDS[metric] ?? metric;

// The trials that share the best result.
export const bestTrials = ({ trials, best }) => (best ? trials.filter((t) => t.rung === best.rung && t.metric === best.metric) : []);

// Rank of the i-th trial; equal results share a rank.
export function placeOfTrial(trials, i) {
  const alike = (j) => trials[j].rung === trials[i].rung && trials[j].metric === trials[i].metric;
  let first = i;
  while (first > 0 && alike(first - 1)) first--;
  return first + 1;
}

const FORMATS = { top1: percent, top5: percent, images_per_sec: rate, ttt_seconds: duration };
// Axis labels are round numbers and need no decimals.
export const axisFormat = (metric) => (metric.startsWith("top") ? (x) => `${number(100 * x)} %` : metricFormat(metric));
export const metricFormat = (metric) => FORMATS[metric] ?? number;

// Whether halving has not promoted the trial: a trial of the same point, or the rung's best, have advanced to a higher rung.
function isPassed(trial, trials) {
  return trials.some((other) => other.rung > trial.rung) && !trials.some((other) => other.number === trial.number && other.rung > trial.rung);
}

// "succeeded", or the trial's state in the sweep.
export function outcome(trial, trials) {
  if (trial.state !== "succeeded") return trial.state;
  if (trials.some((other) => other.number === trial.number && other.rung > trial.rung)) return "promoted";
  return isPassed(trial, trials) ? "not promoted" : "succeeded";
}

// Number of jobs a sweep's document requests; null if unknown.
export function trialsOf(document) {
  const lists = Object.values(document.parameters ?? {}), method = document.method ?? "grid";
  if (method === "grid") return lists.every(Array.isArray) && lists.length ? lists.reduce((n, list) => n * list.length, 1) : null;
  const samples = document.samples ?? 8;
  if (method !== "halving" || !document.budget) return samples;
  const { min, max, eta = 3 } = document.budget;
  if (!(min > 0 && max >= min && eta >= 2)) return null;
  let left = samples, all = samples;
  for (let budget = min; budget < max * (1 - 1e-9); budget *= eta) all += left = Math.ceil(left / eta);
  return all;
}
