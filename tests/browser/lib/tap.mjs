// TAP for the browser tests: a line a check; done() closes with the plan and sets the exit status.

let count = 0, failures = 0;

export function ok(good, name, why = "") {
  count++;
  if (!good) failures++;
  console.log(`${good ? "ok" : "not ok"} ${count} - ${name}`);
  if (!good && why !== "") console.log(String(why).replace(/^/gm, "# "));
}

export const same = (got, want, name) => ok(got === want, name, `got ${JSON.stringify(got)}, want ${JSON.stringify(want)}`);

export function done() {
  console.log(`1..${count}`);
  process.exitCode = failures ? 1 : 0;
}
