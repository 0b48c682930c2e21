// Jobs in groups, by tag or by a key of their documents: #/groups?by=optimizer.name&sort=best_top1, and the filters of the list.
// In the address: by, sort, q (words), tag ("a,b": with all of these), open (JSON of the group whose jobs are shown),
// shown (groups).

import { get, Problem, waiting, words } from "../api.js";
import { badge, choice, download, h, mark, notice, say, setBadge, show } from "../dom.js";
import * as f from "../format.js";
import { fieldsOf, keyWords, writeText } from "../job_document.js";
import { compareWords, MOST_COMPARED, title } from "../jobs.js";
import { askedTags } from "../labels.js";
import { watch } from "../live.js";
import { MOST_ASKED, moreButton, PAGE, shownOf } from "../more.js";
import { href, setQuery } from "../place.js";

const SORTS = [["", "Most jobs"], ["name", "Value"], ["best_top1", "Best"], ["ttt_seconds", "Time to train"]];
const ACTIVE = ["queued", "starting", "running", "evaluating"];
const COLUMNS = [["Value"], ["Jobs", "num"], ["Active", "num"], ["Succeeded", "num"], ["Failed", "num"], ["Cancelled", "num"], ["Best Top-1", "num"], ["Mean time to train", "num"], ["Images", "num"]];

const valueWords = (value, by) => (value === null ? (by === "tag" ? "without tags" : "null") : writeText(value));
const count = (group, ...states) => states.reduce((sum, state) => sum + (group.states[state] ?? 0), 0);
const numbersOf = (group) => [group.jobs, count(group, ...ACTIVE), count(group, "succeeded"), count(group, "failed"), count(group, "cancelled"), group.best?.top1 ?? null, group.mean_ttt_seconds, group.images];

// The filters in the API's form.
function filtersOf({ q, tag }) {
  return { q: q || null, tag: tag || null };
}
const listOf = ({ q, tag }) => href("/", { q, tag });
const path = (query) => `/v1/jobs${href("", query).slice(1)}`;

// The query for the jobs of one group; null: impossible (jobs without tags).
function jobsOf(settings, value) {
  const filters = filtersOf(settings);
  if (settings.by !== "tag") return { ...filters, where: `${settings.by}=${JSON.stringify(value)}` };
  return value === null ? null : { ...filters, tag: [...new Set([...settings.tag.split(",").filter(Boolean), value])].join(",") };
}

function groupRow(group, by, opened, open) {
  const [jobs, active, succeeded, failed, cancelled, , seconds, images] = numbersOf(group), { best } = group;
  const name = valueWords(group.value, by);
  const cell = (value, text) => h("td", { class: "num" }, h("data", { value: value ?? "" }, text));
  const button = open && h("button", { type: "button", class: "more-of", "aria-expanded": String(opened), onclick: open }, name);
  return h("tr", { "data-group": JSON.stringify(group.value) }, h("th", { scope: "row" }, button ?? name), cell(jobs, f.count(jobs)), ...[active, succeeded, failed, cancelled].map((n) => cell(n, n ? f.count(n) : f.none)),
    h("td", { class: "num" }, h("data", { value: best?.top1 ?? "" }, f.percent(best?.top1)), best ? h("a", { class: "band", href: `#/jobs/${best.id}` }, `job ${best.id}, step ${f.count(best.step)}`) : null),
    cell(seconds, f.duration(seconds)), cell(images, f.count(images)));
}

function jobsRow({ jobs, total }, query) {
  const item = (job) => {
    const state = badge();
    setBadge(state, job.state);
    return h("li", {}, state, " ", h("a", { href: `#/jobs/${job.id}` }, `${job.id} ${title(job)}`), job.best_top1 === null ? "" : ` best Top-1 ${f.percent(job.best_top1)}`);
  };
  const all = query.tag && !query.where ? h("a", { class: "button", href: href("/", { tag: query.tag, q: query.q }) }, "In the list") : null;
  return h("tr", { class: "group-jobs" }, h("td", { colspan: COLUMNS.length }, h("ul", {}, ...jobs.map(item)),
    h("div", { class: "actions" }, total > jobs.length ? h("span", { class: "quiet" }, `the best ${jobs.length} of ${f.count(total)}`) : null,
      jobs.length > 1 ? h("a", { class: "button", href: href("/compare", { ids: jobs.map((job) => job.id).join(",") }) }, compareWords(total)) : null, all)));
}

// The grouping: by tag, or by a key of the document, with suggestions from the daemon's schema.
function byField(settings, changed) {
  const keys = h("datalist", { id: "group-keys" }, h("option", { value: "tag" }));
  const input = h("input", { list: "group-keys", value: settings.by, autocapitalize: "off", spellcheck: "false", "aria-describedby": "group-problem" });
  input.addEventListener("change", () => changed(input.value.trim() || "tag"));
  get("/v1/schema/job").then((schema) => keys.append(...fieldsOf(schema).map(({ pointer }) => h("option", { value: keyWords(pointer) }))), () => {});
  return { element: h("label", { class: "by" }, "Group by ", input, keys), input };
}

export function mount(main, { query, heading }) {
  const settings = { by: query.get("by") || "tag", sort: SORTS.some(([name]) => name === query.get("sort")) ? query.get("sort") : "", q: query.get("q") ?? "", tag: askedTags(query),
    open: query.get("open"), shown: Math.min(MOST_ASKED, shownOf(query)) };
  heading("Groups");
  const list = h("a", { class: "button", href: listOf(settings) }, "List");
  const body = h("tbody"), summary = h("p", { class: "summary", role: "status" }), problem = h("p", { class: "error", id: "group-problem", role: "alert" });
  const change = (changes) => {
    Object.assign(settings, changes);
    if ("by" in changes || "sort" in changes || "q" in changes) settings.shown = PAGE;
    mark(list, "href", listOf(settings));
    setQuery({ by: settings.by === "tag" ? null : settings.by, sort: settings.sort || null, open: settings.open, shown: settings.shown === PAGE ? null : settings.shown });
    known = "";
    look.again();
  };
  const by = byField(settings, (value) => change({ by: value, open: null }));
  const sort = choice("Order of the groups", SORTS, settings.sort, (value) => change({ sort: value }));
  const search = h("input", { type: "search", placeholder: "Name, network, note…", "aria-label": "Only jobs with these words", value: settings.q });
  search.addEventListener("change", () => { setQuery({ q: search.value || null }); change({ q: search.value }); });
  const narrowed = settings.tag && `with the tag ${settings.tag}`;
  const wait = notice("Loading the groups…"), none = notice("No jobs match.");
  let known = "", rows = [];
  const save = h("button", { type: "button", class: "tool", "aria-label": "Download the groups as csv", onclick: () => download("groups.csv", "text/csv", f.csv(rows)) }, "csv");
  const table = h("section", { class: "card" }, h("header", {}, h("h2", {}, "Groups"), save), h("div", { class: "scroll wide", role: "group", tabindex: 0, "aria-label": "Groups" }, h("table", { class: "groups" },
    h("caption", { class: "hidden" }, "Jobs in groups"), h("thead", {}, h("tr", {}, ...COLUMNS.map(([text, kind]) => h("th", { scope: "col", class: kind }, text)))), body)));
  const more = moreButton("Show more groups", body, () => change({ shown: settings.shown + PAGE }));
  main.append(h("div", { class: "title" }, h("h1", { tabindex: -1 }, "Groups of jobs"), summary, h("div", { class: "actions" }, list)),
    h("div", { class: "filters" }, by.element, sort.element, search, narrowed ? h("span", { class: "quiet" }, `Only jobs ${narrowed}.`) : null), problem, wait, none, table, more.element);
  for (const element of [none, table, problem, more.element]) show(element, false);

  async function fill(answer, signal) {
    const opened = answer.groups.find(({ value }) => JSON.stringify(value) === settings.open);
    const wanted = opened && jobsOf(settings, opened.value);
    const jobs = wanted ? await get(path({ ...wanted, sort: "best_top1", limit: MOST_COMPARED }), signal) : null;
    const text = JSON.stringify([answer, jobs?.jobs.map((job) => [job.id, job.name, job.state, job.best_top1])]);
    if (text === known) return;
    known = text;
    rows = [[settings.by, "jobs", "active", "succeeded", "failed", "cancelled", "best_top1", "mean_ttt_seconds", "images"], ...answer.groups.map((group) => [valueWords(group.value, settings.by), ...numbersOf(group)])];
    body.replaceChildren(...answer.groups.flatMap((group) => {
      const key = JSON.stringify(group.value), open = jobsOf(settings, group.value) && (() => change({ open: settings.open === key ? null : key }));
      return [groupRow(group, settings.by, group === opened, open), ...(group === opened && jobs ? [jobsRow(jobs, wanted)] : [])];
    }));
  }

  const look = watch(async (signal) => {
    const answer = await get(path({ ...filtersOf(settings), group: settings.by, sort: settings.sort || null, limit: settings.shown }), signal);
    await fill(answer, signal);
    show(wait, false);
    show(problem, false);
    show(none, !answer.groups.length);
    show(table, answer.groups.length > 0);
    const all = answer.groups.length === answer.group_count;
    more.update(!all && settings.shown < MOST_ASKED);
    say(summary, answer.groups.length ? `${f.count(answer.group_count)} ${answer.group_count === 1 ? "group" : "groups"} of ${f.count(answer.total)} ${answer.total === 1 ? "job" : "jobs"}${all ? "" : `, ${f.count(answer.groups.length)} shown`}` : "");
  }, {
    periodMs: 3000, wanted: (event) => ["state", "eval", "labels"].includes(event.type),
    done: (error) => {
      const refused = error instanceof Problem;
      if (error && !refused && !wait.hidden) say(wait.firstChild, waiting(error));
      by.input.setAttribute("aria-invalid", String(refused));
      if (!refused) return;
      for (const element of [wait, none, table, more.element]) show(element, false);
      show(problem, true);
      say(problem, words(error));
      say(summary, "");
    },
  });
  return { unmount: look.stop };
}
