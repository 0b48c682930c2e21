// What people write on a job: its name, tags and note. All of it is put into the page as text.

import { patch } from "./api.js";
import { ask } from "./ask.js";
import { h } from "./dom.js";
import { href } from "./place.js";

// "a, b c" as the list of its words
export const tagWords = (text) => [...new Set(text.split(/[\s,]+/).filter(Boolean))];

// Those that an address asks for; a link that was kept may ask for stars, which have become a tag.
export const askedTags = (query) => [query.get("tag"), query.get("starred") === "1" && "starred"].filter(Boolean).join(",");

// The tags of a job, each a link to the jobs that have it. {element, update(tags)}
export function tagChips() {
  const element = h("span", { class: "chips" });
  const update = (tags = []) => {
    const text = tags.join(",");
    if (element.dataset.tags === text) return;
    element.dataset.tags = text;
    element.replaceChildren(...tags.map((tag) => h("a", { class: "chip", href: href("/", { tag }), title: `All jobs with the tag ${tag}` }, tag)));
  };
  return { element, update };
}

// Name, tags and note of a job in a dialog; only what was changed is sent, so that two people may change two things at a time.
export function editLabels(job) {
  const name = h("input", { value: job.name ?? "", maxlength: 200 });
  const tags = h("input", { value: job.tags.join(", "), placeholder: "baseline, paper:table-2", autocapitalize: "off" });
  const note = h("textarea", { rows: 6, maxlength: 4096 });
  note.value = job.note ?? "";
  const more = h("div", { class: "fields" }, h("label", {}, "Name", name), h("label", {}, "Tags", tags), h("label", {}, "Note", note));
  const work = () => {
    const change = {}, now = tagWords(tags.value);
    if (name.value !== (job.name ?? "")) change.name = name.value || null;
    if (note.value !== (job.note ?? "")) change.note = note.value || null;
    const added = now.filter((tag) => !job.tags.includes(tag)), removed = job.tags.filter((tag) => !now.includes(tag));
    if (added.length) change.add_tags = added;
    if (removed.length) change.remove_tags = removed;
    return patch(`/v1/jobs/${job.id}`, change);
  };
  return ask({ title: `Edit name, tags and note of job ${job.id}`, text: "Tags are words of letters, digits and _.-:/ with commas between them.", more, yes: "Save", no: "Cancel", kind: "primary", work });
}
