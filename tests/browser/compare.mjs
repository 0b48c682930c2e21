// Runs (#/compare) and sweeps (#/sweeps) side by side.
// traind.conf: slots = 2

import { readFileSync } from "node:fs";
import { openBrowser } from "./lib/browser.mjs";
import { accessible, api, brightness, bringIntoView, forget, jobIn, JOB, listen, origin, sideways, story, submit, until } from "./lib/checks.mjs";
import { ok, same } from "./lib/tap.mjs";

const SMALL = { ...JOB, steps: 6, lr: { warmup_epochs: 0.25 } };
const text = JSON.stringify;
const number = (x) => String(Number(x.toPrecision(4)));

// The bytes of what a button gives to download.
async function downloaded(page, button) {
  const [file] = await Promise.all([page.waitForEvent("download"), button.click()]);
  return readFileSync(await file.path());
}
const isPng = (bytes) => bytes.subarray(1, 4).toString() === "PNG" && bytes.length > 1500;

async function resultsMatch(page, ids) {
  const jobs = await Promise.all(ids.map((id) => api(`/v1/jobs/${id}`)));
  await until("the results", async () => await page.locator(".results tbody tr").count() === ids.length);
  const shown = await page.locator(".results tbody tr").evaluateAll((rows) => rows.map((row) => [...row.querySelectorAll("data")].map((d) => d.value)));
  const all = jobs.map((job) => [job.plan.world_size, job.global_batch, job.step, job.top1, job.best_top1, job.best_top1_step, job.top5, job.loss, job.images_per_sec, job.ttt_seconds,
    job.joules_per_image, job.kwh, job.node_hours, job.cost].map((value) => String(value ?? "")));
  const want = all.map((row) => row.filter((_, i) => all.some((other) => other[i] !== ""))); // what no job has is left out
  same(text(shown), text(want), "compare: the results are the API's, to the last digit");
  const { differences } = await api(`/v1/compare?ids=${ids}`);
  const rows = await page.locator(".differences:not(.runs) tbody tr").evaluateAll((list) => list.map((row) => [...row.children].map((cell) => cell.textContent)));
  same(text(rows), text(differences.map((d) => [d.pointer.slice(1).replaceAll("/", "."), ...d.values.map(String)])), "compare: so are the differences");
  ok(differences.some((d) => d.pointer === "/lr/base"), "compare: what was changed is among them");
}

// The table behind the loss: each job's value at its last step.
async function overlayMatches(page, ids) {
  const chart = page.locator("[data-chart=compare-loss]");
  await chart.locator("summary").press("Enter");
  const series = await Promise.all(ids.map((id) => api(`/v1/jobs/${id}/metrics?names=loss`)));
  await chart.locator("tbody tr").first().waitFor();
  const last = await chart.locator("tbody tr").last().evaluate((row) => [...row.children].map((cell) => cell.textContent));
  same(text(last), text([String(series[0].step.at(-1)), ...series.map((s) => number(s.loss.at(-1)))]), "compare: the curves end where the API says");
  same(await chart.locator("tbody tr").count(), series[0].step.length, "compare: the table has every step");
  await chart.locator("summary").press("Enter");
}

async function comparing(page, ids) {
  await page.goto(`${origin}/#/`);
  for (const id of ids.slice(0, 2)) await page.getByRole("checkbox", { name: `Select job ${id}`, exact: true }).check();
  await page.getByRole("link", { name: "Compare 2 jobs" }).click();
  await page.getByRole("heading", { name: `Compare jobs ${ids.slice(0, 2).join(", ")}` }).waitFor();
  ok(true, "overview: jobs that are ticked are compared");
  await page.goto(`${origin}/#/compare`);
  await page.getByText("Choose at least 2.").waitFor();
  const box = await page.locator(`#pick-${ids[0]}`).elementHandle(), { name } = await api(`/v1/jobs/${ids[0]}`);
  const rename = (to) => api(`/v1/jobs/${ids[0]}`, { method: "PATCH", body: text({ name: to }) });
  await rename("renamed");
  await page.getByRole("checkbox", { name: "renamed" }).waitFor({ timeout: 60000 }).catch(() => {});
  same(await box.evaluate((tick) => tick.isConnected && tick.labels[0].textContent), `${ids[0]} renamed`, "picker: a job that changes has the box that it had");
  await rename(name);
  for (const id of ids) await page.locator(`#pick-${id}`).check();
  await accessible(page, "picker");
  const compare = page.getByRole("button", { name: "Compare", exact: true });
  await compare.click();
  await page.getByRole("heading", { name: "Compare jobs" }).waitFor();
  await page.goBack();
  await page.getByText(`${ids.length} chosen`).waitFor({ timeout: 60000 }).catch(() => {});
  same(await page.locator("table.pick input:checked").count(), ids.length, "compare: back, the jobs are still ticked");
  await compare.click();
  await page.getByRole("heading", { name: "Compare jobs" }).waitFor();
  same(await page.evaluate(() => location.hash), `#/compare?ids=${encodeURIComponent(ids.join(","))}`, "compare: the jobs that are chosen make a permalink");
  await resultsMatch(page, ids);
  await overlayMatches(page, ids);
  await accessible(page, "compare");

  await page.getByRole("button", { name: "Epoch" }).click();
  ok(/epoch/.test(await page.locator("[data-chart=compare-loss] [role=img]").getAttribute("aria-label")), "compare: by epoch");
  await page.getByRole("checkbox", { name: `Show job ${ids[1]} in the charts` }).uncheck();
  same(await page.locator("[data-chart=compare-loss] .legend li").count(), ids.length - 1, "compare: a job is hidden");
  const link = page.url();
  ok(link.includes("x=epoch") && link.includes(`hide=${ids[1]}`), "compare: axis and hidden jobs are in the address", link);
  await api(`/v1/jobs/${ids[1]}`, { method: "PATCH", body: JSON.stringify({ note: "=cmd|' /C calc'!A0,\"x\"" }) });
  await page.goto("about:blank");
  await page.goto(link);
  await page.locator("[data-chart=compare-loss] .legend li").first().waitFor();
  same(await page.locator("[data-chart=compare-loss] .legend li").count(), ids.length - 1, "compare: the permalink opens as it was");
  same(await page.getByRole("button", { name: "Epoch" }).getAttribute("aria-pressed"), "true", "compare: with its axis");
  await page.getByRole("checkbox", { name: `Show job ${ids[1]} in the charts` }).check();

  const csv = (await downloaded(page, page.getByRole("button", { name: "Results as csv" }))).toString();
  ok(csv.startsWith("id,name,tags,note,State,Workers,") && csv.includes(`\r\n${ids[0]},one,,,succeeded,1,8,6,`), "compare: the results as CSV", csv);
  ok(csv.includes(`\r\n${ids[1]},two,,"'=cmd|' /C calc'!A0,""x""",succeeded,2,`), "compare: with no formula for a spreadsheet", csv);
  const cells = [-0.5, "-0.5", "+1e-5", "-a", "=1", "+x", "@x", "\ta", "\ra", "'=1", "'a", "a=1", null];
  same(await page.evaluate(async (row) => (await import("./format.js")).csv([row]), cells),
    "-0.5,-0.5,+1e-5,'-a,'=1,'+x,'@x,'\ta,\"'\ra\",''=1,'a,a=1,\r\n", "compare: what a spreadsheet would compute, and what not");
  ok(isPng(await downloaded(page, page.locator("[data-chart=compare-loss]").getByRole("button", { name: /as png/ }))), "compare: a chart as PNG");
}

// Jobs on one and two workers, the last with another batch a worker.
async function scaling(page, ids) {
  const jobs = await Promise.all(ids.map((id) => api(`/v1/jobs/${id}`)));
  const batchOf = (job) => job.global_batch / job.plan.world_size;
  const best = (workers, batch) => Math.max(...jobs.filter((job) => job.plan.world_size === workers && batchOf(job) === batch).map((job) => job.images_per_sec));
  const speed = page.locator("[data-chart=scaling]"), efficiency = page.locator("[data-chart=efficiency]");
  const words = () => efficiency.locator("[role=img]").getAttribute("aria-label");
  await page.goto(`${origin}/#/compare?ids=${ids.join(",")}`);
  await page.getByRole("heading", { name: `Compare jobs ${ids.join(", ")}` }).waitFor(); // the comparison before has such charts too
  await bringIntoView(speed);
  await speed.locator("canvas").waitFor();
  same(text(await speed.locator(".legend li").evaluateAll((list) => list.map((li) => li.textContent.replace(/ images per worker.*| [\d.,]+.*/, "")))), text(["ideal", "4", "8"]), "scaling: a line for each batch of a worker");
  const one = best(1, 8);
  ok((await words()).includes(`${Math.round((100 * best(2, 8)) / one / 2)} %`), "scaling: the efficiency is that of the measured speeds", await words());
  ok((await words()).includes(`${Math.round((100 * best(2, 4)) / one / 2)} %`), "scaling: that of the smaller batch too", await words());
  same(await speed.getByRole("button", { name: "log scale of Scaling" }).getAttribute("aria-pressed"), "true", "scaling: on log axes");
  await page.getByText("These runs differ in more than their size: lr.base").waitFor();
  ok(true, "scaling: says what else differs");
  ok(!(await words()).includes("SURFsara"), "scaling: published figures are left out at first");
  await page.getByRole("checkbox", { name: "Published figures" }).check();
  ok((await words()).includes("SURFsara and Intel 2018, 2 x 8160 per node 100 % at workers 2, 81 % at workers 512"), "scaling: and can be laid beside", await words());
  await page.getByText("16,400 images/s on 256 nodes").waitFor();
  await page.getByRole("checkbox", { name: "Simulated clusters" }).check();
  ok(/SURFsara's node, 2 workers, simulated 100 % at workers 2, \d+ % at workers \d+/.test(await words()), "scaling: so can what was simulated", await words());
  await page.getByText("on clusters of such nodes").waitFor();
  await accessible(page, "scaling");
  await page.getByRole("button", { name: "Nodes" }).click();
  await page.getByText("All of these jobs have the same number of nodes.").waitFor();
  const link = page.url();
  ok(link.includes("scaling=nodes") && link.includes("published=1") && link.includes("simulated=1"), "scaling: the choices are in the address", link);
  await page.goto("about:blank");
  await page.goto(link);
  await page.getByText("All of these jobs have the same number of nodes.").waitFor();
  ok(await page.getByRole("checkbox", { name: "Published figures" }).isChecked(), "scaling: the permalink opens as it was");
  await page.getByRole("button", { name: "Workers" }).click();
  await speed.locator("canvas").waitFor();
  ok(isPng(await downloaded(page, speed.getByRole("button", { name: /as png/ }))), "scaling: as PNG");
}

async function refusedComparison(page) {
  await page.goto(`${origin}/#/compare?ids=1,99`);
  await page.getByRole("heading", { name: "These jobs cannot be compared" }).waitFor();
  ok(true, "compare: a job that is not there is told as such");
  await page.goto(`${origin}/#/compare?ids=${[...Array(21).keys()].map((i) => i + 1)}`);
  await page.getByText("1 of the chosen ones is left out.").waitFor();
  ok(true, "compare: so is how many are left out");
}

async function starting(page) {
  await page.goto(`${origin}/#/sweeps`);
  await page.getByText("No sweeps yet").waitFor();
  await page.getByRole("link", { name: "Start a sweep" }).click();
  const editor = page.locator("#sweep-json");
  await editor.waitFor();
  await page.getByRole("button", { name: "Halving" }).click();
  const example = JSON.parse(await editor.inputValue());
  const start = page.getByRole("button", { name: "Start the sweep" }), place = () => start.evaluate((button) => button.offsetTop);
  await page.locator(".sweep-cost table").waitFor();
  const before = await place();
  await editor.fill(text({ ...example, metrik: "loss", parameters: { "/lr/bse": [1, 2] } }, null, 2));
  await page.getByText("No plan, because of").waitFor();
  same(await place(), before, "sweep: the button stays under the pointer while the cost comes and goes");
  await start.click();
  const problem = page.locator(".problems li").first();
  await problem.waitFor();
  ok(/metrik/.test(await page.locator(".problems").textContent()), "sweep: what is wrong is told", await page.locator(".problems").textContent());
  await accessible(page, "refused sweep");
  await page.getByRole("button", { name: "Use lr.base" }).click();
  same(text(JSON.parse(await editor.inputValue()).parameters), text({ "lr.base": [1, 2] }), "sweep: a parameter's name is set right by a click");
  await editor.fill('{"base": {},\n"parameters" 3}');
  ok((await page.locator("#sweep-json-error").textContent()).startsWith("Line 2: "), "sweep: with its line where it is no JSON");
  await page.getByRole("button", { name: "Grid" }).click();
  await page.getByLabel("Values").first().fill("0.01 to 1 log");
  await page.getByLabel("Method").selectOption("halving");
  await page.getByLabel("Name", { exact: true }).fill("by the form");
  await page.getByRole("button", { name: "Add a key" }).click();
  await page.getByLabel("Key", { exact: true }).last().fill("optimizer.nesterov");
  await page.getByLabel("Values").last().fill("true, false");
  const { parameters, method, name, budget } = JSON.parse(await editor.inputValue());
  same(text({ parameters, method, name, budget: budget.key }), text({ parameters: { "lr.base": { min: 0.01, max: 1, log: true }, "optimizer.momentum": [0.8, 0.9], "optimizer.nesterov": [true, false] },
    method: "halving", name: "by the form", budget: "steps" }), "sweep: the form writes the JSON");
  await accessible(page, "sweep form");
  await editor.fill(text({ ...example, parameters: { "/lr/decay": ["poly", "a, b"] }, samples: 12 }));
  same(await page.getByLabel("Values").evaluateAll((inputs) => inputs.map((one) => one.value).join("|")), 'poly, "a, b"', "sweep: and follows it");
  same(await page.getByLabel("Samples").inputValue(), "12", "sweep: in its numbers too");
  const document = { name: "rates", base: { ...SMALL, data: { train: "synthetic", train_images: 64 }, eval: undefined, steps: undefined, lr: { warmup_epochs: 0 } }, method: "halving", samples: 4, seed: 3, concurrency: 2,
    metric: "loss", parameters: { "/lr/base": { min: 0.001, max: 0.1, log: true }, "optimizer.nesterov": [true, false] }, budget: { key: "steps", min: 1, max: 4, eta: 2 } };
  await editor.fill(text(document));
  await page.getByText("7 jobs, 2 in parallel.").waitFor();
  ok(true, "sweep: says how many jobs it is");
  const cost = page.locator(".sweep-cost");
  await until("its cost", async () => /7 for 4 points/.test(await cost.textContent())).catch(() => {});
  ok(/7 for 4 points.*to train on.*Time/s.test(await cost.textContent()), "sweep: and what it takes", await cost.textContent());
  same(await cost.locator("tbody tr").count(), 3, "sweep: by rung");
  await page.getByRole("button", { name: "Start the sweep" }).click();
  await page.getByRole("heading", { name: "rates" }).waitFor();
  same((await api("/v1/sweeps")).sweeps.length, 1, "sweep: one is started");
  await page.locator(".title .badge[data-state=running]").waitFor();
  await page.getByRole("button", { name: "Cancel…" }).waitFor();
}

async function sweepMatches(page) {
  await until("the sweep to end", async () => (await api("/v1/sweeps/1")).state !== "running");
  await page.locator(".title .badge[data-state=succeeded]").waitFor();
  const sweep = await api("/v1/sweeps/1");
  const rows = page.locator(".trials tbody tr");
  await until("all trials", async () => await rows.count() === sweep.trials.length).catch(() => {});
  const shown = await rows.evaluateAll((list) => list.map((row) => [...row.querySelectorAll("data")].map((d) => d.value).concat(row.dataset.job)));
  same(text(shown), text(sweep.trials.map((t) => [String(t.metric ?? ""), String(t.point["/lr/base"]), String(t.point["optimizer.nesterov"]), String(t.budget), String(t.job)])),
    "sweep: the trials are the API's, the best first");
  same(await rows.filter({ hasText: /not promoted|stopped/ }).count(), 3, "sweep: those that were not promoted, or stopped, are shown as such");
  same(await rows.first().locator("a").getAttribute("href"), `#/jobs/${sweep.best.job}`, "sweep: each leads to its job");
  const bestPoint = await page.locator("main p", { hasText: /^Best / }).first().textContent();
  ok(/ with \w+[ .]/.test(bestPoint), "sweep: the keys of the best point are dotted", bestPoint);
  same(await page.getByRole("link", { name: "Compare the best" }).getAttribute("href"), `#/compare?ids=${encodeURIComponent(sweep.trials.slice(0, 5).map((t) => t.job).join(","))}`,
    "sweep: the best are a click from being compared");
  ok(await page.locator("button.danger:visible").count() === 0, "sweep: what has ended cannot be cancelled");
  await accessible(page, "sweep");
  const csv = (await downloaded(page, page.getByRole("button", { name: "Trials as csv" }))).toString();
  same(csv.trim().split("\r\n").length, 1 + sweep.trials.length, "sweep: the trials as CSV");
  ok(isPng(await downloaded(page, page.getByRole("button", { name: "Parallel coordinates as png" }))), "sweep: a picture as PNG");
  return sweep;
}

// Dots of the scatter and the numbers beside them are on one scale: what is drawn on the canvas is written down.
async function dotsMatch(page, sweep) {
  const drawn = await page.locator("[data-chart=sweep-1-scatter] canvas").evaluate((canvas) => {
    const ctx = canvas.getContext("2d"), dots = [], ticks = [];
    ctx.arc = (x, y, radius, ...rest) => { dots.push(y); CanvasRenderingContext2D.prototype.arc.call(ctx, x, y, radius, ...rest); };
    ctx.fillText = (words, x, y) => {
      if (ctx.textAlign === "right") ticks.push([Number(words.replaceAll(/[^0-9.]/g, "")), y - 4]);
      CanvasRenderingContext2D.prototype.fillText.call(ctx, words, x, y);
    };
    canvas.dispatchEvent(new PointerEvent("pointerleave"));
    delete ctx.arc;
    delete ctx.fillText;
    return { dots, ticks };
  });
  const [[low, y], [high, top]] = [drawn.ticks[0], drawn.ticks.at(-1)];
  const wanted = sweep.trials.filter((t) => t.metric !== null).map((t) => y + ((t.metric - low) / (high - low)) * (top - y));
  const far = Math.max(...wanted.map((one) => Math.min(...drawn.dots.map((dot) => Math.abs(dot - one)))));
  ok(drawn.ticks.length > 1 && wanted.length > 1 && far < 1, "sweep: each dot of the scatter is where the axis has its value", text({ far, ...drawn }));
}

async function brushing(page, sweep) {
  const canvas = page.locator("[data-chart=sweep-1-parallel] canvas");
  await bringIntoView(canvas);
  const box = await canvas.boundingBox(), side = Math.min(90, box.width * 0.12);
  const x = box.x + side + (2 * (box.width - 2 * side)) / 3; // the third of four axes: the budget
  await page.mouse.move(x, box.y + 36);
  await page.mouse.down();
  await page.mouse.move(x, box.y + 70, { steps: 4 });
  await page.mouse.up();
  const rows = page.locator(".trials tbody tr");
  const most = sweep.trials.filter((t) => t.budget === 4).length;
  ok(await until("the brush", async () => await rows.count() === most).catch(() => false), "sweep: dragging along an axis keeps a part", await rows.count());
  const link = page.url();
  await page.reload();
  ok(await until("the brush", async () => await rows.count() === most).catch(() => false), "sweep: the brush is in the address", link);
  await page.getByText("Filter by numbers").click();
  await page.getByRole("button", { name: "Clear filters" }).click();
  same(await rows.count(), sweep.trials.length, "sweep: all are back");
  await page.getByRole("textbox", { name: "lr.base, at most" }).fill(String(sweep.best.point["/lr/base"]));
  await page.keyboard.press("Enter");
  same(await rows.count(), sweep.trials.filter((t) => t.point["/lr/base"] <= sweep.best.point["/lr/base"]).length, "sweep: numbers do the same by keyboard");
  await page.getByRole("button", { name: "Clear filters" }).click();
}

async function drafts(page) {
  const editor = page.locator("#sweep-json"), broken = '{"base": ';
  await page.goto(`${origin}/#/sweeps/new?from=1`);
  await editor.waitFor();
  const original = await editor.inputValue();
  await editor.fill(broken);
  await page.goto(`${origin}/#/sweeps/new`);
  await page.reload();
  await editor.waitFor();
  same(JSON.parse(await editor.inputValue()).name, "grid", "sweep: what is written from another has a draft of its own");
  await page.goto(`${origin}/#/sweeps/new?from=1`);
  await page.reload();
  await editor.waitFor();
  same(await editor.inputValue(), broken, "sweep: which a reload keeps as it is, be it no JSON yet");
  await page.getByRole("button", { name: "Sweep 1" }).press("Enter");
  same(await editor.inputValue(), original, "sweep: and the other one is a press away");
}

async function cancelling(page) {
  const { id } = await api("/v1/sweeps", { method: "POST", body: text({ base: { ...SMALL, steps: 100000 }, parameters: { "lr.milestones": [[1, 2], [3]] }, metric: "loss" }) });
  await page.goto(`${origin}/#/sweeps/${id}`);
  await page.getByRole("button", { name: "Cancel…" }).click();
  await page.getByRole("button", { name: "Cancel the sweep" }).click();
  await page.locator(".title .badge[data-state=cancelled]").waitFor();
  same((await api(`/v1/sweeps/${id}`)).state, "cancelled", "sweep: the button cancels it");
  const rows = page.locator(".trials tbody tr");
  await page.getByText("Filter by numbers").press("Enter");
  await page.getByRole("group", { name: "lr.milestones" }).getByRole("checkbox").last().uncheck();
  await until("the brush", async () => await rows.count() === 1);
  await page.reload();
  await rows.first().waitFor();
  same(await rows.count(), 1, "sweep: a brush on lists is in the address", page.url());
  await page.goto(`${origin}/#/sweeps`);
  await page.getByRole("link", { name: "rates" }).waitFor();
  same(await page.locator("tr[data-sweep]").count(), 2, "sweeps: are listed");
  const { best } = (await api("/v1/sweeps")).sweeps.find((sweep) => sweep.id === 1);
  same(await page.locator("tr[data-sweep='1'] data").textContent(), number(best.metric), "sweeps: with their best");
  await accessible(page, "sweeps");
  await page.route("**/v1/sweeps/1", (route) => route.fulfill({ status: 503, json: { detail: "The disk is full." } }), { times: 1 });
  await page.goto(`${origin}/#/sweeps/1`);
  await page.getByRole("heading", { name: "The disk is full." }).waitFor();
  await page.getByRole("heading", { name: "rates" }).waitFor();
  ok(true, "sweep: a refusal is told in its words, and asked for again");
  await page.goto(`${origin}/#/sweeps/99`);
  await page.getByRole("heading", { name: "There is no sweep 99" }).waitFor();
  ok(true, "sweep: one that is not there is told as such");
}

async function looks(ids) {
  for (const [name, options, isDark] of [["dark", { colorScheme: "dark" }, true], ["phone", { viewport: { width: 375, height: 740 }, colorScheme: "light" }, false]]) {
    const { page, close } = await openBrowser(options);
    listen(page);
    for (const [kind, path, there] of [["comparison", `/#/compare?ids=${ids}`, ".differences tbody tr"], ["sweep", "/#/sweeps/1", ".trials tbody tr"], ["new sweep", "/#/sweeps/new", "#sweep-json"]]) {
      await page.goto(origin + path);
      await page.locator(there).first().waitFor();
      await page.evaluate(() => document.querySelectorAll("details").forEach((d) => { d.open = true; }));
      await page.waitForTimeout(200);
      ok(await sideways(page) <= 0, `${name}: the ${kind} does not scroll sideways`, await sideways(page));
      ok((await brightness(page) < 100) === isDark, `${name}: the ${kind} has the right ground`);
      await accessible(page, `${name}, ${kind}`);
    }
    await close();
  }
}

await story(async ({ page }) => {
  const made = [];
  for (const [name, workers, base] of [["one", 1, 0.1], ["two", 2, 0.1], ["low rate", 1, 0.01]])
    made.push((await submit({ ...SMALL, name, cluster: { workers_per_node: workers, threads_per_worker: 1 }, lr: { ...SMALL.lr, base } })).id);
  await starting(page);
  const half = (await submit({ ...SMALL, name: "smaller batch", cluster: { workers_per_node: 2, threads_per_worker: 1 }, batch_per_worker: 4 })).id;
  for (const id of [...made, half]) await jobIn(id, "succeeded");
  const sweep = await sweepMatches(page);
  await dotsMatch(page, sweep);
  await brushing(page, sweep);
  await drafts(page);
  await comparing(page, made);
  await scaling(page, [...made, half]);
  await refusedComparison(page);
  await cancelling(page);
  forget(/status of (422|404|400|503)/);
  await looks(made);
}, { acceptDownloads: true });
