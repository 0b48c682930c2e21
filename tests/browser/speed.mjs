// How quick the dashboard is: node speed.mjs http://HOST:PORT JOBS STEPS. Run by tests/bench/dashboard.sh; prints figures, judges none.

import { openBrowser } from "./lib/browser.mjs";
import { api, origin, submit, until } from "./lib/checks.mjs";

const [jobs, steps] = process.argv.slice(3).map(Number);
const WATCHED_MS = 10000;

const DOCUMENT = { data: { train: "synthetic", train_images: 64000 }, cluster: { workers_per_node: 1, threads_per_worker: 1 }, batch_per_worker: 64, epochs: 1000 };
const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];

async function prepare() {
  const { id } = await submit({ ...DOCUMENT, name: `long ${steps}`, cluster: { workers_per_node: 1, threads_per_worker: 1 } });
  for (let i = 1; i < jobs; i++) await submit({ ...DOCUMENT, name: `live ${i}` });
  await until("all jobs to run", async () => (await api(`/v1/jobs?state=running&limit=1000`)).jobs.length === jobs, 120);
  await until("the long one's steps", async () => (await api(`/v1/jobs/${id}`)).step > steps, 60);
  return id;
}

async function firstPaint() {
  const paints = [], shown = [];
  for (let i = 0; i < 7; i++) {
    const { page, close } = await openBrowser();
    await page.goto(origin + "/");
    await page.locator("tr[data-job]").first().waitFor();
    shown.push(await page.evaluate(() => performance.now()));
    paints.push(await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0].startTime));
    await close();
  }
  console.log(`first contentful paint ${median(paints).toFixed(0)} ms, ${jobs} jobs in the table after ${shown.map((ms) => ms.toFixed(0)).sort((a, b) => a - b)[3]} ms (medians of 7 cold starts)`);
}

// Runs work while the page streams; prints the tasks that held it up.
async function tasks(name, path, ready, work) {
  const { page, close } = await openBrowser();
  await page.addInitScript(() => {
    window.longTasks = [];
    new PerformanceObserver((list) => list.getEntries().forEach((entry) => window.longTasks.push(entry.duration))).observe({ type: "longtask", buffered: true });
  });
  await page.goto(origin + path);
  await page.locator(ready).first().waitFor();
  await page.waitForTimeout(3000);
  const opening = await page.evaluate(() => window.longTasks.splice(0));
  const before = await seen(page), end = Date.now() + WATCHED_MS;
  await work(page);
  while (Date.now() < end) await page.waitForTimeout(200);
  const [long, after] = [await page.evaluate(() => window.longTasks.splice(0)), await seen(page)];
  const words = (list) => (list.length ? `${list.length} tasks over 50 ms, the longest ${Math.max(...list).toFixed(0)} ms` : "no task over 50 ms");
  console.log(`${name}: ${words(long)} in ${WATCHED_MS / 1000} s (${after - before} steps came to the page); while it opened ${words(opening)}`);
  await close();
}
const seen = (page) => page.evaluate(() => [...document.querySelectorAll(".meter .words")]
  .reduce((sum, words) => sum + Number(/· ([\d,]+) of/.exec(words.textContent)?.[1].replaceAll(",", "") ?? 0), 0));

const id = await prepare();
await firstPaint();
await tasks(`overview of ${jobs} live jobs`, "/", "tr[data-job]", () => {});
await tasks("overview, sorted, searched and scrolled", "/", "tr[data-job]", async (page) => {
  await page.getByRole("button", { name: "Images/s" }).click();
  await page.getByRole("searchbox").pressSequentially("live 1", { delay: 100 });
  await page.getByRole("searchbox").fill("");
  for (let i = 0; i < 20; i++) await page.mouse.wheel(0, 400);
});
await tasks(`job of ${steps} steps`, `/#/jobs/${id}`, "canvas", () => {});
await tasks("job, zoomed, scrolled and pointed at", `/#/jobs/${id}`, "canvas", async (page) => {
  const box = await page.locator(".chart .plot").first().boundingBox();
  for (let i = 0; i < 40; i++) await page.mouse.move(box.x + 60 + 10 * i, box.y + 80);
  for (const name of ["Zoom in", "Zoom in", "Zoom in", "Zoom out"]) await page.getByRole("button", { name }).click();
  for (let i = 0; i < 10; i++) await page.mouse.wheel(0, 300);
});
const { jobs: running } = await api("/v1/jobs?state=running&limit=1000");
await Promise.all(running.map((job) => api(`/v1/jobs/${job.id}/cancel`, { method: "POST" })));
