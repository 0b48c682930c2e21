// The table of nodes: a card of the overview, and a page of its own.

import { get, Problem } from "./api.js";
import { arrange, h, say, show } from "./dom.js";
import * as f from "./format.js";
import { watch } from "./live.js";
import { many, moreButton, PAGE } from "./more.js";

const NODES_MS = 15000; // between polls
const VERDICTS = { fine: "OK", drain: "drained", unknown: "not checked" };

const number = (key) => (node) => h("td", { class: "num" }, h("data", { value: node[key] ?? "" }, f.number(node[key])));
const words = (key) => (node) => h("td", {}, node[key] ?? f.none);

function slots(node) {
  const used = h("progress", { max: Math.max(1, node.slots), value: node.slots_used, "aria-label": `slots used of ${node.name}` });
  return h("td", { class: "slots" }, h("div", { class: "meter" }, used), h("data", { value: node.slots_used }, `${node.slots_used} of ${node.slots}`));
}

function jobs(node) {
  const links = (node.jobs ?? []).flatMap((id) => [", ", h("a", { href: `#/jobs/${id}` }, `${id}`)]).slice(1);
  return h("td", {}, ...(links.length ? links : [f.none]));
}

// [heading, class, cell(node)]
const COLUMNS = {
  node: ["Node", "", (node) => h("th", { scope: "row", tabindex: -1, title: node.kind ?? "" }, node.name)],
  check: ["Check", "", (node) => h("td", {}, h("span", { class: "verdict", "data-verdict": node.verdict }, VERDICTS[node.verdict] ?? node.verdict),
    node.reason ? h("span", { class: "reason", title: node.reason }, node.reason) : null)],
  slots: ["Slots", "", slots],
  jobs: ["Jobs", "", jobs],
  kind: ["Processor", "", words("kind")],
  partition: ["Partition", "", words("partition")],
  gflops: ["GFLOP/s", "num", number("gflops")],
  memory: ["Memory GB/s", "num", number("memory_gb_per_sec")],
  clock: ["GHz", "num", number("clock_ghz")],
  checked: ["Checked", "num", (node) => h("td", { class: "num" }, h("time", { title: f.date(node.checked) }))],
};

function nodeRow(node, columns) {
  const element = h("tr", { "data-node": node.name }, ...columns.map((key) => COLUMNS[key][2](node)));
  const checked = element.querySelector("time");
  return { element, text: JSON.stringify(node), tick: () => say(checked, node.checked ? f.ago(node.checked) : "never") };
}

// The daemon's own slots as a node, if it has no route for nodes.
async function ownSlots(signal) {
  const { slots: { total, used } } = await get("/readyz", signal);
  const node = { name: "this machine", verdict: "unknown", slots: total, slots_used: used, gflops: null, checked: null };
  return { all: [node], next: null, sums: { total: 1, slow: 0, drained: 0, slots: total, slots_used: used } };
}

// sums: {total, slow, drained}: "5, 1 slow"
export const nodesWords = ({ total, slow, drained }, noun = "") => [f.count(total) + noun, slow && `${f.count(slow)} slow`, drained && `${f.count(drained)} drained`].filter(Boolean).join(", ");

// columns: keys of COLUMNS; first: rows shown initially; told(sums over all nodes) is called after each poll; failed(error). Returns
// {element, close}
export function nodesTable({ columns, first, told, failed = () => {} }) {
  const rows = new Map(), body = h("tbody"); // rows: name -> nodeRow()
  let supported = true, shown = first;
  const more = moreButton("Show more nodes", body, () => {
    shown += PAGE;
    look.again();
  });
  const element = h("div", { class: "scroll", role: "group", tabindex: 0, "aria-label": "Nodes" }, h("table", {}, h("caption", { class: "hidden" }, "Nodes"),
    h("thead", {}, h("tr", {}, ...columns.map((key) => h("th", { scope: "col", class: COLUMNS[key][1] }, COLUMNS[key][0])))), body), more.element);
  show(more.element, false);
  async function pages(signal) {
    let sums = null;
    const ask = async (what, limit) => (sums = await get(`/v1/nodes?limit=${limit}${what}`, signal));
    return { ...await many(ask, "nodes", "", shown), sums };
  }
  function rowOf(node) {
    if (rows.get(node.name)?.text !== JSON.stringify(node)) rows.set(node.name, nodeRow(node, columns));
    rows.get(node.name).tick();
    return rows.get(node.name).element;
  }
  const look = watch(async (signal) => {
    let page = null;
    if (supported) {
      page = await pages(signal).catch((error) => {
        if (!(error instanceof Problem && [404, 501].includes(error.status))) throw error;
        supported = false;
      });
    }
    page ??= await ownSlots(signal);
    told(page.sums);
    arrange(body, page.all.map(rowOf));
    more.update(page.next !== null);
    return NODES_MS;
  }, { periodMs: 2000, wanted: (event) => event.type === "state", done: (error) => error && failed(error) });
  return { element, close: look.stop };
}
