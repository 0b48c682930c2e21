// Plots of a sweep's trials on canvas: a scatter plot, and parallel coordinates with brushes. All their contents are also in the table next
// to them, and the number fields below do the same as the brushes.

import { download, h, mark, say } from "../dom.js";
import { number } from "../format.js";

const dark = matchMedia("(prefers-color-scheme: dark)"), paper = matchMedia("print");
// Caches colours: each query of a computed style would force a layout.
const colours = new Map();
for (const look of [dark, paper]) look.addEventListener("change", () => colours.clear());
function css(name) {
  if (!colours.has(name)) colours.set(name, getComputedStyle(document.documentElement).getPropertyValue(name).trim());
  return colours.get(name);
}

// ------------------------------------------------------------------ axis

// The values of one key: numbers on a scale, or words (and true, false, null) in rows. log: only for numbers above 0.
export function axisOf(name, values, wantsLog = false) {
  const known = values.filter((v) => v !== null && v !== undefined);
  const numeric = known.length > 0 && known.every((v) => typeof v === "number");
  if (!numeric) return { name, words: [...new Set(values.map(wordOf))].sort() };
  const min = Math.min(...known), max = Math.max(...known), log = wantsLog && min > 0;
  return { name, min, max, log };
}
export const wordOf = (value) => (typeof value === "string" ? value : JSON.stringify(value ?? null));
export const canBeLog = (values) => values.every((v) => v === null || (typeof v === "number" && v > 0)) && values.some((v) => v > 0);

// Position of a value, 0 to 1; null: none.
export function placeOf(axis, value) {
  if (axis.words) {
    const i = axis.words.indexOf(wordOf(value));
    return i < 0 ? null : axis.words.length === 1 ? 0.5 : i / (axis.words.length - 1);
  }
  if (typeof value !== "number") return null;
  const scale = axis.log ? Math.log : (x) => x;
  return axis.max === axis.min ? 0.5 : (scale(value) - scale(axis.min)) / (scale(axis.max) - scale(axis.min));
}

// Inverse of placeOf.
export function valueAtPlace(axis, place) {
  if (axis.log) return axis.min * (axis.max / axis.min) ** place;
  return axis.min + place * (axis.max - axis.min);
}

// Returns [[place, words], …]: round numbers (formatted by axis.format), decades if the axis is logarithmic, or all words.
function ticksOf(axis, most = 5) {
  if (axis.words) return axis.words.map((word) => [placeOf(axis, word === "null" ? null : parsed(word)), word]);
  const { format = number } = axis;
  if (axis.min === axis.max) return [[0.5, format(axis.min)]];
  let ticks = axis.log ? decades(axis) : rounds(axis, most);
  if (ticks.length < 2) ticks = [axis.min, axis.max];
  return ticks.map((v) => [placeOf(axis, v), format(v)]);
}
const parsed = (word) => (word === "true" ? true : word === "false" ? false : word);
function decades({ min, max }) {
  const factors = max / min < 100 ? [1, 2, 5] : [1], list = [];
  for (let e = Math.floor(Math.log10(min)); e <= Math.ceil(Math.log10(max)); e++)
    for (const factor of factors) list.push(Number(`${factor}e${e}`));
  const inside = list.filter((v) => v >= min * 0.999 && v <= max * 1.001);
  const every = Math.ceil(inside.length / 6);
  return inside.filter((_, i) => i % every === 0);
}
function rounds({ min, max }, most) {
  const rough = (max - min) / most, size = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * size).find((s) => s >= rough), list = [];
  for (let i = Math.ceil(min / step); i * step <= max * (1 + 1e-9); i++) list.push(Number((i * step).toPrecision(12)));
  return list;
}

// ------------------------------------------------------------------ canvas

// paint(ctx, width, height) draws in CSS pixels. It is called again when size or colours change, and for the file.
class Picture {
  constructor({ id, title, paint }) {
    this.paint = paint;
    this.canvas = h("canvas", { role: "img" });
    this.reading = h("span", { class: "where" });
    this.tools = h("div", { class: "tools" }, h("button", { type: "button", class: "tool", "aria-label": `Download ${title} as png`, onclick: () => this.save(`${id}.png`) }, "png"));
    this.controls = h("div", { class: "controls" });
    this.element = h("section", { class: "chart card picture", "data-chart": id },
      h("header", {}, h("h2", {}, title), this.reading, this.tools), this.controls, h("div", { class: "canvas" }, this.canvas));
    this.resize = new ResizeObserver(() => this.draw());
    this.resize.observe(this.canvas.parentElement);
    this.recolor = () => this.draw();
    for (const look of [dark, paper]) look.addEventListener("change", this.recolor);
  }

  get width() { return this.canvas.parentElement.clientWidth; }
  get height() { return this.canvas.parentElement.clientHeight; }

  draw() {
    const { width, height, canvas } = this, ratio = devicePixelRatio;
    if (!width || !height) return;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    const ctx = canvas.getContext("2d");
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.clearRect(0, 0, width, height);
    ctx.font = `12px ${css("--font")}`;
    this.paint(ctx, width, height);
  }

  save(name) {
    const copy = h("canvas", { width: this.canvas.width, height: this.canvas.height }), ctx = copy.getContext("2d");
    ctx.fillStyle = css("--card");
    ctx.fillRect(0, 0, copy.width, copy.height);
    ctx.drawImage(this.canvas, 0, 0);
    copy.toBlob((blob) => download(name, "image/png", blob), "image/png");
  }

  label(text) { mark(this.canvas, "aria-label", text); }

  close() {
    this.resize.disconnect();
    for (const look of [dark, paper]) look.removeEventListener("change", this.recolor);
  }
}

function drawText(ctx, words, x, y, align = "left", most = Infinity) {
  let shown = words;
  while (shown.length > 1 && ctx.measureText(shown).width > most) shown = shown.slice(0, -2) + "…";
  ctx.textAlign = align;
  ctx.fillText(shown, x, y);
}

function line(ctx, x1, y1, x2, y2) {
  ctx.beginPath();
  ctx.moveTo(x1, y1);
  ctx.lineTo(x2, y2);
  ctx.stroke();
}

// ------------------------------------------------------------------ colours

// From poor to good, increasing in contrast so that the best stands out. As in "cividis", it looks the same with every kind of colour
// vision and in grey.
const SCALE = { light: ["#958f5f", "#807d68", "#666970", "#31446b", "#00204c"], dark: ["#4d6fa8", "#6b7a94", "#9a9a8f", "#cdbb6d", "#ffe945"] };
function shade(goodness) {
  const list = SCALE[dark.matches && !paper.matches ? "dark" : "light"], at = Math.max(0, Math.min(1, goodness)) * (list.length - 1), i = Math.min(list.length - 2, Math.floor(at));
  const channel = (k) => Math.round(parseInt(list[i].slice(k, k + 2), 16) * (1 - at + i) + parseInt(list[i + 1].slice(k, k + 2), 16) * (at - i));
  return `rgb(${channel(1)} ${channel(3)} ${channel(5)})`;
}

// ------------------------------------------------------------------ scatter plot

const EDGE = { left: 62, right: 16, top: 12, bottom: 40 };

// update({x: axis, y: axis, points: [{x, y, words, goodness, faint, best, open}]}): y null: no result, drawn as a cross at the bottom.
// opened(point) is called on a click.
export function scatter(id, title, opened) {
  let data = null, under = null;
  // Position of points and ticks, leaving space for a dot at both ends.
  const across = (place, width) => EDGE.left + 14 + place * (width - EDGE.left - EDGE.right - 28);
  const down = (place, height) => height - EDGE.bottom - 8 - place * (height - EDGE.top - EDGE.bottom - 16);
  const at = (point, width, height) => {
    const px = placeOf(data.x, point.x), py = placeOf(data.y, point.y);
    if (px === null) return null;
    return { x: across(px, width), y: py === null ? height - EDGE.bottom + 9 : down(py, height) };
  };
  const axes = (ctx, width, height) => {
    const foot = height - EDGE.bottom;
    ctx.strokeStyle = css("--grid");
    ctx.fillStyle = css("--muted");
    ctx.lineWidth = 1;
    for (const [place, words] of ticksOf(data.y)) {
      const y = down(place, height);
      line(ctx, EDGE.left - 4, y, width - EDGE.right, y);
      drawText(ctx, words, EDGE.left - 9, y + 4, "right", EDGE.left - 12);
    }
    const ticks = ticksOf(data.x), room = (width - EDGE.left - EDGE.right) / Math.max(1, ticks.length - 1);
    for (const [place, words] of ticks) {
      const x = across(place, width);
      line(ctx, x, EDGE.top, x, foot + 4);
      const half = ctx.measureText(words).width / 2;
      drawText(ctx, words, Math.min(x, width - half - 2), foot + 24, "center", room - 6);
    }
  };
  const dot = (ctx, point, place) => {
    ctx.globalAlpha = point.faint ? 0.18 : 1;
    ctx.strokeStyle = ctx.fillStyle = point.y === null ? css("--danger") : shade(point.goodness);
    ctx.lineWidth = 2;
    ctx.beginPath();
    if (point.y === null) {
      line(ctx, place.x - 4, place.y - 4, place.x + 4, place.y + 4);
      line(ctx, place.x - 4, place.y + 4, place.x + 4, place.y - 4);
    } else {
      ctx.arc(place.x, place.y, 5.5, 0, 7);
      if (point.open) ctx.stroke();
      else ctx.fill();
    }
    if (point.best || point === under) {
      ctx.strokeStyle = css("--text");
      ctx.beginPath();
      ctx.arc(place.x, place.y, 9, 0, 7);
      ctx.stroke();
    }
    ctx.globalAlpha = 1;
  };
  const picture = new Picture({ id, title, paint: (ctx, width, height) => {
    if (!data) return;
    axes(ctx, width, height);
    for (const point of [...data.points].sort((a, b) => Number(b.faint) - Number(a.faint) || Number(a.best) - Number(b.best))) {
      const place = at(point, width, height);
      if (place) dot(ctx, point, place);
    }
  } });
  const nearest = (event) => {
    let best = null, least = 14;
    for (const point of data?.points ?? []) {
      const place = at(point, picture.width, picture.height);
      const far = place ? Math.hypot(place.x - event.offsetX, place.y - event.offsetY) : Infinity;
      if (far < least) [best, least] = [point, far];
    }
    return best;
  };
  picture.canvas.addEventListener("pointermove", (event) => {
    const now = nearest(event);
    if (now === under) return;
    under = now;
    say(picture.reading, under?.words ?? "");
    picture.canvas.classList.toggle("pointing", Boolean(under));
    picture.draw();
  });
  picture.canvas.addEventListener("pointerleave", () => {
    under = null;
    say(picture.reading, "");
    picture.draw();
  });
  picture.canvas.addEventListener("click", (event) => {
    const point = nearest(event);
    if (point) opened(point);
  });
  picture.update = (now, words) => {
    data = now;
    picture.label(words);
    picture.draw();
  };
  return picture;
}

// ------------------------------------------------------------------ parallel coordinates

const NEAR = 26; // px from an axis within which a brush can begin
const TOP = 34, FOOT = 18;

// update({axes, lines: [{values, goodness, faint, best}], brushes: Map(name -> [low place, high place])}). brushed(axis, [low, high] or
// null) is called while dragging.
export function parallel(id, title, brushed) {
  let data = null, drag = null;
  const xOf = (i, width) => {
    const side = Math.min(90, width * 0.12);
    return data.axes.length === 1 ? width / 2 : side + (i * (width - 2 * side)) / (data.axes.length - 1);
  };
  const yOf = (place, height) => height - FOOT - place * (height - TOP - FOOT);
  const stroke = (ctx, one, width, height) => {
    ctx.globalAlpha = one.faint ? 0.1 : 0.9;
    ctx.strokeStyle = one.failed ? css("--danger") : shade(one.goodness);
    ctx.lineWidth = one.best ? 3.5 : 1.6;
    ctx.setLineDash(one.failed ? [4, 4] : []);
    ctx.beginPath();
    let drawing = false;
    data.axes.forEach((axis, i) => {
      const place = placeOf(axis, one.values[i]);
      if (place === null) drawing = false;
      else ctx[drawing ? "lineTo" : "moveTo"](xOf(i, width), yOf(place, height));
      drawing ||= place !== null;
    });
    ctx.stroke();
    ctx.setLineDash([]);
    ctx.globalAlpha = 1;
  };
  const axisLine = (ctx, axis, i, width, height) => {
    const x = xOf(i, width), room = width / data.axes.length - 8;
    ctx.strokeStyle = css("--muted");
    ctx.lineWidth = 1;
    line(ctx, x, TOP, x, height - FOOT);
    ctx.fillStyle = css("--text");
    ctx.font = `600 12px ${css("--font")}`;
    const long = axis.name.split(/[./]/).filter(Boolean).slice(-2).join("."), short = long.split(".").at(-1);
    drawText(ctx, ctx.measureText(long).width <= room ? long : short, x, 16, "center", room);
    ctx.font = `11px ${css("--font")}`;
    const right = i === data.axes.length - 1;
    for (const [place, words] of ticksOf(axis, 4)) {
      const y = yOf(place, height), wide = ctx.measureText(words).width;
      ctx.fillStyle = css("--card"); // keep text readable where lines cross it
      ctx.fillRect(right ? x - wide - 10 : x + 5, y - 8, wide + 5, 16);
      ctx.fillStyle = css("--muted");
      line(ctx, x - 3, y, x + 3, y);
      drawText(ctx, words, right ? x - 7 : x + 7, y + 4, right ? "right" : "left", room);
    }
    const brush = data.brushes.get(axis.name);
    if (!brush) return;
    const [low, high] = brush.map((place) => yOf(place, height));
    ctx.fillStyle = css("--accent") + "33";
    ctx.strokeStyle = css("--accent");
    ctx.lineWidth = 1.5;
    ctx.fillRect(x - 9, high - 3, 18, low - high + 6);
    ctx.strokeRect(x - 9, high - 3, 18, low - high + 6);
  };
  const picture = new Picture({ id, title, paint: (ctx, width, height) => {
    if (!data) return;
    for (const one of [...data.lines].sort((a, b) => Number(b.faint) - Number(a.faint) || Number(a.best) - Number(b.best) || a.goodness - b.goodness)) stroke(ctx, one, width, height);
    data.axes.forEach((axis, i) => axisLine(ctx, axis, i, width, height));
  } });
  const { canvas } = picture;
  const placeAt = (event) => Math.max(0, Math.min(1, (picture.height - FOOT - event.offsetY) / (picture.height - TOP - FOOT)));
  const axisAt = (event) => data?.axes.findIndex((_, i) => Math.abs(xOf(i, picture.width) - event.offsetX) < NEAR) ?? -1;
  canvas.addEventListener("pointerdown", (event) => {
    const i = axisAt(event);
    if (i < 0 || event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    drag = { axis: data.axes[i], from: placeAt(event), y: event.offsetY, moved: false };
  });
  canvas.addEventListener("pointermove", (event) => {
    canvas.classList.toggle("pointing", axisAt(event) >= 0);
    if (!drag) return;
    drag.moved ||= Math.abs(event.offsetY - drag.y) > 4;
    const to = placeAt(event);
    if (drag.moved) brushed(drag.axis, [Math.min(drag.from, to), Math.max(drag.from, to)]);
  });
  const release = () => {
    if (drag && !drag.moved) brushed(drag.axis, null); // a click on an axis removes its brush
    drag = null;
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", () => { drag = null; });
  picture.update = (now, words) => {
    data = now;
    picture.label(words);
    picture.draw();
  };
  return picture;
}
