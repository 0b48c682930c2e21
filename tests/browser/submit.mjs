// Jobs submitted by the form (#/submit).

import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { openBrowser } from "./lib/browser.mjs";
import { accessible, api, brightness, clean, forget, jobIn, JOB, listen, origin, sideways, story, until } from "./lib/checks.mjs";
import { ok, same } from "./lib/tap.mjs";

const field = (page, pointer) => page.locator(`[id="job${pointer.replaceAll("/", "-")}"]`);
const json = (page) => page.locator("#job-json");
const written = async (page) => JSON.parse(await json(page).inputValue());
const plan = (document) => api("/v1/plan", { method: "POST", body: JSON.stringify(document) });

// The page's number of a key of the plan once it is that of the document, as digits.
async function planShows(page, document, name) {
  const want = await plan(document);
  const shown = (key) => page.locator(`.plan:not(.old) dd[data-key=${key}]`).first().textContent();
  const right = async () => (await shown("global_batch")).replaceAll(/(\d),(\d)/g, "$1$2").startsWith(`${want.global_batch} `) &&
    (await shown("train_steps")).replaceAll(/(\d),(\d)/g, "$1$2").startsWith(`${want.train_steps}, ${want.steps_per_epoch} per epoch`);
  ok(await until("the plan", right).catch(() => false), `${name}: the plan is the API's`, `want ${want.global_batch}, ${want.train_steps}`);
  same(Number((await shown("peak_lr")).trim()), Number(want.peak_lr.toPrecision(4)), `${name}: so is the peak of the learning rate`);
  const warnings = await page.locator(".plan .warnings li").allTextContents();
  same(JSON.stringify(warnings), JSON.stringify(want.warnings), `${name}: and its warnings`);
}

const HINT = "Choose what to start from";
const startFrom = (page, choice) => page.getByLabel("Start from", { exact: true }).selectOption(choice);
const openAll = (page) => page.evaluate(() => document.querySelectorAll(".job-form details").forEach((group) => { group.open = true; }));

// Without a mouse: what to start from, five settings, the others behind a search.
async function beginning(page) {
  await page.goto(`${origin}/#/submit`);
  await page.getByText(HINT).waitFor();
  same((await page.locator(".basic label").allTextContents()).join(), "Training data,Evaluation data,Network,Epochs,Batch per worker", "start: five settings come first");
  same(await page.locator(".all .field:visible, .all .group:visible").count(), 0, "start: the others are closed");
  const choices = await page.locator("#start-from option").allTextContents();
  const { presets } = await api("/v1/presets"), examples = (await api("/examples.json")).filter((one) => one.model), example = examples.find((one) => one.name === "fashion-91");
  ok(["An empty document", "Quick test: random images", ...presets.map(({ name }) => name)].every((words) => choices.includes(words)) && examples.length > 2 && examples.every(({ name }) => choices.some((words) => words.startsWith(`${name}: `))),
    "start: from nothing, an example or a preset", choices.join());
  await startFrom(page, "test");
  await page.locator(".plan:not(.old) dd").first().waitFor();
  const quick = await written(page);
  same([quick.data.train, await field(page, "/data/train").inputValue()].join(), "synthetic,synthetic", "start: an example fills in the form");
  ok(await page.locator(".basic .leads").getByRole("button", { name: "Classes: 10" }).isVisible(), "start: what else it sets is named");
  await page.locator(".basic .leads").getByRole("button", { name: "Classes: 10" }).press("Enter");
  same(await page.evaluate(() => document.activeElement.id), "job-model-classes", "start: and is a press away");
  await startFrom(page, "fashion-91");
  await until("the example", async () => (await written(page)).name === "fashion-91");
  same(JSON.stringify((await written(page)).lr), JSON.stringify((({ base_batch, start, warmup_epochs }) => ({ base_batch, start, warmup_epochs }))(example.lr)), "start: from an example of quickstart, without the defaults");
  same((await written(page)).data.train, "synthetic", "start: the data entered before stay");
  await page.getByRole("button", { name: "Undo" }).press("Enter");
  same(JSON.stringify(await written(page)), JSON.stringify(quick), "start: undone, the form is as before");
  await page.reload();
  await until("the draft", async () => (await json(page).inputValue()).includes("synthetic"));
  same(await page.locator("#start-from").inputValue(), "test", "start: after a reload too");

  await page.getByText("All settings").press("Enter");
  const search = page.getByRole("searchbox", { name: "Search the settings" });
  await search.fill("warm-up");
  ok(await field(page, "/lr/start").isVisible() && !await field(page, "/seed").isVisible(), "search: finds what the help says");
  await search.fill("cluster.threads");
  ok(await field(page, "/cluster/threads_per_worker").isVisible(), "search: and keys");
  await search.fill("evaluation data");
  await page.locator(".all .leads").getByRole("button", { name: "Evaluation data" }).press("Enter");
  same(await page.evaluate(() => document.activeElement.id), "job-data-eval", "search: leads to a setting above");
  await search.fill("no such setting");
  await page.getByText("No settings match.").waitFor();
  await page.keyboard.press("Escape");
  same(await search.inputValue(), "", "search: Escape clears it");
  await clean(page, "new job");
  await openAll(page);
  const cut = await page.locator(".job-form .help").evaluateAll((all) => all.filter((help) => help.scrollHeight > help.clientHeight + 1).length);
  same(cut, 0, "form: no help is cut");
  await clean(page, "all settings");
  await page.getByRole("button", { name: "Clear the form" }).press("Enter");
  same(await json(page).inputValue(), "{}", "form: cleared, it is empty");
}

// The preset that reaches an accuracy first, with the keyboard alone.
async function fastest(page) {
  await page.goto(`${origin}/#/submit`);
  await page.getByText(HINT).waitFor();
  await field(page, "/data/train").fill("synthetic");
  await page.locator("summary", { hasText: "Fastest to accuracy" }).press("Enter");
  const target = page.getByLabel("Top-1 on ImageNet, %"), nodes = page.getByLabel("Nodes", { exact: true }).and(page.locator("#fastest-nodes")), why = page.locator(".fastest [role=status]");
  const { presets: [slow, ...others] } = await api("/v1/presets/times?target=75.5&nodes=4");
  await target.fill("75.5");
  await nodes.fill("4");
  await nodes.press("Enter");
  await until("the least arithmetic", async () => (await why.textContent()).startsWith("No time can be predicted"));
  ok((await why.textContent()).includes(`${slow.preset} (`) && (await written(page)).preset === slow.preset, "fastest: without a speed the one with the least arithmetic is chosen", await why.textContent());
  await page.locator("#fastest-speed").fill("500");
  await page.locator("#fastest-speed").press("Enter");
  await until("the fastest", async () => (await why.textContent()).includes("is predicted to take"));
  const { presets: all } = await api("/v1/presets/times?target=75.5&nodes=4&node_speed=500"), [first, second] = all;
  ok((await why.textContent()).startsWith(`${first.preset} (`) && (await why.textContent()).includes(`Next: ${second.preset}, `), "fastest: with a speed the reason is its time, beside the next", await why.textContent());
  same(await page.locator(".fastest tbody tr").count(), others.length + 1, "fastest: all are listed");
  ok((await page.locator(".fastest tbody tr", { hasText: "surfsara-24k" }).textContent()).includes("its published accuracy is 75 %"), "fastest: those left out have their reason");
  await clean(page, "fastest to accuracy");
  const document = await written(page);
  same(JSON.stringify([document.preset, document.global_batch, document.accumulate_steps, document.cluster, document.eval.target_top1, document.data]),
    JSON.stringify([first.preset, first.global_batch, "auto", { nodes: 4 }, 0.755, { train: "synthetic" }]), "fastest: the form has its job on these nodes, and the data entered before");
  same(await page.locator("#start-from").inputValue(), `preset:${first.preset}`, "fastest: it stands as what the job starts from");
  await target.fill("99");
  await target.press("Enter");
  await page.locator(".fastest .error", { hasText: "No preset reaches this accuracy" }).waitFor();
  same((await written(page)).preset, first.preset, "fastest: an accuracy that none reaches changes nothing");
  await target.fill("many");
  await target.press("Enter");
  await page.locator(".fastest .error", { hasText: "target must be a number from 0.01 to 100" }).waitFor();
  ok(true, "fastest: what is no accuracy is refused in the daemon's words");
  await page.getByRole("button", { name: "Undo" }).press("Enter");
  await page.getByRole("button", { name: "Clear the form" }).press("Enter");
}

async function fillIn(page) {
  await page.goto(`${origin}/#/submit`);
  await page.getByRole("heading", { name: "New job" }).waitFor();
  await page.getByText(HINT).waitFor();
  await openAll(page);
  ok(await page.locator("[aria-invalid]").count() === 0, "form: an empty one complains of nothing");
  const schema = await api("/v1/schema/job");
  const count = (part) => Object.values(part.properties).reduce((n, p) => n + (p.properties ? count(p) : 1), 0);
  same(await page.locator(".job-form .field").count(), count(schema), "form: has every key of the schema");
  same(await field(page, "/lr/warmup_epochs").getAttribute("placeholder"), String(schema.properties.lr.properties.warmup_epochs.default), "form: shows defaults");
  same(await field(page, "/data/train").getAttribute("placeholder"), "", "form: and none of a key that is required");
  ok(await page.getByRole("heading", { name: "Averaged weights" }).count() === 1, "form: has words for the sections");
  ok((await page.locator('[data-pointer="/lr/warmup_epochs"]').textContent()).includes("epochs"), "form: shows units");

  await field(page, "/data/train").fill("synthetic");
  await field(page, "/data/train_images").fill("64000");
  await planShows(page, { data: { train: "synthetic", train_images: 64000 } }, "form");
  await page.locator("#job-preset").selectOption("goyal-8k");
  await planShows(page, { preset: "goyal-8k", data: { train: "synthetic", train_images: 64000 } }, "preset");
  const recipe = (await api("/v1/presets")).presets.find((one) => one.name === "goyal-8k");
  await page.getByText("What the preset sets").click();
  same(await page.locator(".start tbody tr").count(), Object.values(recipe.document).reduce((n, v) => n + (typeof v === "object" ? Object.keys(v).length : 1), 0),
    "preset: all it sets is listed");
  same(await field(page, "/lr/base").getAttribute("placeholder"), String(recipe.document.lr.base), "preset: its values stand in the form");
  same(JSON.stringify(await written(page)), JSON.stringify({ preset: "goyal-8k", data: { train: "synthetic", train_images: 64000 } }),
    "preset: is sent by name, not by value");
  await page.locator("#job-preset").selectOption("");
  const variables = { OMP_WAIT_POLICY: "active", KMP_AFFINITY: "granularity=fine,compact" };
  await field(page, "/cluster/env").fill("OMP_WAIT_POLICY=active KMP_AFFINITY=granularity=fine,compact");
  same(JSON.stringify((await written(page)).cluster.env), JSON.stringify(variables), "form: variables are typed as in a shell");
  await field(page, "/cluster/env").fill("OMP_WAIT_POLICY");
  await page.locator('[data-pointer="/cluster/env"] .error').waitFor();
  ok(true, "form: what is no variable is refused");
  await field(page, "/cluster/env").fill("");
  const ranges = ["n[1-3,7]:16", "login", "gpu[01-02]-ib"];
  await field(page, "/cluster/hosts").fill(ranges.join(", "));
  same(JSON.stringify((await written(page)).cluster.hosts), JSON.stringify(ranges), "form: a comma between brackets separates no hosts");
  await field(page, "/cluster/hosts").fill("n[5-1]");
  await page.locator('[data-pointer="/cluster/hosts"] .error', { hasText: "the range 5-1 runs backwards" }).waitFor();
  ok(true, "form: what is wrong with a range of hosts is told");
  await field(page, "/cluster/hosts").fill("");
  const [epochs, nodes] = [field(page, "/epochs"), field(page, "/cluster/nodes")];
  await epochs.focus();
  await page.keyboard.type("905");
  await nodes.focus();
  await page.keyboard.type("16");
  const { epochs: many, cluster } = await written(page);
  same(JSON.stringify([await epochs.inputValue(), many, await nodes.inputValue(), cluster.nodes]), '["905",905,"16",16]', "form: a number may begin as the default does");
  await nodes.fill("1");
  await epochs.fill("");
  same(await nodes.inputValue(), "", "form: what is typed as the default is the default");
  await accessible(page, "form");
}

async function problems(page) {
  await field(page, "/lr/base").fill("minus one");
  const error = page.locator('[data-pointer="/lr/base"] .error');
  await error.waitFor();
  const [said] = (await (await fetch(`${origin}/v1/plan`, { method: "POST", body: JSON.stringify(await written(page)) })).json()).errors;
  same(await error.textContent(), said.message, "problem: the daemon's words stand at the field");
  same(await field(page, "/lr/base").getAttribute("aria-invalid"), "true", "problem: the field is marked");
  ok((await field(page, "/lr/base").getAttribute("aria-describedby")).split(" ").includes(await error.getAttribute("id")), "problem: and described by it");
  await accessible(page, "problem");
  await page.getByRole("button", { name: "Submit the job" }).click();
  await page.getByText("Not submitted: there is a problem.").waitFor();
  ok(await until("the focus", async () => (await page.evaluate(() => document.activeElement.id)) === "job-lr-base").catch(() => false),
    "problem: the job is refused, and the keyboard is where it is wrong");
  same((await api("/v1/jobs")).jobs.length, 0, "problem: no job was made");
  await page.getByRole("button", { name: /^Reset to .*: Base learning rate$/ }).click();
  await error.waitFor({ state: "hidden" });
  ok(true, "problem: goes with its cause");
}

async function jsonBothWays(page) {
  await json(page).fill('{\n  "data": {"train": "synthetic"},\n  "epohcs": 3,\n  "lr": {"decay": "cosine"}\n}');
  same(await field(page, "/lr/decay").inputValue(), "cosine", "json: the form follows");
  same(await field(page, "/data/train_images").inputValue(), "", "json: what is gone there is gone in the form");
  const problem = page.locator(".problems li");
  await problem.waitFor();
  ok((await problem.textContent()).includes("epohcs ") && (await problem.textContent()).includes("(line 3)"), "json: an unknown key is named with its line",
    await problem.textContent());
  await problem.getByRole("button", { name: "Use epochs" }).click();
  await problem.waitFor({ state: "hidden" });
  same(await field(page, "/epochs").inputValue(), "3", "json: the nearest key is a press away");
  same(JSON.stringify(await written(page)), JSON.stringify({ epochs: 3, data: { train: "synthetic" }, lr: { decay: "cosine" } }), "json: follows the form");
  await json(page).fill('{\n  "data": {"train": "synthetic"},\n  "epochs" 3\n}');
  ok((await page.locator("#job-json-error").textContent()).startsWith("Line 3: "), "json: what is none is told with its line",
    await page.locator("#job-json-error").textContent());
  ok(await page.locator(".submit-form").evaluate((form) => form.inert), "json: the form is locked meanwhile, which has an older document");
  await page.reload();
  ok(await until("the draft", async () => (await json(page).inputValue()).includes('"epochs" 3')).catch(() => false), "draft: is there after a reload");
  await json(page).fill('{"data": {"train": "synthetic"}, "epochs": 90, "seed": 7}');
  await json(page).blur();
  ok(!await page.locator(".submit-form").evaluate((form) => form.inert), "json: a valid one unlocks the form");
  same(JSON.stringify(await written(page)), JSON.stringify({ seed: 7, data: { train: "synthetic" } }), "json: what is as by default is left out");
}

async function submitting(page) {
  const small = { ...JOB, name: "by the form", steps: 4, lr: { warmup_epochs: 0.25, decay: "cosine" } };
  await json(page).fill(JSON.stringify(small));
  await openAll(page);
  await field(page, "/name").fill("it's by the form");
  const document = await written(page);
  await planShows(page, document, "submit");
  await page.getByText("As a table").click();
  const rates = await page.locator(".curve tbody tr").evaluateAll((rows) => rows.map((row) => row.lastChild.textContent));
  await page.getByRole("button", { name: "Submit the job" }).dblclick();
  await page.waitForFunction(() => /^#\/jobs\/\d+$/.test(location.hash));
  const { jobs } = await api("/v1/jobs");
  same(jobs.length, 1, "submit: a double click makes one job");
  same(await page.evaluate(() => location.hash), `#/jobs/${jobs[0].id}`, "submit: leads to the job");
  same(jobs[0].name, "it's by the form", "submit: the job is the one that was written");
  const job = await jobIn(jobs[0].id, "succeeded");
  const { lr } = await api(`/v1/jobs/${job.id}/metrics?names=lr`);
  same(JSON.stringify(rates), JSON.stringify(lr.map((rate) => String(Number(rate.toPrecision(4))))), "submit: it trained at the rates that were drawn");
  await page.goto(`${origin}/#/submit`);
  await page.getByText(HINT).waitFor();
  same(await json(page).inputValue(), "{}", "submit: the draft is gone");
  await startFrom(page, "last");
  await until("the last job", async () => (await written(page)).name === "it's by the form");
  const stored = { ...document, data: { ...document.data, preprocess: "tpu" } }; // which synthetic data have
  same(JSON.stringify(await written(page)), JSON.stringify(stored), "start: from the last job, as it was stored");
  await startFrom(page, "");
  return job;
}

async function cloning(page, job) {
  await page.goto(`${origin}/#/submit?clone=${job.id}`);
  await page.getByText("No changes yet.").waitFor();
  ok(true, "clone: begins as the job was");
  await openAll(page);
  await field(page, "/seed").fill("9");
  await field(page, "/name").fill("clone");
  const rows = await page.locator(".changes tbody tr").allTextContents();
  same(JSON.stringify(rows), JSON.stringify(["nameit's by the formclone", "seed19"]), "clone: what differs is listed");
  await page.getByRole("button", { name: "Submit the job" }).click();
  await page.getByRole("heading", { name: "clone", exact: true }).waitFor();
  const { jobs } = await api("/v1/jobs");
  const clone = await jobIn(jobs[0].id, "succeeded");
  const differing = Object.keys(clone.spec).filter((key) => JSON.stringify(clone.spec[key]) !== JSON.stringify(job.spec[key]));
  same(differing.sort().join(), "name,seed", "clone: differs in nothing else");
  await page.goto(`${origin}/#/submit?clone=99`);
  await page.getByRole("heading", { name: "There is no job 99 to clone" }).waitFor();
  ok(true, "clone: of a job that is not there is told as such");
}

// A job of mixed precision: typed into the form, posted, trained, told on its page and beside the one in fp32.
async function mixedPrecision(page, plain) {
  await page.goto(`${origin}/#/submit`);
  await json(page).fill(JSON.stringify({ ...JOB, model: { ...JOB.model, width: 0.5 }, name: "mixed", steps: 4, cluster: { ...JOB.cluster, workers_per_node: 2 } }));
  await json(page).blur();
  await openAll(page);
  same(await field(page, "/precision").inputValue(), "fp32", "bf16: the form begins with fp32");
  await field(page, "/precision").selectOption("bf16");
  await field(page, "/comm/dtype").selectOption("bf16");
  await field(page, "/class_weights").fill("balanced");
  await page.locator('[data-pointer="/class_weights"] .error').waitFor();
  same((await written(page)).class_weights, "balanced", "class weights: the word, which is refused for synthetic data at its field");
  await field(page, "/class_weights").fill("1 0.5");
  same(JSON.stringify((await written(page)).class_weights), "[1,0.5]", "class weights: or numbers");
  await field(page, "/class_weights").fill("");
  await field(page, "/loss_scale").fill("0");
  await page.locator('[data-pointer="/loss_scale"] .error').waitFor();
  ok(true, "bf16: a loss scale of nothing is refused at its field");
  await field(page, "/loss_scale").fill("128");
  await page.locator('[data-pointer="/loss_scale"] .error').waitFor({ state: "hidden" });
  const document = await written(page);
  same(JSON.stringify([document.precision, document.loss_scale, document.comm]), '["bf16",128,{"dtype":"bf16"}]', "bf16: the document has what was chosen");
  await planShows(page, document, "bf16");
  await page.getByRole("button", { name: "Submit the job" }).click();
  await page.getByRole("heading", { name: "mixed", exact: true }).waitFor();
  const job = await jobIn((await api("/v1/jobs")).jobs[0].id, "succeeded");
  same(JSON.stringify([job.spec.precision, job.spec.loss_scale, job.spec.comm.dtype]), '["bf16",128,"bf16"]', "bf16: so has the job, which trained");
  const told = page.locator("dt", { hasText: /^Precision$/ }).locator("xpath=following-sibling::dd[1]");
  same(await told.textContent(), "bf16, loss scale 128, gradients summed in bf16", "bf16: its page says so");
  await page.goto(`${origin}/#/compare?ids=${plain.id},${job.id}`);
  await page.locator(".differences tbody tr").first().waitFor();
  const rows = await page.locator(".differences tbody tr").evaluateAll((all) => all.map((row) => [...row.children].map((cell) => cell.textContent)));
  const shown = (name) => rows.find(([key]) => key === name)?.slice(1).join(" ");
  same(`${shown("precision")}; ${shown("loss_scale")}; ${shown("comm.dtype")}`, "fp32 bf16; 1 128; fp32 bf16", "bf16: and what differs from fp32, beside it");
  await page.goto(`${origin}/#/jobs/${plain.id}`);
  await page.getByRole("heading", { name: "Plan" }).waitFor();
  same(await page.locator("dt", { hasText: /^Precision$/ }).count(), 0, "bf16: a job in fp32 has no such line");
}

// The lines for a terminal do what the button does.
async function elsewhere(page) {
  await page.goto(`${origin}/#/submit`);
  await json(page).fill(JSON.stringify({ ...JOB, name: "it's from a terminal", steps: 2, cluster: { ...JOB.cluster, nodes: 1 } }));
  const shell = (line) => execFileSync("bash", ["-c", line], { stdio: "ignore", env: { ...process.env, PATH: `${process.env.top_builddir}:${process.env.PATH}` } });
  for (const name of ["curl", "trainctl"]) {
    const { jobs: before } = await api("/v1/jobs");
    shell(await page.getByRole("group", { name: `the ${name} line` }).textContent());
    const { jobs: [job, ...others] } = await api("/v1/jobs");
    ok(others.length === before.length && job.name === "it's from a terminal", `terminal: the ${name} line submits the same job`, job.name);
    await api(`/v1/jobs/${job.id}/cancel`, { method: "POST" });
  }
  await page.getByRole("button", { name: "Clear the form" }).click();
}

const ONE_PIXEL = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=", "base64");

// What earlier jobs trained on is offered.
async function knownData(page) {
  const folder = `${process.argv[6]}/known`, data = { train: `${folder}/train`, eval: `${folder}/validation`, train_images: 64, eval_images: 8 };
  for (const path of [data.train, data.eval]) {
    mkdirSync(`${path}/class`, { recursive: true });
    writeFileSync(`${path}/class/0.png`, ONE_PIXEL);
  }
  const { id } = await api("/v1/jobs", { method: "POST", body: JSON.stringify({ ...JOB, name: "elsewhere", data }) });
  await api(`/v1/jobs/${id}/cancel`, { method: "POST" });
  await page.goto("about:blank");
  await page.goto(`${origin}/#/submit`);
  await page.getByText(HINT).waitFor();
  for (const [key, path] of [["train", data.train], ["eval", data.eval]]) {
    const list = await field(page, `/data/${key}`).getAttribute("list");
    const offered = await page.locator(`#${list} option`).evaluateAll((options) => options.map((option) => option.value));
    same(offered.join(), `${path},synthetic`, `data: the sets of earlier jobs are offered for data.${key}`);
  }
}

// One that is predicted to take days is asked about first, by keyboard; and after an error the plan from before is greyed.
async function longOne(page) {
  const days = { ...JOB, name: "days", steps: 100000000 };
  await api("/v1/speeds", { method: "POST", body: JSON.stringify({ key: "resnet18-imagenet-32-fp32-t1-w0.0625", cpu: cpus()[0].model, image_seconds: 0.01, update_seconds: 0, exchange_seconds: 0, workers: 1, batch: 8 }) });
  await page.goto(`${origin}/#/submit`);
  await json(page).fill(JSON.stringify(days));
  await page.locator(".plan:not(.old) dd").first().waitFor();
  const { predicted } = await plan(days);
  ok(predicted.ttt_seconds.value > 86400, "long: it is predicted to take more than a day", predicted.ttt_seconds.value);
  const { jobs: before } = await api("/v1/jobs");
  const dialog = page.getByRole("dialog", { name: /^Submit a job of/ });
  await page.getByRole("button", { name: "Submit the job" }).press("Enter");
  await dialog.waitFor();
  await clean(page, "question before a long job");
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  same((await api("/v1/jobs")).jobs.length, before.length, "long: no, and nothing is submitted");
  await page.getByRole("button", { name: "Submit the job" }).press("Enter");
  await dialog.getByRole("button", { name: "Submit the job" }).press("Enter");
  await page.getByRole("heading", { name: "days", exact: true }).waitFor();
  await api(`/v1/jobs/${(await api("/v1/jobs")).jobs[0].id}/cancel`, { method: "POST" });
  await page.goto(`${origin}/#/submit`);
  await startFrom(page, "test");
  await page.locator(".plan:not(.old) dd").first().waitFor();
  await field(page, "/batch_per_worker").fill("0");
  await page.locator('[data-pointer="/batch_per_worker"] .error').waitFor();
  ok(await page.locator(".plan.old dd").first().isVisible(), "problem: the plan from before stays, greyed");
  await page.getByRole("button", { name: "Clear the form" }).click();
}

async function outage(context, page) {
  await page.goto(`${origin}/#/submit`);
  await field(page, "/data/train").fill("synthetic");
  await openAll(page);
  await page.locator(".plan:not(.old) dd").first().waitFor();
  await context.setOffline(true);
  await field(page, "/seed").fill("2");
  await page.getByText("No answer from traind").first().waitFor();
  await context.setOffline(false);
  await page.getByText("No answer from traind").first().waitFor({ state: "hidden" });
  await page.locator(".plan:not(.old) dd").first().waitFor();
  ok(true, "outage: is told, and the plan comes back by itself");
}

async function looks() {
  for (const [name, options, isDark] of [["dark", { colorScheme: "dark" }, true], ["phone", { viewport: { width: 375, height: 740 }, colorScheme: "light" }, false]]) {
    const { page, close } = await openBrowser(options);
    listen(page);
    await page.goto(`${origin}/#/submit?clone=1`);
    await page.locator(".plan:not(.old) dd").first().waitFor();
    await page.evaluate(() => document.querySelectorAll("details").forEach((d) => { d.open = true; }));
    ok(await sideways(page) <= 0, `${name}: the form does not scroll sideways`, await sideways(page));
    ok((await brightness(page) < 100) === isDark, `${name}: the form has the right ground`);
    await accessible(page, `${name}, form`);
    await close();
  }
}

await story(async ({ context, page }) => {
  await beginning(page);
  await fastest(page);
  await fillIn(page);
  await problems(page);
  await jsonBothWays(page);
  const job = await submitting(page);
  await cloning(page, job);
  await mixedPrecision(page, job);
  await elsewhere(page);
  await knownData(page);
  await longOne(page);
  await outage(context, page);
  forget(/status of (400|422|404)|ERR_INTERNET_DISCONNECTED/);
  await looks();
});
