// Formats numbers for people, in the units of trainctl (client/views/format.c). null and NaN give "–".

import { daemonTime } from "./clock.js";

export const none = "–";

const missing = (x) => x === null || x === undefined || Number.isNaN(x);

// Three significant digits, never in exponents: 8.35, 64.1, 212.
function digits3(x) {
  return x.toFixed(x < 9.995 ? 2 : x < 99.95 ? 1 : 0);
}

export function rate(imagesPerSec) {
  if (missing(imagesPerSec)) return none;
  return imagesPerSec < 9999.5 ? digits3(imagesPerSec) : digits3(imagesPerSec / 1000) + "k";
}

export function percent(fraction) {
  return missing(fraction) ? none : (100 * fraction).toFixed(2) + " %";
}

// Four significant digits: 0.8123, 4.8, 1.20e-5, 5.10e+15.
export function number(x) {
  if (missing(x)) return none;
  if (x !== 0 && (Math.abs(x) < 1e-4 || Math.abs(x) >= 1e7)) return x.toExponential(2);
  return String(Number(x.toPrecision(4)));
}

// Formats energy with its unit: 0.0123 kWh, 4.5 Wh.
export function kwh(x) {
  if (missing(x)) return none;
  return x > 0 && x < 0.01 ? `${number(x * 1000)} Wh` : `${number(x)} kWh`;
}

export function money(x, currency) {
  return missing(x) ? none : number(x) + (currency ? ` ${currency}` : "");
}

export function count(n) {
  return missing(n) ? none : Math.round(n).toLocaleString("en-US");
}

// Uses no-break spaces, so that a duration stays on one line.
export function duration(seconds) {
  if (missing(seconds) || seconds < 0) return none;
  const s = Math.round(seconds);
  if (seconds < 9.95) return seconds.toFixed(1) + "\u00a0s";
  if (s < 60) return s + "\u00a0s";
  if (s < 3600) return `${Math.floor(s / 60)}\u00a0min\u00a0${s % 60}\u00a0s`;
  const m = Math.round(seconds / 60);
  if (m < 1440) return `${Math.floor(m / 60)}\u00a0h\u00a0${m % 60}\u00a0min`;
  const h = Math.round(seconds / 3600);
  return `${Math.floor(h / 24)}\u00a0d\u00a0${h % 24}\u00a0h`;
}

export function ago(unixTime) {
  if (missing(unixTime)) return none;
  const s = Math.max(0, daemonTime() - unixTime);
  if (s < 10) return "just now";
  if (s < 60) return `${Math.floor(s)}\u00a0s ago`;
  if (s < 3600) return `${Math.floor(s / 60)}\u00a0min ago`;
  return duration(s) + " ago";
}

export function date(unixTime) {
  if (missing(unixTime)) return none;
  return new Date(unixTime * 1000).toLocaleString("sv-SE"); // 2026-11-21 13:15:02
}

export function size(bytes) {
  if (missing(bytes)) return none;
  if (bytes < 1024) return `${bytes} bytes`;
  const units = ["KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0, x = bytes / 1024;
  for (; x >= 1000 && unit < units.length - 1; unit++) x /= 1024;
  return `${digits3(x)} ${units[unit]}`;
}

// Formats RFC 4180 CSV from rows of values; null and undefined are empty. Puts an apostrophe before a string that a spreadsheet would take
// for a formula, and before one that already begins with such apostrophes, so that removing the first restores the string. Numbers are
// unchanged.
export function csv(rows) {
  const cell = (value) => {
    const plain = String(value ?? ""), text = /^'*[=+\-@\t\r]/.test(plain) && !Number.isFinite(Number(plain)) ? `'${plain}` : plain;
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rows.map((row) => row.map(cell).join(",") + "\r\n").join("");
}
