// The dashboard of a daemon that wants tokens and is killed and started again while one looks.
// traind.conf: require_token = yes

import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { request } from "node:http";
import { openBrowser } from "./lib/browser.mjs";
import { accessible, clean, errors, foreign, JOB, listen, origin, until } from "./lib/checks.mjs";
import { done, ok, same } from "./lib/tap.mjs";

const [socketPath, pid, traind, state, config] = process.argv.slice(3);

// The API over the unix socket.
function api(path, document, method = document ? "POST" : "GET") {
  return new Promise((resolve, reject) => {
    const out = request({ socketPath, path, method }, (answer) => {
      let text = "";
      answer.on("data", (part) => { text += part; }).on("end", () => resolve(JSON.parse(text)));
    });
    out.on("error", reject).end(document && JSON.stringify(document));
  });
}
const job = (id) => api(`/v1/jobs/${id}`);

const browser = await openBrowser();
const { page } = browser;
let second = null;
try {
  listen(page);
  const streams = [];
  page.on("request", (sent) => sent.url().endsWith("/v1/events") && streams.push(sent.headers()));
  const { token } = await api("/v1/tokens", { name: "browser", role: "submit" });

  await page.goto(origin + "/");
  const dialog = page.locator("dialog#token-ask");
  await dialog.waitFor();
  ok(true, "a daemon that wants a token: the page asks for it");
  same(await dialog.locator("#token-help").textContent(), "Paste an access token. On the server: trainctl token create NAME; quickstart stored one in _state/token.", "and says where one is");
  same((await page.locator("main").getByText(/empty|No .* yet|Loading/).evaluateAll((all) => all.filter((e) => e.checkVisibility()))).length, 0, "behind the question there is nothing that is not known");
  await clean(page, "token dialog");
  let refused = 0;
  page.on("response", (answer) => { refused += answer.status() === 401; });
  await page.keyboard.press("Escape");
  await until("the page to look again", () => refused >= 2);
  same(await page.locator("dialog").count(), 0, "closed, it does not come back by itself");
  same(await page.locator(".connection").textContent(), "not signed in", "the head says why there is nothing");
  for (const width of [390, 1240]) {
    await page.setViewportSize({ width, height: 900 });
    same(await page.locator("main :visible").count(), 0, `and the page shows nothing but a button to sign in, at ${width} px`);
  }
  same(await page.evaluate(() => document.activeElement.textContent), "Sign in", "which has the keyboard");
  await clean(page, "signed out");
  await page.keyboard.press("Enter");
  await dialog.waitFor();
  await dialog.getByRole("button", { name: "Cancel" }).press("Enter");
  await dialog.waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Sign in" }).click();
  await dialog.waitFor();
  ok(true, "it asks again when the person wants to");
  // The page's next look waits for the same dialog, and its answer is there before the page, loaded again, is.
  const once = refused;
  await until("the page to look again", () => refused > once);
  await page.route(`${origin}/`, async (route) => {
    await until("the refusal of the token", () => refused > once + 1, 10).catch(() => {});
    await route.continue();
  }, { times: 1 });
  const loaded = page.waitForEvent("load");
  await dialog.getByLabel("Access token").fill("traind-1-wrong");
  await page.keyboard.press("Enter");
  await loaded;
  await until("the dialog to say what is wrong", async () => /unknown or was revoked/.test(await dialog.getByRole("alert").textContent().catch(() => "")));
  same(await page.evaluate(() => sessionStorage.getItem("traind-token")), null, "a wrong token is not kept");
  await dialog.getByLabel("Access token").fill(` ${origin}/#token=${token}/jobs/3\n`);
  await dialog.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("No jobs yet").waitFor();
  same(await page.evaluate(() => sessionStorage.getItem("traind-token")), token, "a link that is pasted brings its token");
  same(await page.locator("#sign-in").count(), 0, "the page is there again");
  same(await page.locator("dialog").count(), 0, "with a right one the page goes on, and the dialog is gone");
  await until("the stream", () => streams.some((headers) => headers.authorization === `Bearer ${token}`));
  ok(true, "the stream of events carries the token");
  ok(!page.url().includes("traind-"), "the address does not");

  await page.evaluate(() => sessionStorage.clear());
  await page.goto("about:blank");
  await page.goto(`${origin}/#token=${token}/submit`);
  await page.locator("main h1").waitFor();
  same(new URL(page.url()).hash, "#/submit", "a link brings the token: the page it names is shown, and the token leaves the address");
  same(await page.evaluate(() => sessionStorage.getItem("traind-token")), token, "it is kept in the tab");
  same(await page.locator("dialog").count(), 0, "and nobody is asked");
  await page.evaluate(() => sessionStorage.clear());
  await page.evaluate((hash) => { location.hash = hash; }, `#token=${token}`);
  await page.getByText("No jobs yet").waitFor();
  ok(!page.url().includes("traind-"), "so does a link that is followed in an open tab", page.url());

  // A link with another token: whose it is would see as their own what the person does next.
  const { token: theirs } = await api("/v1/tokens", { name: "theirs", role: "submit" });
  const follow = (words) => page.evaluate((hash) => { location.hash = hash; }, `#token=${words}`);
  const kept = () => page.evaluate(() => sessionStorage.getItem("traind-token"));
  const question = page.getByRole("dialog", { name: "Use the link's token?" });
  for (const colorScheme of ["dark", "light"]) {
    await page.emulateMedia({ colorScheme });
    await follow(`${theirs}/submit`);
    await question.waitFor();
    ok(!page.url().includes("traind-"), `a link with another token: the address loses it (${colorScheme})`);
    await accessible(page, `another token (${colorScheme})`);
    await page.keyboard.press("Escape");
    await question.waitFor({ state: "detached" });
    same(await kept(), token, "refused, the tab keeps its own");
    same(new URL(page.url()).hash, "#/submit", "on the page that the link names");
  }
  await page.goto("about:blank");
  await page.goto(`${origin}/#token=${theirs}`);
  await question.waitFor();
  same(await kept(), token, "a page that is opened by such a link asks too");
  await page.evaluate(() => { window.before = true; });
  await question.getByRole("button", { name: "Keep mine" }).focus();
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => !window.before && document.querySelector("main h1"));
  same(await kept(), theirs, "by the keyboard the person takes the link's, and the page is loaded with it");
  await page.evaluate(() => { window.before = true; });
  await follow(token);
  await question.getByRole("button", { name: "Use the link's token" }).click();
  await page.waitForFunction(() => !window.before && document.querySelector("main h1"));
  same(await kept(), token, "or by a click");
  await page.getByText("No jobs yet").waitFor();

  const submitted = await fetch(`${origin}/v1/jobs`, { method: "POST", headers: { Authorization: `Bearer ${token}` }, body: JSON.stringify({ ...JOB, name: "watched", steps: 100000 }) });
  const { id } = await submitted.json();
  await page.locator("tr[data-job]").getByRole("link", { name: "watched" }).waitFor();
  same(await page.locator("td.who span").evaluate((who) => [who.textContent, who.title].join()), "browser,token:browser", "who submitted it is the token's name");
  await page.reload();
  await page.locator("tr[data-job]").getByRole("link", { name: "watched" }).click();
  await page.locator(".title .badge[data-state=running]").waitFor();
  same(await page.locator("dialog").count(), 0, "after a reload it is not asked again");

  const shown = async () => Number((/· ([\d,]+) of/.exec(await page.locator(".meter .words").textContent()) ?? ["", "0"])[1].replaceAll(",", ""));
  await until("the first steps on the page", async () => (await shown()) > 3);
  const before = await shown();
  await until("more of them", async () => (await shown()) > before + 5);
  ok(true, "a running job's steps move by themselves");
  const earlier = (await job(id)).step;
  await until("the API's step on the page", async () => (await shown()) >= earlier);
  const step = await shown();
  ok(step <= (await job(id)).step, "and are the API's", `page ${step}`);

  const waiting = page.waitForEvent("download");
  await page.getByRole("link", { name: "CSV", exact: true }).click();
  const lines = readFileSync(await (await waiting).path(), "utf8").split("\r\n");
  ok(lines[0].startsWith("step,epoch,t,loss"), "files come with the token too", lines[0]);

  const asked = streams.length;
  process.kill(Number(pid), "SIGKILL");
  await page.locator(".connection[data-state=lost]").waitFor();
  ok(await page.getByRole("heading", { name: "watched" }).isVisible(), "the daemon is gone: it says so, and what was known stays");
  second = spawn(traind, ["--state", state, "--listen", new URL(origin).host, "--config", config], { stdio: "ignore" });
  await page.locator(".connection[data-state=live]").waitFor();
  const then = await shown();
  await until("the job to go on", async () => (await shown()) > then + 5);
  ok(true, "it is back: the page goes on by itself, and so does the training");
  await until("the stream again", () => streams.length > asked && streams.at(-1)["last-event-id"]);
  ok(/^\d+$/.test(streams.at(-1)["last-event-id"]), "the stream goes on behind the last event that came");

  await page.getByRole("button", { name: "Cancel…" }).click();
  await page.getByRole("button", { name: "Cancel the job" }).click();
  await page.locator(".title .badge[data-state=cancelled]").waitFor();
  same((await job(id)).state, "cancelled", "a token that may submit may cancel");
  await page.locator(".events tbody tr", { hasText: "cancelled" }).first().waitFor();
  ok(true, "its end is among the events");
  await page.goto("about:blank");

  const own = errors.filter((text) => !/status of 401|ERR_CONNECTION|ERR_INCOMPLETE|ERR_EMPTY/.test(text)); // these the browser logs itself
  same(own.join("\n"), "", "no other errors on the console");
  same(foreign.join("\n"), "", "no request to any other address");
} catch (error) {
  ok(false, "the story goes to its end", error.stack);
} finally {
  await browser.close();
  for (const { id } of (await api("/v1/jobs?state=queued,starting,running,evaluating").catch(() => ({ jobs: [] }))).jobs ?? []) {
    await api(`/v1/jobs/${id}/cancel`, undefined, "POST").catch(() => {});
    await until("the job to end", async () => (await job(id)).finished_at).catch(() => {});
  }
  second?.kill("SIGTERM");
}
done();
