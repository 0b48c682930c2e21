// The pictures of doc/img: node screenshots.mjs http://HOST:PORT TRAIN EVAL OUT. Trains for some minutes; every number is of a real run.

import { join } from "node:path";
import { openBrowser } from "./lib/browser.mjs";
import { api, submit, until } from "./lib/checks.mjs";

const [origin, train, evaluation, out] = process.argv.slice(2);
const DOCUMENT = {
  model: { arch: "resnet18", classes: 10, image_size: 32 }, data: { train, eval: evaluation, train_images: 3200 },
  cluster: { workers_per_node: 1, threads_per_worker: 1 }, batch_per_worker: 32, lr: { base: 0.2, warmup_epochs: 0.3 },
  eval: { every_epochs: 0.5, batch: 100 }, checkpoint: { every_epochs: 1 },
};
const DESKTOP = { width: 1240, height: 880 }, PHONE = { width: 375, height: 780 };

async function picture(name, path, { ready, dark = false, viewport = DESKTOP, look = () => {} }) {
  const { page, close } = await openBrowser({ colorScheme: dark ? "dark" : "light", viewport });
  await page.goto(`${origin}/${path}`);
  await page.locator(ready).first().waitFor();
  await look(page);
  await page.waitForTimeout(2500); // what is drawn comes behind what is written
  await page.screenshot({ path: join(out, `${name}.png`), animations: "disabled" });
  console.log(`${name}.png`);
  await close();
}

await until("the node to be checked", async () => (await api("/v1/nodes")).nodes[0].checked, 120);
const seeds = [];
for (const seed of [1, 2]) seeds.push((await submit({ ...DOCUMENT, name: `fashion resnet18, seed ${seed}`, seed, steps: 150 })).id);
const failed = await submit({ ...DOCUMENT, name: "learning rate too high", steps: 60, lr: { base: 4000, warmup_epochs: 0 }, restart: { max: 0 } });
for (const id of seeds) await until(`job ${id}`, async () => (await api(`/v1/jobs/${id}`)).state === "succeeded", 400);
await until("the failure", async () => (await api(`/v1/jobs/${failed.id}`)).state === "failed");
const sweep = await api("/v1/sweeps", { method: "POST", body: JSON.stringify({ name: "learning rate and momentum", metric: "top1",
  base: { ...DOCUMENT, steps: 50, eval: { batch: 100 }, checkpoint: { disable: true } }, parameters: { "/lr/base": [0.05, 0.2, 0.8], "/optimizer/momentum": [0.8, 0.9] } }) });
await until("the sweep", async () => (await api(`/v1/sweeps/${sweep.id}`)).state !== "running", 400);

const { id } = await submit({ ...DOCUMENT, name: "fashion resnet18, two workers", cluster: { workers_per_node: 2, threads_per_worker: 1 }, steps: 300,
  eval: { ...DOCUMENT.eval, target_top1: 0.82 } });
for (const seed of [3, 4]) await submit({ ...DOCUMENT, name: `fashion resnet18, seed ${seed}`, seed, steps: 150 });
await until("half of the run", async () => (await api(`/v1/jobs/${id}`)).step > 160, 400);
await picture("job", `#/jobs/${id}?x=epoch`, { ready: "canvas", viewport: { width: 1240, height: 1180 } });
await picture("job-dark", `#/jobs/${id}`, { ready: "canvas", dark: true });
await picture("job-phone", `#/jobs/${id}`, { ready: ".charts", viewport: PHONE }); // charts below the screen are not drawn
await picture("overview", "", { ready: "tr[data-job]" });
await picture("overview-dark", "", { ready: "tr[data-job]", dark: true });
await picture("overview-phone", "", { ready: "tr[data-job]", viewport: PHONE });
await picture("submit", `#/submit?clone=${seeds[0]}`, { ready: ".plan dd" });
await picture("compare", `#/compare?ids=${seeds.join(",")},${id}`, { ready: "canvas" });
await picture("sweep", `#/sweeps/${sweep.id}`, { ready: "main svg, main canvas" });
const { jobs } = await api("/v1/jobs?state=queued,starting,running,evaluating");
for (const job of jobs) await api(`/v1/jobs/${job.id}/cancel`, { method: "POST" });
await until("the jobs to end", async () => !(await api("/v1/jobs?state=queued,starting,running,evaluating")).jobs.length, 60);
