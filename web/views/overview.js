// The overview: all jobs, total throughput, nodes and the queue (#/). In the address: state, q (words), tag ("a,b": with all of these),
// sort ("top1", "-top1"), shown (number of jobs, increased by "Show more"), hours (of the throughput).

import { get, waiting } from "../api.js";
import { curlCommand } from "../code.js";
import { arrange, choice, h, mark, notice, say, show } from "../dom.js";
import * as f from "../format.js";
import { ended, title } from "../jobs.js";
import { askedTags, tagWords } from "../labels.js";
import { hear, watch } from "../live.js";
import { many, moreButton, PAGE, shownOf } from "../more.js";
import { setQuery } from "../place.js";
import { COLUMNS, jobRow } from "./overview_row.js";
import { bulkBar, findBar } from "./overview_find.js";
import { clusterStrip } from "./overview_cluster.js";

const ACTIVE = "queued,starting,running,evaluating";
const SORTED = { "-top1": "top1", "-best_top1": "best_top1", "-images_per_sec": "images_per_sec" }; // sorted by the daemon over all jobs; other columns are sorted here over the loaded ones
const LIVE_MS = 500; // between displays of steps reported by the stream
const ROWS = 25; // created at a time; more when the user scrolls there
const WORDS = 3; // of a search, sent to the daemon
const TYPING_MS = 120; // after a key press, before the list is searched

const STATES = { active: ACTIVE, running: "starting,running,evaluating", queued: "queued", finished: "succeeded,failed,cancelled", failed: "failed" };
const FILTERS = {
  all: () => true,
  active: (job) => !ended(job),
  running: (job) => !ended(job) && job.state !== "queued",
  queued: (job) => job.state === "queued",
  finished: ended,
  failed: (job) => job.state === "failed",
};

function emptyList() {
  const command = curlCommand('{"data": {"train": "synthetic"}, "steps": 20}', "/v1/jobs");
  return notice("No jobs yet", h("p", {}, h("a", { href: "#/submit" }, "Submit one"), " here, or from a terminal; it appears by itself:"),
    h("pre", { tabindex: 0 }, command));
}

// Sortable column headings. {element, set(sort)}
function tableHead(sorted) {
  const heads = COLUMNS.map(({ key, name, kind }) => {
    const button = h("button", { type: "button", class: "sort", onclick: () => sorted(key) }, name, h("span", { "aria-hidden": "true" }));
    return { key, button, element: h("th", { scope: "col", class: kind }, button) };
  });
  const set = (sort) => heads.forEach(({ key, element, button }) => {
    const down = sort === `-${key}`, mine = down || sort === key;
    if (mine) mark(element, "aria-sort", down ? "descending" : "ascending");
    else element.removeAttribute("aria-sort");
    say(button.lastChild, mine ? (down ? " ↓" : " ↑") : "");
  });
  return { element: h("thead", {}, h("tr", {}, ...heads.map((head) => head.element))), set };
}

function compare(sort, asked) {
  const key = sort.replace(/^-/, ""), sign = sort.startsWith("-") ? -1 : 1;
  const { value } = COLUMNS.find((column) => column.key === key) ?? COLUMNS[0];
  return (a, b) => {
    const [x, y] = [value(a, asked), value(b, asked)];
    if (x === y) return b.id - a.id;
    if (x === null || x === undefined) return 1; // unknown values come last in either order
    if (y === null || y === undefined) return -1;
    return (x < y ? -1 : 1) * sign;
  };
}

export function mount(main, { query, heading, kept }) {
  const rows = new Map(), jobs = new Map(), dirty = new Set();
  const found = new Map(); // word -> ids found by the daemon, which also searches networks and data
  let everywhere = []; // active jobs, for the cluster's numbers, regardless of the list's filters
  let asked = 0, next = null, diskBytes = 0, most = kept?.most ?? ROWS, typing = 0;
  const settings = {};
  const read = (from) => Object.assign(settings, { state: FILTERS[from.get("state")] ? from.get("state") : "all", q: from.get("q") ?? "", tag: askedTags(from), sort: from.get("sort") ?? "-id", shown: shownOf(from) });
  read(query);

  const body = h("tbody"), summary = h("p", { class: "summary", role: "status" });
  const head = tableHead((key) => {
    const first = ["id", "top1", "best_top1", "images_per_sec", "progress", "created_at"].includes(key) ? `-${key}` : key;
    const other = first.startsWith("-") ? key : `-${key}`;
    change({ sort: settings.sort === first ? other : first });
  });
  const table = h("table", { class: "jobs card", hidden: true }, h("caption", { class: "hidden" }, "Jobs"), head.element, body);
  const wait = notice("Loading the jobs…"), empty = emptyList(), nothing = notice("No jobs match.");
  const states = choice("Which jobs", Object.keys(FILTERS).map((name) => [name, name[0].toUpperCase() + name.slice(1)]), settings.state, (state) => change({ state }));
  const search = h("input", { type: "search", placeholder: "Name, id, network…   /", "aria-label": "Search the jobs by name, id, tags, note, reason, user, network or data", value: settings.q });
  search.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => {
      change({ q: search.value });
      look.again();
    }, TYPING_MS);
  });
  const picked = new Set(kept?.ticked);
  const pick = (id, isIt) => {
    if (isIt) picked.add(id);
    else picked.delete(id);
    bulk.update(picked, jobs);
  };
  const tickOnly = (ids) => {
    picked.clear();
    for (const id of ids) picked.add(id);
    for (const [id, row] of rows) row.tick(picked.has(id));
    bulk.update(picked, jobs);
  };
  const bulk = bulkBar(() => look.again(), () => {
    tickOnly([]);
    search.focus();
  });
  const find = findBar((changes) => { change(changes); look.again(); });
  const filters = h("div", { class: "filters" }, states.element, search, ...find.elements);
  const more = moreButton("Show more jobs", body, (there) => {
    change({ shown: settings.shown + PAGE }, there + ROWS);
    look.again();
  });
  const foot = h("div");
  const scrolled = new IntersectionObserver((entries) => {
    if (!entries.at(-1).isIntersecting) return;
    most += ROWS;
    fill();
  }, { rootMargin: "300px" });
  const cluster = clusterStrip(query);
  for (const element of [filters, empty, nothing, more.element]) show(element, false);
  main.replaceChildren(h("div", { class: "title" }, h("h1", { tabindex: -1 }, "Jobs"), summary), cluster.element,
    h("div", { class: "list" }, filters, bulk.element, wait, empty, nothing, table, foot, more.element));
  heading("traind");

  // made: rows of the list to create at once.
  function change(changes, made = ROWS) {
    Object.assign(settings, changes);
    most = made;
    if (["sort", "state", "tag"].some((name) => name in changes)) settings.shown = PAGE;
    if ("sort" in changes || "state" in changes) look.again();
    setQuery({ state: settings.state === "all" ? null : settings.state, q: settings.q || null, tag: settings.tag || null, sort: settings.sort === "-id" ? null : settings.sort, shown: settings.shown === PAGE ? null : settings.shown });
    fill();
  }

  const wordsOf = (text) => text.toLowerCase().split(/\s+/).filter(Boolean);
  // Until the daemon has answered, the result for a prefix of the word.
  const foundBy = (word) => found.get(word) ?? [...found].find(([begun]) => word.startsWith(begun))?.[1];
  const wanted = (job) => {
    if (!tagWords(settings.tag).every((tag) => job.tags.includes(tag))) return false;
    const text = `${job.id} ${title(job)} ${job.state} ${job.reason ?? ""} ${job.submitted_by ?? ""} ${job.failure_label ?? ""} ${job.tags.join(" ")} ${job.note ?? ""}`.toLowerCase();
    return FILTERS[settings.state](job) && wordsOf(settings.q).every((word) => text.includes(word) || foundBy(word)?.has(job.id));
  };

  // All rows, in order.
  function fill() {
    states.set(settings.state);
    head.set(settings.sort);
    find.update(settings);
    const all = [...jobs.values()], shown = all.filter(wanted).sort(compare(settings.sort, asked));
    const made = shown.slice(0, most);
    for (const job of made) {
      if (!rows.has(job.id)) rows.set(job.id, jobRow(job.id, (isIt) => pick(job.id, isIt)));
      rows.get(job.id).update(job, asked);
      rows.get(job.id).tick(picked.has(job.id));
    }
    const elements = made.map((job) => rows.get(job.id).element);
    arrange(body, elements);
    scrolled.unobserve(foot); // it reports only changes, and the foot may still be visible after adding rows
    if (made.length < shown.length) scrolled.observe(foot);
    mark(table, "data-best", all.some((job) => job.best_top1 !== job.top1) || settings.sort.endsWith("best_top1")); // otherwise it equals Top-1
    mark(table, "data-who", all.some((job) => job.submitted_by));
    show(wait, false);
    const narrowed = Boolean(settings.tag || settings.q);
    show(filters, all.length > 0 || narrowed);
    show(empty, all.length === 0 && !narrowed);
    show(nothing, (all.length > 0 || narrowed) && shown.length === 0);
    show(table, shown.length > 0);
    more.update(next !== null && made.length === shown.length);
    const active = shown.filter((job) => !ended(job)).length, which = (next === null ? "" : SORTED[settings.sort] ? " best" : " newest") + (narrowed || settings.state !== "all" ? " matching" : "");
    const disk = diskBytes && !which.endsWith("matching") ? `, ${f.size(diskBytes)} on disk` : "";
    say(summary, shown.length ? `${f.count(shown.length)}${which} ${shown.length === 1 ? "job" : "jobs"}, ${active} active${disk}` : "");
    cluster.tell(everywhere);
  }

  // The stream reports each step: the rows change at once, order and estimates at the next poll.
  let timer = 0;
  const deafen = hear((event) => {
    const job = event.type === "step" && jobs.get(event.job);
    if (!job || ended(job)) return;
    job.step = event.step;
    job.images_per_sec = event.images_per_sec ?? job.images_per_sec;
    dirty.add(event.job);
    timer ||= setTimeout(() => {
      timer = 0;
      for (const { id, state } of everywhere) if (state === "queued") dirty.add(id); // their estimated starts change, too
      for (const id of dirty) if (rows.get(id)?.element.isConnected) rows.get(id).update(jobs.get(id), asked);
      dirty.clear();
      cluster.tell(everywhere);
    }, LIVE_MS);
  });

  async function fetchJobs(signal) {
    // A search covers all jobs: the daemon finds the longest words, this page the others.
    const words = [...new Set(wordsOf(settings.q))].sort((a, b) => b.length - a.length).slice(0, WORDS);
    const sort = (SORTED[settings.sort] ? `&sort=${SORTED[settings.sort]}` : "")
      + (settings.tag ? `&tag=${encodeURIComponent(tagWords(settings.tag).join(","))}` : "");
    const ask = async (what, limit = PAGE) => {
      const page = await get(`/v1/jobs?limit=${limit}${what}`, signal);
      diskBytes = page.disk_bytes ?? 0;
      return page;
    };
    const narrow = sort + (STATES[settings.state] ? `&state=${STATES[settings.state]}` : "");
    // Also get the active jobs: running jobs and those that start next may be older than the listed ones.
    const [listed, newest, { all: active }, ...searched] = await Promise.all([many(ask, "jobs", narrow, settings.shown), narrow === sort ? { jobs: [] } : ask(sort), many(ask, "jobs", `&state=${ACTIVE}`, Infinity),
      ...words.map((word) => ask(`${narrow}&q=${encodeURIComponent(word)}`))]);
    const all = [...listed.all, ...newest.jobs, ...active, ...searched.flatMap((answer) => answer.jobs)];
    found.clear();
    words.forEach((word, i) => found.set(word, new Set(searched[i].jobs.map((job) => job.id))));
    next = listed.next;
    return [all, active];
  }

  const look = watch(async (signal) => {
    const [all, active] = await fetchJobs(signal);
    asked = Date.now();
    jobs.clear();
    all.forEach((job) => jobs.set(job.id, job));
    everywhere = [...new Map(active.map((job) => [job.id, jobs.get(job.id) ?? job])).values()];
    for (const id of [...rows.keys(), ...picked]) if (!jobs.has(id)) (rows.delete(id), picked.delete(id));
    bulk.update(picked, jobs);
    fill();
  }, {
    wanted: (event) => ["state", "eval", "labels"].includes(event.type),
    done: (error) => {
      if (error && !wait.hidden) say(wait.firstChild, waiting(error));
    },
  });

  // j and k move from job to job.
  const press = (event) => {
    if (event.target.closest("input, select, textarea, dialog, .plot") || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key !== "j" && event.key !== "k") return;
    const links = [...body.querySelectorAll("th a:not(.chip)")], at = links.findIndex((link) => link.closest("tr").contains(document.activeElement));
    links[Math.max(0, Math.min(links.length - 1, at + (event.key === "j" ? 1 : -1)))]?.focus();
  };
  document.addEventListener("keydown", press);

  return {
    update: (where) => {
      read(where.query);
      most = where.kept?.most ?? ROWS;
      if (where.kept) tickOnly(where.kept.ticked);
      search.value = settings.q;
      cluster.apply(where.query);
      look.again();
      fill();
    },
    keep: () => ({ most, ticked: [...picked] }),
    unmount: () => {
      look.stop();
      deafen();
      clearTimeout(timer);
      clearTimeout(typing);
      scrolled.disconnect();
      cluster.close();
      document.removeEventListener("keydown", press);
    },
  };
}
