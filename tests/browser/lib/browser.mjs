// Debian's Chromium, headless, that talks to nobody but the page's own daemon.

import { existsSync } from "node:fs";
import { chromium } from "playwright-core";

const QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
  "--disable-background-networking", "--disable-component-update", "--no-default-browser-check"];

// The shell is Chromium without windows, menus and DevTools, and needs three quarters of its processor time.
const WHOLE = ["/usr/bin/chromium", "/usr/bin/chromium-browser"], SHELL_FIRST = ["/usr/bin/chromium-headless-shell", ...WHOLE];

const PATIENCE_MS = 300000; // a busy machine may be slow: see until

let browser, used = 0;

// A window that shares nothing with others but the browser's process, which ends with the last of them. options: playwright's, as
// colorScheme and viewport, and `devtools: true` for a browser that has them. Returns {context, page, close}.
export async function openBrowser({ devtools = false, ...options } = {}) {
  used += 1;
  browser ??= chromium.launch({ executablePath: (devtools ? WHOLE : SHELL_FIRST).find(existsSync), args: QUIET, headless: true, timeout: PATIENCE_MS });
  const context = await (await browser).newContext({ viewport: { width: 1240, height: 900 }, reducedMotion: "reduce", ...options });
  context.setDefaultTimeout(PATIENCE_MS);
  const close = async () => {
    await context.close();
    used -= 1;
    if (used) return;
    const last = await browser;
    browser = undefined;
    await last.close();
  };
  return { context, page: await context.newPage(), close };
}
