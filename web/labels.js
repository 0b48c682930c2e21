// Labels of a job: name, tags and note. All of them are inserted into the page as text.

import { patch } from "./api.js";
import { ask } from "./ask.js";
import { h } from "./dom.js";
import { href } from "./place.js";

// Splits "a, b c" into a list of words.
export const tagWords = (text) => [...new Set(text.split(/[\s,]+/).filter(Boolean))];

// The tags requested by an address. Old bookmarks may have starred=1, which has become a tag.
export const askedTags = (query) => [query.get("tag"), query.get("starred") === "1" && "starred"].filter(Boolean).join(",");

// The tags of a job, each linking to the jobs that have it. {element, update(tags)}
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

// Edits name, tags and note of a job in a dialog. Sends only what was changed, so that two people can change different parts at the same
// time.
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
  return ask({ title: `Edit name, tags and note of job ${job.id}`, text: "Tags consist of letters, digits and _.-:/ and are separated by commas.", more, yes: "Save", no: "Cancel", kind: "primary", work });
}
