// The workers' output: followed while it grows, searched, of any attempt.

import { getLog, Problem } from "../api.js";
import { h, say, show } from "../dom.js";
import { fileLink } from "../files.js";
import { setQuery } from "../place.js";

const CHARS_MAX = 200000; // of its end that the page keeps, and asks for at first: a run of weeks writes more than one reads
const NOTHING = "Nothing yet.";
const FOUND_MAX = 2000; // lines shown of a search

// query: of the address, with find (words) and attempt. changed(): another attempt is wanted.  {element, update(job, signal), apply(query)}
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
  // Who scrolls up reads; who comes back to the end follows again.
  text.addEventListener("scroll", () => { follow.checked = text.scrollHeight - text.scrollTop - text.clientHeight < 40; });
  attempts.addEventListener("change", () => {
    chosen = attempts.selectedIndex < attempts.options.length - 1 ? Number(attempts.value) : null; // the newest, whichever that is
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
        say(none, error.message); // the rest of the page is there all the same
        return show(none, true);
      }
      const { bytes, next } = part, left = next - bytes.byteLength > from; // what is between is not shown, nor the line that it ends in
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
