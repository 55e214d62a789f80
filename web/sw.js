// Keeps the page's own files, so that the page works without a network. `make site` writes the digest of the files.
const CACHE = "fullstroke-DIGEST";
const FILES = ["./", "index.html", "looks.css", "style.css", "app.js", "engine.js", "show.js", "watch.js", "worker.js", "icon.svg", "fullstroke.wasm"];

addEventListener("install", (event) => {
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll(FILES)).then(() => skipWaiting()));
});

addEventListener("activate", (event) => {
  const old = (names) => names.filter((name) => name.startsWith("fullstroke-") && name !== CACHE);
  event.waitUntil(
    caches.keys().then((names) => Promise.all(old(names).map((name) => caches.delete(name)))).then(() => clients.claim()),
  );
});

addEventListener("fetch", (event) => {
  if (event.request.method === "GET") {
    event.respondWith(
      caches.open(CACHE).then((cache) => cache.match(event.request, { ignoreSearch: true })).then((kept) => kept ?? fetch(event.request)),
    );
  }
});
