// The notices of a job on its page and in the form, with a real receiver.
// traind.conf: notify_allow = 127.0.0.1
// traind.conf: notify_retry_seconds = 1000

import { createServer } from "node:http";
import { accessible, api, brightness, forget, jobIn, JOB, origin, sideways, story, submit, until } from "./lib/checks.mjs";
import { ok, same } from "./lib/tap.mjs";

const taken = [];
const receiver = createServer((request, answer) => {
  taken.push(request.url);
  request.resume().on("end", () => answer.writeHead(request.url.startsWith("/fail") ? 500 : 204).end());
});
await new Promise((ready) => receiver.listen(0, "127.0.0.1", ready));
const here = `http://127.0.0.1:${receiver.address().port}`;

async function theForm(page) {
  await page.goto(`${origin}/#/submit`);
  const field = page.locator("[data-pointer='/notify']");
  await page.getByText("All settings").click();
  await page.getByLabel("Search the settings").fill("notify");
  await field.locator("input").fill('[{"to": "ftp://example.org"}]');
  const problem = field.locator(".error");
  await until("the problem", async () => (await problem.textContent()).includes("https://HOST")).catch(() => {});
  ok((await problem.textContent()).includes("is not https://HOST"), "form: a wrong target is refused where it was typed", await problem.textContent());
  await field.locator("input").fill(`[{"to": "${here}/form"}]`);
  await until("no problem", async () => (await problem.textContent()) === "").catch(() => {});
  same(await problem.textContent(), "", "form: a right one is taken");
  forget(/422/);
}

const STATE = { delivered: "delivered", waiting: "waits", failed: "given up" };

async function thePage(page) {
  const quiet = await submit({ ...JOB, name: "nobody", steps: 1 });
  const { id } = await submit({ ...JOB, name: "noted", steps: 2, notify: [{ to: `${here}/ok/${"long-".repeat(30)}` }, { to: `${here}/fail` }, { to: "http://10.0.0.1/inside", format: "text" }] });
  await jobIn(quiet.id, "succeeded");
  await jobIn(id, "succeeded");
  await until("the receiver to be told", () => taken.some((path) => path.startsWith("/ok")) && taken.includes("/fail"));
  await page.goto(`${origin}/#/jobs/${id}`);
  const rows = page.locator(".notices tbody tr");
  const shown = async () => rows.evaluateAll((all) => all.map((row) => [row.dataset.state, ...[...row.cells].map((cell) => cell.textContent)]));
  const settled = (list) => list.some((row) => row[0] === "delivered") && list.some((row) => row[0] === "failed") && list.some((row) => row[0] === "waiting" && row[4] !== "");
  await until("the notices", async () => settled(await shown())).catch(() => {});
  const { notices } = await api(`/v1/notices?job=${id}`);
  const list = await shown();
  same(list.length, 3, "page: the job's notices");
  for (const [i, notice] of notices.entries()) {
    same(list[i][2], notice.to, `page: target ${i + 1}`);
    same(list[i][1], "succeeded", `page: its event`);
    ok(list[i][3].startsWith(STATE[notice.state]), `page: ${notice.state}`, list[i][3]);
  }
  ok(list.find((row) => row[0] === "failed")[4].includes("10.0.0.1 is not a public address"), "page: why one was given up");
  ok(list.find((row) => row[0] === "waiting")[4].includes("500"), "page: why one waits");
  ok(/again in|now/.test(list.find((row) => row[0] === "waiting")[3]), "page: and when it is tried again");
  await accessible(page, "page");
  for (const width of [360, 1280, 1920]) {
    await page.setViewportSize({ width, height: 900 });
    ok(await sideways(page) <= 0, `page: nothing sticks out at ${width}`);
  }
  await page.emulateMedia({ colorScheme: "dark" });
  ok(await brightness(page) < 80, "page: dark where that is wished");
  await accessible(page, "dark page");
  if (process.env.NOTICES_PICTURES) {
    for (const [scheme, width] of [["dark", 1280], ["light", 1280], ["light", 360], ["dark", 1920]]) {
      await page.emulateMedia({ colorScheme: scheme });
      await page.setViewportSize({ width, height: 900 });
      await page.locator(".notices").screenshot({ path: `${process.env.NOTICES_PICTURES}/notices-${scheme}-${width}.png` });
    }
  }
  await page.goto(`${origin}/#/jobs/${quiet.id}`);
  await page.getByRole("heading", { name: "nobody" }).waitFor();
  await page.locator(".events tbody tr").first().waitFor();
  ok(!await page.locator(".notices").isVisible(), "page: a job without notices has no such card");
}

await story(async ({ page }) => {
  await theForm(page);
  await thePage(page);
});
receiver.closeAllConnections();
receiver.close();
