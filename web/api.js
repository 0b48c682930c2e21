// Requests to the daemon that served this page.

import { heardTime } from "./clock.js";
import { h } from "./dom.js";

export class Problem extends Error {
  // document: problem+json, with errors: [{pointer, message, suggestion}] if a job document was rejected
  constructor(status, document) {
    super(document?.detail || document?.title || `the daemon answered with HTTP status ${status}`);
    this.status = status;
    this.document = document;
  }
}

// No response: the daemon is not running, or takes too long.
export class Away extends Error {}

// The error as text for the page.
export const words = (error) => (error instanceof Away ? "No answer from traind. Try again." : error.message);

// The text of a page that has no data yet.
export const waiting = (error) => (error instanceof Problem ? error.message : "No answer yet from traind; trying again…");

// A daemon that requires tokens answers 401. The user is then asked once, and the token is kept until the tab is closed. Not a cookie: the
// token is sent only by this page's own requests. Without it, the page shows only a button to sign in.
const KEPT = "traind-token";
let asking = null;
let declined = false; // the user closed the dialog: it reappears on their next action, not by itself

for (const type of ["click", "hashchange"]) addEventListener(type, () => { declined = false; }, true);

export const hasToken = () => sessionStorage.getItem(KEPT) !== null;

// A link may contain a token, #token=TOKEN/jobs/3, such as the one printed by ./quickstart. It is removed from the address at once and kept
// like a typed one. If there is another token, replaces() asks the user first, because the owner of the link's token would see what the
// user does next. Returns whether it was accepted at once.
export function takeToken(replaces) {
  const [, token, path] = /^#token=([\w-]+)(\/.*)?$/.exec(location.hash) ?? [], kept = sessionStorage.getItem(KEPT);
  if (!token) return false;
  history.replaceState(history.state, "", `#${path ?? "/"}`);
  const other = kept !== null && kept !== token;
  if (!other) sessionStorage.setItem(KEPT, token);
  else replaces(async () => sessionStorage.setItem(KEPT, token)).then((done) => done && location.reload());
  return !other;
}

// Accepts a token, or a link that contains one.
const tokenIn = (text) => /#token=([\w-]+)/.exec(text)?.[1] ?? text.trim();

// Paths that were refused; a sign-in card replaces their contents.
const refusedPaths = new Set();
const signIn = h("section", { class: "notice card", id: "sign-in", "aria-label": "Sign in" }, h("h2", {}, "Sign in to see this page"), h("p", {}, "The server requires an access token."),
  h("button", { type: "button", class: "primary", onclick: async () => (await askForToken()) && location.reload() }, "Sign in"));
function lock(locked) {
  document.body.classList.toggle("locked", locked);
  if (!locked) signIn.remove();
  else if (!signIn.isConnected) document.getElementById("main")?.before(signIn);
}

const REFUSAL = "traind-refusal"; // why the last token was rejected; kept, as the page may be loaded again before it is shown

function askForToken() {
  asking ??= new Promise((given) => {
    const refusal = sessionStorage.getItem(REFUSAL);
    const field = h("input", { type: "password", autocomplete: "off", spellcheck: "false", required: true, "aria-describedby": "token-help" });
    const form = h("form", { method: "dialog" }, h("h2", { id: "token-title" }, "Sign in"), h("p", { class: "error", role: "alert", hidden: !refusal }, refusal ?? ""),
      h("p", { id: "token-help" }, "Paste an access token. On the server: ", h("code", {}, "trainctl token create NAME"), "; quickstart stored one in ", h("code", {}, "_state/token"), "."),
      h("label", {}, "Access token", field),
      h("div", { class: "actions" }, h("button", { type: "button", onclick: () => dialog.close() }, "Cancel"), h("button", { class: "primary", value: "yes" }, "Sign in")));
    const dialog = h("dialog", { id: "token-ask", "aria-labelledby": "token-title" }, form);
    dialog.addEventListener("close", () => {
      const token = dialog.returnValue === "yes" ? tokenIn(field.value) : "";
      dialog.remove();
      asking = null;
      sessionStorage.removeItem(REFUSAL);
      declined = !token;
      if (token) sessionStorage.setItem(KEPT, token);
      else signIn.querySelector("button").focus();
      given(Boolean(token));
    });
    document.body.append(dialog);
    dialog.showModal();
  });
  return asking;
}

function away(error) {
  throw new Away(error.message);
}

// fetch with the token. The token at the time of the request decides whether to ask for another.
export async function authorized(path, options = {}) {
  const token = sessionStorage.getItem(KEPT);
  const headers = { ...options.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
  const answer = await fetch(path, { cache: "no-store", ...options, headers }).catch(away);
  heardTime(answer);
  const [what] = path.split("?");
  if (answer.status !== 401) {
    if (refusedPaths.delete(what)) lock(false);
    return answer;
  }
  refusedPaths.add(what);
  const why = token && (await answer.clone().json().catch(() => null))?.detail;
  if (token !== sessionStorage.getItem(KEPT)) return authorized(path, options); // signed in, or rejected, meanwhile
  if (token) sessionStorage.setItem(REFUSAL, why ?? "");
  sessionStorage.removeItem(KEPT);
  lock(true);
  if (declined) return answer;
  return (await askForToken()) ? authorized(path, options) : answer;
}

async function call(path, options) {
  const answer = await authorized(path, options);
  if (!answer.ok) throw new Problem(answer.status, await answer.json().catch(() => null));
  return answer;
}

// signal (AbortSignal) is optional. All of these throw Problem for an error response and Away for none.
export const get = async (path, signal) => (await call(path, { signal })).json().catch(away);
// Gets bytes of a job's log, and the position after them.
export async function getLog(path, signal) {
  const answer = await call(path, { signal });
  return { bytes: await answer.arrayBuffer().catch(away), next: Number(answer.headers.get("X-Log-Next")) };
}
export const getBytes = async (path, signal) => (await call(path, { signal })).arrayBuffer().catch(away);
export const getBlob = async (path, signal) => (await call(path, { signal })).blob().catch(away);
// body: a value converted to JSON, or a string that is JSON already; none: no body
export async function post(path, body, { signal, headers: more } = {}) {
  const text = body === undefined || typeof body === "string" ? body : JSON.stringify(body);
  const headers = { ...(text === undefined ? {} : { "Content-Type": "application/json" }), ...more };
  return (await call(path, { method: "POST", body: text, headers, signal })).json();
}
export const patch = async (path, body) => (await call(path, { method: "PATCH", body: JSON.stringify(body), headers: { "Content-Type": "application/merge-patch+json" } })).json();
export const remove = async (path) => (await call(path, { method: "DELETE" })).json();

// For the header Idempotency-Key: a request repeated with the same key takes effect once.
export const newKey = () => [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
