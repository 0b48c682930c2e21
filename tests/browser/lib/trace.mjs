// A run's trace as a viewer reads it: node trace.mjs TRACE.json
// Loads it into the Performance panel of Chromium's DevTools by its own file chooser and compares what the flame chart
// holds with the file: tracks, their names and order, slices, their names, threads and times.

import { readFileSync } from "node:fs";
import { openBrowser } from "./browser.mjs";
import { done, ok, same } from "./tap.mjs";

const file = process.argv[2];
const events = JSON.parse(readFileSync(file, "utf8"));
const spans = events.filter((event) => event.ph === "X");
const named = (kind) => events.filter((event) => event.ph === "M" && event.name === kind);

// Runs in DevTools. Slices have their place by name of process and of thread.
async function chart() {
  const { TimelinePanel } = await import("devtools://devtools/bundled/panels/timeline/timeline.js");
  const provider = TimelinePanel.TimelinePanel.instance().getFlameChart().getMainDataProvider();
  const { groups, entryLevels, entryStartTimes, entryTotalTimes } = provider.timelineData() ?? { groups: [], entryStartTimes: [] };
  const threadAt = [];
  let rank = "";
  for (const { name, startLevel, style } of groups) {
    if (style.nestingLevel === 0) rank = name;
    else threadAt.push({ startLevel, place: `${rank} ${name}` });
  }
  const placeOf = (level) => threadAt.filter(({ startLevel }) => startLevel <= level).at(-1)?.place;
  return {
    tracks: groups.map(({ name }) => name),
    slices: Array.from(entryStartTimes, (start, i) => ({
      place: placeOf(entryLevels[i]), name: provider.entryTitle(i), start_ms: start, duration_ms: entryTotalTimes[i],
    })),
  };
}

const order = (a, b) => a.place < b.place ? -1 : a.place > b.place ? 1 : a.start_ms - b.start_ms || b.duration_ms - a.duration_ms;

const browser = await openBrowser({ devtools: true });
try {
  const { page } = browser;
  const errors = [];
  page.on("pageerror", (error) => errors.push(error.message));
  await page.goto("devtools://devtools/bundled/devtools_app.html?panel=timeline");
  await page.locator("input[type=file]").setInputFiles(file);
  let tracks = [], slices = [];
  for (const end = Date.now() + 300000; tracks.length === 0 && Date.now() < end; await page.waitForTimeout(100)) {
    ({ tracks, slices } = await page.evaluate(chart));
  }

  const threads = named("thread_name");
  const want = named("process_name").flatMap(({ pid, args }) => [`${args.name} (${pid})`,
    ...threads.filter((thread) => thread.pid === pid).map((thread) => `${thread.args.name} (${thread.tid})`)]);
  same(tracks.join(), want.join(), "the viewer has a track a rank and a thread, by their names");
  same(tracks.filter((name) => name.startsWith("rank ")).length, 2, "two ranks");
  same(slices.length, spans.length, `all ${spans.length} spans are slices`);

  const process = new Map(named("process_name").map(({ pid, args }) => [pid, `${args.name} (${pid})`]));
  const thread = new Map(threads.map(({ pid, tid, args }) => [`${pid} ${tid}`, `${args.name} (${tid})`]));
  const first = Math.min(...spans.map(({ ts }) => ts)), shown = Math.min(...slices.map(({ start_ms }) => start_ms));
  const drawn = slices.map((slice) => ({ ...slice, start_ms: slice.start_ms - shown })).sort(order);
  const written = spans.map(({ pid, tid, name, ts, dur }) => ({
    place: `${process.get(pid)} ${thread.get(`${pid} ${tid}`)}`, name, start_ms: (ts - first) / 1000, duration_ms: dur / 1000,
  })).sort(order);
  const wrong = written.findIndex((span, i) => span.place !== drawn[i]?.place || span.name !== drawn[i].name ||
    Math.abs(span.start_ms - drawn[i].start_ms) > 1e-3 || Math.abs(span.duration_ms - drawn[i].duration_ms) > 1e-3);
  ok(wrong < 0, "each with its name, on its thread, at its time",
    `file: ${JSON.stringify(written[wrong])}, viewer: ${JSON.stringify(drawn[wrong])}`);
  for (const name of ["step", "forward", "backward", "all-reduce", "layer4.1.conv2"]) {
    ok(drawn.some((slice) => slice.name.startsWith(name)), `${name} is seen`);
  }
  same(errors.join("; "), "", "and the viewer had no error");
} finally {
  await browser.close();
}
done();
