// Downloads of files from the daemon.

import { getBlob, hasToken, words } from "./api.js";
import { download, h, say } from "./dom.js";

// A link that downloads path as name. A plain link cannot send a token: with one, the page fetches the file itself.
export function fileLink(text, path, name, attributes = {}) {
  const link = h("a", { href: path, download: name, ...attributes }, text);
  link.addEventListener("click", async (event) => {
    if (!hasToken()) return;
    event.preventDefault();
    if (link.ariaBusy === "true") return;
    link.ariaBusy = "true";
    await getBlob(path).then((blob) => download(name, blob.type, blob), (error) => say(link, words(error)));
    link.ariaBusy = "false";
  });
  return link;
}
