// The daemon's clock, which the page's times refer to: the clock of this machine may be hours off.

const EXACT_MS = 5000; // smaller differences are due to the network and to the header Date, which has a resolution of one second

let ahead = 0; // ms by which this machine's clock is ahead

export const daemonTime = () => (Date.now() - ahead) / 1000;

// answer: a response of the daemon that has just arrived
export function heardTime(answer) {
  const off = Date.now() - Date.parse(answer.headers.get("Date"));
  if (Math.abs(off - ahead) > EXACT_MS) ahead = Math.abs(off) > EXACT_MS ? off : 0;
}
