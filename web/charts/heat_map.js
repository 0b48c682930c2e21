// A chart of many rows and one colour: ranks by steps.
//   update({x: [steps], rows: [[ms of each rank], …], marks})
// A cell's colour is its time against the median of its step's ranks: who holds up the others stands out, slow steps do not.

import { Chart } from "./charts.js";
import { h, mark, say } from "../dom.js";

const LOW = 1, HIGH = 1.6; // multiples of the median: from the palest to the full colour
const COLUMNS_IN_TABLE = 16;

const ranksUpTo = (count) => [...Array(count).keys()].map((rank) => ({ key: rank, label: `rank ${rank}` }));

const median = (values) => {
  const sorted = [...values].sort((a, b) => a - b), middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
};

export class HeatMap extends Chart {
  constructor(options, group) {
    super({ series: [], ...options }, group);
    const steps = [0.06, 0.3, 0.55, 0.8, 1].map((share) => h("i", { style: `--c: var(--c2); opacity: ${share}` }));
    this.legend.replaceChildren(h("li", { class: "scale" }, "like the others", ...steps, `${HIGH} × or slower`));
  }

  get rows() {
    return this.data.rows;
  }

  // Median of the ranks in each step.
  get medians() {
    if (this.of !== this.rows) [this.of, this.found] = [this.rows, this.rows.map(median)];
    return this.found;
  }

  update({ x, rows, marks }) {
    this.world = rows.at(-1)?.length ?? 0;
    const columns = Math.min(this.world, COLUMNS_IN_TABLE);
    if (columns !== this.options.series.length)
      this.options.series = ranksUpTo(columns);
    const y = Object.fromEntries([...Array(this.world).keys()].map((rank) => [rank, rows.map((row) => row[rank] ?? null)]));
    super.update({ x, y, marks, rows });
  }

  // A file can contain all rows.
  csv() {
    return super.csv(ranksUpTo(this.world ?? 0));
  }

  lines() {
    return { series: [{}, { points: { show: false }, paths: () => null }], columns: [this.data.x, this.data.x.map(() => this.world)], bands: [] };
  }

  drawLonely() {} // a step has several values

  yRange() {
    return [0, Math.max(1, this.world)];
  }

  yAxis() {
    return { label: "rank",  incrs: [1, 2, 4, 8, 16, 32], space: 22, grid: { show: false }, values: (u, ticks) => ticks.map((t) => (t < this.world ? String(t) : "")) };
  }

  drawBehind(u) {
    const { ctx, bbox } = u, { x } = this.data, [r, g, b] = colour("--c2");
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    const at = x.map((value) => u.valToPos(value, "x", true)), height = bbox.height / this.world;
    const edge = (i) => (i <= 0 ? bbox.left : i >= x.length ? at.at(-1) + (at.at(-1) - (at.at(-2) ?? at.at(-1) - 8)) / 2 : (at[i - 1] + at[i]) / 2);
    for (let i = 0; i < x.length; i++) {
      const left = Math.floor(edge(i)), right = Math.ceil(edge(i + 1));
      if (right < bbox.left || left > bbox.left + bbox.width) continue;
      this.rows[i].forEach((ms, rank) => {
        const share = Math.max(0.06, Math.min(1, (ms / this.medians[i] - LOW) / (HIGH - LOW)));
        ctx.fillStyle = `rgb(${r} ${g} ${b} / ${share})`;
        ctx.fillRect(left, bbox.top + bbox.height - (rank + 1) * height, right - left, height - (height > 6 ? 1 : 0));
      });
    }
    ctx.restore();
  }

  read() {
    if (!this.data?.x.length) return say(this.where, "");
    const i = this.plot?.cursor.idx ?? this.data.x.length - 1, row = this.rows[i];
    const top = this.plot?.cursor.top, pointed = top >= 0 ? Math.floor(this.plot.posToVal(top, "y")) : -1;
    const rank = pointed >= 0 && pointed < row.length ? pointed : row.indexOf(Math.max(...row));
    say(this.where, `${this.group.x.name} ${this.group.x.format(this.data.x[i])} · rank ${rank}: ${row[rank].toFixed(1)} ms, median ${this.medians[i].toFixed(1)} ms`);
  }

  describe() {
    const { title } = this.options, last = this.rows.at(-1) ?? [];
    const slow = last.indexOf(Math.max(...last));
    mark(this.box, "data-world", this.world);
    return `${title}: ${this.world} ranks, ${this.rows.length} steps; in the newest, rank ${slow} worked longest. Arrow keys move the cursor, plus and minus zoom.`;
  }
}

function colour(name) {
  const text = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  return [1, 3, 5].map((i) => parseInt(text.slice(i, i + 2), 16));
}
