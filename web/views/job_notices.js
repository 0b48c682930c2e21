// Notices of a job: those of its document, and for administrators those of their rules.

import { get } from "../api.js";
import { daemonTime } from "../clock.js";
import { h, show } from "../dom.js";
import * as f from "../format.js";
import { ended } from "../jobs.js";
import { tableCard } from "./job_facts.js";

const STATES = { delivered: "delivered", waiting: "waits", failed: "given up" };

// "14:02:11", or "again in 3 s" if it is waiting
function when(notice) {
  if (notice.state !== "waiting") return h("time", { title: f.date(notice.done_at) }, f.date(notice.done_at).slice(11));
  const left = notice.next_at - daemonTime();
  return left > 0 ? `again in ${f.duration(left)}` : "now";
}

const tries = ({ attempts, error }) => [attempts > 1 && `${attempts} attempts`, error].filter(Boolean).join(": ");

function row(notice) {
  return h("tr", { "data-state": notice.state }, h("td", { class: "type" }, notice.kind.replaceAll("_", " ")),
    h("td", { class: "target" }, notice.to, notice.rule ? h("span", { class: "quiet" }, " (rule)") : null),
    h("td", { class: "when" }, STATES[notice.state], " ", when(notice)), h("td", {}, tries(notice)));
}

// {element, update(job, signal)}; hidden if there are none and the document requests none.
export function noticesCard(id) {
  const card = tableCard("Notices", [["Event", ""], ["To", ""], ["State", ""], ["Details", ""]], "None yet.", "notices");
  show(card.element, false);
  return {
    element: card.element,
    update: async (job, signal) => {
      const named = job.spec?.notify?.length > 0;
      if (!named && !ended(job)) return;
      const { notices } = await get(`/v1/notices?job=${id}&limit=100`, signal);
      show(card.element, named || notices.length > 0);
      card.fill(notices.map(row));
    },
  };
}
