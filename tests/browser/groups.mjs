// Jobs in groups (#/groups), and the shares of users (#/users).
// traind.conf: slots = 2
// traind.conf: max_slots_per_user = 2
// traind.conf: fair_share_weight = 10

import { readFileSync } from "node:fs";
import { request } from "node:http";
import { openBrowser } from "./lib/browser.mjs";
import { accessible, api, forget, jobIn, JOB, listen, origin, sideways, story, submit, until } from "./lib/checks.mjs";
import { ok, same } from "./lib/tap.mjs";

const text = JSON.stringify;
const SMALL = { ...JOB, steps: 2 };

// As the user of this process, whose name the unix socket tells.
const submitAsUser = (document) => postAsUser("/v1/jobs", document);
function postAsUser(path, document) {
  return new Promise((resolve, reject) => {
    const asked = request({ socketPath: process.argv[3], path, method: "POST", headers: { "Content-Type": "application/json" } }, (answer) => {
      let body = "";
      answer.on("data", (part) => { body += part; }).on("end", () => resolve(JSON.parse(body)));
    });
    asked.on("error", reject);
    asked.end(text(document));
  });
}

const shown = (page) => page.locator("tr[data-group]").evaluateAll((rows) => rows.map((row) => [JSON.parse(row.dataset.group), ...[...row.querySelectorAll("data")].map((d) => d.value)]));
const wanted = ({ groups }) => groups.map((g) => {
  const of = (...states) => states.reduce((sum, state) => sum + (g.states[state] ?? 0), 0);
  return [g.value, ...[g.jobs, of("queued", "starting", "running", "evaluating"), of("succeeded"), of("failed"), of("cancelled"), g.best?.top1 ?? "", g.mean_ttt_seconds ?? "", g.images].map(String)];
});
// More nodes than are shown at first.
async function nodesPage(page) {
  for (let n = 1; n <= 60; n++)
    await postAsUser(`/v1/nodes/n${n}/report`, { kind: "CPU X", cores: 4, phase: "prolog", outcome: "fine", t: Date.now() / 1000, gflops: n === 60 ? 80 : 100 });
  const { total, slots } = await api("/v1/nodes?limit=1");
  await page.goto(`${origin}/#/`);
  await page.locator(".nodes header", { hasText: `${total}, 1 slow` }).waitFor();
  await page.locator('[data-key="slots"]', { hasText: `of ${slots}` }).waitFor();
  same(await page.locator("tr[data-node]").count(), 50, "nodes: the first of many, with what all are together");
  await page.getByRole("button", { name: "Show more nodes" }).click();
  await until("all nodes", async () => (await page.locator("tr[data-node]").count()) === total);
  same(text(await page.locator("tr[data-node]").evaluateAll((rows) => rows.map((row) => row.dataset.node))), text((await api("/v1/nodes?limit=1000")).nodes.map((n) => n.name)),
    "nodes: all of them, in order");
  ok(!(await page.getByRole("button", { name: "Show more nodes" }).isVisible()), "nodes: no more than there are");
  ok(await page.evaluate(() => document.activeElement.closest("tr")?.rowIndex === 51), "nodes: the first new one has the focus");
  await accessible(page, "many nodes");
}

async function groupsMatch(page, query, words) {
  const want = text(wanted(await api(`/v1/jobs?${query}&limit=200`)));
  await until("the groups", async () => text(await shown(page)) === want).catch(() => {});
  same(text(await shown(page)), want, words);
}

async function grouped(page, ids) {
  await page.goto(`${origin}/#/?tag=sweepy`);
  await page.locator(`tr[data-job="${ids[0]}"] th a:not(.chip)`).click();
  await page.locator(".crumbs a").click();
  await page.locator(`tr[data-job="${ids[0]}"]`).waitFor();
  same(await page.evaluate(() => location.hash), "#/?tag=sweepy", "job: its crumb leads to the list with the filter it was left with");
  await page.getByRole("link", { name: "Groups", exact: true }).click();
  await page.getByRole("heading", { name: "Groups of jobs" }).waitFor();
  same((await page.locator("table.groups thead th").allTextContents()).slice(3, 6).join(), "Succeeded,Failed,Cancelled", "groups: failed and cancelled jobs are counted apart");
  same(await page.evaluate(() => location.hash), "#/groups?tag=sweepy", "groups: reached from the list, with its filter");
  await groupsMatch(page, "group=tag&tag=sweepy", "groups: by tag, as the API has them");
  await page.goto(`${origin}/#/groups`);
  await groupsMatch(page, "group=tag", "groups: of all jobs");
  ok(await page.getByRole("rowheader", { name: "without tags" }).isVisible(), "groups: those without tags are one");
  await accessible(page, "groups");

  const by = page.getByLabel("Group by");
  await by.fill("optimizer.name");
  await by.press("Enter");
  await groupsMatch(page, "group=optimizer.name", "groups: by a key of the document");
  await page.getByRole("button", { name: "Best", exact: true }).click();
  await groupsMatch(page, "group=optimizer.name&sort=best_top1", "groups: the best first");
  const row = page.locator("tr[data-group]", { hasText: "lars" });
  const button = row.getByRole("button", { name: "lars" });
  await button.focus();
  await page.keyboard.press("Enter");
  const list = page.locator(".group-jobs");
  await list.waitFor();
  const { jobs } = await api("/v1/jobs?where=optimizer.name=lars&sort=best_top1");
  same(text(await list.locator("li a").evaluateAll((links) => links.map((a) => a.getAttribute("href")))), text(jobs.map((job) => `#/jobs/${job.id}`)), "groups: a value shows its jobs, the best first");
  same(await list.getByRole("link", { name: `Compare ${jobs.length} jobs` }).getAttribute("href"), `#/compare?ids=${encodeURIComponent(jobs.map((job) => job.id).join(","))}`, "groups: which are a click from being compared");
  ok(await row.getByRole("button").evaluate((element) => element === document.activeElement), "groups: the keyboard stays where it was");
  await accessible(page, "an open group");
  const first = list.locator("li a").first();
  await first.press("Enter");
  await page.locator(".title .badge[data-state]:visible").waitFor();
  await page.goBack();
  await list.waitFor();
  const isAt = () => first.evaluate((element) => element === document.activeElement);
  await until("the keyboard", isAt, 60).catch(() => {});
  ok(await isAt(), "groups: back, the group is open and the keyboard on the job that was opened");

  const link = page.url();
  await page.goto("about:blank");
  await page.goto(link);
  await page.locator(".group-jobs").waitFor();
  same(await by.inputValue(), "optimizer.name", "groups: the address is a permalink", link);
  await groupsMatch(page, "group=optimizer.name&sort=best_top1", "groups: with the order");
  const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Groups as csv" }).click()]);
  ok(readFileSync(await file.path(), "utf8").startsWith("optimizer.name,jobs,active,succeeded,failed,cancelled,best_top1,"), "groups: as CSV");

  await by.fill("optimizer.nam");
  await by.press("Enter");
  await page.getByRole("alert").filter({ hasText: "did you mean optimizer.name?" }).waitFor();
  ok(true, "groups: a key that is none is told, with the nearest");
  same(await by.getAttribute("aria-invalid"), "true", "groups: and marked");
  await accessible(page, "a wrong key");
  await by.fill("model.arch");
  await by.press("Enter");
  await groupsMatch(page, "group=model.arch&sort=best_top1", "groups: and a right one shows them again");
  forget(/status of 400/);
  await page.getByRole("searchbox").fill("nothing like it");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "No jobs match." }).waitFor();
  ok(true, "groups: where no job matches it says so");
  same(await page.getByRole("link", { name: "List", exact: true }).getAttribute("href"), "#/?q=nothing+like+it", "groups: the list is that of the same words");
}

async function users(page) {
  await page.goto(`${origin}/#/`);
  await page.getByRole("link", { name: "Users" }).click();
  await page.getByRole("heading", { name: "Users", exact: true }).waitFor();
  await page.locator("tr[data-user]").nth(1).waitFor();
  const shares = async () => Promise.all([page.locator("tr[data-user]").evaluateAll((rows) => rows.map((row) => [row.dataset.user, ...[...row.querySelectorAll("data")].map((d) => d.value)])), api("/v1/usage")]);
  await until("the shares of now", async () => { // they are of the minute
    const [rows, usage] = await shares();
    return text(rows) === text([...usage.users].sort((a, b) => b.share - a.share || b.queued - a.queued).map((u) => [u.user ?? "", u.share, u.slot_hours, u.running, u.slots, u.queued].map(String)));
  }).then(() => ok(true, "users: their use and shares are the API's"), async () => same(text(...(await shares())), "", "users: their use and shares are the API's"));
  await page.getByText("Limits per user: 2 slots. Usage decays with a half-life of 7 days. A user with all of the usage loses 10 priority points.").waitFor();
  ok(true, "users: with what one user may");
  const link = page.locator("tr[data-user] a").first(), user = await link.textContent();
  await link.focus();
  const hours = await page.locator(`tr[data-user="${user}"] data`).nth(1).getAttribute("value");
  await jobIn((await submitAsUser({ ...SMALL, name: "one more" })).id, "succeeded");
  await until("its use", async () => await page.locator(`tr[data-user="${user}"] data`).nth(1).getAttribute("value") !== hours);
  same(await page.evaluate(() => document.activeElement.textContent), user, "users: it is the use of now while the keyboard is on a link, where it stays");
  ok(await page.locator("tr[data-user='']").getByText("without a token").isVisible(), "users: those who were not named are one");
  await accessible(page, "users");
  await page.emulateMedia({ media: "print" });
  same(await page.locator("header.bar, footer, button, .button").evaluateAll((those) => those.filter((e) => e.checkVisibility()).length), 0, "users: on paper there is nothing to press");
  await page.emulateMedia({ media: null });
}

await story(async ({ page }) => {
  const ids = [];
  for (const [name, tags, optimizer] of [["one", ["sweepy", "a/b"], "sgd"], ["two", ["sweepy"], "lars"], ["three", [], "lars"]])
    ids.push((await submit({ ...SMALL, name, tags, optimizer: { name: optimizer } })).id);
  ids.push((await submitAsUser({ ...SMALL, name: "mine" })).id);
  for (const id of ids) await jobIn(id, "succeeded");
  const { id: stopped } = await submit({ ...SMALL, name: "stopped", steps: 100000 });
  await api(`/v1/jobs/${stopped}/cancel`, { method: "POST" });
  await jobIn(stopped, "cancelled");
  await grouped(page, ids);
  await users(page);
  await nodesPage(page);
  for (const [name, options] of [["dark", { colorScheme: "dark" }], ["phone", { viewport: { width: 360, height: 740 }, colorScheme: "light" }]]) {
    const other = await openBrowser(options);
    listen(other.page);
    for (const [path, there] of [["/#/groups?by=optimizer.name&open=%22lars%22", ".group-jobs"], ["/#/users", "tr[data-user]"]]) {
      await other.page.goto(origin + path);
      await other.page.locator(there).first().waitFor();
      ok(await sideways(other.page) <= 0, `${name}: ${path} does not scroll sideways`);
      await accessible(other.page, `${name}: ${path}`);
    }
    await other.close();
  }
}, { acceptDownloads: true });
