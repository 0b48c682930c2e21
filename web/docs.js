// The API reference, rendered from this daemon's /openapi.json.

import { h, notice } from "./dom.js";

const main = document.getElementById("main");
const last = (reference) => reference.split("/").pop();

// A short description of a schema: "integer", "Plan", "list of Judged", "A or B".
function kind(schema) {
  if (!schema || schema === true) return schema ? "anything" : "";
  if (schema.$ref) return last(schema.$ref);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" or ");
  if ("const" in schema) return JSON.stringify(schema.const);
  const parts = schema.anyOf ?? schema.oneOf ?? schema.allOf;
  if (parts) return parts.map(kind).filter(Boolean).join(schema.allOf ? " and " : " or ");
  const type = [schema.type].flat().filter(Boolean).join(" or ");
  return schema.items ? `list of ${kind(schema.items)}` : type;
}
const named = (schema) => (schema?.$ref ? h("a", { href: `#schema-${last(schema.$ref)}` }, kind(schema)) : kind(schema));

function members(schema) {
  const required = new Set(schema.required ?? []);
  return h("dl", {}, ...Object.entries(schema.properties ?? {}).flatMap(([name, property]) => [
    h("dt", {}, name, required.has(name) ? "" : " ?"),
    h("dd", {}, named(property), property.description ? ` – ${property.description}` : "", property.properties ? members(property) : "")]));
}

function parameters(operation, components) {
  const all = (operation.parameters ?? []).map((one) => (one.$ref ? components.parameters[last(one.$ref)] : one));
  return all.length ? h("dl", {}, ...all.flatMap((one) => [h("dt", {}, one.name, h("span", { class: "quiet" }, ` in ${one.in}`)),
    h("dd", {}, kind(one.schema), one.description ? ` – ${one.description}` : "")])) : null;
}

function body(content, what) {
  return Object.entries(content ?? {}).flatMap(([type, media]) => {
    const [example] = Object.values(media.examples ?? {});
    return [h("p", {}, `${what}: `, h("code", {}, type), " ", named(media.schema)),
      example?.value === undefined ? "" : h("pre", { tabindex: 0, role: "group", "aria-label": `${what}, example` },
        typeof example.value === "string" ? example.value : JSON.stringify(example.value, null, 2))];
  });
}

function operationDetails(path, method, one, components) {
  const answers = Object.entries(one.responses).filter(([status]) => status.startsWith("2"));
  return h("details", { id: one.operationId }, h("summary", {}, h("code", {}, h("span", { class: "method" }, method.toUpperCase()), " ", path), ` ${one.summary}`),
    h("p", { class: "quiet" }, `operation ${one.operationId}, role ${one["x-role"]}`), parameters(one, components), ...body(one.requestBody?.content, "Body"),
    ...answers.flatMap(([status, answer]) => body(answer.content, `Answer ${status}`)));
}

function authentication() {
  return h("section", { class: "card" }, h("h2", {}, "Authentication"),
    h("p", {}, "Over TCP, requests need an access token in the header Authorization, unless traind.conf has require_token = no. ",
      h("code", {}, "trainctl token create NAME"), " creates one on the server. Requests over the unix socket need none."),
    h("pre", { tabindex: 0, role: "group", "aria-label": "A request with a token" },
      `curl -H "Authorization: Bearer $TRAINCTL_TOKEN" ${location.origin}/v1/jobs`));
}

function draw(api) {
  const groups = new Map();
  for (const [path, methods] of Object.entries(api.paths)) {
    for (const [method, one] of Object.entries(methods)) {
      const tag = one.tags?.[0] ?? "other";
      groups.set(tag, [...(groups.get(tag) ?? []), operationDetails(path, method, one, api.components)]);
    }
  }
  main.replaceChildren(h("div", { class: "docs" }, h("h1", { tabindex: -1 }, `API of traind ${api.info.version}`), h("p", {}, api.info.description),
    authentication(), ...[...groups].map(([tag, list]) => h("section", { class: "card" }, h("h2", {}, tag[0].toUpperCase() + tag.slice(1)), ...list)),
    h("section", { class: "card" }, h("h2", {}, "Schemas"), ...Object.entries(api.components.schemas).map(([name, schema]) =>
      h("details", { id: `schema-${name}` }, h("summary", {}, h("code", {}, name), schema.description ? ` ${schema.description}` : ""),
        schema.properties ? members(schema) : h("p", {}, kind(schema)))))));
}

// Opens the operation or schema that a link refers to.
function open() {
  const element = document.getElementById(location.hash.slice(1));
  if (element?.tagName !== "DETAILS") return;
  element.open = true;
  element.scrollIntoView();
  element.querySelector("summary").focus();
}

try {
  const answer = await fetch("openapi.json");
  if (!answer.ok) throw new Error(`openapi.json: ${answer.status}`);
  draw(await answer.json());
  addEventListener("hashchange", open);
  open();
} catch (error) {
  main.replaceChildren(notice("Cannot load the description of the API", h("p", {}, String(error.message))));
}
