// The nodes: their checks, speeds, slots and jobs (#/nodes).

import { waiting } from "../api.js";
import { h, notice, say, show } from "../dom.js";
import * as f from "../format.js";
import { PAGE } from "../more.js";
import { nodesTable, nodesWords } from "../nodes.js";

export function mount(main, { heading }) {
  heading("Nodes");
  const summary = h("p", { class: "summary", role: "status" }), used = h("p", { class: "lead" });
  const wait = notice("Loading the nodes…");
  const table = nodesTable({ columns: ["node", "check", "slots", "jobs", "kind", "partition", "gflops", "memory", "clock", "checked"], first: PAGE,
    told: (sums) => {
      show(wait, false);
      show(card, true);
      say(summary, nodesWords(sums, sums.total === 1 ? " node" : " nodes"));
      say(used, `${f.count(sums.slots_used)} of ${f.count(sums.slots)} slots in use. A slot is a core that jobs may use. GFLOP/s and memory are measured by the check of the node.`);
    },
    failed: (error) => !wait.hidden && say(wait.firstChild, waiting(error)) });
  table.element.classList.add("wide", "tall");
  const card = h("section", { class: "card nodes", hidden: true }, table.element);
  main.append(h("div", { class: "title" }, h("h1", { tabindex: -1 }, "Nodes"), summary), used, wait, card);
  return { unmount: table.close };
}
