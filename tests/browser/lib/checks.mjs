// What the stories in a browser share: the daemon's API by Node's own fetch, and checks of any page. process.argv[2] is the daemon's address.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { openBrowser } from "./browser.mjs";
import { done, ok } from "./tap.mjs";

export const origin = process.argv[2];
const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export async function api(path, options) {
  const answer = await fetch(origin + path, options);
  const body = await answer.json();
  if (!answer.ok) throw new Error(`${path}: ${JSON.stringify(body)}`);
  return body;
}
export const submit = (document) => api("/v1/jobs", { method: "POST", body: JSON.stringify(document) });

// Nobody waits longer than it takes: what may take long on a busy machine has no shorter limit. Where a wait in vain is judged by a check
// behind it, .catch(() => {}) follows.
export async function until(what, condition, seconds = 300) {
  const end = Date.now() + seconds * 1000;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (Date.now() > end) throw new Error(`waited ${seconds} s in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
export async function cancelAll() {
  const { jobs } = await api("/v1/jobs?state=queued,starting,running,evaluating");
  for (const { id } of jobs) await api(`/v1/jobs/${id}/cancel`, { method: "POST" });
  await until("the jobs to end", async () =>
    !(await api("/v1/jobs?state=queued,starting,running,evaluating")).jobs.length);
}
export const jobIn = (id, ...states) => until(`job ${id} to be ${states}`, async () => {
  const job = await api(`/v1/jobs/${id}`);
  if (job.state === "failed" && !states.includes("failed")) throw new Error(`job ${id} failed: ${job.reason}`);
  return states.includes(job.state) && job;
});

// A short real training: synthetic images, one worker of one thread, a small network.
export const JOB = {
  model: { arch: "resnet18", classes: 10, image_size: 32, width: 0.0625 },
  data: { train: "synthetic", eval: "synthetic", train_images: 64 },
  cluster: { workers_per_node: 1, threads_per_worker: 1 },
  batch_per_worker: 8, eval: { batch: 8 }, checkpoint: { disable: true },
};

// A job that only has to be there: its worker sleeps behind each step.
export async function lastingJob(document) {
  const { id } = await submit({ ...document, steps: 100000 });
  await jobIn(id, "running");
  return id;
}

// ------------------------------------------------------------------ what a page must not do

export const errors = [], foreign = [];
export function listen(page) {
  page.on("console", (message) => message.type() === "error" &&
    errors.push(`${message.text()} ${message.location().url}`));
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("request", (request) => {
    const url = request.url();
    if (url === "about:blank") return;
    if (!url.startsWith(origin + "/") && !url.startsWith("data:") && !url.startsWith(`blob:${origin}/`)) foreign.push(url);
  });
}

// axe takes half a second: in the nightly run at every width, else at the narrowest and the widest.
const everyWidth = process.env.TRAIND_TEST_LONG === "yes";
export const axeLooks = (widths, width) => everyWidth || width === widths[0] || width === widths.at(-1);

async function seriousFindings(page) {
  if (!await page.evaluate("Boolean(window.axe)")) await page.evaluate(axeSource);
  return page.evaluate(async () => (await window.axe.run(document, { resultTypes: ["violations"] })).violations
    .filter((v) => ["serious", "critical"].includes(v.impact))
    .map((v) => `${v.id}: ${v.nodes.map((n) => n.html).slice(0, 3).join(" | ")}`).join("\n"));
}
export async function accessible(page, name) {
  const found = await seriousFindings(page);
  ok(found === "", `${name}: nothing serious for axe`, found);
}

export const sideways = (page) => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
export const brightness = (page) => page.evaluate(() => {
  const [r, g, b] = getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number);
  return (r + g + b) / 3;
});

// In the page: words of letters and digits that go on in the next line. Longer ones than MOST have no other way; code breaks where it must.
function broken() {
  const MOST = 20, found = [], walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (element.closest("code, pre, .log, svg, option, .hidden") || !element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    for (const { 0: word, index } of node.data.matchAll(/[\p{L}\p{N}]+/gu)) {
      if (word.length > MOST) continue;
      const range = document.createRange();
      range.setStart(node, index);
      range.setEnd(node, index + word.length);
      const lines = new Set([...range.getClientRects()].filter((r) => r.width > 0.5).map((r) => Math.round(r.top)));
      if (lines.size > 1) found.push(`${word} in "${node.data.slice(0, 60)}"`);
    }
  }
  return found.join("\n");
}
export const brokenWords = (page) => page.evaluate(broken);

// Nothing serious for axe, no scrolling sideways and no broken word, on phones, tablets and screens, in the light and in the dark.
export async function clean(page, name) {
  const size = page.viewportSize(), faults = [], widths = [320, 390, 800, 1024, 1440];
  for (const colorScheme of ["dark", "light"]) {
    await page.emulateMedia({ colorScheme });
    for (const width of widths) {
      await page.setViewportSize({ width, height: 900 });
      await page.waitForTimeout(100);
      const found = [axeLooks(widths, width) && await seriousFindings(page), await sideways(page) > 0 && `${await sideways(page)} px too wide`,
        await brokenWords(page)].filter(Boolean).join("\n");
      if (found) faults.push(`${width} px, ${colorScheme}: ${found}`);
    }
  }
  await page.setViewportSize(size);
  ok(!faults.length, `${name}: nothing serious for axe, nothing too wide and whole words at 320 to 1440 px, dark and light`, faults.join("\n"));
}

// The share of a chart's canvas, from one part of its width to another, that lies under a thin layer of colour.
export const tinted = (chart, from, to) => chart.locator("canvas").evaluate((canvas, [left, right]) => {
  const x = Math.round(left * canvas.width), width = Math.round(right * canvas.width) - x;
  const { data } = canvas.getContext("2d").getImageData(x, 0, width, canvas.height);
  let count = 0;
  for (let i = 3; i < data.length; i += 4) if (data[i] > 8 && data[i] < 64) count += 1;
  return count / (width * canvas.height);
}, [from, to]);

// A page may draw a chart anew while it is looked for.
export const bringIntoView = (locator) => until("an element in view", () => locator.scrollIntoViewIfNeeded().then(() => true, () => false));

// What none of a story's pages may have done.
function quietPages() {
  ok(errors.length === 0, "no errors on the console", errors.join("\n"));
  ok(foreign.length === 0, "no request to any other address", foreign.join("\n"));
}

// The browser logs each answer that says no.
export const forget = (expected) => errors.splice(0, errors.length, ...errors.filter((line) => !expected.test(line)));

// What stands on the page, for whoever looks for the cause of a failure: before the error, as of long logs the end is kept.
async function lastSight(page) {
  const seen = page.evaluate(() => `${location.href}\n${document.body.innerText}`).catch((error) => error.message);
  const late = new Promise((resolve) => setTimeout(resolve, 10000, "the page does not answer"));
  return [await Promise.race([seen, late]), ...errors].join("\n").slice(0, 3000);
}

// One story in a browser of its own: tell(browser) makes the checks.
export async function story(tell, options) {
  const browser = await openBrowser(options);
  try {
    listen(browser.page);
    await tell(browser);
    quietPages();
  } catch (error) {
    ok(false, "the story goes to its end", `${await lastSight(browser.page)}\n\n${error.stack}`);
  } finally {
    await browser.close();
    await cancelAll().catch(() => {}); // workers outlive the daemon: leave none behind
  }
  done();
}
