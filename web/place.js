// The page's address: a path and a query after the #, so that every state of the page has a permalink. #/jobs/3?x=epoch   ->   {path:
// "/jobs/3", query: URLSearchParams}

export function here() {
  const [path, query = ""] = location.hash.replace(/^#/, "").split("?");
  return { path: path || "/", query: new URLSearchParams(query) };
}

export function href(path, query = {}) {
  const text = new URLSearchParams(Object.entries(query).filter(([, v]) => v !== null && v !== undefined && v !== "")).toString();
  return "#" + path + (text ? "?" + text : "");
}

// Changes only the query: no new history entry, and the view stays mounted. null removes a name.
export function setQuery(changes) {
  const { path, query } = here();
  history.replaceState(history.state, "", href(path, { ...Object.fromEntries(query), ...changes }));
}

// The list of jobs as last shown in this tab, for links back to it.
const LIST = "traind list";
addEventListener("hashchange", ({ oldURL }) => {
  const { hash } = new URL(oldURL);
  if (/^(#\/?)?(\?|$)/.test(hash)) sessionStorage.setItem(LIST, hash);
});
export const listHref = () => sessionStorage.getItem(LIST) || "#/";
