// A picture of a page: node screenshot.mjs URL OUT.png [--dark] [--phone] [--whole]

import { openBrowser } from "./browser.mjs";

const words = process.argv.slice(2);
const flags = new Set(words.filter((word) => word.startsWith("--")));
const [url, out] = words.filter((word) => !word.startsWith("--"));
if (!url || !out) {
  console.error("usage: screenshot.mjs URL OUT.png [--dark] [--phone] [--whole]");
  process.exit(2);
}

const browser = await openBrowser({
  colorScheme: flags.has("--dark") ? "dark" : "light",
  viewport: flags.has("--phone") ? { width: 390, height: 844 } : { width: 1240, height: 900 },
});
try {
  const { page } = browser;
  await page.goto(url);
  await page.waitForSelector(".connection[data-state=live]");
  // The values are in before the canvas is painted.
  await page.waitForTimeout(700);
  await page.screenshot({ path: out, fullPage: flags.has("--whole"), animations: "disabled" });
} finally {
  await browser.close();
}
