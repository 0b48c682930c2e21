// Charts of a job over its steps, by uPlot (global uPlot): canvas for the eye, words and a table for
// everybody else. All charts of a page share one cursor.

import { number } from "./format.js";

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Mean over the steps around each one: noise goes, and nothing lags behind as in a running mean.
export function smooth(values) {
  const reach = Math.min(50, Math.max(2, Math.round(values.length / 40)));
  const sums = [0], counts = [0];
  values.forEach((v, i) => {
    sums.push(sums[i] + (v ?? 0));
    counts.push(counts[i] + (v === null ? 0 : 1));
  });
  return values.map((v, i) => {
    const from = Math.max(0, i - reach), to = Math.min(values.length, i + reach + 1);
    return v === null ? null : (sums[to] - sums[from]) / (counts[to] - counts[from]);
  });
}

function axis(extra) {
  return {
    stroke: css("--muted"),
    grid: { stroke: css("--grid"), width: 1 },
    ticks: { stroke: css("--grid"), width: 1, size: 4 },
    font: "12px " + css("--font"),
    ...extra,
  };
}

function describe(title, xs, ys) {
  const seen = ys.map((y, i) => [xs[i], y]).filter(([, y]) => y !== null);
  if (!seen.length) return `${title}: no values yet`;
  const values = seen.map(([, y]) => y);
  const [last, first] = [seen.at(-1), seen[0]];
  const low = values.reduce((a, b) => Math.min(a, b)), high = values.reduce((a, b) => Math.max(a, b));
  return `${title}: ${number(first[1])} at step ${first[0]}, ${number(last[1])} at step ${last[0]}; ` +
    `lowest ${number(low)}, highest ${number(high)}`;
}

// Rows for the table behind a chart: at most `most`, evenly spread, first and last among them.
function spread(count, most) {
  if (count <= most) return [...Array(count).keys()];
  return [...Array(most).keys()].map((i) => Math.round((i * (count - 1)) / (most - 1)));
}

// kind: {title, unit, key, color (a CSS variable), smoothed, zero: the axis starts at 0}
export class Chart {
  constructor(kind) {
    this.kind = kind;
    this.data = null;
    this.element = document.createElement("section");
    this.element.className = "chart card";
    this.element.innerHTML =
      "<header><h2></h2><p class=reading></p></header><div class=plot role=img></div>" +
      "<details><summary>As a table</summary><div class=scroll role=group tabindex=0><table><thead><tr>" +
      "<th scope=col>Step</th><th scope=col></th></tr></thead><tbody></tbody></table></div></details>";
    const find = (selector) => this.element.querySelector(selector);
    [this.reading, this.box, this.details, this.body] =
      [".reading", ".plot", "details", "tbody"].map(find);
    find("h2").textContent = kind.title;
    find("thead th + th").textContent = kind.title;
    find(".scroll").setAttribute("aria-label", kind.title + " by step");
    this.details.addEventListener("toggle", () => this.fillTable());
    this.resize = new ResizeObserver(() => this.fit());
    this.resize.observe(this.box);
    this.dark = matchMedia("(prefers-color-scheme: dark)");
    this.recolor = () => { this.drop(); this.draw(); };
    this.dark.addEventListener("change", this.recolor);
  }

  options() {
    const { kind } = this, color = css(kind.color), points = { show: false };
    const series = [{ label: "step" }];
    if (kind.smoothed)
      series.push({ stroke: color + "55", width: 1, points }, { stroke: color, width: 2, points });
    else
      series.push({ stroke: color, width: 2, points, fill: color + "14" });
    const range = (_, low, high) => {
      const room = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
      return [kind.zero || (low >= 0 && low < room) ? 0 : low - room, high + room];
    };
    const size = (u, labels) => 14 + 7.5 * Math.max(3, ...(labels ?? []).map((s) => String(s).length));
    return {
      width: Math.max(200, this.box.clientWidth),
      height: this.box.clientHeight || 220,
      legend: { show: false },
      cursor: { sync: { key: "job" }, points: { size: 7 }, drag: { x: true, y: false } },
      scales: { x: { time: false }, y: { range } },
      axes: [
        axis({ space: 70, size: 30, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5] }),
        axis({ size, values: (u, ticks) => ticks.map((t) => number(t)) }),
      ],
      series,
      hooks: { setCursor: [() => this.read()] },
    };
  }

  // xs, ys: arrays of the same length; a null in ys is a hole.
  update(xs, ys) {
    this.data = kindData(this.kind, xs, ys);
    this.draw();
    this.read();
    this.box.setAttribute("aria-label", describe(this.kind.title, xs, ys));
    if (this.details.open) this.fillTable();
  }

  draw() {
    if (!this.data || !this.data[0].length || !this.box.isConnected) return;
    if (!this.plot) this.plot = new uPlot(this.options(), this.data, this.box);
    else {
      // Someone who zoomed in keeps the window; double click brings the whole run back.
      const [low, high] = [this.plot.scales.x.min, this.plot.scales.x.max];
      const zoomed = low > this.plot.data[0][0] || high < this.plot.data[0].at(-1);
      this.plot.setData(this.data, !zoomed);
      if (zoomed) this.plot.redraw();
    }
  }

  // The value under the cursor, else the newest.
  read() {
    if (!this.data || !this.data[0].length) {
      this.reading.textContent = "no values yet";
      return;
    }
    const under = this.plot?.cursor.idx;
    const i = under ?? this.data[0].length - 1;
    const unit = this.kind.unit ? " " + this.kind.unit : "";
    this.reading.textContent = `${number(this.data[1][i])}${unit} at step ${this.data[0][i]}`;
  }

  fillTable() {
    if (!this.details.open || !this.data) return;
    this.body.replaceChildren(...spread(this.data[0].length, 200).map((i) => {
      const row = document.createElement("tr");
      for (const text of [this.data[0][i], number(this.data[1][i])]) {
        const cell = document.createElement("td");
        cell.textContent = text;
        row.append(cell);
      }
      return row;
    }));
  }

  fit() {
    if (this.plot) this.plot.setSize({ width: this.box.clientWidth, height: this.box.clientHeight });
    else this.draw();
  }

  drop() {
    this.plot?.destroy();
    this.plot = null;
  }

  close() {
    this.drop();
    this.resize.disconnect();
    this.dark.removeEventListener("change", this.recolor);
  }
}

function kindData(kind, xs, ys) {
  return kind.smoothed ? [xs, ys, smooth(ys)] : [xs, ys];
}
