// Calls to the daemon that served this page, and polling that survives its restart.

export class Problem extends Error {
  constructor(status, document) {
    super(document?.detail || document?.title || `the daemon answered with HTTP status ${status}`);
    this.status = status;
  }
}

// A daemon that wants tokens answers 401: the person is asked once, and the token is kept until the
// tab is closed. No cookie: nothing is sent that this page does not put there.
const KEPT = "traind-token";
let asking = null;

function askForToken(words) {
  asking ??= new Promise((given) => {
    const dialog = document.getElementById("token-ask"), field = document.getElementById("token-field");
    document.getElementById("token-text").textContent = words;
    field.value = "";
    dialog.onclose = () => {
      const token = field.value.trim();
      field.value = "";
      asking = null;
      if (token) sessionStorage.setItem(KEPT, token);
      given(Boolean(token));
    };
    document.getElementById("token-form").onsubmit = (event) => {
      event.preventDefault();
      dialog.close();
    };
    dialog.showModal();
  });
  return asking;
}

// fetch with the token; what it was when the request went out decides whether to ask.
export async function authorized(path, options = {}) {
  const token = sessionStorage.getItem(KEPT);
  const headers = { ...options.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
  const answer = await fetch(path, { ...options, headers });
  if (answer.status !== 401) return answer;
  if (token !== sessionStorage.getItem(KEPT)) return authorized(path, options); // given meanwhile
  sessionStorage.removeItem(KEPT);
  const words = (await answer.clone().json().catch(() => null))?.detail ?? "";
  return (await askForToken(token ? words : "This daemon wants a token: trainctl token create makes one."))
    ? authorized(path, options) : answer;
}

async function call(path, options) {
  const answer = await authorized(path, { cache: "no-store", ...options });
  if (!answer.ok) throw new Problem(answer.status, await answer.json().catch(() => null));
  return answer;
}

export const get = async (path, signal) => (await call(path, { signal })).json();
export const getText = async (path, signal) => (await call(path, { signal })).text();
export const getBytes = async (path, signal) => (await call(path, { signal })).arrayBuffer();
export const post = async (path) => (await call(path, { method: "POST" })).json();

const ANSWER_MS = 15000; // a daemon that takes longer counts as away

const TYPES = ["state", "run_start", "step", "eval_progress", "eval", "checkpoint", "straggler", "warning", "run_stop", "failed", "resume"];
const LIVE_MS = 5000; // between looks while a stream tells what happens: a queue's estimates are no events

// The daemon's stream of events while the page is on the screen (browsers have few connections to spare). It comes
// back by itself after a restart of the daemon; where it cannot be had, polling goes on as without it.
function live(heard) {
  let source = null;
  const open = () => {
    if (document.visibilityState !== "visible" || (source && source.readyState !== EventSource.CLOSED)) return;
    source = new EventSource("/v1/events");
    TYPES.forEach((type) => source.addEventListener(type, (event) => heard(JSON.parse(event.data))));
  };
  const close = () => {
    source?.close();
    source = null;
  };
  open();
  return { open, close, isOpen: () => source?.readyState === EventSource.OPEN };
}

// Calls work(signal) now and every period_ms until stop(), and when an event comes that wanted(event) says yes to. work may give the number of ms until
// its next turn, or Infinity for never again. report(null) after success, report(error) after failure.
export function poll(work, periodMs, report, wanted) {
  let again = false, began = 0;
  let timer = 0, stopped = false, failures = 0, abort;
  const turn = async () => {
    again = false;
    began = Date.now();
    timer = 0; // so that coming back on the screen starts no second chain
    abort = new AbortController();
    const limit = setTimeout(() => abort.abort(), ANSWER_MS);
    let pause = periodMs;
    try {
      pause = (await work(abort.signal)) ?? periodMs;
      failures = 0;
      if (!stopped) report(null);
    } catch (error) {
      if (stopped) return;
      failures++;
      pause = Math.min(5000, periodMs * failures);
      report(error);
    } finally {
      clearTimeout(limit);
    }
    if (stopped || pause === Infinity) return;
    stream.open();
    if (failures === 0 && stream.isOpen() && !again) pause = Math.max(pause, LIVE_MS);
    timer = setTimeout(turn, pause);
  };
  // At most as often as without the stream: a fast run has a hundred steps a second.
  const stream = live((event) => {
    if (stopped || !wanted(event)) return;
    again = true;
    if (!timer) return; // it is looking
    clearTimeout(timer);
    timer = setTimeout(turn, Math.max(0, began + periodMs - Date.now()));
  });
  // Back on the screen: look at once, background tabs are throttled.
  const seen = () => {
    if (document.visibilityState !== "visible") stream.close();
    if (document.visibilityState !== "visible" || !timer) return;
    clearTimeout(timer);
    timer = 0;
    turn();
  };
  document.addEventListener("visibilitychange", seen);
  turn();
  return () => {
    stopped = true;
    stream.close();
    clearTimeout(timer);
    abort?.abort();
    document.removeEventListener("visibilitychange", seen);
  };
}
