// Every page at every width: nothing lies over something else, nothing leaves its card, and the page does not scroll sideways. Everything
// that can be used is reached by Tab, with a ring around it.
// traind.conf: slots = 1
// traind.conf: node_check_seconds = 0

import { execFileSync } from "node:child_process";
import { openBrowser } from "./lib/browser.mjs";
import { accessible, api, cancelAll, errors, foreign, forget, JOB, jobIn, lastingJob, listen, origin, submit, until } from "./lib/checks.mjs";
import { done, ok, same } from "./lib/tap.mjs";

const WIDTHS = [320, 360, 600, 800, 820, 1024, 1240, 1920];
const state = process.argv[6];

// In the page: texts of different cells that overlap, texts that leave their card, and by how much the page is too wide.
function faults() {
  const found = [], rects = (node) => {
    const range = document.createRange();
    range.selectNodeContents(node);
    return [...range.getClientRects()].filter((r) => r.width > 1 && r.height > 1);
  };
  const visible = (element) => element.checkVisibility({ opacityProperty: true, visibilityProperty: true }) && getComputedStyle(element).clipPath === "none";
  for (const row of document.querySelectorAll("main table.jobs tbody tr")) {
    const cells = [...row.children].filter(visible).map((cell) => ({ cell, rects: rects(cell) }));
    const card = row.closest("table").getBoundingClientRect();
    cells.forEach(({ cell, rects: mine }, i) => {
      const clips = cell.querySelector(".reason, a") && cell.matches("th, .state"); // cut off by lines
      if (!clips && mine.some((r) => r.right > card.right + 1 || r.left < card.left - 1)) found.push(`leaves the card: ${cell.textContent}`);
      for (const other of cells.slice(i + 1)) {
        const over = mine.some((a) => other.rects.some((b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1));
        if (over && !clips) found.push(`${cell.textContent} lies over ${other.cell.textContent}`);
      }
    });
    const id = row.querySelector(".id"), name = row.querySelector("th a");
    if (id && name && rects(name)[0].left - rects(id)[0].right < 3) found.push(`the id ${id.textContent} touches the name`);
  }
  const wide = document.documentElement.scrollWidth - innerWidth;
  const clipped = (element) => element && (getComputedStyle(element).overflowX !== "visible" || clipped(element.parentElement));
  const outside = [...document.querySelectorAll("body *")].filter((element) => element.getBoundingClientRect().right > innerWidth + 1 && !clipped(element.parentElement));
  if (wide > 0) found.push(`${wide} px too wide: ${outside.slice(0, 3).map((element) => `${element.tagName} ${element.className}`).join(", ")}`);
  return found.join("\n");
}

// What Tab does not reach, or reaches without showing where it is. Radio buttons that are not chosen are reached by the arrow keys.
async function unreached(page) {
  await page.evaluate(() => {
    document.activeElement?.blur();
    document.querySelectorAll("[data-tabbed]").forEach((e) => delete e.dataset.tabbed);
    window.scrollTo(0, 0);
  });
  const unseen = [];
  for (let i = 0; i < 300; i++) {
    await page.keyboard.press("Tab");
    const fault = await page.evaluate(() => {
      const at = document.activeElement, style = getComputedStyle(at), { top, bottom } = at.getBoundingClientRect();
      if (at === document.body || at.dataset.tabbed) return null;
      at.dataset.tabbed = "yes";
      const ring = (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0) || style.boxShadow !== "none";
      const over = [...document.querySelectorAll(".submit-bar")].find((bar) => !bar.contains(at) && getComputedStyle(bar).position === "fixed" && bar.getBoundingClientRect().top < Math.min(bottom, top + 30));
      return ring && bottom > 0 && top < innerHeight && !over ? "" : `not seen: ${at.outerHTML.slice(0, 100)}`;
    });
    if (fault === null) break;
    if (fault) unseen.push(fault);
  }
  return [...unseen, ...await page.evaluate(() => [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")]
    .filter((e) => e.isConnected && e.checkVisibility({ visibilityProperty: true, opacityProperty: true }) && !e.disabled && !e.dataset.tabbed && e.tabIndex >= 0 && (e.type !== "radio" || e.checked))
    .map((e) => `not reached: ${e.outerHTML.slice(0, 100)}`))].join("\n");
}

// Where the system chooses the colours, those that tell series and states apart stay, and the place in the head is seen.
async function forcedColors(page, id) {
  await page.setViewportSize({ width: 1240, height: 900 });
  await page.emulateMedia({ forcedColors: "active" });
  await page.goto(`${origin}/#/jobs/${id}`);
  await page.locator("[data-chart=loss] .legend i").first().waitFor();
  const colours = await page.evaluate(() => {
    const look = (selector, key, pseudo) => [...document.querySelectorAll(selector)].filter((e) => e.checkVisibility()).map((e) => getComputedStyle(e, pseudo)[key]);
    return { series: new Set(look("[data-chart=loss] .legend i", "backgroundColor")).size, bar: look(".meter progress", "forcedColorAdjust")[0], current: new Set(look("#nav a", "borderBottomColor")).size };
  });
  same(JSON.stringify(colours), JSON.stringify({ series: 2, bar: "none", current: 2 }), "forced colours: series, progress and place are still told apart");
  await page.emulateMedia({ forcedColors: "none" });
}

const browser = await openBrowser();
const { page } = browser;
try {
  listen(page);
  const first = await submit({ ...JOB, name: "resnet50-fashion-mnist-with-a-name-that-is-rather-long", steps: 4 });
  await jobIn(first.id, "succeeded");
  // Ids of a daemon that has been used for a while.
  execFileSync("sqlite3", ["-cmd", ".timeout 20000", `${state}/traind.db`, "update sqlite_sequence set seq = 209 where name = 'job'"]);
  await lastingJob({ ...JOB, name: "resnet101-with-nesterov" });
  execFileSync("sqlite3", ["-cmd", ".timeout 20000", `${state}/traind.db`, "update sqlite_sequence set seq = 12203 where name = 'job'"]);
  const last = await submit({ ...JOB, name: "warm-up ".repeat(25).trim(), steps: 4, priority: 3 });
  await api(`/v1/jobs/${first.id}`, { method: "PATCH", body: JSON.stringify({ note: "a word ".repeat(60).trim(),
    tags: ["baseline", "paper:table-2/row-17", "x".repeat(64), "augmentation", "schedule:cosine"] }) });
  const sweep = await api("/v1/sweeps", { method: "POST", body: JSON.stringify({ name: "rates", base: { ...JOB, steps: 2 }, metric: "loss", parameters: { "/lr/base": [0.1, 0.2] } }) });
  same(last.id, 12204, "jobs have ids of one, three and five digits");
  let patience = 60; // seconds: charts follow a width a little later, and a busy machine draws late. The first fault ends it
  const pages = { overview: "/#/", groups: "/#/groups", nodes: "/#/nodes", users: "/#/users", job: `/#/jobs/${first.id}`, queued: `/#/jobs/${last.id}`, submit: "/#/submit", compare: `/#/compare?ids=${first.id},${last.id}`,
    sweeps: "/#/sweeps", sweep: `/#/sweeps/${sweep.id}`, "new sweep": "/#/sweeps/new", API: "/docs" };
  for (const [name, place] of Object.entries(pages)) {
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: 900 });
      if (width === WIDTHS[0]) {
        await page.goto("about:blank");
        await page.goto(origin + place);
        await page.locator("main h1").first().waitFor();
        if (name === "overview") {
          await page.locator("table.jobs tbody tr").nth(2).waitFor();
          await page.getByRole("checkbox").first().check();
        }
      }
      let found = "";
      await until(`${name} at ${width}`, async () => (found = await page.evaluate(faults)) === "", patience).catch(() => { patience = 3; });
      ok(found === "", `${name} at ${width} pixels: nothing overlaps or overflows`, found);
    }
    // As on a phone: what stays at the bottom covers nothing. On a screen that is enlarged four times nothing stays.
    await page.setViewportSize({ width: 320, height: 256 });
    same(await page.locator(".submit-bar").evaluateAll((bars) => bars.filter((bar) => getComputedStyle(bar).position === "fixed").length), 0, `${name}: low pages scroll as a whole`);
    await page.setViewportSize({ width: 320, height: 500 });
    // A page that follows a job may put a new row under the eyes of this check: once more then.
    let missed = "";
    await until(`${name} by keyboard`, async () => (missed = await unreached(page)) === "", patience).catch(() => { patience = 3; });
    ok(missed === "", `${name}: Tab reaches everything, and shows where it is`, missed);
  }
  await forcedColors(page, first.id);
  await page.goto(`${origin}/docs#cancelJob`);
  const api3 = await api("/openapi.json");
  await page.locator("details#cancelJob[open]").waitFor();
  same(await page.locator(".docs section:not(:last-child) details").count(), Object.values(api3.paths).flatMap(Object.keys).length, "the API's page has every operation");
  const headings = await page.locator(".docs h2").allInnerTexts();
  ok(headings[0] === "Authentication" && headings.includes("Jobs"), "it says how to authenticate, and names its groups", headings.join(", "));
  ok((await page.locator(".docs pre").first().innerText()).includes(`${origin}/v1/jobs`), "with a request to this daemon");
  await accessible(page, "the API's page");
  await page.emulateMedia({ colorScheme: "dark" });
  await accessible(page, "the API's page in the dark");
  await page.emulateMedia({ colorScheme: "light" });
  await page.goto(origin + "/");
  await page.getByText(/^traind \d/).waitFor();
  same(await page.locator("#version").textContent(), `traind ${(await api("/healthz")).version}`, "the dashboard says its version");
  await cancelAll();
  forget(/422.*sweeps.plan/); // the cost of the new sweep's first lines, which name no data yet
  same(errors.join("\n"), "", "no errors on the console");
  same(foreign.join("\n"), "", "nothing is asked of anyone else");
} catch (error) {
  ok(false, "the story went on", String(error.stack));
} finally {
  await cancelAll().catch(() => {}); // workers outlive the daemon
  await browser.close();
}
done();
