// The pages' own behaviour: everything by delegation on the document, nothing is fetched, nothing inline.
(() => {
  "use strict";
  const words = () => document.getElementById("tm-words")?.dataset || {};
  const store = { get: (key) => { try { return localStorage.getItem(key); } catch { return null; } },
    set: (key, value) => { try { localStorage.setItem(key, value); } catch { /* private mode */ } } };
  const choose = (language) => { document.cookie = `tm_lang=${language}; path=/; max-age=31536000; samesite=lax${location.protocol === "https:" ? "; secure" : ""}`; };
  const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

  // What is copied out of the chat is read elsewhere: an answer up to its details, without marks of a list that stays
  // here, and with its address instead.
  const write = navigator.clipboard?.writeText.bind(navigator.clipboard);
  const elsewhere = (text) => {
    if (!/\]\(#tm-/.test(text)) return text;
    const short = text.split(/\n#+ \[[^\n]*\]\(#tm-fold\)/)[0].replace(/ ?\[\d+\]\(#tm-c\d+\)/g, "");
    const link = location.search.includes("answer=") ? `\n\n${location.href}\n` : "";
    return short.replace(/\[([^\]\n]*)\]\(#tm-[\w-]+\)/g, "$1").replace(/^#+ /gm, "").trim() + link;
  };
  if (write) navigator.clipboard.writeText = (text) => write(elsewhere(text));

  // Theme: the reader's choice, else the system's. The framework sets the class by itself at its start.
  const wanted = () => store.get("tm-theme");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const dress = () => {
    const own = document.body.classList.contains("tm-page") ? (dark.matches ? "dark" : "light") : null;
    const choice = wanted() || own;
    if (own) document.body.classList.toggle("light", choice === "light");
    if (choice && document.body.classList.contains("dark") !== (choice === "dark")) {
      document.body.classList.toggle("dark", choice === "dark");
    }
  };
  const watchBody = () => {
    if (!wanted()) document.body.classList.toggle("dark", matchMedia("(prefers-color-scheme: dark)").matches);
    dress();
    new MutationObserver(dress).observe(document.body, { attributes: true, attributeFilter: ["class"] });
  };
  if (document.body) watchBody(); else addEventListener("DOMContentLoaded", watchBody);

  const box = () => document.querySelector("#tm-question textarea");

  // The questions asked in this browser, newest first: their list is kept here and nowhere else.
  const LISTED = "tm-questions", MOST_LISTED = 50;
  const listed = () => { try { return JSON.parse(store.get(LISTED)) || []; } catch { return []; } };
  const list = (entries) => { store.set(LISTED, JSON.stringify(entries.slice(0, MOST_LISTED))); drawList(); };
  const drawList = () => {
    for (const menu of document.querySelectorAll(".tm-history")) {
      const rows = menu.querySelector("ul"), all = listed();
      menu.hidden = !all.length;
      rows.replaceChildren(...all.map(({ id, answer, title }) => {
        const row = document.createElement("li"), href = `${rows.dataset.address}?answer=${encodeURIComponent(answer)}`;
        const button = Object.assign(document.createElement("button"), { type: "button", textContent: "×", title: rows.dataset.forget });
        button.setAttribute("aria-label", `${rows.dataset.forget}: ${title}`);
        button.dataset.tmUnlist = id;
        row.append(Object.assign(document.createElement("a"), { href: href, textContent: title, title: title }), button);
        return row;
      }));
    }
  };
  const unlist = (id) => list(listed().filter((each) => each.id !== id));
  document.addEventListener("submit", (event) => { if (event.target.matches(".tm-signout")) list([]); });

  // Narrow screens: one column at a time
  const show = (tab) => {
    document.body.dataset.tm = tab;
    for (const each of document.querySelectorAll("[data-tm-tab]")) {
      each.setAttribute("aria-selected", String(each.dataset.tmTab === tab));
    }
  };

  const said = (button, text) => {
    const label = button.querySelector("span") || button;
    const before = button.dataset.before || label.textContent;
    button.dataset.before = before;
    label.textContent = text;
    button.classList.add("done");
    clearTimeout(button.timer);
    button.timer = setTimeout(() => { label.textContent = before; button.classList.remove("done"); }, 1600);
  };
  const copied = async (text) => {
    try { await navigator.clipboard.writeText(text); } catch {
      const area = Object.assign(document.createElement("textarea"), { value: text });
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
  };
  const copy = async (button, text) => {
    await copied(text);
    said(button, words().copied || "✓");
  };
  // A patch needs its last line break; behind a command it would run it.
  const codeOf = (button) => {
    const code = button.parentElement.querySelector("code"), text = code.textContent.replace(/\n+$/, "");
    return code.matches(".language-diff") ? `${text}\n` : text;
  };
  const download = (name, text) => {
    const address = URL.createObjectURL(new Blob([text], { type: "text/x-diff" }));
    const link = Object.assign(document.createElement("a"), { href: address, download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  };
  const patchOf = (element) => element.closest(".tm-patch").querySelector("[data-tm-patch]").value;

  // Each answer's citations refer to its own evidence; beside the chat is that of the newest one, or of the one looked at.
  // Until the framework takes over, its own copy of the page waits behind the first view.
  const view = () => document.getElementById("tm-first") || document;
  const answers = () => [...view().querySelectorAll("#bot .bot-row")];
  let turn = null, wantedTarget = null;
  const turnOf = (link) => {
    const row = link.closest("#bot .bot-row");
    return row ? answers().indexOf(row) : null;
  };
  const turnShown = () => turn ?? answers().length - 1;
  const isShown = (link) => { const own = turnOf(link); return own === null || own === turnShown(); };
  const lookBack = (link) => {
    const at = turnOf(link), href = link.getAttribute("href");
    if (document.getElementById("tm-first")) {
      window.tmDraft?.later(() => answers()[at]?.querySelector(`a[href="${href}"]`)?.click());
      return;
    }
    turn = at;
    wantedTarget = href;
    document.dispatchEvent(new CustomEvent("tm:turn", { detail: turn }));
  };
  const arrived = () => {
    const link = document.createElement("a");
    link.setAttribute("href", wantedTarget);
    wantedTarget = null;
    const target = targetOf(link);
    if (target) jump(target);
  };

  // Citations: a preview on hover and focus, the source itself on click
  // What the page tells of already is shown there, in its place; a list at the end has the rest.
  const targetOf = (link) => {
    const id = (link.getAttribute("href") || "").slice(1);
    if (/^tm-[vs]-/.test(id)) return document.getElementById("tm-top-of-evidence");
    const source = document.getElementById(id), { tmAt, tmLine, file } = source?.dataset || {};
    const row = tmLine && document.querySelector(`.tm-finding .tm-code[data-file="${CSS.escape(file)}"] tr.hit[data-line="${tmLine}"]`);
    if (row) row.tabIndex = -1;
    const told = row || (tmAt && document.getElementById(tmAt));
    return told?.matches(":empty") ? told.closest("details") : told || source;
  };
  const jump = (target) => {
    if (document.documentElement.clientWidth <= 900) show("evidence");
    // A link to a whole section is to what it folds away too.
    if (target.matches("section")) for (const fold of target.querySelectorAll(":scope > details")) fold.open = true;
    for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
    target.scrollIntoView({ behavior: calm() ? "auto" : "smooth", block: "start" });
    target.focus({ preventScroll: true });
    target.classList.remove("tm-flash");
    void target.offsetWidth;
    target.classList.add("tm-flash");
  };
  // The line of an excerpt that a plot's onset leads to.
  const lineIn = (target, link) => {
    const file = link.closest("[data-tm-run]")?.dataset.file, line = link.dataset.tmLine;
    const row = line && (target.querySelector(`.tm-code[data-file="${CSS.escape(file)}"] tr[data-line="${line}"]`)
      || target.querySelector(`tr[data-line="${line}"]`));
    if (row) row.tabIndex = -1;
    return row || target;
  };
  let popover = null;
  const hide = () => {
    popover?.remove();
    popover = null;
    for (const each of document.querySelectorAll(".tm-paired")) each.classList.remove("tm-paired");
  };
  const preview = (link) => {
    const source = document.getElementById(link.getAttribute("href").slice(1));
    if (!source || !/^tm-c\d+$/.test(source.id) || !isShown(link)) return;
    hide();
    const target = targetOf(link), row = target.matches("tr") ? target : null;
    target.classList.add("tm-paired");
    popover = document.createElement("div");
    popover.className = "tm-popover";
    popover.setAttribute("role", "tooltip");
    popover.id = "tm-popover";
    const inside = (row ? row.closest(".tm-code") : source.querySelector("div")).cloneNode(true);
    if (row) {
      const rows = [...inside.querySelectorAll("tr")], at = row.rowIndex;
      rows.forEach((each, number) => { if (Math.abs(number - at) > 2) each.remove(); });
    }
    for (const each of inside.querySelectorAll(".tm-meta a")) each.remove();
    for (const each of inside.querySelectorAll("a")) each.replaceWith(...each.childNodes);
    popover.append(inside);
    const grade = source.querySelector(".tm-grade");
    if (grade) popover.append(grade.cloneNode(true));
    document.body.append(popover);
    link.setAttribute("aria-describedby", "tm-popover");
    const at = link.getBoundingClientRect();
    const width = popover.offsetWidth, height = popover.offsetHeight;
    popover.style.left = `${Math.max(8, Math.min(at.left, innerWidth - width - 8))}px`;
    popover.style.top = `${at.bottom + height + 10 < innerHeight ? at.bottom + 6 : Math.max(8, at.top - height - 6)}px`;
  };
  const citation = (event) => event.target.closest?.('a[href^="#tm-c"]');
  document.addEventListener("mouseover", (event) => { const link = citation(event); if (link) preview(link); });
  document.addEventListener("mouseout", (event) => { if (citation(event)) hide(); });
  document.addEventListener("focusin", (event) => { const link = citation(event); if (link) preview(link); });
  document.addEventListener("focusout", (event) => { if (citation(event)) hide(); });
  document.addEventListener("scroll", hide, { capture: true, passive: true });

  document.addEventListener("click", (event) => {
    const on = (selector) => event.target.closest?.(selector);
    let hit;
    for (const menu of document.querySelectorAll(".tm-menu[open]")) if (!menu.contains(event.target)) menu.open = false;
    if ((hit = on('a[href^="#tm-"]'))) {
      event.preventDefault();
      hide();
      if (hit.getAttribute("href") === "#tm-question") { box()?.focus(); return; }
      if (hit.getAttribute("href") === "#tm-fold") {
        hit.setAttribute("aria-expanded", String(hit.closest(".message-row").toggleAttribute("data-tm-open")));
        return;
      }
      if (!isShown(hit)) { lookBack(hit); return; }
      const target = targetOf(hit);
      if (target) jump(lineIn(target, hit));
    } else if ((hit = on("[data-tm-copy]"))) copy(hit, patchOf(hit));
    else if ((hit = on("[data-tm-copy-code]"))) copy(hit, codeOf(hit));
    else if ((hit = on("#bot .copy_code_button"))) {
      event.stopPropagation();
      const check = hit.children[1] || hit;
      copied(codeOf(hit)).then(() => { check.style.opacity = "1"; setTimeout(() => { check.style.opacity = "0"; }, 2000); });
    }
    else if ((hit = on("[data-tm-download]"))) download(hit.dataset.tmDownload, patchOf(hit));
    else if ((hit = on("[data-tm-link]"))) copy(hit, new URL(hit.dataset.tmLink, location.href).href);
    else if ((hit = on("[data-tm-fill]"))) { show("answer"); window.tmDraft?.fill(hit.dataset.tmFill); }
    else if ((hit = on("[data-tm-tab]"))) show(hit.dataset.tmTab);
    else if ((hit = on("[data-tm-unlist]"))) unlist(hit.dataset.tmUnlist);
    else if (on("[data-tm-new]")) {
      // The bare address goes to the language chosen last, which may be another than this page's.
      choose(words().lang.slice(0, 2));
      location.assign(location.pathname);
    }
    else if (on("[data-tm-theme]")) {
      store.set("tm-theme", document.body.classList.contains("dark") ? "light" : "dark");
      dress();
    } else if ((hit = on("[data-tm-lang]"))) {
      choose(hit.dataset.tmLang);
      const answer = new URLSearchParams(location.search).toString();
      if (answer) { event.preventDefault(); location.assign(`${hit.getAttribute("href")}?${answer}`); }
    }
  }, true);

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { hide(); for (const menu of document.querySelectorAll(".tm-menu[open]")) menu.open = false; }
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (/^(input|textarea|select)$/i.test(document.activeElement?.tagName || "")) return;
    const area = box() || document.getElementById("tm-kb-query");
    if (area) { event.preventDefault(); area.focus(); }
  });

  // A filter of the knowledge applies as soon as it is chosen; without a script its button does it.
  document.addEventListener("change", (event) => {
    if (event.target.closest?.("form[data-tm-auto]") && event.target.matches("select")) event.target.form.requestSubmit();
  });

  // The newest question at the top of the chat, once per question: people read from its beginning.
  // It gets there only as far as there is text below it, so this goes on while the answer comes, until somebody scrolls.
  let asked = 0, revealing = false;
  const reveal = () => {
    const messages = view().querySelectorAll("#bot .user-row");
    if (messages.length !== asked) { asked = messages.length; revealing = asked > 0; }
    const wrap = view().querySelector("#tm-scroll");
    if (!revealing || !wrap) return;
    const last = messages[messages.length - 1];
    const top = last.getBoundingClientRect().top - wrap.getBoundingClientRect().top + wrap.scrollTop - 8;
    wrap.scrollTo({ top: top });
    if (wrap.scrollTop >= top - 2) revealing = false;
  };
  for (const kind of ["wheel", "touchmove", "keydown", "pointerdown"]) {
    document.addEventListener(kind, (event) => { if (event.target.closest?.("#tm-scroll")) revealing = false; }, { passive: true, capture: true });
  }
  let drawn = null;
  const changed = () => {
    const evidence = document.querySelector(".tm-ev");
    const id = evidence?.dataset.answer || null;
    document.body.classList.toggle("tm-talking", Boolean(document.querySelector("#bot .message-row")));
    if (id !== drawn) {
      drawn = id;
      if (wantedTarget) arrived(); else turn = null;
      document.body.classList.toggle("tm-answered", Boolean(id));
      document.getElementById("evidence")?.scrollTo({ top: 0 });
      const count = document.querySelectorAll("#tm-findings > .tm-finding").length;
      const tab = document.querySelector('[data-tm-tab="evidence"]');
      if (tab) tab.dataset.count = count ? String(count) : "";
    }
    colour();
    fold();
    reveal();
  };
  // Code within a line is kept whole where it is short; a long one breaks like words, else it leaves half a line empty.
  const LONG = 32;
  const fold = () => {
    for (const block of document.querySelectorAll("#bot pre:not([tabindex])")) block.tabIndex = 0; // it scrolls by the keyboard
    for (const code of document.querySelectorAll(".prose :not(pre) > code:not([data-tm])")) {
      if (!code.closest("pre")) code.dataset.tm = code.textContent.length > LONG ? "long" : "short";
    }
  };
  // Diffs of answers and knowledge pages, line by line; the text itself stays what it is.
  const colour = () => {
    for (const code of document.querySelectorAll(":is(#tm-kb-body, #bot) code.language-diff:not([data-tm])")) {
      code.dataset.tm = "";
      const rows = code.textContent.replace(/\n$/, "").split("\n").map((line) => {
        const row = document.createElement("span");
        row.textContent = line;
        const file = /^(---|\+\+\+) /.test(line);
        row.className = file ? "" : line[0] === "+" ? "ins" : line[0] === "-" ? "del" : "";
        return row;
      });
      code.replaceChildren(...rows.flatMap((row) => [row, "\n"]));
      rows.forEach((row, n) => { if (row.className === "del" && rows[n + 1]?.className === "ins") marked(row, rows[n + 1]); });
    }
  };
  // Of a line and the one that replaces it, what differs.
  const marked = (...pair) => {
    const [a, b] = pair.map((row) => row.textContent), most = Math.min(a.length, b.length);
    let from = 1, to = 0;
    while (from < most && a[from] === b[from]) from += 1;
    while (to < most - from && a.at(-1 - to) === b.at(-1 - to)) to += 1;
    for (const row of 2 * (from + to) > Math.max(a.length, b.length) ? pair : []) {
      const text = row.textContent, part = Object.assign(document.createElement("b"), { textContent: text.slice(from, text.length - to) });
      row.replaceChildren(text.slice(0, from), part, text.slice(text.length - to));
    }
  };
  // The framework names its parts for screen readers in English on every page.
  const NAMES = [
    ["#tm-question textarea, #tm-question .full-container", "messageLabel"], ["#tm-question button.upload-button", "attach"],
    ["#tm-question .submit-button", "send"], ["#tm-question .stop-button", "stop"], ["#bot [role=log], #bot [aria-label^='bot\\'s message']", "chat"], ["#bot [aria-label^='user\\'s message']", "messageLabel"],
    ["#bot .message-buttons button", "copy"]];
  let waiting = false;
  const watch = () => {
    document.documentElement.lang = words().lang || document.documentElement.lang;
    for (const [selector, name] of NAMES) {
      for (const element of document.querySelectorAll(selector)) {
        if (element.getAttribute("aria-label") !== words()[name]) element.setAttribute("aria-label", words()[name] || "");
      }
    }
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; changed(); });
  };
  const start = () => {
    new MutationObserver(watch).observe(document.body, { childList: true, subtree: true });
    watch();
    drawList();
  };
  if (document.body) start(); else addEventListener("DOMContentLoaded", start);

  window.tm = {
    // The id of the answer on the page; the server may have forgotten it.
    unlist: unlist,
    // A question was answered: it comes first in the list, under the words that its conversation began with.
    remember: () => {
      const { conversation: id, answer } = document.querySelector(".tm-after[data-answer]")?.dataset || {};
      const known = listed().find((each) => each.id === id);
      const title = known?.title || view().querySelector("#bot .user-row .prose > *")?.innerText.trim().slice(0, 100) || answer;
      if (id) list([{ id: id, answer: answer, title: title }, ...listed().filter((each) => each.id !== id)]);
    },
    shown: () => new URLSearchParams(location.search).get("answer") || "",
    // An answer is complete and kept: from now on it has an address.
    addressed: () => {
      const done = document.querySelector(".tm-after[data-answer]");
      if (done?.dataset.title) document.title = done.dataset.title;
      if (done) history.replaceState(null, "", `${location.pathname}?answer=${encodeURIComponent(done.dataset.answer)}`);
      return done;
    },
    settled: () => {
      requestAnimationFrame(() => { reveal(); revealing = false; });
      const done = window.tm.addressed();
      const area = box();
      drawList();
      window.tmDraft?.settled();
      if (done && area && document.documentElement.clientWidth > 900) area.focus({ preventScroll: true });
    },
  };
})();
