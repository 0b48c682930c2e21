// The dashboard of a daemon without jobs, and of a short training.
// traind.conf: cancel_grace_seconds = 600

import { appendFileSync, readFileSync } from "node:fs";
import { openBrowser } from "./lib/browser.mjs";
import { accessible, api, bringIntoView, brightness, errors, forget, jobIn, JOB, listen, origin, sideways, story, submit, tinted, until } from "./lib/checks.mjs";
import { ok, same } from "./lib/tap.mjs";

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
    await until(`${key} to be ${want}`, async () => (await tile.textContent()) === want).catch(() => {});
    same(await tile.textContent(), want, `job: ${key} is the API's`);
    same(await tile.getAttribute("value"), job[key] === null ? "" : String(job[key]), `job: ${key} is exact`);
  }
}

async function chartsMatch(page, id) {
  const series = await api(`/v1/jobs/${id}/metrics?names=loss,lr,images_per_sec`);
  for (const key of ["loss", "images_per_sec", "lr"]) {
    const chart = page.locator(`.chart[data-chart=${key}]`);
    ok(await chart.locator("canvas").count() === 1, `job: the ${key} chart is drawn`);
    await chart.locator("summary").press("Enter");
    await until("every step", async () => await chart.locator("tbody tr").count() === series.step.length).catch(() => {});
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
  await until("every evaluation", async () => await page.locator(".evals tbody tr").count() === evals.length).catch(() => {});
  const shown = await page.locator(".evals tbody tr").evaluateAll((rows) =>
    rows.map((row) => [...row.querySelectorAll("data")].map((d) => Number(d.value))));
  const want = evals.toReversed().map((e) => [e.step, e.epoch, e.top1, e.top5, e.loss, e.images]);
  ok(evals.length > 0, "job: there was an evaluation");
  same(JSON.stringify(shown), JSON.stringify(want), "job: evaluations are the API's");
}

// What the page must not say or show of a job that trains without averaged weights, after a short warm-up.
async function looksRight(page) {
  const lr = page.locator(".chart[data-chart=lr]");
  await bringIntoView(lr);
  const warm = await tinted(lr, 0.1, 0.25), rest = await tinted(lr, 0.5, 0.95);
  ok(warm > 0.3 && rest < 0.02, "job: of the learning rate's chart only the warm-up is coloured", `${warm} of its start, ${rest} of the rest`);
  const legend = await page.locator(".chart[data-chart=accuracy] .legend li:visible").allTextContents();
  ok(legend.some((text) => text.startsWith("Top-1")) && !legend.some((text) => text.includes("not averaged")), "job: the legend has no series without values", legend.join());
  same((await page.locator("data[data-key=time]").textContent()).includes(" "), false, "job: a duration does not break");
}

// ------------------------------------------------------------------ the story

async function listAndJob(page) {
  await page.goto(origin + "/");
  await page.getByText("No jobs yet").waitFor();
  ok(true, "list: says that there are no jobs, and how to submit one");
  await accessible(page, "empty list");

  const { id } = await submit({ ...JOB, name: "first-job", steps: 6, lr: { warmup_epochs: 0.25 } });
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
  ok(await page.getByRole("button", { name: "Cancel…" }).count() === 0, "job: what has ended cannot be cancelled");
  await tilesMatch(page, job);
  await chartsMatch(page, id);
  await evalsMatch(page, id);
  await looksRight(page);
  const log = await (await fetch(`${origin}/v1/jobs/${id}/log`)).text();
  const logged = async () => (await page.locator(".log").textContent()).trim();
  await until("the whole log", async () => (await logged()) === log.trim()).catch(() => {});
  same(await logged(), log.trim(), "job: the log is the API's");
  await accessible(page, "job");

  await page.goto(`${origin}/#/jobs/${id}`);
  await page.reload();
  await page.getByRole("heading", { name: "first-job" }).waitFor();
  ok(true, "job: its permalink opens in a fresh page");
  return id;
}

const query = (page) => page.evaluate(() => Object.fromEntries(new URLSearchParams(location.hash.split("?")[1])));
async function saved(page, button) {
  const waiting = page.waitForEvent("download");
  await button.click();
  const file = await waiting;
  return { name: file.suggestedFilename(), bytes: readFileSync(await file.path()) };
}

// A job that evaluates does not train.
async function evaluating(page, trained) {
  const { id } = await submit({ mode: "eval", name: "evaluation", model: JOB.model, data: { eval: "synthetic", eval_images: 16 }, cluster: JOB.cluster, eval: JOB.eval });
  await jobIn(id, "succeeded");
  await page.goto(`${origin}/#/jobs/${id}`);
  await page.getByRole("heading", { name: "evaluation", exact: true }).waitFor();
  await page.locator(".title .badge[data-state=succeeded]").waitFor();
  same(await page.locator(".tile", { has: page.locator("data[data-key=time]") }).locator("dt").textContent(), "Time to evaluate", "evaluation: what its time is");
  await page.goto(`${origin}/#/compare?ids=${trained},${id}`);
  await page.locator(".results tbody tr").nth(1).waitFor();
  const times = await page.locator(".results table").evaluate((table) => {
    const at = [...table.querySelectorAll("thead th")].findIndex((head) => head.textContent === "Time to train");
    return [...table.querySelectorAll("tbody tr")].map((row) => row.children[at].textContent !== "–").join();
  });
  same(times, "true,false", "evaluation: has no time to train");
  await page.getByRole("button", { name: "Wall time" }).press("Enter");
  const chart = page.locator("[data-chart=compare-top1] [role=img]");
  await until("the time", async () => (await chart.getAttribute("aria-label")).includes("at time")).catch(() => {});
  ok(!/\d\u00a0d/.test(await chart.getAttribute("aria-label")), "evaluation: its wall time begins with the job", await chart.getAttribute("aria-label"));
}

// Axis, zoom, scale and files of the charts, and the address that keeps them.
async function chartTools(page, id) {
  const series = await api(`/v1/jobs/${id}/metrics?names=loss`);
  const loss = page.locator(".chart[data-chart=loss]"), where = loss.locator(".where");
  await page.goto(`${origin}/#/jobs/${id}`);
  await loss.locator("canvas").waitFor();
  await page.getByRole("button", { name: "epoch", exact: true }).click();
  await until("the epoch", async () => (await where.textContent()).startsWith("epoch")).catch(() => {});
  same(await where.textContent(), `epoch ${Number(series.epoch.at(-1).toFixed(2))}`, "charts: over epochs too");
  same((await query(page)).x, "epoch", "charts: the axis stands in the address");
  await page.getByRole("button", { name: "images", exact: true }).click();
  await until("the images", async () => (await where.textContent()).startsWith("images")).catch(() => {});
  ok((await where.textContent()).startsWith("images"), "charts: by the images seen", await where.textContent());
  await page.getByRole("button", { name: "epoch", exact: true }).click();
  await page.getByRole("button", { name: "step", exact: true }).click();

  await loss.locator(".plot").focus();
  await page.keyboard.press("End");
  await page.keyboard.press("ArrowLeft");
  const smoothed = await page.evaluate(async () => (await import("/charts/charts.js")).smooth([null, 0.1, 0.2, null, 0.6, 0.9, 0.4, null], 2).map((v) => v?.toFixed(2) ?? "-").join());
  same(smoothed, "-,0.10,0.15,-,0.53,0.59,0.68,-", "charts: a smoothed curve begins with its own value");
  same(await where.textContent(), `step ${series.step.at(-2)}`, "charts: arrow keys move the cursor");
  same(await loss.locator(".legend data").first().getAttribute("value"), String(series.loss.at(-2)), "charts: and the legend tells the value there");
  await page.keyboard.press("+");
  const { from, to } = await query(page);
  ok(Number(to) - Number(from) < series.step.length - 1, "charts: + zooms, and the address keeps it", `${from} to ${to}`);
  await loss.getByRole("button", { name: "log scale" }).click();
  same((await query(page)).log, "loss", "charts: so it does the logarithmic scale");
  await page.reload();
  await loss.locator("canvas").waitFor();
  same(await loss.getByRole("button", { name: "log scale" }).getAttribute("aria-pressed"), "true", "charts: the address opens with its scale");
  await page.getByRole("button", { name: "Reset zoom" }).click();
  same((await query(page)).from, undefined, "charts: and its zoom, which a button ends");
  await loss.locator(".plot").press("+");
  await page.getByRole("button", { name: "epoch", exact: true }).click();
  ok(await page.getByRole("button", { name: "Reset zoom" }).isDisabled(), "charts: so does another axis");
  await page.getByRole("button", { name: "step", exact: true }).click();

  const csv = await saved(page, loss.getByRole("button", { name: "csv" }));
  const lines = csv.bytes.toString().trim().split("\r\n");
  same(lines.slice(1).map((line) => line.split(",")[1]).join(), series.loss.join(), `charts: ${csv.name} has the API's numbers`);
  const png = await saved(page, loss.getByRole("button", { name: "png" }));
  same(png.bytes.subarray(1, 4).toString(), "PNG", `charts: ${png.name} is a picture`);
}

// The overview's own tools.
async function overviewTools(page) {
  await page.goto(`${origin}/#/?q=first`);
  await page.locator("tr[data-job]").waitFor();
  same(await page.locator("tr[data-job]").count(), 1, "overview: an address with words finds the job");
  const summary = page.locator(".summary");
  await until("the count", async () => (await summary.textContent()) === "1 matching job, 0 active").catch(() => {});
  same(await summary.textContent(), "1 matching job, 0 active", "overview: and tells how many match");
  await page.goto(`${origin}/#/?q=synthetic+first+resnet18`);
  await until("the job", async () => await page.locator("tr[data-job]").count() === 1).catch(() => {});
  same(await page.locator("tr[data-job] th a").allTextContents().then((all) => all.join()), "first-job", "overview: words of data, name and network together");
  await page.keyboard.press("/");
  await page.keyboard.type("nothing");
  await page.getByText("No jobs match.").waitFor();
  await until("all words", async () => (await query(page)).q === "nothing").catch(() => {}); // the first of them may have been looked for already
  same((await query(page)).q, "nothing", "overview: / searches, and the address keeps the words");
  await page.keyboard.press("Escape");
  await page.locator("tr[data-job]").nth(1).waitFor();
  await page.keyboard.press("j");
  ok(await page.locator("tr[data-job] th a").first().evaluate((link) => link === document.activeElement), "overview: Escape clears the search and leaves it, to j and k");
  await until("the size", async () => (await summary.textContent()).endsWith(" on disk")).catch(() => {});
  ok(/ active, [0-9.]+ [KMG]i?B on disk$/.test(await summary.textContent()), "overview: and tells what all jobs take on the disk");
  await page.goto(`${origin}/#/?sort=id`);
  const ids = () => page.locator("tr[data-job]").evaluateAll((rows) => rows.map((row) => Number(row.dataset.job)));
  const sorted = async (by, name) => { // the list before has another order
    const want = (await api("/v1/jobs")).jobs.map((job) => job.id).sort(by).join();
    await until(name, async () => (await ids()).join() === want, 60).catch(() => {});
    same((await ids()).join(), want, name);
  };
  await sorted((a, b) => a - b, "overview: sorted by the address");
  await page.getByRole("columnheader", { name: "Job" }).getByRole("button").click();
  await sorted((a, b) => b - a, "overview: and by the head");
  same(await page.getByRole("columnheader", { name: "Job" }).getAttribute("aria-sort"), "descending", "overview: which tells how");
  // The page asks every few seconds, and a cancelled job's slots are free a little later than it is cancelled.
  await until("the page to show the API's slots", async () => {
    const { slots } = await api("/readyz");
    return await page.locator("data[data-key=slots]").textContent() === `${slots.used} of ${slots.total}`;
  });
  ok(true, "overview: slots are the API's");
  const series = await api("/v1/throughput?seconds=3600&points=180");
  await page.locator("[data-chart=throughput] canvas").first().waitFor();
  ok(Math.max(...series.images_per_sec) > 0 && await page.locator(".chart[data-chart=throughput] canvas").count() === 1, "overview: what was trained is drawn");
  const described = await page.locator("[data-chart=throughput] [role=img]").getAttribute("aria-label");
  ok(/ at time \d\d:\d\d/.test(described), "overview: and told, with its times", described);
  const hours = (words) => page.getByRole("button", { name: words, exact: true });
  await hours("24 h").press("Enter");
  same((await query(page)).hours, "24", "overview: the address keeps the time that is shown");
  await page.goto(`${origin}/#/`);
  await until("the hours", async () => await hours("1 h").getAttribute("aria-pressed") === "true").catch(() => {});
  same(await hours("1 h").getAttribute("aria-pressed"), "true", "overview: and one without it shows the usual");
}

// Whole percents, as of 29 steps of 100, which are a little less as a fraction.
async function percents(page) {
  const words = await page.evaluate(async () => {
    const { meter, setMeter } = await import("/dom.js"), bar = meter("progress");
    return [29, 57, 58].map((step) => {
      setMeter(bar, { state: "running", step, train_steps: 100 });
      return bar.words.textContent.split(" ·")[0];
    });
  });
  same(words.join(), "29 %,57 %,58 %", "overview: percents are not a little less");
}

// All that the browser needs for all views.
async function weight(page, id) {
  let bytes = 0;
  const known = errors.length;
  await page.goto(origin + "/");
  for (const place of [`#/jobs/${id}`, "#/submit", "#/compare", "#/sweeps", "#/sweeps/new"]) {
    await page.evaluate((hash) => { location.hash = hash; }, place);
    await page.waitForTimeout(700);
  }
  const files = await page.evaluate(() => [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
    .map(({ name, encodedBodySize }) => [new URL(name).pathname, encodedBodySize]));
  for (const [path, size] of new Map(files)) if (!path.startsWith("/v1/")) bytes += size;
  errors.length = known; // a form that is not filled in yet has no plan, and the browser logs that answer
  ok(bytes > 50 * 1024 && bytes < 150 * 1024, `all files together are ${(bytes / 1024).toFixed(0)} KB on their way, of 150 KB`);
}

// Of two attempts: whoever comes back to a search in the log of the first has it before them.
async function sameLog(page) {
  const attempt = page.getByLabel("Attempt", { exact: true }), search = page.getByLabel("Search the log"), table = page.locator(".chart[data-chart=loss] details");
  await attempt.selectOption("1");
  await table.locator("summary").press("Enter");
  await search.fill("e");
  await search.press("Enter");
  const found = page.locator(".log mark").first();
  await found.waitFor();
  await page.getByRole("link", { name: "complete log" }).scrollIntoViewIfNeeded();
  const seen = async () => [await attempt.inputValue(), await search.inputValue(), await table.evaluate((details) => details.open),
    await search.evaluate((field) => [field === document.activeElement, Math.round(field.getBoundingClientRect().top)].join())].join();
  const before = await seen();
  await page.getByRole("link", { name: "Sweeps", exact: true }).evaluate((link) => link.click());
  await page.getByRole("heading", { name: "Sweeps", exact: true }).waitFor();
  await page.goBack();
  await found.waitFor();
  await until("the page as it was", async () => (await seen()) === before, 60).catch(() => {});
  same(await seen(), before, "log: back, attempt and search are the same, the table is open, and the search at the same height with the keyboard");
}

// As a worker writes it, behind its own events.
async function straggling(page, id) {
  const { run_dir } = await api(`/v1/jobs/${id}`), words = page.locator(".why.slow");
  const message = "rank 34 (and 1 more there) on n17 is slower than the others: 1302.0 ms a step in steps 1 to 160, median 1240.0 ms; it loses most in backward, and the others wait 57.2 ms a step for it (4.4 %)";
  same(await words.textContent(), "", "straggler: none is named");
  appendFileSync(`${run_dir}/attempt-1/events.jsonl`, JSON.stringify({ seq: 1e6, t: Date.now() / 1000, type: "straggler", step: 160, rank: 34, host: "n17", ranks: 2,
    phase: "backward", busy_ms: 1302, median_ms: 1240, steps: 160, wait_ms: 57.2, wait_share: 0.044, message }) + "\n");
  await until("the straggler", async () => (await words.textContent()) !== "").catch(() => {});
  same(await words.textContent(), message, "straggler: the page names it, and what it costs");
  same(await page.locator(".events tr[data-type=straggler] td").last().textContent(), message, "straggler: so does the list of events");
  await accessible(page, "straggler");
}

async function cancelling(page) {
  const { id } = await submit({ ...JOB, name: "long-job", steps: 100000, checkpoint: { every_epochs: 0 } });
  await page.goto(`${origin}/#/jobs/${id}`);
  await jobIn(id, "running");
  await until("a step", async () => (await api(`/v1/jobs/${id}`)).step > 0);
  await page.locator(".title .badge[data-state=running]").waitFor();
  await straggling(page, id);
  await page.getByRole("button", { name: "Cancel…" }).click();
  await accessible(page, "dialog");
  await page.getByRole("button", { name: "Keep running" }).click();
  ok((await api(`/v1/jobs/${id}`)).state === "running", "cancel: asks first, and no means no");
  await page.getByRole("button", { name: "Cancel…" }).click();
  await page.getByRole("button", { name: "Cancel the job" }).click();
  await page.locator(".title .badge[data-state=cancelled]").waitFor();
  same((await api(`/v1/jobs/${id}`)).state, "cancelled", "cancel: the button cancels the job");
  await page.getByRole("button", { name: "Resume" }).click();
  const again = await jobIn(id, "running");
  same(again.attempt, 2, "resume: the button starts it again");
  await page.locator(".title .badge[data-state=running]").waitFor();
  await until("no straggler", async () => (await page.locator(".why.slow").textContent()) === "").catch(() => {});
  same(await page.locator(".why.slow").textContent(), "", "resume: the straggler was the first attempt's");
  await api(`/v1/jobs/${id}/cancel`, { method: "POST" });
  await jobIn(id, "cancelled");
  await page.locator(".title .badge[data-state=cancelled]").waitFor();
  await sameLog(page);
}

// Two jobs of which the second waits: held, released, given a priority, then deleted; what the first has written is looked at.
async function held(page) {
  const first = await submit({ ...JOB, name: "in-front", steps: 100000, cluster: { workers_per_node: 1, threads_per_worker: 0 }, checkpoint: { disable: true } });
  await jobIn(first.id, "running");
  const { id } = await submit({ ...JOB, name: "behind", steps: 2, profile: { steps: [1, 2] }, eval: { predictions: true } });
  await page.goto(`${origin}/#/?q=behind`);
  await page.locator(`tr[data-job="${id}"]`).waitFor();
  await page.goto(`${origin}/#/jobs/${id}`);
  await page.getByRole("heading", { name: "behind" }).waitFor(); // the other job's page is gone
  await page.getByText("Global batch", { exact: true }).waitFor();
  same(await page.locator(".tiles:visible, .charts:visible, .log:visible").count(), 0, "waiting: the plan comes first, without empty charts");
  await page.getByRole("button", { name: "Hold" }).click();
  await page.getByText("held until it is released", { exact: true }).waitFor();
  ok((await api(`/v1/jobs/${id}`)).held_at > 0, "waiting: the button holds it");
  await page.getByRole("button", { name: "Priority…" }).click();
  await page.getByLabel("Priority", { exact: true }).fill("7");
  await accessible(page, "priority dialog");
  await page.getByRole("button", { name: "Set the priority" }).click();
  await page.getByText("priority 7, was 0").first().waitFor();
  await api(`/v1/jobs/${first.id}/cancel`, { method: "POST" });
  await jobIn(first.id, "cancelled");
  same((await api(`/v1/jobs/${id}`)).state, "queued", "waiting: it stays held");
  await page.getByRole("button", { name: "Release" }).click();
  await jobIn(id, "succeeded");
  // By the keyboard: cards that are filled when a job has ended move these away from a click.
  await page.locator("details", { hasText: "Predictions" }).locator("summary").press("Enter");
  await page.getByText(/^\d+ of \d+ images were predicted correctly/).waitFor();
  await page.locator("details", { hasText: "Layers" }).locator("summary").press("Enter");
  await page.locator("pre", { hasText: "conv" }).waitFor();
  await accessible(page, "outputs");
  await page.getByRole("button", { name: "Delete…" }).click();
  await page.getByText("Its run directory is deleted permanently").waitFor();
  await page.getByRole("button", { name: "Delete the job" }).click();
  await page.getByRole("heading", { name: "Jobs", exact: true }).waitFor();
  same(new URL(page.url()).hash, "#/?q=behind", "waiting: without it the list is again as it was");
  forget(new RegExp(`status of 404.*/v1/jobs/${id}\\b`)); // its page may have looked once more
  ok(!(await api("/v1/jobs")).jobs.some((job) => job.id === id), "waiting: the button deletes it, after a question");
}

async function outage(context, page) {
  const known = errors.length;
  await page.goto(origin + "/");
  await page.locator(".connection[data-state=live]").waitFor();
  await context.setOffline(true);
  await page.locator(".connection[data-state=lost]").waitFor();
  ok(await page.locator("tr[data-job]").count() > 0, "outage: is told, and what was known stays");
  await page.evaluate(() => { location.hash = "#/users"; });
  await page.getByRole("heading", { name: "No answer yet from traind" }).waitFor();
  ok(true, "outage: it is told of a page that is not loaded yet, too");
  await context.setOffline(false);
  await page.getByRole("heading", { name: "Users", exact: true }).waitFor();
  await page.locator(".connection[data-state=live]").waitFor();
  ok(true, "outage: the page recovers by itself");
  errors.length = known; // the browser logs each failed request
}

// One without evaluations: its plan is drawn all the same. Then another person deletes it.
async function removed(page) {
  const { id } = await submit({ ...JOB, name: "removed", steps: 2, data: { train: "synthetic", train_images: 64 }, eval: {} });
  await jobIn(id, "succeeded");
  await page.goto(`${origin}/#/jobs/${id}`);
  await page.locator(".curve:visible").waitFor();
  ok(true, "job: without evaluations it has its learning rate drawn");
  await page.getByRole("button", { name: "Delete…" }).waitFor();
  await api(`/v1/jobs/${id}`, { method: "DELETE" });
  await page.getByRole("heading", { name: `There is no job ${id}` }).waitFor();
  same(await page.locator(".title .actions > :visible, .edit:visible").count(), 0, "job: with one that was removed nothing can be done");
  forget(new RegExp(`status of 404.*/v1/jobs/${id}\\b`));
}

async function unknownJob(page) {
  const known = errors.length;
  await page.goto(origin + "/#/jobs/999");
  await page.getByRole("heading", { name: "There is no job 999" }).waitFor();
  ok(true, "job: one that does not exist is told as such");
  await page.evaluate(() => { location.hash = "#/nothing"; });
  await page.getByRole("heading", { level: 1, name: "Page not found" }).waitFor({ timeout: 60000 }).catch(() => {});
  same(await page.evaluate(() => document.activeElement.textContent), "Page not found", "frame: at an address without a page the keyboard starts at the heading that says so");
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

await story(async ({ context, page }) => {
  const id = await listAndJob(page);
  await chartTools(page, id);
  await evaluating(page, id);
  await cancelling(page);
  await held(page);
  await overviewTools(page);
  await percents(page);
  await weight(page, id);
  await outage(context, page);
  await removed(page);
  await unknownJob(page);
  await looks(id);
});
