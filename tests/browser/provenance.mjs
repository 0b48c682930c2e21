// The section Provenance of the job page, and the job that repeats it.
// environment: TRAINCOMM_HOST_RANKS=1

import { openBrowser } from "./lib/browser.mjs";
import { accessible, api, jobIn, JOB, listen, origin, sideways, story, submit } from "./lib/checks.mjs";
import { ok, same } from "./lib/tap.mjs";

async function opened(page, id, heading) {
  await page.goto(`${origin}/#/jobs/${id}`);
  await page.getByRole("heading", { name: heading, exact: true }).waitFor();
  const section = page.locator("section.card", { has: page.getByRole("heading", { name: "Provenance" }) });
  await section.locator("summary").first().press("Enter");
  await section.getByText("train-worker").first().waitFor();
  const [summary, title] = await Promise.all([section.locator("summary").first(), section.getByRole("heading", { name: "Provenance" })].map((one) => one.boundingBox()));
  ok(summary.height < 1.6 * title.height, `${heading}: the triangle of the section stands beside its heading`, `${summary.height} and ${title.height}`);
  return section;
}

await story(async ({ page }) => {
  const first = await submit({ ...JOB, name: "first", steps: 2 });
  await jobIn(first.id, "succeeded");
  const { document: pinned } = await api(`/v1/jobs/${first.id}/pinned`);
  const again = await submit({ ...pinned, name: "again" });
  const other = await submit({ ...pinned, name: "other", seed: 7 });
  const threads = await submit({ ...pinned, name: "threads", cluster: { ...pinned.cluster, threads_per_worker: 2 } });
  const shorter = await submit({ ...pinned, name: "shorter", steps: 1 });
  for (const { id } of [again, other, threads, shorter]) await jobIn(id, "succeeded");

  const facts = await api(`/v1/jobs/${first.id}/provenance`), [attempt] = facts.attempts, [machine] = attempt.machines;
  let section = await opened(page, first.id, "first");
  const text = await section.textContent();
  for (const value of [machine.cpu, machine.openblas, machine.mpi, machine.kernel, attempt.winograd, attempt.result.weights.slice(0, 12)])
    ok(!value || text.includes(value), `provenance: the page has ${value}`);
  await section.getByText("Libraries").first().click();
  ok(await section.getByText("libm.so.6").isVisible(), "provenance: libraries are listed on request");
  same(await section.getByRole("link", { name: `job ${again.id}`, exact: true }).getAttribute("href"), `#/jobs/${again.id}`, "provenance: links to the job that repeats it");
  const waiting = page.waitForEvent("download");
  await section.getByRole("link", { name: "provenance.json" }).click();
  same((await waiting).suggestedFilename(), `job-${first.id}-provenance.json`, "provenance: can be kept as a file");
  await accessible(page, "provenance");

  section = await opened(page, again.id, "again");
  await section.getByText("bit-identical.").waitFor();
  ok((await section.textContent()).includes("weights bit-identical, losses bit-identical"), "provenance: a job that repeats another says that it has the same bits");
  same(await section.getByRole("link", { name: `job ${first.id}`, exact: true }).getAttribute("href"), `#/jobs/${first.id}`, "provenance: and links to it");

  section = await opened(page, other.id, "other");
  await section.getByText("the results differ").waitFor();
  ok(await section.getByRole("row", { name: /seed.*1.*7.*possible cause/ }).isVisible(), "provenance: one with another seed says what differs");
  ok((await section.textContent()).includes("the first step that differs is 1"), "provenance: and from which step on");

  section = await opened(page, shorter.id, "shorter");
  await section.getByText(`: job ${shorter.id} ended after step 1; up to there both are bit-identical.`).waitFor();
  ok((await section.textContent()).includes("weights unknown, losses bit-identical"), "provenance: one that ended before the other says up to where they are the same");
  same(await section.getByRole("table", { name: "What differs" }).count(), 0, "provenance: and lists no causes");

  await page.goto(`${origin}/#/compare?ids=${first.id},${again.id}`);
  const runs = page.locator("section.runs");
  await runs.getByText("No difference recorded in programs, hardware or data.").waitFor();
  ok(true, "compare: runs with the same programs are told as such");
  await page.goto(`${origin}/#/compare?ids=${first.id},${threads.id}`);
  await runs.getByRole("row", { name: /threads per worker.*1.*2.*may differ/ }).waitFor();
  const { provenance } = await api(`/v1/compare?ids=${first.id},${threads.id}`);
  const rows = await runs.locator("tbody tr").evaluateAll((list) => list.map((row) => [...row.children].map((cell) => cell.textContent)));
  same(JSON.stringify(rows), JSON.stringify(provenance.differences.map((d) => [d.words, ...d.values, d.may_change_bits ? "may differ" : "stay the same"])),
    "compare: the differences of runs are the API's");
  await accessible(page, "compared runs");

  const phone = await openBrowser({ viewport: { width: 360, height: 740 }, colorScheme: "dark" });
  try {
    listen(phone.page);
    await opened(phone.page, other.id, "other");
    ok(await sideways(phone.page) <= 0, "provenance: a phone does not scroll sideways");
    await accessible(phone.page, "provenance on a phone");
    if (process.env.PROVENANCE_PICTURES) {
      await phone.page.screenshot({ path: `${process.env.PROVENANCE_PICTURES}/phone.png`, fullPage: true });
      await page.screenshot({ path: `${process.env.PROVENANCE_PICTURES}/wide.png`, fullPage: true });
    }
  } finally {
    await phone.close();
  }

  const between = await submit({ ...JOB, name: "between", steps: 1, comm: { overlap: false }, cluster: { ...JOB.cluster, workers_per_node: 2 } });
  const { message } = (await jobIn(between.id, "succeeded")).gradients;
  ok(message.startsWith("gradients of 2 ranks are summed between 2 machines"), "sum: a job on several machines says how", message);
  await page.goto(`${origin}/#/jobs/${between.id}`);
  await page.getByRole("definition").filter({ hasText: message }).waitFor();
  same(await page.locator("tr[data-type=gradients] td").last().textContent(), message, "sum: its page has it with the plan and among the events");
});
