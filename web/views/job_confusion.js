// Where an evaluation is wrong: the worst classes, the most frequent mistakes and, of few classes, the confusion matrix, with images of a
// mistake. Fetched when opened. In the address: evaluation (a step).

import { get, getBlob, Problem, words } from "../api.js";
import { h, say, show } from "../dom.js";
import { fileLink } from "../files.js";
import * as f from "../format.js";
import { setQuery } from "../place.js";
import { scrolled } from "./job_outputs.js";

const ROWS = 100, MATRIX = 30; // shown: the worst classes and mistakes; no matrix of more classes
const CELLS = MATRIX * MATRIX; // asked for

const num = (value) => h("td", { class: "num" }, value);
const images = (count) => `${f.count(count)} ${count === 1 ? "image" : "images"}`;

// query: of the address. Returns {element, update(evals), apply(query)}
export function confusionCard(id, query) {
  const told = h("p", { class: "quiet", role: "status" }), place = h("div"), shown = h("div", { class: "mistaken", role: "group", "aria-label": "Images of a mistake", tabindex: -1 });
  const choice = h("select", { "aria-label": "Evaluation" }), file = h("span"), details = h("details", {}, h("summary", {}, h("h2", {}, "Mistakes by class")),
    h("p", {}, choice, " ", file), told, place);
  const element = h("section", { class: "card folded", hidden: true }, details);
  let steps = "", loaded = null, urls = [], wanted = query.get("evaluation");

  const forget = () => {
    urls.forEach((url) => URL.revokeObjectURL(url));
    urls = [];
  };
  const path = (more) => `/v1/jobs/${id}/confusion${more}${choice.value && `&step=${choice.value}`}`;
  const className = ({ names }, label) => (names ? `${names[label]} (${label})` : `${label}`);

  // The images are fetched with the token, which an <img> could not send.
  async function examples(all, one) {
    const title = h("h3", {}, `${className(all, one.label)} taken for ${className(all, one.predicted)}`);
    const note = h("p", { class: "quiet", role: "status" }, one.images > one.examples ? `The first ${one.examples} of ${images(one.images)}.` : "");
    forget();
    shown.replaceChildren(title, note);
    shown.focus();
    for (let number = 0; number < one.examples; number++) {
      try {
        const url = URL.createObjectURL(await getBlob(path(`/image?label=${one.label}&predicted=${one.predicted}&number=${number}`)));
        if (!title.isConnected) return URL.revokeObjectURL(url);
        urls.push(url);
        shown.append(h("img", { src: url, alt: `${number + 1}: ${title.textContent}` }));
      } catch (error) {
        say(note, words(error));
        return undefined;
      }
    }
    return undefined;
  }
  const button = (all, one, text) => (one.examples
    ? h("button", { type: "button", class: "plain", "aria-label": `${images(one.images)} of ${className(all, one.label)} taken for ${className(all, one.predicted)}: show`, onclick: () => examples(all, one) }, text) : text);

  // A row for each class, a column for each predicted class.
  function matrix(all) {
    const labels = [...new Set([...all.classes.map((one) => one.label), ...all.mistakes.map((one) => one.predicted)])].sort((a, b) => a - b);
    if (labels.length > MATRIX || all.mistakes.length < all.mistaken_pairs) return [];
    const name = (label) => all.names?.[label] ?? `${label}`, kind = all.names ? "" : "num";
    const of = new Map(all.mistakes.map((one) => [`${one.label} ${one.predicted}`, one]));
    const cell = (row, label) => {
      const one = row.label === label ? { images: row.right } : of.get(`${row.label} ${label}`);
      return h("td", { class: row.label === label ? "num right" : "num", style: `--s: ${Math.round((40 * (one?.images ?? 0)) / row.images)}%` }, one?.images ? button(all, one, f.count(one.images)) : "");
    };
    const rows = [...all.classes].sort((a, b) => a.label - b.label).map((row) => h("tr", {}, h("th", { scope: "row", class: kind }, name(row.label)), ...labels.map((label) => cell(row, label))));
    return [h("h3", {}, "Confusion matrix"), h("p", { class: "quiet" }, "Rows: the class of the images. Columns: the class predicted. A number of mistakes shows images."),
      scrolled("Confusion matrix", [["Class", kind], ...labels.map((label) => [name(label), "num"])], rows, "confusion")];
  }

  function fill(all) {
    const worst = all.classes.slice(0, ROWS), frequent = all.mistakes.slice(0, ROWS);
    const gap = all.calibration_error == null ? "" : ` Calibration error: ${f.percent(all.calibration_error)}, by which the probability of the predicted class differs from the share of right predictions, in 15 bins.`;
    forget();
    shown.replaceChildren();
    return [h("p", {}, `${f.count(all.right)} of ${f.count(all.images)} images were predicted correctly.${gap}`), ...matrix(all),
      h("h3", {}, all.classes.length > ROWS ? `Top-1 of the ${ROWS} worst classes` : "Top-1 by class, worst first"),
      scrolled("Top-1 by class", [["Class", ""], ["Images", "num"], ["Top-1", "num"]], worst.map((one) =>
        h("tr", {}, h("td", {}, className(all, one.label)), num(f.count(one.images)), num(f.percent(one.right / one.images))))),
      ...(frequent.length ? [h("h3", {}, all.mistaken_pairs > ROWS ? `The ${ROWS} most frequent mistakes` : "Most frequent mistakes"),
        scrolled("Most frequent mistakes", [["Class", ""], ["Taken for", ""], ["Images", "num"]], frequent.map((one) =>
          h("tr", {}, h("td", {}, className(all, one.label)), h("td", {}, className(all, one.predicted)), num(button(all, one, f.count(one.images))))))] : []),
      shown];
  }

  async function load() {
    const now = `${steps} ${choice.value}`;
    if (!details.open || now === loaded) return;
    loaded = now;
    if (!place.firstChild) say(told, "Loading…");
    file.replaceChildren(fileLink("csv", path("?format=csv"), `job-${id}-confusion.csv`));
    try {
      place.replaceChildren(...fill(await get(path(`?limit=${CELLS}`))));
      say(told, "");
    } catch (error) {
      loaded = null;
      place.replaceChildren();
      say(told, error instanceof Problem && error.status === 404 ? "Not known yet, or of an older version." : words(error));
    }
  }
  details.addEventListener("toggle", load);
  choice.addEventListener("change", () => {
    wanted = choice.value;
    setQuery({ evaluation: wanted || null });
    load();
  });
  return {
    element,
    update: (evals) => {
      show(element, evals.length > 0);
      const now = JSON.stringify(evals.map((one) => [one.step, one.t]));
      if (now !== steps) {
        steps = now;
        choice.replaceChildren(h("option", { value: "" }, "newest evaluation"), ...[...evals].reverse().map((one) => h("option", { value: one.step }, `step ${f.count(one.step)}`)));
        choice.value = wanted ?? "";
        if (choice.selectedIndex < 0) choice.value = "";
      }
      load();
    },
    apply: (now) => {
      wanted = now.get("evaluation");
      choice.value = wanted ?? "";
      if (choice.selectedIndex < 0) choice.value = "";
      load();
    },
  };
}
