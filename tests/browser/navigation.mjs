// The pages that the head names, the keys, and addresses of what does not exist.
// traind.conf: slots = 1
// traind.conf: node_check_seconds = 0

import { execFileSync } from "node:child_process";
import { request } from "node:http";
import { api, clean, forget, JOB, jobIn, lastingJob, origin, story, submit, until } from "./lib/checks.mjs";
import { ok, same } from "./lib/tap.mjs";

const [socketPath, , , state] = process.argv.slice(3);
const heading = (page, name) => page.getByRole("heading", { level: 1, name, exact: true });
const focused = (page) => page.evaluate(() => document.activeElement.id || document.activeElement.textContent);

// Nodes report over the socket, where the user counts.
function report(node, gflops) {
  return new Promise((resolve, reject) => {
    const out = request({ socketPath, path: `/v1/nodes/${node}/report`, method: "POST" }, (answer) => answer.resume().on("end", () => resolve(answer.statusCode)));
    out.on("error", reject).end(JSON.stringify({ kind: "CPU X", cores: 4, phase: "prolog", outcome: "fine", t: Date.now() / 1000, gflops, memory_gb_per_sec: 20 }));
  });
}

async function head(page) {
  await page.goto(`${origin}/`);
  const nav = page.getByRole("navigation", { name: "Pages" });
  same((await nav.getByRole("link").allTextContents()).join(), "Jobs,Submit,Compare,Sweeps,Nodes,Users", "head: names the pages");
  for (const [link, title] of [["Submit", "New job"], ["Compare", "Compare"], ["Sweeps", "Sweeps"], ["Nodes", "Nodes"], ["Users", "Users"], ["Jobs", "Jobs"]]) {
    await nav.getByRole("link", { name: link, exact: true }).press("Enter");
    await heading(page, title).waitFor();
    same(await nav.locator("[aria-current=page]").textContent(), link, `head: ${link} leads to its page, and is marked there`);
  }
}

async function nodes(page) {
  for (const [name, gflops] of [["n1", 100], ["n2", 101], ["n3", 102], ["n4", 80]]) same(await report(name, gflops), 200, `nodes: ${name} reports`);
  await page.goto(`${origin}/#/nodes`);
  const { nodes: all, total, slow, slots, slots_used: used } = await api("/v1/nodes");
  ok(slow === 1, "nodes: one of them is slow");
  await page.locator("tr[data-node]").nth(total - 1).waitFor();
  same(await page.locator(".summary").textContent(), `${total} nodes, 1 slow`, "nodes: their number, and that of the slow ones");
  await page.getByText(`${used} of ${slots} slots in use.`).waitFor();
  const rows = await page.locator("tr[data-node]").evaluateAll((list) => list.map((row) => [row.dataset.node, row.querySelector(".verdict").textContent, row.querySelectorAll("data")[1].value]));
  same(JSON.stringify(rows), JSON.stringify(all.map((node) => [node.name, { fine: "OK", unknown: "not checked" }[node.verdict] ?? node.verdict, String(node.gflops ?? "")])), "nodes: names, checks and speeds are the API's");
  await page.locator('tr[data-node="n4"] .reason', { hasText: "slower" }).waitFor();
  ok(true, "nodes: with the reason of a slow one");
  const busy = all.find((node) => node.jobs.length);
  if (busy) same(await page.locator(`tr[data-node="${busy.name}"] a`).first().getAttribute("href"), `#/jobs/${busy.jobs[0]}`, "nodes: links to the jobs there");
  ok(Boolean(busy), "nodes: one of them has a job");
  await clean(page, "nodes");
  await page.goto(`${origin}/#/users`);
  await page.getByText("No per-user limits are set. Usage decays with a half-life of 7 days. It does not affect queue order.").waitFor();
  await clean(page, "users");
}

async function keys(page) {
  await page.goto(`${origin}/#/`);
  await page.locator("tr[data-job]").first().waitFor();
  const search = page.getByRole("searchbox");
  await page.keyboard.press("/");
  await page.keyboard.type("nothing");
  await page.getByText("No jobs match.").waitFor();
  await page.keyboard.press("Escape");
  await page.locator("tr[data-job]").first().waitFor();
  same(await search.inputValue(), "", "keys: Escape clears the search");
  await page.keyboard.press("j");
  same(await search.inputValue(), "", "keys: and leaves it");
  same(await focused(page), "lasting", "keys: j goes to the first job");
  await page.keyboard.press("?");
  const dialog = page.getByRole("dialog", { name: "Keyboard shortcuts" });
  await dialog.waitFor();
  const listed = (await dialog.locator("kbd").allTextContents()).join();
  ok(["/", "Esc", "j", "k", "?"].every((key) => listed.split(",").includes(key)), "keys: ? lists them", listed);
  await clean(page, "list of keys");
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  same(await focused(page), "lasting", "keys: after it the keyboard is where it was");
  await page.keyboard.press("/");
  await page.keyboard.type("?");
  same(await search.inputValue(), "?", "keys: in the search, ? is a letter");
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Keyboard shortcuts" }).press("Enter");
  await dialog.getByRole("button", { name: "Close" }).press("Enter");
  await dialog.waitFor({ state: "detached" });
  ok(true, "keys: a button in the foot shows them too");
  await page.goto(`${origin}/#/submit`);
  await page.locator("#find-key").waitFor({ state: "attached" });
}

// What does not exist is no fault of the connection.
async function lost(page) {
  const live = async (name) => {
    await until(`the light of ${name}`, async () => (await page.locator(".connection").getAttribute("data-state")) === "live", 60).catch(() => {});
    same(await page.locator(".connection").textContent(), "live", `${name}: the connection is live`);
  };
  for (const [place, title] of [["#/jobs/999", "There is no job 999"], ["#/sweeps/999", "There is no sweep 999"], ["#/submit?clone=999", "There is no job 999 to clone"], ["#/nothing", "Page not found"]]) {
    await page.goto("about:blank");
    await page.goto(`${origin}/${place}`);
    await page.getByRole("heading", { name: title }).waitFor();
    await live(place);
    ok(await page.locator("main").getByRole("link").count() > 0, `${place}: a link leads on`);
    await clean(page, place);
  }
  await page.goto(`${origin}/#/jobs/999`);
  await page.getByRole("heading", { name: "There is no job 999" }).waitFor(); // the page before it has such a link too
  await page.getByRole("link", { name: "All jobs" }).press("Enter");
  await heading(page, "Jobs").waitFor();
  ok(true, "no job: a link leads to all jobs");
  forget(/status of 404/);
}

// A job that has lost a node, which its page says only as long as it runs.
async function fewerNodes(page, id, ended) {
  execFileSync("sqlite3", ["-cmd", ".timeout 20000", `${state}/traind.db`, `update job set wanted = '{"cluster": {"nodes": 3}}' where id in (${id}, ${ended})`]);
  await page.goto(`${origin}/#/jobs/${id}`);
  await page.getByText(/^1 of 3 nodes: grows when more of its hosts answer and are free$/).waitFor();
  ok(true, "fewer nodes: the job's page has both numbers");
  same((await api(`/v1/jobs/${id}`)).grows_to, 3, "fewer nodes: as the API");
  same((await api(`/v1/jobs/${ended}`)).grows_to, undefined, "fewer nodes: a job that has ended grows no more");
}

await story(async ({ page }) => {
  const { id } = await submit({ ...JOB, name: "first", steps: 2 });
  await jobIn(id, "succeeded");
  const lasting = await lastingJob({ ...JOB, name: "lasting" });
  await head(page);
  await nodes(page);
  await keys(page);
  await lost(page);
  await fewerNodes(page, lasting, id);
});
