// What is derived from a sweep as the API tells it.

import { number, percent, rate, duration } from "../format.js";

export const running = (sweep) => sweep.state === "running";
export const name = (sweep) => sweep.name || `sweep ${sweep.id}`;

// For people: the rest of the page says Top-1 too.
const WORDS = { top1: "Top-1", top5: "Top-5", loss: "Loss", images_per_sec: "Images/s", ttt_seconds: "Time to train" };
export const metricWords = (metric) => WORDS[metric] ?? metric;

// Of its trials those that are as good as the best.
export const bestTrials = ({ trials, best }) => (best ? trials.filter((t) => t.rung === best.rung && t.metric === best.metric) : []);

// The place of the i-th, which those that are as good share.
export function placeOfTrial(trials, i) {
  const alike = (j) => trials[j].rung === trials[i].rung && trials[j].metric === trials[i].metric;
  let first = i;
  while (first > 0 && alike(first - 1)) first--;
  return first + 1;
}

const FORMATS = { top1: percent, top5: percent, images_per_sec: rate, ttt_seconds: duration };
// On an axis: round numbers need no digits behind the point.
export const axisFormat = (metric) => (metric.startsWith("top") ? (x) => `${number(100 * x)} %` : metricFormat(metric));
export const metricFormat = (metric) => FORMATS[metric] ?? number;

// Trials that halving has not promoted: another of the same point has gone on to a higher rung, or the rung's best have.
function isPassed(trial, trials) {
  return trials.some((other) => other.rung > trial.rung) && !trials.some((other) => other.number === trial.number && other.rung > trial.rung);
}

// "succeeded", or what became of it in the sweep.
export function outcome(trial, trials) {
  if (trial.state !== "succeeded") return trial.state;
  if (trials.some((other) => other.number === trial.number && other.rung > trial.rung)) return "promoted";
  return isPassed(trial, trials) ? "not promoted" : "succeeded";
}

// How many jobs a sweep's document asks for; null where it cannot be told.
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
