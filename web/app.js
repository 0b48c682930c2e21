// The frame around the views, and the choice of the view. doc/how-to-add-a-page.md describes views.

import { get, takeToken } from "./api.js";
import { ask } from "./ask.js";
import { comeBack, enter, leave } from "./back.js";
import { h, mark, notice, say } from "./dom.js";
import { keepFocus } from "./focus.js";
import { listenToKeys, showKeys } from "./keys.js";
import { watch } from "./live.js";
import { here, listHref } from "./place.js";

// nav: its name in the navigation; within: nav of the view it belongs to. The first matching path applies; its groups are the view's
// params.
const VIEWS = [
  { path: /^\/$/, nav: "Jobs", href: "#/", load: () => import("./views/overview.js") },
  { path: /^\/jobs\/([1-9][0-9]{0,15})$/, within: "Jobs", load: () => import("./views/job.js") },
  { path: /^\/groups$/, within: "Jobs", load: () => import("./views/groups.js") },
  { path: /^\/submit$/, nav: "Submit", href: "#/submit", load: () => import("./views/submit.js") },
  { path: /^\/compare$/, nav: "Compare", href: "#/compare", load: () => import("./views/compare.js") },
  { path: /^\/sweeps$/, nav: "Sweeps", href: "#/sweeps", load: () => import("./views/sweeps.js") },
  { path: /^\/sweeps\/new$/, within: "Sweeps", load: () => import("./views/new_sweep.js") },
  { path: /^\/sweeps\/([1-9][0-9]{0,15})$/, within: "Sweeps", load: () => import("./views/sweep.js") },
  { path: /^\/nodes$/, nav: "Nodes", href: "#/nodes", load: () => import("./views/nodes.js") },
  { path: /^\/users$/, nav: "Users", href: "#/users", load: () => import("./views/users.js") },
];

const AGAIN_MS = 2000; // between attempts to load a view

const main = document.getElementById("main");
const nav = document.getElementById("nav");
const links = VIEWS.filter((view) => view.nav).map((view) => ({ view, link: h("a", { href: view.href }, view.nav) }));
nav.append(...links.map(({ link }) => link));

let shown = { view: null, path: null, mounted: null };

function heading(title) {
  document.title = title && title !== "traind" ? `${title} – traind` : "traind";
}

// Shown for an address without a view.
function lost() {
  main.append(h("div", { class: "title" }, h("h1", { tabindex: -1 }, "Page not found")),
    notice("This address has no page", h("p", {}, h("a", { href: listHref() }, "All jobs"))));
  heading("Page not found");
  return { unmount: watch((signal) => get("/healthz", signal), { periodMs: 5000 }).stop };
}

// Returns the view's mount() once its module has loaded, or null if it is no longer wanted().
async function loaded(view, wanted) {
  const away = notice("No answer yet from traind; trying again…", h("p", {}, h("button", { type: "button", onclick: () => location.reload() }, "Load the page again")));
  for (;;) {
    const part = await view.load().catch(() => null);
    if (!wanted()) return null;
    if (part) return part.mount;
    if (!away.isConnected) main.replaceChildren(away);
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    if (!wanted()) return null;
  }
}

async function route(moved) {
  leave(shown.mounted);
  const { path, query } = here(), place = enter(), kept = place?.view ?? null;
  const view = VIEWS.find((v) => v.path.test(path));
  if (view && view === shown.view && path === shown.path && shown.mounted?.update) {
    shown.mounted.update({ query, kept });
    if (place) comeBack(place);
    return;
  }
  shown.mounted?.unmount();
  const mine = (shown = { view, path, mounted: null });
  links.forEach((l) => (l.view === view ? mark(l.link, "aria-current", "page")
    : l.view.nav === view?.within ? mark(l.link, "aria-current", "true") : l.link.removeAttribute("aria-current")));
  const mount = view ? await loaded(view, () => shown === mine) : lost;
  if (!mount) return; // the user has navigated elsewhere meanwhile
  main.replaceChildren();
  mine.mounted = mount(main, { params: view?.path.exec(path).slice(1), query, heading, kept });
  // Users of a keyboard or screen reader start at the new page's heading.
  if (moved) {
    if (!place) scrollTo(0, 0);
    main.querySelector("h1")?.focus({ preventScroll: true });
  }
  if (place) comeBack(place);
}

const replaces = (work) => ask({ title: "Use the link's token?", text: "This tab already has a token. With the link's token, everything you do here is done as its owner, who can see it.",
  yes: "Use the link's token", no: "Keep mine", work });
addEventListener("hashchange", () => {
  if (takeToken(replaces)) location.reload(); // everything on the page was requested without it
  else if (location.hash !== "#main") route(true);
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // keep the address
  main.focus();
});
say(document.getElementById("connection"), "connecting…");
takeToken(replaces);
history.scrollRestoration = "manual"; // the browser would scroll before the page has content
document.addEventListener("visibilitychange", () => document.visibilityState === "hidden" && leave(shown.mounted)); // also before a reload
keepFocus();
listenToKeys();
document.getElementById("keys").addEventListener("click", showKeys);
route(false);
fetch("healthz").then((answer) => answer.json()).then(({ version }) => say(document.getElementById("version"), `traind ${version}`), () => {});
