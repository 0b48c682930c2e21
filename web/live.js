// Live updates: one stream of the daemon's events for the whole page, and polling when an event reports a change. Uses fetch instead of
// EventSource, which cannot send the token.

import { authorized, Away, Problem } from "./api.js";
import { mark, say } from "./dom.js";

const ANSWER_MS = 15000; // a daemon that takes longer counts as not answering
const LIVE_MS = 5000; // between polls while the stream is open: the queue's estimates are not events
const SILENT_MS = 60000; // without even a heartbeat: the connection is dead
const AGAIN_MS = [500, 1000, 2000, 5000]; // between attempts, increasing with each failure

const listeners = new Set();
let stream = null; // {abort, open}
let last = null; // id of the newest event received
let failed = 0, timer = 0;

// Subscribes to all events: heard({id, job, attempt, t, type, ...}). Returns a function that unsubscribes.
export function hear(heard) {
  listeners.add(heard);
  connect();
  return () => {
    listeners.delete(heard);
    if (!listeners.size) disconnect();
  };
}
const isLive = () => Boolean(stream?.open);

// Handles a block of lines up to an empty one (WHATWG HTML, "Server-sent events").
function take(block) {
  let data = "", type = "";
  for (const line of block.split("\n")) {
    if (line.startsWith("data:")) data += (data ? "\n" : "") + line.slice(line[5] === " " ? 6 : 5);
    else if (line.startsWith("id:")) last = line.slice(3).trim();
    else if (line.startsWith("event:")) type = line.slice(6).trim();
  }
  if (!data || type === "heartbeat") return;
  const event = JSON.parse(data);
  listeners.forEach((heard) => heard(event));
}

async function read(body, alive) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = "";;) {
    const { value, done } = await reader.read();
    if (done) return;
    alive();
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    blocks.forEach(take);
  }
}

async function connect() {
  clearTimeout(timer);
  if (stream || !listeners.size || document.visibilityState !== "visible") return;
  const mine = (stream = { abort: new AbortController(), open: false });
  let silent = 0;
  const alive = () => {
    clearTimeout(silent);
    silent = setTimeout(() => mine.abort.abort(), SILENT_MS);
  };
  try {
    alive();
    const answer = await authorized("/v1/events", {
      signal: mine.abort.signal,
      headers: { Accept: "text/event-stream", ...(last === null ? {} : { "Last-Event-ID": last }) },
    });
    if (!answer.ok) throw new Problem(answer.status, null);
    mine.open = true;
    failed = 0;
    await read(answer.body, alive);
  } catch {
    // Polling continues and shows if the daemon does not answer.
  }
  clearTimeout(silent);
  if (stream !== mine) return; // closed on purpose
  stream = null;
  timer = setTimeout(connect, AGAIN_MS[Math.min(failed++, AGAIN_MS.length - 1)]);
}

function disconnect() {
  clearTimeout(timer);
  stream?.abort.abort();
  stream = null;
}

// Browsers allow few connections, so a hidden page has none.
document.addEventListener("visibilitychange", () => {
  if (document.visibilityState === "visible") connect();
  else disconnect();
});

// The page's header shows whether the daemon answers. An error response, such as for a job that does not exist, is an answer: the page
// shows the error.
const connection = document.getElementById("connection");
function stateOf(error) {
  if (error instanceof Away) return ["lost", "no answer from traind, trying again…"];
  if (error?.status === 401) return ["signed-out", "not signed in"];
  return !error || error.status < 500 ? ["live", "live"] : ["error", error.message];
}
function tell(error) {
  const [state, words] = stateOf(error);
  document.body.classList.toggle("stale", state === "lost");
  mark(connection, "data-state", state);
  say(connection, words);
}

// Calls work(signal) now and then every periodMs until stop(). While the stream is open, calls it every 5 s and when wanted(event) accepts
// an event, but at most every periodMs. work may return the ms until its next call. After each call, runs done(null) or done(error), and
// updates the page's header. Returns {stop, again}: again() calls it at once
export function watch(work, { periodMs = 1500, wanted = () => false, done = () => {} }) {
  let again = false, began = 0, next = 0, stopped = false, failures = 0, abort;
  const turn = async () => {
    again = false;
    began = Date.now();
    next = 0; // so that becoming visible does not start a second chain
    abort = new AbortController();
    const limit = setTimeout(() => abort.abort(), ANSWER_MS);
    let pause = periodMs;
    try {
      pause = (await work(abort.signal)) ?? periodMs;
      failures = 0;
      if (stopped) return;
      tell(null);
      done(null);
    } catch (error) {
      if (stopped) return;
      if (!(error instanceof Problem || error instanceof Away)) console.error(error); // an error of this page itself
      failures++;
      pause = Math.min(5000, periodMs * failures);
      tell(error);
      done(error);
    } finally {
      clearTimeout(limit);
    }
    if (stopped) return;
    if (again) pause = Math.max(0, began + periodMs - Date.now());
    else if (failures === 0 && isLive()) pause = Math.max(pause, LIVE_MS);
    next = setTimeout(turn, pause);
  };
  const sooner = (at) => {
    again = true;
    if (!next) return; // work is running
    clearTimeout(next);
    next = setTimeout(turn, Math.max(0, at - Date.now()));
  };
  const deafen = hear((event) => {
    if (!stopped && !again && wanted(event)) sooner(began + periodMs);
  });
  // Visible again: poll at once, because background tabs are throttled.
  const seen = () => {
    if (document.visibilityState === "visible") sooner(0);
  };
  document.addEventListener("visibilitychange", seen);
  turn();
  return {
    again: () => sooner(0),
    stop: () => {
      stopped = true;
      deafen();
      clearTimeout(next);
      abort?.abort();
      document.removeEventListener("visibilitychange", seen);
    },
  };
}
