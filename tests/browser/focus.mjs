// Where the keyboard is after a dialog, after what it was on went, and on a new page; and two tabs at once.
// traind.conf: slots = 1
// traind.conf: cancel_grace_seconds = 600

import { api, forget, JOB, jobIn, lastingJob, origin, story, submit, until } from "./lib/checks.mjs";
import { same } from "./lib/tap.mjs";

const button = (page, name) => page.getByRole("button", { name, exact: true });
async function press(page, name) {
  await button(page, name).focus();
  await page.keyboard.press("Enter");
}

// What has the keyboard, in its words.
const at = (page) => page.evaluate(() => {
  const element = document.activeElement;
  return element === document.body || element.id === "main" ? "nothing" : element.getAttribute("aria-label") ?? element.textContent.trim();
});
async function isAt(page, want, name) {
  await until(name, async () => (await at(page)) === want, 60).catch(() => {});
  same(await at(page), want, name);
}
const open = async (page, place, heading) => {
  await page.evaluate((hash) => { location.hash = hash; }, place);
  await page.getByRole("heading", { name: heading, exact: true }).waitFor();
};

async function buttons(page, id) {
  await open(page, `#/jobs/${id}`, "waiting");
  await press(page, "Hold");
  await button(page, "Release").waitFor();
  await isAt(page, "Release", "hold: the keyboard is on its opposite");
  await page.keyboard.press("Enter");
  await button(page, "Hold").waitFor();
  await isAt(page, "Hold", "release: and back");
  await press(page, "Priority…");
  await page.getByLabel("Priority", { exact: true }).fill("7");
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  same((await api(`/v1/jobs/${id}`)).priority, 7, "dialog: Enter in its field says yes");
  await isAt(page, "Priority…", "dialog: the keyboard is where it was");
  await press(page, "Edit name, tags and note…");
  await page.getByLabel("Tags", { exact: true }).fill("wrong+tag");
  await press(page, "Save");
  await page.getByRole("alert").filter({ hasText: "tag" }).waitFor();
  await isAt(page, "Save", "dialog: after a refusal the keyboard is still in it");
  await page.keyboard.press("Escape");
  await cancelled(page);
  await isAt(page, "Delete…", "cancelled: the keyboard is on the next button");
}

// The page shows that the job is cancelled before the dialog has its answer, and closes.
async function cancelled(page) {
  const shown = page.locator(".title .badge[data-state=cancelled]");
  const answerThen = async (route) => {
    const answer = await route.fetch();
    await shown.waitFor();
    await route.fulfill({ response: answer });
  };
  await page.route("**/cancel", answerThen);
  await press(page, "Cancel…");
  await press(page, "Cancel the job");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.unroute("**/cancel", answerThen);
}

// Another tab removes what this one asks about; and a dialog goes with its page.
async function dialogs(page, id, running) {
  await press(page, "Delete…");
  await api(`/v1/jobs/${id}`, { method: "DELETE" });
  await page.getByRole("heading", { name: `There is no job ${id}` }).waitFor();
  await press(page, "Delete the job");
  await page.getByRole("alert").filter({ hasText: `there is no job ${id}` }).waitFor();
  await page.keyboard.press("Escape");
  await isAt(page, "waiting", "removed elsewhere: the keyboard is on the page's heading");
  await open(page, "#/", "Jobs");
  await open(page, `#/jobs/${running}`, "lasting");
  await press(page, "Cancel…");
  await page.goBack();
  await page.getByRole("heading", { name: "Jobs", exact: true }).waitFor();
  await page.getByRole("dialog").waitFor({ state: "detached", timeout: 60000 }).catch(() => {});
  same(await page.getByRole("dialog").count(), 0, "back: the question goes with its page");
  await isAt(page, "Jobs", "back: the keyboard is on the new heading");
}

async function pages(page, id) {
  await open(page, `#/jobs/${id}`, "first");
  await page.getByRole("link", { name: "Clone with changes" }).press("Enter");
  await page.locator("#job-json").waitFor();
  await isAt(page, `Clone of job ${id}`, "submit: the keyboard is on the heading once the form is there");
  await page.getByRole("link", { name: "Sweeps", exact: true }).press("Enter");
  await page.getByRole("link", { name: "New sweep" }).first().press("Enter");
  await page.locator("#sweep-json").waitFor();
  await isAt(page, "New sweep", "new sweep: so it is there");
}

// One goes on while the answer is on its way: it does not call one back.
async function late(page) {
  await open(page, "#/submit", "New job");
  const editor = page.locator("#job-json");
  await editor.fill(JSON.stringify({ ...JOB, name: "late", steps: 2 }));
  let answer;
  const held = new Promise((resolve) => { answer = resolve; });
  await page.route("**/v1/jobs", async (route) => {
    if (route.request().method() !== "POST") return route.fallback();
    const response = await route.fetch();
    await held;
    return route.fulfill({ response });
  });
  await button(page, "Submit the job").click();
  await button(page, "Submitting…").waitFor();
  await open(page, "#/users", "Users");
  const done = page.waitForResponse((response) => response.request().method() === "POST" && response.url().endsWith("/v1/jobs"));
  answer();
  const { id } = await (await done).json();
  await page.unroute("**/v1/jobs");
  await until("the draft to be gone", () => page.evaluate(() => sessionStorage.getItem("traind-draft") === null));
  same(await page.evaluate(() => location.hash), "#/users", "submit: whoever has gone on is not called back");
  await api(`/v1/jobs/${id}/cancel`, { method: "POST" });
}

async function lists(page, running) {
  await open(page, "#/?tag=aa,bb", "Jobs");
  await press(page, "Also show jobs without the tag aa");
  await isAt(page, "Also show jobs without the tag bb", "list: a tag that goes leaves the keyboard on the next");
  const { id } = await submit({ ...JOB, name: "second", steps: 3 });
  await open(page, "#/", "Jobs");
  await page.locator(".queue a", { hasText: "second" }).focus();
  await submit({ ...JOB, name: "third", steps: 3 });
  await page.locator(".queue a", { hasText: "third" }).waitFor();
  await isAt(page, "second", "queue: the keyboard stays on its job");
  await page.locator(`tr[data-job="${id}"] th a`).focus();
  await api(`/v1/jobs/${id}/cancel`, { method: "POST" });
  await jobIn(id, "cancelled");
  await api(`/v1/jobs/${id}`, { method: "DELETE" });
  await page.locator(`tr[data-job="${id}"]`).waitFor({ state: "detached" });
  await isAt(page, "late", "list: a row that goes leaves it on the next one's link");
  await open(page, `#/jobs/${running}`, "lasting");
  const newest = page.locator(".checkpoints a").first();
  const step = await newest.getAttribute("aria-label");
  await newest.focus();
  await until("another checkpoint", async () => (await newest.getAttribute("aria-label")) !== step);
  await isAt(page, step, "checkpoints: the keyboard stays on its step");
  // What a person has left on purpose is not given back.
  await page.locator("h2", { hasText: "Checkpoints" }).click();
  const now = await newest.getAttribute("aria-label");
  await until("one more", async () => (await newest.getAttribute("aria-label")) !== now);
  same(await at(page), "nothing", "checkpoints: and is nowhere for one who has clicked beside it");
}

async function save(page, name) {
  const menu = page.locator("details.saved");
  if (!await menu.evaluate((details) => details.open)) await menu.locator("summary").press("Enter");
  await press(page, "Save this view…");
  await page.getByLabel("Name", { exact: true }).fill(name);
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor({ state: "detached" });
}

// Views are the browser's, for all its tabs.
async function views(page, context) {
  const names = () => page.locator(".views li a").allTextContents().then((all) => all.join());
  await open(page, "#/", "Jobs");
  await save(page, "one");
  await save(page, "two");
  const other = await context.newPage();
  await other.goto(origin + "/");
  await save(other, "three");
  await until("the other tab's view", async () => (await names()) === "one,two,three", 60).catch(() => {});
  same(await names(), "one,two,three", "views: one that another tab saves is here too");
  await other.close();
  await press(page, "Remove the view two");
  await isAt(page, "Remove the view three", "views: the keyboard is on the next");
  same(await page.evaluate(() => JSON.parse(localStorage.getItem("traind views")).map(([name]) => name).join()), "one,three", "views: to forget one keeps the others");
  await page.keyboard.press("Escape");
  await isAt(page, "Views", "views: Escape closes them");
}

// A page that is refused what it shows says why, and not that nobody answers; later it is there by itself.
async function refused(page, id) {
  const refuse = (route) => (route.request().url().endsWith("/v1/events") ? route.fallback() : route.fulfill({ status: 503, json: { detail: "busy with a backup" } }));
  for (const [place, there] of [["#/", "tr[data-job]"], [`#/jobs/${id}`, ".title .badge:visible"], ["#/users", "table.users tbody tr"], ["#/sweeps", ".notice a[href='#/sweeps/new']"], ["#/compare", "table.pick tbody tr"]]) {
    await page.goto("about:blank");
    await page.route("**/v1/**", refuse);
    await page.goto(`${origin}/${place}`);
    const words = page.locator("main .notice:visible h2").first();
    await until("the refusal", async () => (await words.textContent()) === "busy with a backup", 60).catch(() => {});
    same(await words.textContent(), "busy with a backup", `refused: ${place} says why`);
    await page.unroute("**/v1/**", refuse);
    await page.locator(there).first().waitFor();
  }
}

await story(async ({ page, context }) => {
  const { id: first } = await submit({ ...JOB, name: "first", steps: 2, tags: ["aa", "bb"] });
  await jobIn(first, "succeeded");
  const running = await lastingJob({ ...JOB, name: "lasting", checkpoint: { every_epochs: 0, every_steps: 5 } });
  const { id: waiting } = await submit({ ...JOB, name: "waiting", steps: 2 });
  await page.goto(origin + "/");
  await page.locator("tr[data-job]").nth(2).waitFor();
  await buttons(page, waiting);
  await dialogs(page, waiting, running);
  await pages(page, first);
  await late(page);
  await lists(page, running);
  await views(page, context);
  await refused(page, first);
  forget(/404.*jobs\/\d+$|422|503/);
});
