// Debian's Chromium, headless, that talks to nobody but the page's own daemon.

import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
  "--disable-background-networking", "--disable-component-update", "--no-default-browser-check"];

export const chromiumPath = () => ["/usr/bin/chromium", "/usr/bin/chromium-browser"].find(existsSync);

// options: playwright's, as colorScheme and viewport. Returns {page, close}.
export async function openBrowser(options = {}) {
  const folder = mkdtempSync(join(tmpdir(), "traind-browser-"));
  const context = await chromium.launchPersistentContext(folder, {
    executablePath: chromiumPath(), args: QUIET, headless: true,
    viewport: { width: 1240, height: 900 }, reducedMotion: "reduce", ...options,
  });
  context.setDefaultTimeout(300000); // a busy machine may be slow: see until
  const close = async () => {
    await context.close();
    rmSync(folder, { recursive: true, force: true, maxRetries: 100, retryDelay: 100 }); // helpers of it may still end
  };
  return { context, page: context.pages()[0] ?? (await context.newPage()), close };
}
