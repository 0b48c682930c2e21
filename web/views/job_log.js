// The workers' output, of any attempt: followed while it grows, and searchable.

import { getLog, Problem } from "../api.js";
import { h, say, show } from "../dom.js";
import { fileLink } from "../files.js";
import { setQuery } from "../place.js";

const CHARS_MAX = 200000; // kept from the end of the log, and requested at first: a run of weeks writes more than anyone reads
const NOTHING = "Nothing yet.";
const FOUND_MAX = 2000; // lines shown for a search

// query: of the address, with find (words) and attempt. changed(): another attempt was selected. Returns {element, update(job, signal),
// apply(query)}
export function logView(id, query, changed) {
  const text = h("pre", { class: "log", tabindex: 0, role: "log", "aria-label": "Log", "aria-live": "off" });
  const none = h("p", { class: "quiet" }, NOTHING);
  const follow = h("input", { type: "checkbox", checked: true });
  const search = h("input", { type: "search", placeholder: "Search the log", "aria-label": "Search the log", value: query.get("find") ?? "" });
  const found = h("span", { class: "quiet", role: "status" });
  const attempts = h("select", { "aria-label": "Attempt", hidden: true });
  const whole = h("span");
  const element = h("section", { class: "card" },
    h("header", {}, h("h2", {}, "Log"), attempts, search, found, h("label", { class: "check" }, follow, "follow"), whole), none, text);
  const chosenBy = (place) => Math.max(0, Math.trunc(Number(place.get("attempt")))) || null;
  let all = "", from = 0, attempt = null, chosen = chosenBy(query), decoder = new TextDecoder();

  const toEnd = () => {
    if (follow.checked) text.scrollTop = text.scrollHeight;
  };
  function render() {
    const words = search.value.toLowerCase();
    show(none, all === "");
    show(text, all !== "");
    if (!words) {
      say(found, "");
      say(text, all);
      return toEnd();
    }
    const lines = all.split("\n").filter((line) => line.toLowerCase().includes(words));
    say(found, `${lines.length} ${lines.length === 1 ? "line" : "lines"}`);
    text.replaceChildren(...lines.slice(-FOUND_MAX).flatMap((line) => {
      const at = line.toLowerCase().indexOf(words);
      return [line.slice(0, at), h("mark", {}, line.slice(at, at + words.length)), line.slice(at + words.length) + "\n"];
    }));
    toEnd();
  }
  follow.addEventListener("change", toEnd);
  search.addEventListener("input", render);
  search.addEventListener("change", () => setQuery({ find: search.value || null }));
  // Scrolling up stops following; scrolling back to the end resumes it.
  text.addEventListener("scroll", () => { follow.checked = text.scrollHeight - text.scrollTop - text.clientHeight < 40; });
  attempts.addEventListener("change", () => {
    chosen = attempts.selectedIndex < attempts.options.length - 1 ? Number(attempts.value) : null; // null: always the newest
    setQuery({ attempt: chosen });
    changed();
  });

  return {
    element,
    apply: (place) => {
      search.value = place.get("find") ?? "";
      chosen = chosenBy(place);
      render();
      changed();
    },
    update: async (job, signal) => {
      const wanted = Math.min(chosen ?? job.attempt, job.attempt);
      if (job.attempt !== attempts.options.length) {
        attempts.replaceChildren(...[...Array(job.attempt).keys()].map((i) => h("option", { value: i + 1 }, `attempt ${i + 1}`)));
      }
      if (attempts.value !== String(wanted)) attempts.value = wanted;
      show(attempts, job.attempt > 1);
      if (wanted !== attempt) {
        attempt = wanted;
        [all, from, decoder] = ["", 0, new TextDecoder()];
        whole.replaceChildren(fileLink("complete log", `/v1/jobs/${id}/log?attempt=${Math.max(1, attempt)}`, `job-${id}-attempt-${attempt}.log`));
        render();
      }
      if (attempt < 1) return;
      let part;
      try {
        part = await getLog(`/v1/jobs/${id}/log?from=${from}&attempt=${attempt}&tail=${CHARS_MAX}`, signal);
      } catch (error) {
        if (!(error instanceof Problem)) throw error;
        say(none, error.message); // the rest of the page does not depend on it
        return show(none, true);
      }
      const { bytes, next } = part, left = next - bytes.byteLength > from; // skipped bytes are not shown, nor is the line that they end in
      say(none, NOTHING);
      show(none, all === "");
      if (!bytes.byteLength) return;
      if (left) [all, decoder] = ["", new TextDecoder()];
      from = next;
      all += decoder.decode(bytes, { stream: true });
      if (left) all = all.slice(all.indexOf("\n") + 1);
      if (all.length > CHARS_MAX) all = all.slice(all.indexOf("\n", all.length - CHARS_MAX) + 1);
      render();
    },
  };
}
