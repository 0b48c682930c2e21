// Where one is: a path and a query behind the #, so that every state of the page has a permalink.
//   #/jobs/3?x=epoch   ->   {path: "/jobs/3", query: URLSearchParams}

export function here() {
  const [path, query = ""] = location.hash.replace(/^#/, "").split("?");
  return { path: path || "/", query: new URLSearchParams(query) };
}

export function href(path, query = {}) {
  const text = new URLSearchParams(Object.entries(query).filter(([, v]) => v !== null && v !== undefined && v !== "")).toString();
  return "#" + path + (text ? "?" + text : "");
}

// Changes the query alone: no new entry in the history, and no view is mounted anew. null takes a name out.
export function setQuery(changes) {
  const { path, query } = here();
  history.replaceState(history.state, "", href(path, { ...Object.fromEntries(query), ...changes }));
}

// The list of jobs as it was last shown in this tab, for whoever came from it.
const LIST = "traind list";
addEventListener("hashchange", ({ oldURL }) => {
  const { hash } = new URL(oldURL);
  if (/^(#\/?)?(\?|$)/.test(hash)) sessionStorage.setItem(LIST, hash);
});
export const listHref = () => sessionStorage.getItem(LIST) || "#/";
