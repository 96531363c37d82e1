// A link from another site comes without the session (its cookie is strict), although there is one. Ask once more
// from here: where that succeeds, go on.
fetch(location.href, { credentials: "same-origin", headers: { Accept: "text/html" } }).then((answer) => {
  if (answer.ok && location.pathname !== "/login") location.replace(location.href);
});
