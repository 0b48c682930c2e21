// The pictures of doc/img, of a daemon whose jobs have trained: node screenshots.mjs http://HOST:PORT OUT [TRAIN EVAL]. With data it trains first,
// for some ten minutes, one job at a time. A daemon that wants a token gets that of TRAINCTL_TOKEN; one that is not this script's is only looked at.

import { join } from "node:path";
import { openBrowser } from "./lib/browser.mjs";
import { until } from "./lib/checks.mjs";

const [origin, out, train, evaluation] = process.argv.slice(2);
const token = process.env.TRAINCTL_TOKEN;
const DESKTOP = { width: 1240, height: 880 }, PHONE = { width: 375, height: 780 };
const ACTIVE = "queued,starting,running,evaluating";

async function api(path, document) {
  const headers = { "Content-Type": "application/json", ...(token ? { Authorization: `Bearer ${token}` } : {}) };
  const answer = await fetch(origin + path, document ? { method: "POST", headers, body: JSON.stringify(document) } : { headers });
  if (!answer.ok) throw new Error(`${path}: ${await answer.text()}`);
  return answer.json();
}
const quiet = (minutes) => until("the jobs to end", async () => !(await api(`/v1/jobs?state=${ACTIVE}`)).jobs.length, 60 * minutes);

// etc/examples/fashion-91.json, with evaluations in between. Each job takes both slots: none disturbs another.
const DOCUMENT = {
  model: { arch: "resnet18", classes: 10, image_size: 32, bn_decay: 0.9 }, data: { train, eval: evaluation, preprocess: "tpu", random_crop: false },
  cluster: { workers_per_node: 2, threads_per_worker: 1 }, batch_per_worker: 64, steps_rounding: "exact",
  lr: { base: 0.1, base_batch: 128, start: 0.01, warmup_epochs: 0.5, decay: "poly", power: 1 }, optimizer: { weight_decay: 5e-4 },
  eval: { every_epochs: 0.5 }, checkpoint: { every_epochs: 1 },
};

async function trained() {
  await until("the node to be checked", async () => (await api("/v1/nodes")).nodes[0].checked, 120);
  await api("/v1/jobs", { ...DOCUMENT, name: "fashion-91", epochs: 4, eval: { ...DOCUMENT.eval, target_top1: 0.9 } });
  await api("/v1/jobs", { ...DOCUMENT, name: "fashion-91, two epochs", epochs: 2 });
  await api("/v1/jobs", { ...DOCUMENT, name: "fashion-91, higher rate", epochs: 2, lr: { ...DOCUMENT.lr, base: 0.4 } });
  await api("/v1/jobs", { ...DOCUMENT, name: "learning rate too high", steps: 60, lr: { base: 4000, warmup_epochs: 0 }, restart: { max: 0 } });
  await quiet(60);
  await api("/v1/sweeps", { name: "learning rate and momentum", metric: "top1", concurrency: 1,
    base: { ...DOCUMENT, data: { ...DOCUMENT.data, train_images: 6400 }, steps: 50, lr: { ...DOCUMENT.lr, warmup_epochs: 0.2 }, eval: {}, checkpoint: { disable: true } },
    parameters: { "/lr/base": [0.05, 0.1, 0.2], "/optimizer/momentum": [0.8, 0.9] } });
  await until("the sweep", async () => (await api("/v1/sweeps")).sweeps[0].state !== "running", 3600);
}

async function picture(name, path, { ready, dark = false, viewport = DESKTOP }) {
  const { page, close } = await openBrowser({ colorScheme: dark ? "dark" : "light", viewport });
  await page.addInitScript((kept) => kept && sessionStorage.setItem("traind-token", kept), token);
  await page.goto(`${origin}/${path}`);
  await page.locator(ready).first().waitFor();
  await page.waitForTimeout(2500); // what is drawn comes behind what is written
  await page.screenshot({ path: join(out, `${name}.png`), animations: "disabled" });
  console.log(`${name}.png`);
  await close();
}

if (train) await trained();
// The best are looked at; the trials of a sweep are not.
const all = (await api("/v1/jobs?state=succeeded&sort=top1&limit=100")).jobs.filter((job) => job.top1 !== null && !/^sweep /.test(job.submitted_by ?? ""));
if (!all.length) throw new Error("no job has trained and been evaluated");
const best = all[0].id, compared = all.slice(0, 3).map((job) => job.id).sort((a, b) => a - b), [sweep] = (await api("/v1/sweeps")).sweeps.filter((one) => one.best);
await picture("job", `#/jobs/${best}?x=epoch`, { ready: "canvas", viewport: { width: 1240, height: 1180 } });
await picture("job-dark", `#/jobs/${best}`, { ready: "canvas", dark: true });
await picture("job-phone", `#/jobs/${best}`, { ready: "canvas", viewport: PHONE });
await picture("submit", `#/submit?clone=${best}`, { ready: ".plan dd" });
if (compared.length > 1) await picture("compare", `#/compare?ids=${compared}&base=${compared[0]}`, { ready: "canvas" });
if (sweep) await picture("sweep", `#/sweeps/${sweep.id}`, { ready: "main canvas" });
if (train) { // one that runs, and two that wait
  for (const name of ["fashion-91, seed 2", "fashion-91, seed 3", "fashion-91, seed 4"]) await api("/v1/jobs", { ...DOCUMENT, name, seed: Number(name.at(-1)), epochs: 4 });
  await until("a running job", async () => (await api("/v1/jobs?state=running")).jobs.some((job) => job.step > 200), 600);
}
await picture("overview", "", { ready: "tr[data-job]" });
await picture("overview-dark", "", { ready: "tr[data-job]", dark: true });
await picture("overview-phone", "", { ready: "tr[data-job]", viewport: PHONE });
if (train) {
  for (const job of (await api(`/v1/jobs?state=${ACTIVE}`)).jobs.reverse()) await api(`/v1/jobs/${job.id}/cancel`, {});
  await quiet(1);
}
