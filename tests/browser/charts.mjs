// The charts: axis titles, cursor, smoothing, log scales, full screen, paper. What a canvas shows is known by the words that were written on it.
// traind.conf: slots = 2
// traind.conf: node_check_seconds = 0

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openBrowser } from "./lib/browser.mjs";
import { accessible, api, JOB, jobIn, listen, origin, story, submit, until } from "./lib/checks.mjs";
import { ok, same } from "./lib/tap.mjs";

const percent = (x) => `${(100 * x).toFixed(2)} %`;
const text = JSON.stringify;

// In the page: keeps the words that are written on each chart's canvas.
function listenToCanvases() {
  window.written = {};
  const { fillText } = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.fillText = function (words, ...rest) {
    const { chart } = this.canvas.closest("[data-chart]")?.dataset ?? {};
    if (chart) (window.written[chart] ??= {})[words] = this.fillStyle;
    return fillText.call(this, words, ...rest);
  };
}
const written = (page, chart) => page.evaluate((id) => Object.keys(window.written[id] ?? {}), chart);
async function writes(page, chart, words, name) {
  await until(name, async () => words.every((one) => written(page, chart).then((all) => all.includes(one))) &&
    (await written(page, chart)).filter((one) => words.includes(one)).length === words.length, 60).catch(() => {});
  const all = await written(page, chart);
  ok(words.every((one) => all.includes(one)), name, `${text(words)} of ${text(all)}`);
}

// By numbers: a curve begins with its own value, goes on falling where it falls, stays what it is where it is straight, and ends where its last
// points are on the whole.
async function smoothing(page) {
  const found = await page.evaluate(async () => {
    const { smooth } = await import("/charts/charts.js");
    const falling = Array.from({ length: 200 }, (_, i) => 0.3 + 2 * Math.exp(-i / 12)), straight = falling.map((_, i) => 3 * i);
    const reaches = [1, 2, 6, 24];
    return reaches.map((reach) => {
      const curve = smooth(falling, reach);
      const noisy = smooth(falling.map((_, i) => 1 + (i === 199 ? 0.8 : 0.1 * (-1) ** i)), reach);
      return [curve[0] - falling[0], curve.at(-1) - falling.at(-1), reach < 6 ? 0 : noisy.at(-1) - 1, Math.max(...curve.slice(1).map((v, i) => v - curve[i])),
        Math.max(...smooth(straight, reach).map((v, i) => Math.abs(v - straight[i]))), Math.abs(curve[1] - falling.slice(0, 3).reduce((a, b) => a + b) / 3)].map((x) => Number(x.toPrecision(6)));
    });
  });
  for (const [first, last, noise, rise, bend, second] of found)
    ok(Math.abs(first) < 1e-12 && Math.abs(last) < 1e-4 && Math.abs(noise) < 0.4 && rise < 0 && bend < 1e-9 && second < 1e-12, "smoothing: the curve keeps its beginning, its direction and what is straight, and ends where its last points are", text(found));
}

async function axisTitles(page, id) {
  await page.goto(`${origin}/#/jobs/${id}`);
  for (const [chart, title] of [["loss", "loss"], ["accuracy", "accuracy"], ["images_per_sec", "images/s"], ["step_time", "ms"], ["lr", "learning rate"], ["grad_norm", "L2 norm"], ["ranks", "rank"]])
    await writes(page, chart, ["step", title], `axes: ${chart} has its titles, and is drawn though nobody scrolled there`);
  await page.getByRole("button", { name: "epoch", exact: true }).click();
  await writes(page, "loss", ["epoch"], "axes: another x has its title");
  await page.getByRole("button", { name: "step", exact: true }).click();
}

// The one evaluation is written beside its dot.
async function oneEvaluation(page, id) {
  const { evals } = await api(`/v1/jobs/${id}/evals`);
  same(evals.length, 1, "evaluation: there is one");
  await writes(page, "accuracy", [percent(evals[0].top1)], "evaluation: its Top-1 is written in the chart");
  const legend = await page.locator("[data-chart=accuracy] .legend li:visible").allTextContents();
  ok(legend.some((words) => words === `Top-1 ${percent(evals[0].top1)}`), "evaluation: and in its legend", text(legend));
}

async function crosshair(page) {
  const box = await page.locator("[data-chart=loss] .u-over").boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  const seen = () => page.evaluate(() => Object.fromEntries(["loss", "accuracy", "images_per_sec"].map((id) => {
    const plot = document.querySelector(`[data-chart=${id}]`);
    return [id, ["x", "y"].map((axis) => [...plot.querySelectorAll(`.u-cursor-${axis}`)].some((line) => getComputedStyle(line).display !== "none" && !line.classList.contains("u-off"))).join()];
  })));
  await until("the cursor", async () => (await seen()).accuracy.startsWith("true"), 60).catch(() => {});
  same(text(await seen()), text({ loss: "true,true", accuracy: "true,false", images_per_sec: "true,false" }), "cursor: all charts show the step, the one under the pointer the height");
  await page.mouse.move(0, 0);
}

async function logX(page, id) {
  const step = (await api(`/v1/jobs/${id}/metrics?names=loss`)).step.length;
  const button = page.getByRole("button", { name: "log x" });
  await button.click();
  ok(page.url().includes("logx=1"), "log x: stands in the address", page.url());
  await page.reload();
  await page.locator("[data-chart=loss] canvas").waitFor();
  same(await button.getAttribute("aria-pressed"), "true", "log x: a permalink opens with it");
  const place = (at) => page.locator("[data-chart=loss] .plot").evaluate(async (plot, share) => {
    plot.focus();
    plot.dispatchEvent(new KeyboardEvent("keydown", { key: share, bubbles: true }));
    await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
    return new DOMMatrix(getComputedStyle(plot.querySelector(".u-cursor-x")).transform).m41;
  }, at);
  const first = await place("Home"), second = await place("ArrowRight"), last = await place("End");
  const want = Math.log(2) / Math.log(step);
  ok(Math.abs((second - first) / (last - first) - want) < 0.03, "log x: step 2 stands where its logarithm is", text({ first, second, last, want }));
  await button.click();
  ok(!page.url().includes("logx"), "log x: and back");
}

async function fullScreen(page) {
  const button = page.getByRole("button", { name: "Show Loss in full screen" });
  await button.click();
  const wide = () => page.evaluate(() => document.fullscreenElement?.dataset.chart === "loss" && document.querySelector("[data-chart=loss] canvas").clientWidth / innerWidth);
  ok(await until("the full screen", async () => (await wide()) > 0.85, 60).catch(() => false), "full screen: the chart fills it", await wide());
  await accessible(page, "full screen");
  await button.press("Enter");
  await until("the page", () => page.evaluate(() => !document.fullscreenElement));
  ok(true, "full screen: the button leaves it too");
}

// Nothing is drawn by and by there: what is on paper was drawn for it.
async function paper(id, colorScheme) {
  const { page, close } = await openBrowser({ colorScheme, viewport: { width: 1240, height: 500 } });
  listen(page);
  await page.addInitScript(listenToCanvases);
  await page.addInitScript(() => { window.requestIdleCallback = () => 0; });
  await page.goto(`${origin}/#/jobs/${id}`);
  await page.locator("[data-chart=loss] canvas").waitFor();
  await page.locator("[data-chart=ranks] .plot[aria-label]").waitFor(); // the last one to get its data
  same(await page.locator("[data-chart=grad_norm] canvas").count(), 0, `paper, ${colorScheme}: what nobody has seen is not drawn yet`);
  const pdf = await page.pdf({ format: "A4", printBackground: true });
  ok(pdf.length > 20000, `paper, ${colorScheme}: there is a file`, pdf.length);
  same(await page.locator(".charts .plot:visible:not(:has(canvas))").count(), 0, `paper, ${colorScheme}: printing draws all charts`);
  await page.emulateMedia({ media: "print", colorScheme });
  const ink = () => page.evaluate(() => window.written.loss.step);
  await until("the ink", async () => (await ink()) === "#57606b", 60).catch(() => {});
  same(await ink(), "#57606b", `paper, ${colorScheme}: is written on with dark ink`);
  const seen = await page.evaluate(() => ({
    legends: [...document.querySelectorAll(".chart .legend")].filter((legend) => !legend.hidden && legend.closest(".chart").checkVisibility()).map((legend) => legend.innerText.trim() !== "").join(),
    buttons: [...document.querySelectorAll("button")].filter((button) => button.checkVisibility() && !button.closest(".legend")).length,
    wide: Math.max(...[...document.querySelectorAll(".chart canvas")].map((canvas) => canvas.getBoundingClientRect().right - canvas.closest(".plot").getBoundingClientRect().right)) }));
  ok(/^true(,true)+$/.test(seen.legends), `paper, ${colorScheme}: legends stay`, seen.legends);
  same(seen.buttons, 0, `paper, ${colorScheme}: buttons do not`);
  ok(seen.wide <= 1, `paper, ${colorScheme}: charts are as wide as their place`, seen.wide);
  await close();
}

// The numbers of the matrix are those of the file of predictions.
async function confusion(page, id) {
  const csv = await (await fetch(`${origin}/v1/jobs/${id}/predictions`)).text();
  const all = csv.trim().split("\n").map((line) => /,(-?\d+),(\d+),[^,]+$/.exec(line)).filter(Boolean).map(([, label, top1]) => [Number(label), Number(top1)]);
  await page.locator("details", { hasText: "Mistakes by class" }).locator("summary").press("Enter");
  await page.getByRole("heading", { name: "Confusion matrix" }).waitFor();
  const cells = await page.locator(".confusion tbody tr").evaluateAll((rows) => rows.flatMap((row) => [...row.querySelectorAll("td")].map((cell, i) =>
    [Number(row.querySelector("th").textContent), Number(row.closest("table").querySelectorAll("thead th")[i + 1].textContent), Number(cell.textContent)]).filter(([, , count]) => count)));
  const want = new Map();
  for (const [label, top1] of all) want.set(`${label},${top1}`, (want.get(`${label},${top1}`) ?? 0) + 1);
  same(text(cells.map(([label, top1, count]) => `${label},${top1},${count}`).sort()), text([...want].map(([pair, count]) => `${pair},${count}`).sort()), "mistakes: the confusion matrix is that of predictions.csv");
  const right = all.filter(([label, top1]) => label === top1).length;
  await page.getByText(`${right} of ${all.length} images were predicted correctly.`).waitFor();
  const shares = await page.locator("[aria-label='Top-1 by class'] tbody tr").evaluateAll((rows) => rows.map((row) => parseFloat(row.children[2].textContent)));
  ok(shares.length > 1 && shares.every((share, i) => i === 0 || share >= shares[i - 1]), "mistakes: Top-1 by class, the worst first", text(shares));
  await accessible(page, "mistakes");
}

// Two classes of the same image: all of one of them are taken for the other.
const IMAGE = "iVBORw0KGgoAAAANSUhEUgAAACAAAAAgCAIAAAD8GO2jAAAALElEQVR42u3NQREAMAgAIF0G49j/jLUS+oMC5HTFpRfHBAKBQCAQCAQCwZYP0nYBWMwf34EAAAAASUVORK5CYII=";
async function mistakenImages(page) {
  const folder = mkdtempSync(join(tmpdir(), "mistakes-"));
  for (const name of ["train/cat", "train/dog", "validation/cat", "validation/dog"]) {
    mkdirSync(join(folder, name), { recursive: true });
    for (let i = 0; i < 10; i++) writeFileSync(join(folder, name, `${i}.png`), Buffer.from(IMAGE, "base64"));
  }
  const { id } = await submit({ ...JOB, name: "mistaken", steps: 2, model: { ...JOB.model, classes: 2 }, data: { train: folder, eval: folder } });
  await jobIn(id, "succeeded");
  const { mistakes: [first] } = await api(`/v1/jobs/${id}/confusion`);
  await page.goto(`${origin}/#/jobs/${id}`);
  await page.locator("details", { hasText: "Mistakes by class" }).locator("summary").press("Enter");
  const classes = ["cat", "dog"];
  await page.locator(".confusion").getByRole("button", { name: `10 images of ${classes[first.label]} (${first.label}) taken for ${classes[first.predicted]} (${first.predicted}): show` }).press("Enter");
  await page.getByText("The first 8 of 10 images.").waitFor();
  const sizes = () => page.locator(".mistaken img").evaluateAll((all) => all.map((one) => one.naturalWidth));
  await until("the images", async () => (await sizes()).filter(Boolean).length === 8).catch(() => {});
  same(text(await sizes()), text(Array(8).fill(32)), "mistakes: the images of one are shown");
  await accessible(page, "images of a mistake");
  rmSync(folder, { recursive: true });
}

// What the preset published is drawn up to the end of the run: here the first of its points.
async function publishedCurve(page) {
  const { id } = await submit({ ...JOB, preset: "mosaic-mild", name: "published", cluster: { ...JOB.cluster, nodes: 1 }, epochs: 4, eval: { batch: 8, image_size: 32, every_epochs: 1 } });
  await jobIn(id, "succeeded");
  const { presets } = await api("/v1/presets"), curve = presets.find(({ name }) => name === "mosaic-mild").top1_by_epoch;
  same(text(curve[0]), "[3,0.334]", "published: the preset has its accuracy after 3 epochs");
  await page.goto(`${origin}/#/jobs/${id}?x=epoch`);
  await page.getByText("The published curve is that of preset mosaic-mild.").waitFor();
  await writes(page, "accuracy", ["33.40 %"], "published: it is written in the chart");
  const legend = () => page.locator("[data-chart=accuracy] .legend li:visible").allTextContents();
  ok((await legend()).includes("Top-1, published 33.40 %"), "published: it is in the legend", text(await legend()));
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    await accessible(page, `published, ${colorScheme}`);
  }
  await page.getByRole("button", { name: /^Top-1, published/ }).press("Enter");
  same(await page.getByRole("button", { name: /^Top-1, published/ }).getAttribute("aria-pressed"), "false", "published: the keyboard hides it");
}

await story(async ({ page }) => {
  await page.setViewportSize({ width: 1240, height: 600 });
  await page.addInitScript(listenToCanvases);
  const { id } = await submit({ ...JOB, name: "charts", steps: 12, cluster: { workers_per_node: 2, threads_per_worker: 1 }, eval: { ...JOB.eval, predictions: true } });
  await jobIn(id, "succeeded");
  await page.goto(`${origin}/`);
  await page.locator(`tr[data-job="${id}"]`).waitFor();
  await writes(page, "throughput", ["time", "images/s"], "axes: those of the overview too");
  await smoothing(page);
  await axisTitles(page, id);
  await oneEvaluation(page, id);
  await crosshair(page);
  await logX(page, id);
  await fullScreen(page);
  await confusion(page, id);
  await mistakenImages(page);
  for (const scheme of ["light", "dark"]) await paper(id, scheme);
  await publishedCurve(page);
});
