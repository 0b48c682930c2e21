// The pages that show results, from phones to wide screens, dark and light: axe, whole words, nothing out of sight.
// traind.conf: slots = 2
// traind.conf: node_check_seconds = 0

import { request } from "node:http";
import { accessible, api, axeLooks, brokenWords, forget, JOB, jobIn, lastingJob, origin, sideways, story, submit, until } from "./lib/checks.mjs";
import { ok, same } from "./lib/tap.mjs";

const WIDTHS = [320, 390, 800, 1024, 1440];
const text = JSON.stringify;
// As a person whose token quickstart made: their name stands in the list.
const quickstart = new Promise((resolve, reject) => {
  const out = request({ socketPath: process.argv[3], path: "/v1/tokens", method: "POST" }, (answer) => {
    let body = "";
    answer.on("data", (part) => { body += part; }).on("end", () => resolve(JSON.parse(body).token));
  });
  out.on("error", reject).end(text({ name: "quickstart", role: "submit" }));
});
const submitted = async (document) => (await api("/v1/jobs", { method: "POST", body: text(document), headers: { Authorization: `Bearer ${await quickstart}` } })).id;
const size = (page, width) => page.setViewportSize({ width, height: 900 });

async function everyWidth(page, name, path, ready) {
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    await page.goto("about:blank");
    await page.goto(origin + path);
    await page.locator(ready).first().waitFor();
    for (const width of WIDTHS) {
      await size(page, width);
      await page.evaluate(() => document.querySelectorAll("main details:not([open])").forEach((details) => { details.open = true; }));
      let broken = "";
      await until("whole words", async () => (broken = await brokenWords(page)) === "", 10).catch(() => {});
      ok(broken === "", `${name}, ${width} px, ${colorScheme}: no word is broken`, broken);
      ok(await sideways(page) <= 0, `${name}, ${width} px, ${colorScheme}: nothing is out of sight`, await sideways(page));
      if (axeLooks(WIDTHS, width)) await accessible(page, `${name}, ${width} px, ${colorScheme}`);
    }
  }
  await page.emulateMedia({ colorScheme: "light" });
}

// A job that runs, and one that waits for it: their times are of one prediction.
async function oneTruth(page, running, waiting) {
  await size(page, 1440);
  await page.goto(origin + "/");
  const cell = (id, label) => page.locator(`tr[data-job="${id}"] td[data-label="${label}"]`), queued = page.locator(".queue .start");
  await until("the estimates", async () => (await api(`/v1/jobs/${waiting}`)).estimated_start && (await api(`/v1/jobs/${running}`)).time_left);
  await until("the queue", async () => /starts in/.test(await queued.textContent().catch(() => "")));
  let seen = [];
  const look = async () => (seen = await page.evaluate((id) => [document.querySelector(`tr[data-job="${id}"] td[data-label="Time left"] .band`).textContent, document.querySelector(".queue .start").textContent], waiting));
  await until("the same words", async () => (await look())[1].endsWith(seen[0]), 20).catch(() => {});
  ok(seen[1].endsWith(seen[0]) && seen[0].startsWith("starts in"), "overview: the queue says what the row says", text(seen));
  const ends = Number(await cell(running, "Time left").locator("data").getAttribute("value")), { estimated_start: start } = await api(`/v1/jobs/${waiting}`);
  const starts = start - Date.now() / 1000;
  ok(Math.abs(ends - starts) < Math.max(15, 0.1 * ends), "overview: what waits starts when what runs ends", text({ ends, starts }));
}

// A table as long as it can be one, then cards side by side.
async function widths(page) {
  await page.goto(origin + "/");
  await page.locator("tr[data-job]").nth(2).waitFor();
  const rows = () => page.locator("tr[data-job]").evaluateAll((list) => list.map((row) => { const { left, top, height } = row.getBoundingClientRect(); return [Math.round(left), Math.round(top), Math.round(height)]; }));
  await size(page, 1024);
  const table = await rows();
  ok(new Set(table.map(([left]) => left)).size === 1 && table.every(([, , height]) => height < 110), "overview: at 1024 px the jobs are a table", text(table));
  await size(page, 800);
  const cards = await rows();
  same(new Set(cards.map(([left]) => left)).size, 2, "overview: at 800 px they are cards, two in a row");
  await size(page, 390);
  same(new Set((await rows()).map(([left]) => left)).size, 1, "overview: on a phone one below the other");
  await size(page, 1440);
}

async function best(page) {
  const { jobs } = await api("/v1/jobs"), differ = jobs.some((job) => job.top1 !== job.best_top1);
  await page.goto(`${origin}/#/`);
  await page.locator("tr[data-job]").nth(2).waitFor();
  const column = page.getByRole("columnheader", { name: "Best" });
  same(await column.count(), differ ? 1 : 0, "overview: no column Best where it says what Top-1 says");
  await page.goto(`${origin}/#/?sort=-best_top1`);
  await column.waitFor();
  ok(true, "overview: but where one sorts by it");
}

// Results before anything else, complete, without a table that is wider than the phone.
async function comparedOnPhone(page, ids) {
  await size(page, 390);
  await page.goto(`${origin}/#/compare?ids=${ids}`);
  await page.locator(".results tbody tr").nth(1).waitFor();
  const jobs = await Promise.all(ids.map((id) => api(`/v1/jobs/${id}`)));
  const seen = await page.locator(".results tbody tr").evaluateAll((rows) => rows.map((row) => [...row.querySelectorAll("td[data-label]")].filter((cell) => cell.checkVisibility())
    .map((cell) => { const r = cell.getBoundingClientRect(); return { label: cell.dataset.label, value: cell.querySelector("data").value, inside: r.left >= 0 && r.right <= innerWidth }; })));
  jobs.forEach((job, i) => {
    for (const [label, key] of [["Top-1", "top1"], ["Loss", "loss"], ["Images/s", "images_per_sec"], ["Time to train", "ttt_seconds"]]) {
      const cell = seen[i].find((one) => one.label === label);
      ok(cell?.inside && cell.value === String(job[key]), `phone: ${label} of job ${job.id} is in sight`, text(cell));
    }
  });
  same(await page.locator(".results .badge:visible").count(), 0, "phone: without the state");
  const top = (selector) => page.locator(selector).first().evaluate((element) => element.getBoundingClientRect().top);
  ok(await top(".results") < await top(".chart") && await top(".results") < 400, "phone: the results come first", await top(".results"));
  const cut = await page.locator(".scroll.wide").evaluateAll((boxes) => boxes.filter((box) => box.checkVisibility()).map((box) => [box.getAttribute("aria-label"), box.scrollWidth - box.clientWidth]));
  ok(cut.length > 1 && cut.every(([, more]) => more <= 1), "phone: nothing is cut off", text(cut));
  const differences = await page.locator(".differences:not(.runs) tbody tr").first().evaluate((row) => [...row.querySelectorAll("td")].map((cell) => getComputedStyle(cell, "::before").content));
  same(differences.length, ids.length, "phone: a difference has each job's value");
  ok(differences.every((words, i) => words.includes(String(ids[i]))), "phone: and says whose it is", text(differences));
}

async function baseline(page, ids) {
  await size(page, 1440);
  await page.goto(`${origin}/#/compare?ids=${ids}`);
  await page.getByLabel("Baseline").selectOption(String(ids[0]));
  const delta = page.locator(`.results tr[data-job="${ids[1]}"] td[data-label="Images/s"] .delta`);
  await delta.waitFor();
  const [a, b] = await Promise.all(ids.slice(0, 2).map(async (id) => (await api(`/v1/jobs/${id}`)).images_per_sec));
  const want = (100 * (b - a)) / a, words = await delta.textContent();
  ok(Math.abs(Number(words.replace("−", "-").replace(/[ %±]/g, "")) - want) < 0.51, "baseline: the difference is told", `${words}, want ${want}`);
  same(await page.locator(`.results tr[data-job="${ids[0]}"] .delta`).count(), 0, "baseline: none of itself");
  const link = page.url();
  ok(link.includes(`base=${ids[0]}`), "baseline: stands in the address", link);
  await page.goto("about:blank");
  await page.goto(link);
  await delta.waitFor();
  same(await page.getByLabel("Baseline").inputValue(), String(ids[0]), "baseline: a permalink opens with it");
  await page.getByLabel("Baseline").selectOption({ label: "none" });
  same(await page.locator(".results .delta").count(), 0, "baseline: and without");
}

// What one looks for is above what few look for.
async function firstScreen(page, id) {
  await size(page, 1440);
  await page.goto(`${origin}/#/jobs/${id}`);
  await page.locator("[data-chart=loss] canvas").waitFor();
  await page.getByText("node-hours").waitFor();
  const top = (locator) => locator.first().evaluate((element) => element.getBoundingClientRect().top);
  const charts = await top(page.locator(".charts"));
  ok(charts < 500, "job: the charts are on the first screen", charts);
  ok(await top(page.getByText("node-hours")) > charts, "job: node-hours are below them");
  const forecasts = page.locator(".forecasts details");
  await forecasts.waitFor();
  same(await forecasts.evaluate((details) => details.open), false, "job: forecasts are folded");
}

// All values alike: none of them is the one best.
async function tie(page) {
  const { id } = await api("/v1/sweeps", { method: "POST", body: text({ name: "a tie", metric: "top1", base: { ...JOB, steps: 1, seed: 1 }, parameters: { "/lr/base": [0.0001, 0.0002, 0.0003] } }) });
  const sweep = await until("the sweep", async () => { const now = await api(`/v1/sweeps/${id}`); return now.state !== "running" && now; });
  const alike = sweep.trials.filter((t) => t.metric === sweep.best.metric).length;
  ok(alike > 1, "sweep: trials are alike", text(sweep.trials.map((t) => t.metric)));
  await page.goto(`${origin}/#/sweeps/${id}`);
  await page.locator(".trials tbody tr").nth(2).waitFor();
  const lead = await page.locator("p.lead").textContent();
  ok(lead.startsWith("Best Top-1: ") && lead.includes(`reached by ${alike} trials`), "sweep: says how many are the best", lead);
  same(await page.locator(".trials tr.winner").count(), alike, "sweep: each of them has the star");
  same((await page.locator(".trials tbody tr td:first-child").allTextContents()).slice(0, alike).join(), Array(alike).fill("1").join(), "sweep: and the first place");
  same(await page.locator(".trials thead th").filter({ hasText: "Top-1" }).count(), 1, "sweep: Top-1 in the table");
  same(await page.getByText("top1", { exact: true }).count(), 0, "sweep: and nowhere else");
  return id;
}

await story(async ({ page }) => {
  const ids = [];
  for (const [name, base] of [["fashion resnet18, seed 1", 0.1], ["fashion resnet18, two workers", 0.2]])
    ids.push(await submitted({ ...JOB, name, steps: 8, lr: { base } }));
  for (const id of ids) await jobIn(id, "succeeded");
  const sweep = await tie(page);
  await comparedOnPhone(page, ids);
  await baseline(page, ids);
  await firstScreen(page, ids[0]);
  const running = await lastingJob({ ...JOB, name: "runs", cluster: { workers_per_node: 2, threads_per_worker: 1 } });
  const { id: waiting } = await submit({ ...JOB, name: "waits", steps: 4, cluster: { workers_per_node: 2, threads_per_worker: 1 } });
  await oneTruth(page, running, waiting);
  await widths(page);
  await best(page);
  await everyWidth(page, "overview", "/", "tr[data-job]");
  await everyWidth(page, "job", `/#/jobs/${ids[0]}`, "[data-chart=loss] canvas");
  await everyWidth(page, "compare", `/#/compare?ids=${ids}`, ".results tbody tr");
  forget(/404.*(layers|predictions)/); // which were opened, though nothing was written
  await everyWidth(page, "sweep", `/#/sweeps/${sweep}`, ".trials tbody tr");
});
