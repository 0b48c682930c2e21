// Times: of a run of weeks, in zones of 45 minutes, over the end of summer time, and by a clock that is hours off.
// traind.conf: slots = 1

import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { openBrowser } from "./lib/browser.mjs";
import { forget, JOB, jobIn, listen, origin, story, submit, until } from "./lib/checks.mjs";
import { ok, same } from "./lib/tap.mjs";

const state = process.argv.at(-2), DAY = 86400;
const sql = (text) => execFileSync("sqlite3", ["-cmd", ".timeout 20000", `${state}/traind.db`, text], { encoding: "utf8" }).trim();

// What a canvas is told to write is kept in window.written.
const listenToCanvas = (page) => page.addInitScript(() => {
  window.written = [];
  const { fillText } = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.fillText = function write(text, ...where) {
    window.written.push(text);
    return fillText.call(this, text, ...where);
  };
});
const written = (page) => page.evaluate(() => window.written);

// In another zone, or by a clock that is so many hours off.
async function elsewhere(zone, hoursOff, tell) {
  const browser = await openBrowser(zone ? { timezoneId: zone } : {}), { page } = browser;
  listen(page);
  await listenToCanvas(page);
  if (hoursOff) {
    await page.addInitScript((ms) => {
      const { Date: Right } = window;
      window.Date = class extends Right {
        constructor(...given) { super(...(given.length ? given : [Right.now() + ms])); }
        static now() { return Right.now() + ms; }
      };
    }, 3600000 * hoursOff);
  }
  await tell(page).finally(() => browser.close());
}

async function weeks(id) {
  // A step every ten days.
  sql(`update job set started_at = started_at - ${40 * DAY} where id = ${id}`);
  sql(`update step_metric set t = (select started_at from job where id = ${id}) + ${10 * DAY} * step where job_id = ${id}`);
  sql(`update job_event set t = t - ${3 * DAY} where job_id = ${id} and type = 'run_start'`);
  const log = `${state}/jobs/${id}/attempt-1/stdout.log`, lines = Array.from({ length: 100000 }, (_, i) => `line ${i}, an ö`);
  writeFileSync(log, `${lines.join("\n")}\n`);
  await elsewhere("Pacific/Chatham", 0, async (page) => {
    const parts = [];
    page.on("response", (answer) => answer.url().includes("/log?") && parts.push(Number(answer.headers()["content-length"] ?? 0)));
    await page.goto(`${origin}/#/jobs/${id}?x=time`);
    await page.locator("[data-chart=loss] canvas").waitFor();
    await until("days below a chart", async () => (await written(page)).includes("20 d"), 60).catch(() => {});
    ok((await written(page)).includes("20 d"), "weeks: the time axis has days", String(await written(page)));
    ok((await page.locator("[data-chart=loss] .where").textContent()).startsWith("time 40 d"), "weeks: so has the place of the last step");
    await page.locator(".events .when").first().waitFor();
    const when = await page.locator(".events .when").allTextContents();
    ok(when.every((text) => /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/.test(text)), "weeks: events of several days have their dates", when.join());
    await page.locator("pre.log", { hasText: "line " }).first().waitFor();
    const shown = await page.locator("pre.log").first().textContent();
    ok(shown.endsWith("line 99999, an ö\n"), "weeks: the log's end is there at once", shown.slice(-100));
    ok(/^line \d+, an ö\n/.test(shown) && !shown.includes("\ufffd"), "weeks: it begins with a whole line", shown.slice(0, 100));
    ok(parts[0] < 300000, "weeks: and what is not shown is not fetched", parts.join());
  });
}

// A run directory that belongs to another job says so where it is looked into, and the rest is shown all the same.
async function foreignFiles(page, id) {
  const owner = `${state}/jobs/${id}/owner.json`, right = readFileSync(owner);
  writeFileSync(owner, JSON.stringify({ ...JSON.parse(right), created_at: 1 }));
  await page.goto(`${origin}/#/jobs/${id}`);
  await page.locator("[data-chart=loss] canvas").waitFor({ timeout: 60000 }).catch(() => {});
  same(await page.locator("[data-chart=loss] canvas").count(), 1, "files of another job: the charts are there");
  const told = page.locator("section", { has: page.locator("pre.log") }).last().locator("> .quiet");
  await until("the reason", async () => (await told.textContent()).includes("run directory"), 60).catch(() => {});
  ok((await told.textContent()).includes("run directory"), "files of another job: the log's place tells why it is not");
  writeFileSync(owner, right);
  await page.reload();
  await page.locator("pre.log", { hasText: "line 99999" }).waitFor();
  forget(/409.*(log|checkpoints)/);
}

async function zones(page) {
  const ticks = (from, to, incr) => page.evaluate(async (given) => {
    const { clockTicks } = await import("/views/overview_cluster.js");
    return clockTicks(...given).map((t) => new Date(t * 1000).toLocaleTimeString("sv-SE", { hour: "2-digit", minute: "2-digit" })).join();
  }, [from, to, incr]);
  const april = Date.UTC(2027, 3, 3, 8) / 1000; // summer time of Chatham ends at 14:00 UTC
  return { ticks, april };
}

async function overview() {
  await elsewhere("Pacific/Chatham", 0, async (page) => {
    await page.goto(`${origin}/#/?hours=168`);
    await page.locator(".chart[data-chart=throughput] canvas").waitFor();
    const { ticks, april } = await zones(page);
    same(await ticks(april, april + 10 * 3600, 7200), "22:00,00:00,02:00,04:00,06:00", "zones: ticks are at whole hours there, before and after summer time ends");
    same(await ticks(april, april + 3 * DAY, DAY), "00:00,00:00,00:00", "zones: and those of days at midnight");
    const drawn = async () => (await written(page)).filter((text) => /^\d\d-\d\d \d\d:\d\d$/.test(text));
    await until("days below the chart", async () => (await drawn()).length > 0, 60).catch(() => {});
    const days = await drawn();
    ok(days.length > 0 && days.every((text) => /:00$/.test(text)), "zones: so they are drawn", days.join());
  });
  await elsewhere("America/St_Johns", 0, async (page) => {
    await page.goto(`${origin}/`);
    await page.locator("tr[data-job]").first().waitFor();
    const { ticks } = await zones(page), november = Date.UTC(2026, 10, 1, 2, 30) / 1000;
    same(await ticks(november, november + 4 * 3600, 3600), "00:00,01:00,02:00,03:00", "zones: an hour that comes twice has one tick");
  });
}

// A failure an hour ago, and a job just submitted.
async function wrongClock(id) {
  sql(`update job set state = 'failed', finished_at = unixepoch() - 3600 where id = ${id}`);
  for (const hours of [30, -30]) {
    await elsewhere(null, hours, async (page) => {
      const { id: fresh } = await submit({ ...JOB, name: "fresh", steps: 2 });
      await page.goto(`${origin}/`);
      const age = page.locator(`tr[data-job="${fresh}"] time`);
      await age.waitFor();
      ok(/^(just now|\d+\u00a0s ago|\d+\u00a0min ago)$/.test(await age.textContent()), `a clock ${hours} hours off: ages are by the daemon's`, await age.textContent());
      const failed = page.locator("data[data-key=failed]");
      await until("the failures", async () => (await failed.textContent()) === "1", 60).catch(() => {});
      same(await failed.textContent(), "1", `a clock ${hours} hours off: so are the last 24 hours`);
      await jobIn(fresh, "succeeded");
    });
  }
}

await story(async ({ page }) => {
  const { id } = await submit({ ...JOB, name: "long", steps: 4 });
  await jobIn(id, "succeeded");
  await weeks(id);
  await foreignFiles(page, id);
  await overview();
  await wrongClock(id);
});
