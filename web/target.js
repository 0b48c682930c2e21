// When a run will reach its target, from the evaluations so far: the error of learning falls as a power of the steps
// (Hestness et al. 2017, Deep Learning Scaling is Predictable, Empirically), a line on log-log paper.

const MOST = 8, LEAST = 3; // evaluations that the line is laid through, the newest
const SCATTER_MIN = 0.01; // of log(error): an evaluation of some thousand images is no better

// evals: [{step, top1}] by step. {reached: step}, or {step, low, high}, or null where they tell nothing.
export function reach(evals, target) {
  const good = evals.filter((e) => e.top1 !== null);
  const reached = good.find((e) => e.top1 >= target);
  if (reached) return { reached: reached.step };
  const used = good.filter((e) => e.step > 0 && e.top1 < 1).slice(-MOST);
  if (used.length < LEAST) return null;
  const points = used.map((e) => [Math.log(e.step), Math.log(1 - e.top1)]), n = points.length;
  const mean = (k) => points.reduce((sum, p) => sum + p[k], 0) / n, [mx, my] = [mean(0), mean(1)];
  const sxx = points.reduce((sum, [x]) => sum + (x - mx) ** 2, 0);
  const slope = points.reduce((sum, [x, y]) => sum + (x - mx) * (y - my), 0) / sxx;
  if (!(slope < -0.01)) return null; // it does not get better
  const scatter = Math.sqrt(points.reduce((sum, [x, y]) => sum + (y - my - slope * (x - mx)) ** 2, 0) / Math.max(1, n - 2));
  const crossing = (shift) => Math.exp(mx + (Math.log(1 - target) - my + shift) / slope);
  const band = 2 * Math.max(scatter, SCATTER_MIN), last = used.at(-1).step;
  const [low, step, high] = [crossing(band), crossing(0), crossing(-band)].map((s) => Math.max(last, s));
  return { step, low, high };
}
