// Jobs are labelled, found and changed several at a time. SCREENSHOTS: a folder for pictures.

import { accessible, api, forget, JOB, jobIn, origin, story, submit, until } from "./lib/checks.mjs";
import { ok, same } from "./lib/tap.mjs";

const pictures = process.env.SCREENSHOTS;
const NOTE = "Diverges <b>at</b> step 100.\nSee job 2.";
const row = (page, id) => page.locator(`tr[data-job="${id}"]`);
const shown = (page) => page.locator("table.jobs tbody tr").evaluateAll((rows) => rows.map((r) => r.dataset.job).join(" "));
const shows = (page, ids, words) => until(words, async () => (await shown(page)) === ids).then(() => ok(true, words), async () => same(await shown(page), ids, words));
const labels = (id, change) => api(`/v1/jobs/${id}`, { method: "PATCH", body: JSON.stringify(change) });

async function picture(page, name) {
  if (!pictures) return;
  for (const [scheme, width] of [["light", 1440], ["dark", 1440], ["light", 360], ["dark", 1024]]) {
    await page.emulateMedia({ colorScheme: scheme });
    await page.setViewportSize({ width, height: 900 });
    await page.screenshot({ path: `${pictures}/${name}-${scheme}-${width}.png` });
  }
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize({ width: 1280, height: 900 });
}

async function list(page, first, second) {
  await page.goto(origin + "/");
  await row(page, first).locator(".chip").first().waitFor();
  same(await row(page, first).locator(".chip").allTextContents().then((all) => all.join(" ")), "baseline paper:table-2", "list: a job's tags");
  const job = await api(`/v1/jobs/${first}`);
  const best = row(page, first).locator("td[data-label=Best]");
  same(await best.locator("data").getAttribute("value"), String(job.best_top1), "list: its best top-1 is the API's");
  same(await best.locator(".band").textContent(), `step ${job.best_top1_step}`, "list: and when it was");
  await page.goto(`${origin}/#/?sort=best_top1`);
  await page.getByRole("button", { name: /^Best/ }).click();
  same(await page.evaluate(() => location.hash), "#/?sort=-best_top1", "list: the best first, in the address");
  await page.getByRole("button", { name: "Job", exact: true }).click();

  await page.goto(`${origin}/#/?sort=id`);
  await shows(page, `${first} ${second}`, "list: the oldest first");
  for (let i = 0; i < 2; i++) await page.keyboard.press("j");
  same(await page.evaluate(() => document.activeElement.getAttribute("href")), `#/jobs/${second}`, "list: j goes from job to job, over their tags");

  await row(page, first).getByRole("link", { name: "baseline" }).click();
  same(await page.evaluate(() => location.hash), "#/?tag=baseline", "list: a tag leads to the jobs that have it");
  await shows(page, String(first), "list: those alone");
  await page.reload();
  await shows(page, String(first), "list: the address is a permalink");
  await page.getByRole("button", { name: "Also show jobs without the tag baseline" }).click();
  await shows(page, `${second} ${first}`, "list: without the tag all are there");
  await labels(second, { add_tags: ["starred"] });
  await row(page, second).getByRole("link", { name: "starred" }).waitFor();
  ok(true, "list: a tag that somebody else gives appears by itself");
  await page.goto(`${origin}/#/?starred=1`);
  await shows(page, String(second), "list: a link of an older version that asks for stars asks for the tag");
}

async function views(page, first, second) {
  await page.getByText("Views", { exact: true }).click();
  await page.getByRole("button", { name: "Save this view…" }).click();
  await page.getByLabel("Name", { exact: true }).fill("my jobs");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.goto(origin + "/#/");
  await page.reload();
  await shows(page, `${second} ${first}`, "views: all jobs");
  await page.getByText("Views", { exact: true }).click();
  await accessible(page, "views");
  await picture(page, "views");
  await page.getByRole("link", { name: "my jobs" }).click();
  await shows(page, String(second), "views: a saved one, behind a reload");
  await page.goto(origin + "/#/");
  await page.reload();
}

async function several(page, first, second) {
  await shows(page, `${second} ${first}`, "several: all jobs");
  for (const id of [first, second]) {
    await page.getByRole("checkbox", { name: `Select job ${id}` }).focus();
    await page.keyboard.press("Space");
  }
  await page.getByText("2 selected").waitFor();
  ok(true, "several: ticked by keyboard");
  same(await page.getByRole("button", { name: "Cancel…" }).count(), 0, "several: what has ended cannot be cancelled");
  await accessible(page, "several");
  await picture(page, "several");
  const refuse = (route) => (route.request().method() === "PATCH" ? route.fulfill({ status: 422, json: { detail: "not tagged" } }) : route.fallback());
  await page.route("**/v1/jobs/*", refuse);
  await page.getByRole("button", { name: "Tag…" }).click();
  await page.getByLabel("Add").fill("c");
  await page.getByRole("button", { name: "Change the tags" }).click();
  await page.getByRole("alert").filter({ hasText: `job ${second}: not tagged` }).waitFor();
  ok(true, "several: what is refused is told for each");
  await page.unroute("**/v1/jobs/*", refuse);
  await labels(second, { remove_tags: ["starred"] });
  await page.getByLabel("Add").fill("a/b, wrong+tag");
  await page.getByRole("button", { name: "Change the tags" }).click();
  await page.getByRole("alert").filter({ hasText: `job ${second}`, hasNotText: "not tagged" }).waitFor(); // not what is told since before
  same((await api(`/v1/jobs/${first}`)).tags.length, 2, "several: a wrong tag is told, and changes nothing");
  forget(/422/);
  await page.getByLabel("Add").fill("a/b, c");
  await page.getByLabel("Remove", { exact: true }).fill("baseline");
  await page.getByRole("button", { name: "Change the tags" }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  same(JSON.stringify([(await api(`/v1/jobs/${first}`)).tags, (await api(`/v1/jobs/${second}`)).tags]), '[["a/b","c","paper:table-2"],["a/b","c"]]', "several: tagged at once");
  await row(page, second).getByRole("link", { name: "a/b" }).waitFor();
  await page.getByRole("link", { name: "Compare 2 jobs" }).click();
  await page.getByRole("heading", { name: `Compare jobs ${first}, ${second}` }).waitFor();
  same(await page.locator(`.results tr[data-job="${first}"] .note`).textContent(), NOTE, "compare: the note, as text");
  same(await page.locator(`.results tr[data-job="${first}"] .chip`).count(), 3, "compare: the tags");
  same(await page.locator(".differences code").filter({ hasText: /^(tags|note)$/ }).count(), 0, "compare: which are no keys of a run");
  await accessible(page, "compare");
}

async function cancelled(page) {
  const long = [];
  for (const name of ["one", "two"]) long.push((await submit({ ...JOB, name, steps: 100000 })).id);
  await page.goto(origin + "/#/");
  for (const id of long) await page.getByRole("checkbox", { name: `Select job ${id}` }).check();
  await page.getByRole("button", { name: "Cancel…" }).click();
  await page.getByRole("button", { name: "Cancel the jobs" }).click();
  for (const id of long) await jobIn(id, "cancelled");
  ok(true, "several: cancelled at once");
}

async function one(page, id) {
  await page.goto(`${origin}/#/jobs/${id}`);
  const note = page.locator(".labels .note");
  await note.waitFor();
  same(await note.textContent(), NOTE, "job: the note is text, whatever is in it");
  same(await note.locator("b").count(), 0, "job: and no element");
  await picture(page, "job");
  await page.getByRole("button", { name: "Edit name, tags and note…" }).click();
  await page.getByRole("dialog").waitFor();
  await accessible(page, "job: the dialog");
  await labels(id, { add_tags: ["meanwhile"] }); // somebody else, while the dialog is open
  await page.getByLabel("Name", { exact: true }).fill("renamed");
  await page.getByLabel("Tags", { exact: true }).fill("a/b, new");
  await page.getByLabel("Note", { exact: true }).fill("");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("heading", { name: "renamed" }).waitFor();
  const job = await api(`/v1/jobs/${id}`);
  same(JSON.stringify([job.name, job.tags, job.note]), '["renamed",["a/b","meanwhile","new"],null]', "job: name, tags and note are changed, and what another added stays");
  await page.locator(".events tr[data-type=labels]").first().waitFor();
  ok(true, "job: its events tell of it");
  await accessible(page, "job");
  await page.emulateMedia({ colorScheme: "dark" });
  await accessible(page, "job, dark");
  await page.emulateMedia({ colorScheme: "light" });
}

await story(async ({ page }) => {
  const { id: first } = await submit({ ...JOB, name: "first", steps: 2, tags: ["paper:table-2", "baseline"], note: NOTE });
  const { id: second } = await submit({ ...JOB, name: "second", steps: 2 });
  for (const id of [first, second]) await jobIn(id, "succeeded");
  await list(page, first, second);
  await views(page, first, second);
  await several(page, first, second);
  await one(page, first);
  await cancelled(page);
});
