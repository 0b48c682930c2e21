// The dashboard in a real browser against a real daemon: node page.mjs http://HOST:PORT
// Prints TAP. The daemon must have no jobs yet, and a worker that trains.

import { openBrowser } from "./browser.mjs";
import { accessible, api, brightness, cancelAll, errors, jobIn, JOB, listen, origin, quietPages, sideways, submit, until } from "./checks.mjs";
import { done, ok, same } from "./tap.mjs";

// ------------------------------------------------------------------ the numbers, formatted anew here

const digits3 = (x) => x.toFixed(x < 9.995 ? 2 : x < 99.95 ? 1 : 0);
const WORDS = {
  top1: (x) => `${(100 * x).toFixed(2)} %`,
  top5: (x) => `${(100 * x).toFixed(2)} %`,
  loss: (x) => String(Number(x.toPrecision(4))),
  images_per_sec: (x) => digits3(x),
  epoch: (x) => x.toFixed(2),
};

async function tilesMatch(page, job) {
  for (const [key, words] of Object.entries(WORDS)) {
    const tile = page.locator(`data[data-key=${key}]`);
    const want = job[key] === null ? "–" : words(job[key]);
    await until(`${key} to be ${want}`, async () => (await tile.textContent()) === want, 5).catch(() => {});
    same(await tile.textContent(), want, `job: ${key} is the API's`);
    same(await tile.getAttribute("value"), job[key] === null ? "" : String(job[key]), `job: ${key} is exact`);
  }
}

async function chartsMatch(page, id) {
  const series = await api(`/v1/jobs/${id}/metrics?names=loss,lr,images_per_sec`);
  for (const key of ["loss", "images_per_sec", "lr"]) {
    const chart = page.locator(`.chart[data-chart=${key}]`);
    ok(await chart.locator("canvas").count() === 1, `job: the ${key} chart is drawn`);
    await chart.locator("summary").click();
    await chart.locator("tbody tr").first().waitFor();
    const rows = await chart.locator("tbody tr").allTextContents();
    same(rows.length, series.step.length, `job: the table behind ${key} has every step`);
    const words = key === "images_per_sec" ? WORDS.images_per_sec : WORDS.loss;
    const last = `${series.step.at(-1)}${words(series[key].at(-1))}`;
    ok(rows.at(-1).startsWith(last), `job: the last ${key} is the API's`, `${rows.at(-1)}, want ${last}`);
    const label = await chart.locator("[role=img]").getAttribute("aria-label");
    ok(label.includes(`at step ${series.step.at(-1)}`), `job: the ${key} chart is described`, label);
  }
}

async function evalsMatch(page, id) {
  const { evals } = await api(`/v1/jobs/${id}/evals`);
  const shown = await page.locator(".evals tbody tr").evaluateAll((rows) =>
    rows.map((row) => [...row.querySelectorAll("data")].map((d) => Number(d.value))));
  const want = evals.toReversed().map((e) => [e.step, e.epoch, e.top1, e.top5, e.loss, e.images]);
  ok(evals.length > 0, "job: there was an evaluation");
  same(JSON.stringify(shown), JSON.stringify(want), "job: evaluations are the API's");
}

// ------------------------------------------------------------------ the story

async function listAndJob(page) {
  await page.goto(origin + "/");
  await page.getByText("No jobs yet").waitFor();
  ok(true, "list: says that there are no jobs, and how to submit one");
  await accessible(page, "empty list");

  const { id } = await submit({ ...JOB, name: "first-job", steps: 6 });
  const link = page.locator("tr[data-job]").getByRole("link", { name: "first-job" });
  await link.waitFor();
  ok(true, "list: a new job appears by itself");
  await link.focus();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "first-job" }).waitFor();
  same(await page.evaluate(() => location.hash), `#/jobs/${id}`, "job: has a permalink");
  same(await page.evaluate(() => document.activeElement.tagName), "H1", "job: the keyboard starts at its heading");

  const job = await jobIn(id, "succeeded");
  await page.locator(".title .badge[data-state=succeeded]").waitFor();
  ok(true, "job: its end shows by itself");
  ok(await page.locator("button.danger:visible").count() === 0, "job: what has ended cannot be cancelled");
  await tilesMatch(page, job);
  await until("the evaluation to show", async () => await page.locator(".evals tbody tr").count() > 0, 20).catch(() => {});
  await chartsMatch(page, id);
  await evalsMatch(page, id);
  const log = await (await fetch(`${origin}/v1/jobs/${id}/log`)).text();
  same((await page.locator(".log").textContent()).trim(), log.trim(), "job: the log is the API's");
  await accessible(page, "job");

  await page.goto(`${origin}/#/jobs/${id}`);
  await page.reload();
  await page.getByRole("heading", { name: "first-job" }).waitFor();
  ok(true, "job: its permalink opens in a fresh page");
  return id;
}

async function cancelling(page) {
  const { id } = await submit({ ...JOB, name: "long-job", steps: 100000, checkpoint: { every_epochs: 0 },
    model: { ...JOB.model, arch: "resnet18" } });
  await page.goto(`${origin}/#/jobs/${id}`);
  await jobIn(id, "running");
  await until("a step", async () => (await api(`/v1/jobs/${id}`)).step > 0);
  await page.locator(".title .badge[data-state=running]").waitFor();
  await page.getByRole("button", { name: "Cancel…" }).click();
  await accessible(page, "dialog");
  await page.getByRole("button", { name: "Keep it running" }).click();
  ok((await api(`/v1/jobs/${id}`)).state === "running", "cancel: asks first, and no means no");
  await page.getByRole("button", { name: "Cancel…" }).click();
  await page.getByRole("button", { name: "Cancel the job" }).click();
  await page.locator(".title .badge[data-state=cancelled]").waitFor({ timeout: 60000 });
  same((await api(`/v1/jobs/${id}`)).state, "cancelled", "cancel: the button cancels the job");
  await page.getByRole("button", { name: "Resume" }).click();
  const again = await jobIn(id, "running");
  same(again.attempt, 2, "resume: the button starts it again");
  await page.locator(".title .badge[data-state=running]").waitFor();
  await api(`/v1/jobs/${id}/cancel`, { method: "POST" });
  await jobIn(id, "cancelled");
}

async function outage(context, page) {
  const known = errors.length;
  await page.goto(origin + "/");
  await page.locator(".connection[data-state=live]").waitFor();
  await context.setOffline(true);
  await page.locator(".connection[data-state=lost]").waitFor();
  ok(await page.locator("tr[data-job]").count() > 0, "outage: is told, and what was known stays");
  await context.setOffline(false);
  await page.locator(".connection[data-state=live]").waitFor();
  ok(true, "outage: the page recovers by itself");
  errors.length = known; // the browser logs each failed request
}

async function unknownJob(page) {
  const known = errors.length;
  await page.goto(origin + "/#/jobs/999");
  await page.getByRole("heading", { name: "There is no job 999" }).waitFor();
  ok(true, "job: one that does not exist is told as such");
  await page.goto("about:blank");
  errors.length = known; // the browser logs each 404
}

async function looks(id) {
  for (const [name, options, dark] of [
    ["dark", { colorScheme: "dark" }, true],
    ["phone", { viewport: { width: 360, height: 740 }, colorScheme: "light" }, false],
  ]) {
    const browser = await openBrowser(options);
    listen(browser.page);
    for (const [kind, path] of [["list", "/"], ["job", `/#/jobs/${id}`]]) {
      await browser.page.goto(origin + path);
      await browser.page.getByText("first-job").first().waitFor();
      await browser.page.waitForTimeout(300);
      ok(await sideways(browser.page) <= 0, `${name}: the ${kind} does not scroll sideways`, await sideways(browser.page));
      ok((await brightness(browser.page) < 100) === dark, `${name}: the ${kind} has the right ground`);
      await accessible(browser.page, `${name}, ${kind}`);
    }
    await browser.close();
  }
}

const browser = await openBrowser();
try {
  browser.page.setDefaultTimeout(20000);
  listen(browser.page);
  const id = await listAndJob(browser.page);
  await cancelling(browser.page);
  await outage(browser.context, browser.page);
  await unknownJob(browser.page);
  await looks(id);
  quietPages();
} catch (error) {
  ok(false, "the story goes to its end", error.stack);
} finally {
  await browser.close();
  await cancelAll().catch(() => {}); // workers outlive the daemon: leave none behind
}
done();
