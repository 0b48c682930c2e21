/* global uPlot */
// Charts by uPlot (global uPlot): canvas for the eye, words and a table for everybody else, CSV and PNG to take away.
//
//   const group = new ChartGroup();                       shared cursor, zoom and x-axis
//   const chart = new Chart({id: "loss", title: "Loss",   id: in file names and in the URL
//     series: [{key: "loss", label: "training", color: "--loss", smooth: true}],
//     unit: "", axis: "loss" (the title of the y-axis; without it the unit), format: number, zero: false, log: true (a button),
//     startsLog: false, stacked: false, file: "job-3-loss"}, group);
//   root.append(chart.element);
//   chart.update({x: [1, 2], y: {loss: [2.3, null]}, min: {…}, max: {…},         null is a hole; min, max: of a down-sampled series
//     marks: [{x, kind, label}], spans: [{from, to, label}], lines: [{y, label}], note: "words below it", rows: of a heat map});
//   chart.close();
//
// A series: color is a CSS variable; optional: width, dash ([4, 4]), fill (true), points (true: dots and no line), smooth (takes
// part in the group's smoothing), format (of its values). Series whose x differ: joined([[x, y], [x, y]]).

import { download, h, mark, say, show } from "../dom.js";
import * as f from "../format.js";

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const dark = matchMedia("(prefers-color-scheme: dark)");
const TABLE_ROWS = 200;
const MOST_LONELY = 6; // values shown next to their dots
const LATER_MS = 5000; // between drawings of a chart that is off screen
const MARK_COLORS = { checkpoint: "--muted", restart: "--danger", straggler: "--warn", evaluation: "--violet" };

// [[x, y, y2…], …] -> [x, y…] over all x, with holes.
export const joined = (tables) => uPlot.join(tables);

// Smooths by a mean over the points around each one, which does not lag like a running mean. reach: points on each side, the same number on
// both, so that a curve begins with its first value. Near the end, a straight line fitted to the preceding points is used, because the last
// point alone is noisy.
export function smooth(values, reach) {
  const sums = [[0, 0, 0, 0, 0]]; // sums over the values so far: count, x, y, x², xy
  values.forEach((y, x) => sums.push(filled(y) ? sums[x].map((sum, k) => sum + [1, x, y, x * x, x * y][k]) : sums[x]));
  const first = values.findIndex(filled), last = values.findLastIndex(filled);
  return values.map((v, i) => {
    if (!filled(v)) return null;
    const near = Math.min(reach, i - first), right = Math.min(near, last - i), left = Math.min(i - first, 2 * near - right);
    const [n, x, y, xx, xy] = sums[i + right + 1].map((sum, k) => sum - sums[i - left][k]), spread2 = xx - (x * x) / n;
    return y / n + (right < near && spread2 > 0 ? ((xy - (x * y) / n) / spread2) * (i - x / n) : 0);
  });
}

// ------------------------------------------------------------------ state shared by the charts of a page

let groups = 0;
const WHOLE = [1, 2, 5].flatMap((n) => [0, 1, 2, 3, 4, 5, 6, 7].map((e) => n * 10 ** e)).sort((a, b) => a - b);
const STEPS = { name: "step", format: (x) => Math.round(x).toLocaleString("en-US"), incrs: WHOLE };

// Formats a tick without redundant decimals: "0", "60 %".
const tick = (text) => text.replace(/\.0+(?!\d)/, "");

export class ChartGroup {
  // x: {name: "step", format(x) -> text, incrs: [tick distances]}; short: a shorter name shown above the charts; log: true: a log scale
  // with a tick at every x; space: minimum pixels between ticks; ticks(from, to, incr): their positions
  constructor(x = STEPS) {
    this.key = `group-${++groups}`;
    this.charts = new Set();
    this.x = x;
    this.range = null; // zoomed range [from, to]; null: not zoomed
    this.whole = null; // [from, to] of all charts together; null: each has its own
    this.smoothing = 0.5; // 0 to 1
    this.logX = false; // logarithmic x-axis, chosen by the user; omits values that are not above 0
    this.zoomed = () => {}; // called with range when it changes
  }

  // The full range.
  extent() {
    if (this.whole) return this.whole;
    let low = Infinity, high = -Infinity;
    for (const { data } of this.charts) {
      if (!data?.x.length) continue;
      low = Math.min(low, data.x[0]);
      high = Math.max(high, data.x.at(-1));
    }
    return low < high ? [low, high] : null;
  }

  zoom(range) {
    this.range = range;
    for (const chart of this.charts) chart.rescale();
    this.zoomed(range);
  }

  // factor 0.5: zoom in; about: the x that stays in place
  zoomBy(factor, about) {
    const all = this.extent();
    if (!all) return;
    const [low, high] = this.range ?? all;
    const middle = about ?? (low + high) / 2;
    const from = Math.max(all[0], middle - (middle - low) * factor), to = Math.min(all[1], middle + (high - middle) * factor);
    if (from <= all[0] && to >= all[1]) this.zoom(null);
    else if (to - from > (all[1] - all[0]) * 1e-5) this.zoom([from, to]);
  }

  pan(share) {
    const all = this.extent();
    if (!all || !this.range) return;
    const [low, high] = this.range, wish = (high - low) * share;
    const by = Math.max(all[0] - low, Math.min(all[1] - high, wish));
    this.zoom([low + by, high + by]);
  }

  setX(x) {
    this.x = x;
    this.range = null;
    for (const chart of this.charts) chart.rebuild();
  }

  setSmoothing(smoothing) {
    this.smoothing = smoothing;
    for (const chart of this.charts) chart.rebuild();
  }
}

// ------------------------------------------------------------------ chart

function axis(extra) {
  return {
    stroke: css("--muted"),
    grid: { stroke: css("--grid"), width: 1 },
    ticks: { stroke: css("--grid"), width: 1, size: 4 },
    font: "12px " + css("--font"),
    labelFont: "12px " + css("--font"),
    labelSize: 20,
    labelGap: 3,
    ...extra,
  };
}

// Returns at most `most` indices of `count` rows, evenly spaced, including the first and the last.
function spread(count, most) {
  if (count <= most) return [...Array(count).keys()];
  return [...Array(most).keys()].map((i) => Math.round((i * (count - 1)) / (most - 1)));
}

const filled = (v) => v !== null && v !== undefined;
const lonely = (values) => values?.filter(filled).length === 1; // a line cannot be drawn through one point

// Draws a chart that is off screen when the page is idle, so that it is present if the whole page is captured or printed.
const whenIdle = (work) => (globalThis.requestIdleCallback ? requestIdleCallback(work, { timeout: 1000 }) : setTimeout(work, 100));
const living = new Set();
addEventListener("beforeprint", () => living.forEach((chart) => chart.stale && chart.paint()));
matchMedia("print").addEventListener("change", () => living.forEach((chart) => { // redraw in the width and colours of the paper, and back
  chart.drop();
  chart.paint();
}));

// The rows with x above 0, which a logarithmic axis requires.
function above0(data) {
  const from = data.x.findIndex((x) => x > 0), cut = (values) => values?.slice(from < 0 ? values.length : from);
  const all = (columns = {}) => Object.fromEntries(Object.entries(columns).map(([key, values]) => [key, Array.isArray(values) ? cut(values) : values]));
  return from === 0 ? data : { ...data, x: cut(data.x), y: all(data.y), min: all(data.min), max: all(data.max), rows: cut(data.rows) };
}

export class Chart {
  constructor(options, group = new ChartGroup()) {
    this.options = { format: f.number, file: options.id, ...options };
    this.group = group;
    this.data = null;
    this.isLog = Boolean(options.startsLog);
    this.hidden = new Set(); // keys of series switched off by the user
    this.logChanged = () => {};
    group.charts.add(this);
    living.add(this);
    this.make();
    this.seen = false; // on screen, or nearly
    this.waits = false; // will be drawn although it is off screen
    this.look = new IntersectionObserver((entries) => {
      this.seen = entries.at(-1).isIntersecting;
      if (this.seen && this.stale) this.draw();
    }, { rootMargin: "100px" });
    this.look.observe(this.element);
    this.resize = new ResizeObserver(() => this.fit());
    this.resize.observe(this.box);
    this.recolor = () => this.rebuild();
    dark.addEventListener("change", this.recolor);
  }

  make() {
    const { id, title, unit } = this.options;
    const tool = (label, words, work) => h("button", { type: "button", class: "tool", "aria-label": words, title: words, onclick: work }, label);
    this.logButton = tool("log", `log scale of ${title}`, () => this.setLog(!this.isLog));
    mark(this.logButton, "aria-pressed", this.isLog);
    show(this.logButton, Boolean(this.options.log));
    this.where = h("span", { class: "where" });
    this.legend = h("ul", { class: "legend" });
    this.box = h("div", { class: "plot", role: "img", tabindex: 0 });
    this.box.addEventListener("keydown", (event) => this.press(event));
    this.head = h("tr");
    this.body = h("tbody");
    this.details = h("details", { ontoggle: () => this.fillTable() }, h("summary", {}, "As a table"),
      h("div", { class: "scroll", role: "group", tabindex: 0, "aria-label": `${title}, as a table` },
        h("table", {}, h("thead", {}, this.head), this.body)));
    this.empty = h("p", { class: "quiet empty" }, this.options.empty ?? "No values yet.");
    this.note = h("p", { class: "note" });
    this.element = h("section", { class: "chart card", "data-chart": id },
      h("header", {}, h("h2", {}, title, unit ? h("span", { class: "unit" }, unit) : null), this.where,
        h("div", { class: "tools" }, this.logButton,
          document.fullscreenEnabled ? tool("⤢", `Show ${title} in full screen`, () => this.fullScreen()) : null,
          tool("csv", `Download ${title} as csv`, () => download(`${this.options.file}.csv`, "text/csv", this.csv())),
          tool("png", `Download ${title} as png`, () => this.png()))),
      this.legend, this.box, this.empty, this.note, this.details);
    show(this.box, false);
    show(this.legend, false);
    this.setSeries(this.options.series);
  }

  setSeries(series) {
    this.options.series = series;
    this.values = series.map(() => h("data", { value: "" }));
    this.items = series.map((s, i) => h("li", {}, h("button", {
      type: "button", "aria-pressed": String(!this.hidden.has(s.key)), style: `--c: var(${s.color})`,
      onclick: (event) => {
        if (!this.hidden.delete(s.key)) this.hidden.add(s.key);
        mark(event.currentTarget, "aria-pressed", !this.hidden.has(s.key));
        this.rebuild();
      },
    }, h("i"), s.label, " ", this.values[i])));
    this.legend.replaceChildren(...this.items);
    this.drop();
  }

  update(given) {
    this.given = given;
    this.wasLog = this.group.logX;
    const { x, y, min = {}, max = {}, marks = [], spans = [], lines = [], note = "", rows } = this.group.logX ? above0(given) : given;
    this.data = { x, y, min, max, marks, spans, lines, rows };
    say(this.note, note);
    const some = x.length > 0;
    show(this.empty, !some);
    show(this.box, some);
    show(this.legend, some);
    this.items.forEach((item, i) => show(item, this.has(this.options.series[i])));
    this.draw();
    this.read();
    mark(this.box, "aria-label", this.describe());
    if (this.details.open) this.fillTable();
  }

  // ---------------------------------------------------------------- drawing

  has(series) {
    return Boolean(this.data?.y[series.key]?.some(filled));
  }

  shown() {
    return this.options.series.filter((s) => !this.hidden.has(s.key));
  }

  // Returns uPlot's {series, data, bands}: the lines of each series.
  lines() {
    const { data, options, group } = this, hidden = { show: false };
    const x = data.x, series = [{}], columns = [x], bands = [];
    const positive = (values) => (this.isLog ? values.map((v) => (v > 0 ? v : null)) : values);
    const add = (values, line) => {
      const points = line.stroke && lonely(values) ? { show: true, size: 8, fill: line.stroke, stroke: line.stroke } : hidden;
      columns.push(positive(values ?? x.map(() => null)));
      series.push({ points, spanGaps: true, ...line });
      return series.length - 1;
    };
    const reach = (s) => (s.smooth ? Math.round(group.smoothing ** 2 * x.length * 0.12) : 0);
    let below = null;
    for (const s of this.shown()) {
      const color = css(s.color), values = data.y[s.key];
      if (!values) continue;
      if (options.stacked) {
        const under = below, steady = reach(s) < 1 ? values : smooth(values, reach(s));
        const sum = steady.map((v, i) => (filled(v) ? v + (under ? under[i] ?? 0 : 0) : null));
        const at = add(sum, { stroke: color, width: 1, fill: under ? undefined : color + "66" });
        if (under) bands.push({ series: [at, at - 1], fill: color + "66" });
        below = sum;
        continue;
      }
      if (data.min[s.key] && !this.isLog) {
        const low = add(data.min[s.key], { width: 0 }), high = add(data.max[s.key], { width: 0 });
        bands.push({ series: [high, low], fill: color + "1c" });
      }
      const line = { stroke: color, width: s.width ?? 2, dash: s.dash, fill: s.fill ? color + "18" : undefined };
      if (s.points) add(values, { stroke: color, paths: () => null, points: { show: true, size: 7, fill: color, stroke: color } });
      else if (s.dots) add(values, { ...line, points: { show: true, size: lonely(values) ? 8 : 6, fill: color, stroke: color } });
      else if (reach(s) < 1) add(values, line);
      else {
        add(values, { stroke: color + "50", width: 1 });
        add(smooth(values, reach(s)), line);
      }
    }
    return { series, columns, bands };
  }

  xRange(low, high) {
    if (this.group.x.log || (this.group.logX && low === high)) return [low / 1.1, high * 1.1];
    return low === high ? [low - 1, high + 1] : [low, high];
  }

  // Returns the range of the y-axis for values from low to high.
  yRange(low, high) {
    if (low === null) return [0, 1];
    if (this.isLog) return [low * 0.9, high * 1.1];
    for (const { y } of this.data.lines) [low, high] = [Math.min(low, y), Math.max(high, y)];
    const { zero, stacked, most } = this.options, room = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
    return [zero || stacked || (low >= 0 && low < room) ? 0 : low - room, Math.min(high + room, most ?? Infinity)];
  }

  yAxis() {
    return { space: 34, values: (u, ticks) => ticks.map((t) => (t === null ? "" : tick(this.options.format(t)))) };
  }

  // Places a tick at every x if the axis is log; otherwise at decades if the user chose a logarithmic axis.
  xAxis() {
    const { log, ticks, space, incrs, name, format } = this.group.x, title = { label: name, size: 28, values: (u, at) => at.map((t) => (t === null ? "" : format(t))) };
    if (this.group.logX && !log) return { ...title, space: 40 };
    const splits = log ? () => this.data.x : ticks && ((u, i, from, to, incr) => ticks(from, to, incr));
    return { ...title, space: space ?? (log ? 30 : 72), incrs, splits, filter: (u, at) => at };
  }

  // Whether the whole run is shown.
  whole() {
    const { whole, logX } = this.group;
    return whole && logX ? [Math.max(whole[0], this.data.x[0]), whole[1]] : whole;
  }

  uplot() {
    const { group } = this, { series, columns, bands } = this.lines();
    const size = (u, labels) => 14 + 7 * Math.max(3, ...(labels ?? []).map((s) => String(s ?? "").length));
    return new uPlot({
      width: Math.max(100, this.box.clientWidth),
      height: this.box.clientHeight || 220,
      legend: { show: false },
      padding: [8, 18, 0, 0],
      cursor: {
        sync: { key: group.key, scales: ["x", null], filters: { pub: (type) => type === "mousemove" || type === "mouseleave" } },
        points: { size: 7 }, drag: { x: true, y: false, setScale: false },
        bind: { dblclick: () => () => group.zoom(null) },
      },
      scales: {
        x: { time: false, distr: group.x.log || group.logX ? 3 : 1, range: (u, low, high) => group.range ?? this.whole() ?? this.xRange(low, high) },
        y: { range: (u, low, high) => this.yRange(low, high), distr: this.isLog ? 3 : 1 },
      },
      axes: [
        axis(this.xAxis()),
        axis({ size, label: this.options.axis ?? this.options.unit, ...this.yAxis() }),
      ],
      series, bands,
      hooks: {
        setCursor: [() => this.read()],
        setSelect: [(u) => this.selected(u)],
        drawAxes: [(u) => this.drawBehind(u)],
        draw: [(u) => {
          u.ctx.save(); // uPlot caches the context's state
          this.drawBefore(u);
          this.drawLonely(u);
          u.ctx.restore();
        }],
      },
    }, columns, this.box);
  }

  draw() {
    if (this.seen) return this.paint();
    this.stale = true;
    if (this.waits) return;
    this.waits = true;
    setTimeout(() => whenIdle(() => {
      this.waits = false;
      if (this.stale) this.paint();
    }), this.plot ? LATER_MS : 0);
  }

  paint() {
    this.stale = false;
    if (!this.data?.x.length || !this.box.isConnected || !this.box.clientWidth) return;
    if (!this.plot) {
      this.plot = this.uplot();
      return;
    }
    const { columns, series } = this.lines();
    if (this.plot.height !== this.box.clientHeight) this.fit(); // an element that was next to it may have been removed
    if (series.length !== this.plot.series.length) this.rebuild();
    else this.plot.setData(columns);
  }

  // Draws spans (warm-up, a predicted band) and lines (a target) behind the series.
  drawBehind(u) {
    const { ctx, bbox } = u, ratio = devicePixelRatio;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.font = `${11 * ratio}px ${css("--font")}`;
    [ctx.textAlign, ctx.textBaseline] = ["left", "alphabetic"];
    for (const { from, to, label, color = "--muted" } of this.data.spans) {
      const left = u.valToPos(from, "x", true), right = u.valToPos(to, "x", true);
      ctx.fillStyle = css(color) + "1f";
      ctx.fillRect(left, bbox.top, right - left, bbox.height);
      // Draw a label only if it fits within its span; otherwise it would seem to belong to its neighbours.
      const start = Math.max(left, bbox.left) + 5 * ratio, end = Math.min(right, bbox.left + bbox.width);
      if (start + ctx.measureText(label).width > end) continue;
      ctx.fillStyle = css("--muted");
      ctx.fillText(label, start, bbox.top + bbox.height - 12 * ratio);
    }
    for (const { y, label, color = "--muted" } of this.data.lines) {
      const at = Math.round(u.valToPos(y, "y", true));
      ctx.strokeStyle = ctx.fillStyle = css(color);
      ctx.setLineDash([5 * ratio, 4 * ratio]);
      ctx.lineWidth = ratio;
      ctx.beginPath();
      ctx.moveTo(bbox.left, at);
      ctx.lineTo(bbox.left + bbox.width, at);
      ctx.stroke();
      ctx.fillText(label, bbox.left + bbox.width - ctx.measureText(label).width - 5 * ratio, at - 4 * ratio);
    }
    ctx.restore();
  }

  // Draws the value of a series with a single point next to its dot, above any other of the same height.
  drawLonely(u) {
    const { ctx, bbox } = u, ratio = devicePixelRatio, taken = [];
    ctx.font = `600 ${12 * ratio}px ${css("--font")}`;
    [ctx.textAlign, ctx.textBaseline] = ["left", "middle"];
    const few = this.options.stacked ? [] : this.shown().filter((s) => lonely(this.data.y[s.key]));
    for (const s of few.length > MOST_LONELY ? [] : few) {
      const i = this.data.y[s.key].findIndex(filled), at = this.data.x[i], value = this.data.y[s.key][i];
      if (at < u.scales.x.min || at > u.scales.x.max || (this.isLog && value <= 0)) continue;
      const words = (s.format ?? this.options.format)(value), wide = ctx.measureText(words).width, x = u.valToPos(at, "x", true);
      let y = Math.max(bbox.top + 8 * ratio, u.valToPos(value, "y", true));
      while (taken.some((other) => Math.abs(other - y) < 14 * ratio)) y += 14 * ratio;
      taken.push(y);
      const left = x + wide + 12 * ratio > bbox.left + bbox.width ? x - wide - 9 * ratio : x + 9 * ratio;
      ctx.strokeStyle = css("--card"); // keeps it readable where lines cross it
      ctx.lineWidth = 4 * ratio;
      ctx.strokeText(words, left, y);
      ctx.fillStyle = css(s.color);
      ctx.fillText(words, left, y);
    }
  }

  // Draws events as thin lines with a dot at the bottom; where they are dense, only as dots.
  drawBefore(u) {
    const { ctx, bbox } = u, ratio = devicePixelRatio;
    const seen = this.data.marks.filter(({ x }) => x >= u.scales.x.min && x <= u.scales.x.max);
    const lines = seen.length * 14 * ratio < bbox.width;
    for (const { x, kind } of seen) {
      const at = Math.round(u.valToPos(x, "x", true)) + 0.5;
      ctx.strokeStyle = ctx.fillStyle = css(MARK_COLORS[kind] ?? "--muted");
      if (lines || kind === "restart") {
        ctx.globalAlpha = 0.55;
        ctx.lineWidth = ratio;
        ctx.setLineDash([2 * ratio, 3 * ratio]);
        ctx.beginPath();
        ctx.moveTo(at, bbox.top);
        ctx.lineTo(at, bbox.top + bbox.height);
        ctx.stroke();
        ctx.setLineDash([]);
      }
      ctx.globalAlpha = 1;
      ctx.beginPath();
      ctx.arc(at, bbox.top + bbox.height - 1, 2.8 * ratio, 0, 7);
      ctx.fill();
    }
  }

  // ---------------------------------------------------------------- zoom and cursor

  selected(u) {
    const { left, width } = u.select;
    if (width < 6) return;
    const range = [u.posToVal(left, "x"), u.posToVal(left + width, "x")];
    u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.group.zoom(range);
  }

  // Keys while the chart has the focus: arrows move the cursor, with Shift the window; + and - zoom, 0 resets.
  press(event) {
    if (!this.plot || event.ctrlKey || event.metaKey || event.altKey) return;
    const { plot, group } = this, at = plot.cursor.idx ?? this.data.x.length - 1;
    const move = (by) => {
      const i = Math.max(0, Math.min(this.data.x.length - 1, at + by));
      plot.setCursor({ left: plot.valToPos(this.data.x[i], "x"), top: 1 });
    };
    const far = Math.max(1, Math.round(this.data.x.length / 20));
    const keys = {
      ArrowLeft: () => (event.shiftKey ? group.pan(-0.25) : move(-1)), ArrowRight: () => (event.shiftKey ? group.pan(0.25) : move(1)),
      PageUp: () => move(-far), PageDown: () => move(far), Home: () => move(-Infinity), End: () => move(Infinity),
      "+": () => group.zoomBy(0.5, this.data.x[at]), "=": () => group.zoomBy(0.5, this.data.x[at]),
      "-": () => group.zoomBy(2, this.data.x[at]), 0: () => group.zoom(null),
      Escape: () => plot.setCursor({ left: -10, top: -10 }),
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  }

  rescale() {
    if (!this.plot) return;
    const all = this.data.x, [min, max] = this.group.range ?? this.whole() ?? [all[0], all.at(-1)];
    this.plot.setScale("x", { min, max });
  }

  setLog(isLog) {
    this.isLog = isLog;
    mark(this.logButton, "aria-pressed", isLog);
    this.rebuild();
    this.logChanged(isLog);
  }

  // ---------------------------------------------------------------- text

  // Returns the newest value of a series, or the value at index i.
  valueAt(key, i) {
    const values = this.data?.y[key];
    if (!values) return null;
    if (i !== null && i !== undefined) return values[i];
    return values.findLast(filled) ?? null;
  }

  read() {
    const i = this.plot?.cursor.idx ?? null, { series, format } = this.options;
    series.forEach((s, k) => {
      const value = this.valueAt(s.key, i);
      mark(this.values[k], "value", value ?? "");
      say(this.values[k], filled(value) ? (s.format ?? format)(value) : "");
    });
    if (!this.data?.x.length) return say(this.where, "");
    const x = this.data.x[i ?? this.data.x.length - 1];
    const near = i === null ? null : this.nearMark(x);
    say(this.where, (near ? `${near.label} · ` : "") + `${this.group.x.short ?? this.group.x.name} ${this.group.x.format(x)}`);
  }

  nearMark(x) {
    const reach = (this.plot.scales.x.max - this.plot.scales.x.min) * 0.008;
    return this.data.marks.find((m) => Math.abs(m.x - x) <= reach);
  }

  describe() {
    const { title, series, format } = this.options, { x, y } = this.data, { name, format: where } = this.group.x;
    const parts = series.map((s) => {
      const at = x.map((_, i) => i).filter((i) => filled(y[s.key]?.[i]));
      if (!at.length) return null;
      const words = s.format ?? format, values = at.map((i) => y[s.key][i]);
      const low = values.reduce((a, b) => Math.min(a, b)), high = values.reduce((a, b) => Math.max(a, b));
      return `${s.label} ${words(values[0])} at ${name} ${where(x[at[0]])}, ${words(values.at(-1))} at ${name} ${where(x[at.at(-1)])}, ` +
        `lowest ${words(low)}, highest ${words(high)}`;
    }).filter(filled);
    return `${title}: ${parts.join("; ") || "no values yet"}. ` +
      "Arrow keys move the cursor, with Shift the window; plus and minus zoom, 0 resets the zoom.";
  }

  fillTable() {
    if (!this.details.open || !this.data) return;
    const { format } = this.options, { x, y } = this.data, series = this.options.series.filter((s) => this.has(s));
    this.head.replaceChildren(...[this.group.x.name, ...series.map((s) => s.label)].map((name) => h("th", { scope: "col", class: "num" }, name)));
    this.body.replaceChildren(...spread(x.length, TABLE_ROWS).map((i) => h("tr", {}, h("td", { class: "num" }, this.group.x.format(x[i])),
      ...series.map((s) => {
        const value = y[s.key]?.[i];
        return h("td", { class: "num" }, filled(value) ? (s.format ?? format)(value) : "");
      }))));
  }

  // ---------------------------------------------------------------- export

  // All points that have been loaded.
  csv(series = this.options.series) {
    const { x = [], y = {} } = this.data ?? {};
    const rows = [[this.group.x.name, ...series.map((s) => s.key)]];
    x.forEach((at, i) => rows.push([at, ...series.map((s) => y[s.key]?.[i] ?? "")]));
    return f.csv(rows);
  }

  // The chart as shown, with its title and legend.
  png() {
    if (!this.plot) return;
    const from = this.plot.ctx.canvas, ratio = devicePixelRatio, head = 30 * ratio;
    const canvas = h("canvas", { width: from.width, height: from.height + head }), ctx = canvas.getContext("2d");
    ctx.fillStyle = css("--card");
    ctx.fillRect(0, 0, canvas.width, canvas.height);
    let x = 12 * ratio;
    const write = (text, color, weight) => {
      ctx.font = `${weight} ${13 * ratio}px ${css("--font")}`;
      ctx.fillStyle = color;
      ctx.fillText(text, x, 20 * ratio);
      x += ctx.measureText(text).width + 14 * ratio;
    };
    write(this.options.title, css("--text"), 600);
    for (const s of this.shown().filter((one) => this.has(one))) write(s.label, css(s.color), 400);
    ctx.drawImage(from, 0, head);
    canvas.toBlob((blob) => download(`${this.options.file}.png`, "image/png", blob));
  }

  // Escape ends it.
  fullScreen() {
    if (document.fullscreenElement) document.exitFullscreen();
    else this.element.requestFullscreen().catch(() => {});
  }

  // ---------------------------------------------------------------- life cycle

  fit() {
    if (!this.plot) this.draw();
    else if (this.box.clientWidth) this.plot.setSize({ width: this.box.clientWidth, height: this.box.clientHeight });
  }

  drop() {
    this.plot?.destroy();
    this.plot = null;
  }

  rebuild() {
    this.drop();
    if (this.given && this.group.logX !== this.wasLog) return this.update(this.given);
    this.draw();
    if (this.data) this.read();
  }

  close() {
    this.drop();
    living.delete(this);
    this.resize.disconnect();
    this.look.disconnect();
    this.group.charts.delete(this);
    dark.removeEventListener("change", this.recolor);
  }
}
