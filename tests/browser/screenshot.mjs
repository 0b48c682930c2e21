// A picture of a page: node screenshot.mjs URL OUT.png [--dark] [--phone] [--whole]

import { openBrowser } from "./lib/browser.mjs";

const args = process.argv.slice(2);
const flags = new Set(args.filter((word) => word.startsWith("--")));
const [url, out] = args.filter((word) => !word.startsWith("--"));
if (!url || !out) {
  console.error("usage: screenshot.mjs URL OUT.png [--dark] [--phone] [--whole]");
  process.exit(2);
}

const size = flags.has("--phone") ? { width: 375, height: 812 } : { width: 1240, height: 900 };
const browser = await openBrowser({ colorScheme: flags.has("--dark") ? "dark" : "light", viewport: size });
try {
  const { page } = browser;
  await page.goto(url);
  await page.waitForSelector(".connection[data-state=live]");
  await page.waitForTimeout(700); // the values are in before the canvas is painted
  if (flags.has("--whole")) {
    await page.waitForTimeout(1200); // charts that are not on the screen are drawn last
  }
  await page.screenshot({ path: out, animations: "disabled", fullPage: flags.has("--whole") });
} finally {
  await browser.close();
}
