// What time it is by the daemon, whose times the page shows: the clock of this machine may be hours off.

const EXACT_MS = 5000; // less than this is the way here, and the second that the header Date is cut to

let ahead = 0; // ms that this machine's clock is in front

export const daemonTime = () => (Date.now() - ahead) / 1000;

// answer: of the daemon, which came now
export function heardTime(answer) {
  const off = Date.now() - Date.parse(answer.headers.get("Date"));
  if (Math.abs(off - ahead) > EXACT_MS) ahead = Math.abs(off) > EXACT_MS ? off : 0;
}
