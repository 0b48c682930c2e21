// More jobs than the pages show at a time.

import { execFileSync } from "node:child_process";
import { api, forget, JOB, jobIn, lastingJob, origin, sideways, story, submit, until } from "./lib/checks.mjs";
import { ok, same } from "./lib/tap.mjs";

const state = process.argv.at(-2);
const sql = (text) => execFileSync("sqlite3", ["-cmd", ".timeout 20000", `${state}/traind.db`, text], { encoding: "utf8" });

// A job that has ended, so many times more, with values (SQL, in which nth counts from 1) in place of its own.
function copies(id, times, values) {
  const columns = sql("select name from pragma_table_info('job') where name <> 'id'").trim().split("\n");
  sql(`insert into job (${columns}) select ${columns.map((name) => values[name] ?? name)} from job, (select value as nth from generate_series(1, ${times})) where id = ${id}`);
}

async function longNames(page, id) {
  const name = (await api(`/v1/jobs/${id}`)).name;
  await api(`/v1/jobs/${id}`, { method: "PATCH", body: JSON.stringify({ name: "nospaces".repeat(20) }) });
  await page.setViewportSize({ width: 400, height: 800 });
  await page.goto(`${origin}/#/submit?clone=${id}`);
  await page.locator(".changes").waitFor();
  same(await sideways(page), 0, "submit: the long name of the job it is a clone of fits on a phone");
  await page.setViewportSize({ width: 1240, height: 900 });
  await api(`/v1/jobs/${id}`, { method: "PATCH", body: JSON.stringify({ name }) });
}

async function compared(page) {
  await page.goto(`${origin}/#/`);
  await page.locator('tr[data-job="1"]').waitFor();
  for (const box of await page.getByRole("checkbox", { name: /^Select job/ }).all()) await box.check();
  await page.getByText("25 selected").waitFor();
  await page.getByRole("link", { name: /^Compare \d/ }).waitFor();
  same(await page.getByRole("link", { name: /^Compare \d/ }).textContent(), "Compare 20 of 25 jobs", "list: the link to compare says how many of those that are ticked it takes");
  await page.getByRole("checkbox", { name: "Select job 1", exact: true }).uncheck();
  await page.getByRole("link", { name: /^Compare \d/ }).click();
  await page.getByText("Only 20 jobs are compared at a time: 4 of the chosen ones are left out.").waitFor();
  await page.goto(`${origin}/#/groups?by=model.arch&open=%22resnet18%22`);
  same(await page.locator(".group-jobs").getByRole("link", { name: /^Compare \d/ }).textContent(), "Compare 20 of 25 jobs", "groups: so does that of a group");
}

async function failed(page) {
  const day = Math.floor(Date.now() / 1000) - 86400;
  copies(1, 230, { name: "'broken'", submitted_by: "'sweep 1234'", state: "'failed'", finished_at: day + 3600 });
  copies(1, 20, { name: "'broken before'", state: "'failed'", finished_at: day - 60 });
  await page.goto(`${origin}/#/`);
  await page.reload();
  await page.locator("[data-key=failed][value='230']").waitFor({ timeout: 60000 }).catch(() => {});
  const cut = await page.locator("td.who", { hasText: "sweep 1234" }).first().evaluate((cell) => [cell, ...cell.children].some((e) => e.scrollWidth > e.clientWidth || e.scrollHeight > e.clientHeight));
  same(cut, false, "list: the sweep of a job is not cut");
  same(await page.locator("[data-key=failed]").textContent(), "230", "tiles: all that failed in 24 hours count, and no others");
}

// Those of a state are found behind more than a page of others.
async function byState(page) {
  copies(1, 210, { name: "'newer'" });
  await page.goto(`${origin}/#/`);
  await page.reload();
  await page.getByRole("button", { name: "Failed", exact: true }).click();
  await page.locator('tr[data-job="275"]').waitFor({ timeout: 60000 }).catch(() => {});
  same(await page.locator(".summary").textContent(), "200 newest matching jobs, 0 active", "list: those of a state are found behind more than a page of others");
  await page.getByRole("searchbox").fill("before");
  await page.getByText("20 newest matching jobs, 0 active").waitFor({ timeout: 60000 }).catch(() => {});
  same(await page.locator(".summary").textContent(), "20 newest matching jobs, 0 active", "list: by words too");
}

// The rows of a page are made as one scrolls to them, however far one sees or goes at a time.
async function made(page) {
  const rows = page.locator("table.jobs tbody tr");
  const has = async (name, right) => {
    await until(name, async () => right(await rows.count()), 60).catch(() => {});
    ok(right(await rows.count()), name, `${await rows.count()} rows`);
  };
  const all = (count) => count === 200;
  await page.setViewportSize({ width: 1240, height: 30000 });
  await page.goto(`${origin}/#/?sort=id`);
  await page.reload();
  await has("list: a window that is higher than the first rows is filled", all);
  await page.setViewportSize({ width: 1240, height: 900 });
  await page.goto(`${origin}/#/?state=finished`);
  await has("list: one that is not is not filled with what nobody sees", (count) => count < 100);
  await page.evaluate(() => {
    const toEnd = () => scrollTo({ top: document.documentElement.scrollHeight, behavior: "instant" });
    new MutationObserver(toEnd).observe(document.querySelector("table.jobs tbody"), { childList: true });
    toEnd();
  });
  await has("list: whoever holds the End key comes to its end", all);
}

// Of those that are older than the newest 200 too, some are chosen to be compared.
async function chosen(page) {
  await page.goto(`${origin}/#/compare`);
  await page.getByRole("heading", { name: "Compare" }).waitFor(); // the list, which was there before, has such a button too
  await page.getByRole("button", { name: "Show more jobs" }).press("Enter");
  await page.locator("#pick-285").waitFor();
  same(await page.evaluate(() => document.activeElement.id), "pick-285", "compare: the keyboard is on the first job more that may be chosen");
  await page.getByRole("button", { name: "Show more jobs" }).press("Enter");
  await page.locator("#pick-1").check();
  await page.locator("#pick-485").check();
  await page.getByRole("button", { name: /^Compare/ }).click();
  await page.waitForURL(/ids=1(,|%2C)485$/);
}

// Where one is in the list: its rows, which link has the keyboard, and how far below the top of the window it is.
const whereInList = (page) => page.evaluate(() => {
  const at = document.activeElement;
  return JSON.stringify([document.querySelectorAll("table.jobs tbody tr").length, document.querySelector(".bulk .count")?.textContent, at.textContent, at.getAttribute("href"), Math.round(at.getBoundingClientRect().top)]);
});
async function isThere(page, want, name) {
  await until(name, async () => (await whereInList(page)) === want, 60).catch(() => {});
  same(await whereInList(page), want, name);
}

// Whoever asked for more than a page, opened a job and comes back is where they were.
async function cameBack(page) {
  await page.goto(`${origin}/#/?state=finished`);
  await page.reload();
  await page.locator("table.jobs tbody tr").nth(24).waitFor();
  const more = page.getByRole("button", { name: "Show more jobs" });
  await until("the end of the list", async () => { await page.mouse.wheel(0, 20000); return more.isVisible(); });
  const asked = [];
  page.on("request", (request) => /state=succeeded.*&after=/.test(request.url()) && asked.push(request.url()));
  await more.press("Enter");
  await until("more jobs", async () => await page.locator("table.jobs tbody tr").count() > 200);
  same(await page.evaluate(() => document.activeElement.getAttribute("href")), "#/jobs/285", "more: the keyboard is on the first job that it brought");
  same(asked.join(), "", "more: they come by one request, not page by page");
  same(await page.evaluate(() => location.hash), "#/?state=finished&shown=400", "more: how many there are stands in the address");
  await page.getByRole("checkbox", { name: "Select job 280", exact: true }).check();
  const link = page.locator('tr[data-job="271"] th a');
  await link.focus();
  await page.evaluate(() => scrollBy({ top: 137, behavior: "instant" }));
  await page.locator("table.jobs tbody tr").nth(249).waitFor(); // made as one scrolls there
  const before = await whereInList(page);
  await page.keyboard.press("Enter");
  await page.locator(".title .badge[data-state]:visible").waitFor();
  same(await page.evaluate(() => scrollY), 0, "job: begins at its top");
  copies(1, 3, { name: "'newest'" });
  await page.goBack();
  await isThere(page, before, "back: to the same rows, ticks and link, at the same height, though jobs have come meanwhile");
  await page.goForward();
  await page.locator(".title .badge[data-state]:visible").waitFor();
  await page.reload();
  await page.goBack();
  await isThere(page, before, "back: so it is after the page was loaded anew");
  await page.reload();
  await isThere(page, before, "reload: so it is");
  forget(/409.*jobs\/271\/log/); // a copy has no folder of its own
}

// Groups behind the first page of them are reached too.
async function grouped(page) {
  copies(1, 230, { name: "'group'", spec: "json_set(spec, '$.seed', nth)" });
  await page.goto(`${origin}/#/groups?by=seed&q=group`);
  await page.getByText("230 groups of 230 jobs, 200 shown").waitFor();
  const more = page.getByRole("button", { name: "Show more groups" });
  await more.press("Enter");
  await page.getByText("230 groups of 230 jobs", { exact: true }).waitFor();
  same(await page.evaluate(() => `${[...document.querySelectorAll("table.groups tbody tr")].indexOf(document.activeElement.closest("tr"))} ${location.hash}`), "200 #/groups?by=seed&q=group&shown=400",
    "groups: there are more, the keyboard is on the first of them, and the address has how many");
  same(await more.isVisible(), false, "groups: and then no more");
  await page.reload();
  await page.getByText("230 groups of 230 jobs", { exact: true }).waitFor();
  same(await page.locator("table.groups tbody tr").count(), 230, "groups: so it is after a reload");
  sql("delete from job where name = 'group'");
}

// Of a queue that is longer than a page, those that run are the oldest.
async function queued(page) {
  const id = await lastingJob({ ...JOB, name: "lasting" });
  copies(1, 1100, { name: "'held'", state: "'queued'", finished_at: "null", started_at: "null", held_at: "1", queued_at: "created_at", attempt: "0", submitted_by: "null" });
  await page.goto(`${origin}/#/`);
  await page.reload();
  await page.locator("[data-key=queued]:not([value=''])").waitFor();
  const words = page.locator(`tr[data-job="${id}"] td.progress .words`);
  same(await page.locator("[data-key=queued]").textContent(), "1,100", "tiles: all jobs of a long queue count");
  same(await page.locator("[data-key=running]").textContent(), "1", "tiles: and those that run before it");
  await page.getByRole("button", { name: "Running", exact: true }).click();
  await page.locator(`tr[data-job="${id}"]`).waitFor({ timeout: 60000 }).catch(() => {});
  same(await page.locator("table.jobs tbody tr").count(), 1, "list: which are found");
  ok(await words.evaluate((element) => element.scrollWidth <= element.clientWidth), "list: how far one of 100,000 steps is stays in its column", await words.textContent());
  sql("delete from job where name = 'held'");
}

// Sweeps that are older than a page of them are reached as jobs are.
async function sweeps(page) {
  const { id } = await api("/v1/sweeps", { method: "POST", body: JSON.stringify({ name: "many", base: JOB, parameters: { seed: [1, 2] }, metric: "loss" }) });
  await api(`/v1/sweeps/${id}/cancel`, { method: "POST" });
  await until("the sweep to end", async () => (await api(`/v1/sweeps/${id}`)).state === "cancelled");
  const columns = "name, state, document, train_images, eval_images, created_at, finished_at";
  sql(`insert into sweep (${columns}) select ${columns} from sweep, generate_series(2, 230)`);
  await page.goto(`${origin}/#/sweeps`);
  await page.getByText("200 newest sweeps, 0 running").waitFor();
  await page.getByRole("button", { name: "Show more sweeps" }).press("Enter");
  await page.getByText("230 sweeps, 0 running").waitFor();
  same(await page.evaluate(() => `${document.activeElement.getAttribute("href")} ${location.hash}`), "#/sweeps/30 #/sweeps?shown=400", "sweeps: there are more, the keyboard is on the first of them, and the address has how many");
  same(await page.getByRole("button", { name: "Show more sweeps" }).isVisible(), false, "sweeps: and then no more");
  await page.locator('tr[data-sweep="7"] th a').click();
  await page.getByRole("heading", { name: /many/ }).waitFor({ timeout: 60000 });
  await page.goBack();
  await page.locator('tr[data-sweep="7"] th a').waitFor();
  await until("the link", () => page.evaluate(() => document.activeElement.getAttribute("href") === "#/sweeps/7"), 60).catch(() => {});
  same(await page.evaluate(() => document.activeElement.getAttribute("href")), "#/sweeps/7", "sweeps: Back comes to the one that was opened");
}

await story(async ({ page }) => {
  const { id } = await submit({ ...JOB, name: "first", steps: 2 });
  await jobIn(id, "succeeded");
  copies(id, 24, { name: "'copy ' || nth" });
  await longNames(page, id);
  await compared(page);
  await failed(page);
  await byState(page);
  await made(page);
  await chosen(page);
  await cameBack(page);
  await grouped(page);
  await queued(page);
  await sweeps(page);
});
