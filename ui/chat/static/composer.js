// The composer: what is written and attached is kept in this browser until it is answered, so that it outlives a reload,
// another language, a lost connection and a restarted server. Every failure is said, with a way on.
(() => {
  "use strict";
  const words = () => document.getElementById("tm-words")?.dataset || {};
  const box = () => document.querySelector("#tm-question textarea");
  const picker = () => document.querySelector('#tm-question input[type="file"]');
  const hasFiles = () => Boolean(document.querySelector("#tm-question .has-files"));
  const names = (list) => list.map((file) => file.name).join(", ");
  const KEY = "tm-draft", LONG_PASTE = 2000, KEPT_MS = 12 * 3600e3, UPLOAD_MS = 120e3;

  // The draft: its text in this tab's storage, its files in the browser's database.
  const load = () => { try { return JSON.parse(sessionStorage.getItem(KEY)) || {}; } catch { return {}; } };
  const draft = { tab: String(Math.random()).slice(2), text: "", before: "", sent: false, press: "", again: false, ...load() };
  const save = () => { try { sessionStorage.setItem(KEY, JSON.stringify(draft)); } catch { /* private mode */ } };
  // A question that was under way when the page went; cleared once its reader has been told.
  let interrupted = draft.sent || draft.press ? { press: draft.press, again: draft.again } : null;
  Object.assign(draft, { sent: false, press: "", again: false });
  save();

  const store = (mode, work) => new Promise((resolve) => {
    const opening = indexedDB.open("trainmedic", 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore("files");
    opening.onerror = () => resolve(null);
    opening.onsuccess = () => {
      const all = opening.result.transaction("files", mode).objectStore("files"), request = work(all);
      all.transaction.oncomplete = () => { opening.result.close(); resolve(request?.result ?? null); };
      all.transaction.onabort = () => { opening.result.close(); resolve(null); };
    };
  });
  let files = [], failed = [];
  const keep = () => store("readwrite", (all) => {
    const kept = [...files, ...failed];
    if (kept.length) all.put({ files: kept, at: Date.now() }, draft.tab); else all.delete(draft.tab);
    all.openCursor().onsuccess = (event) => {
      const cursor = event.target.result;
      if (!cursor) return;
      if (Date.now() - cursor.value.at > KEPT_MS) cursor.delete();
      cursor.continue();
    };
  });
  const stored = store("readonly", (all) => all.get(draft.tab)).then((found) => {
    files.unshift(...(found?.files || []));
    if (!starting()) return;
    if (files.length) { chips(); if (!isDirect()) wake(); }
    if (isDirect() && interrupted) {
      const { again, press: selector } = interrupted;
      interrupted = null;
      box().value ||= draft.text;
      if (again && !selector) ask();
      else if (!selector) say(words().interrupted, { label: words().sendAgain, act: () => ask() });
    }
  });

  // Notices, above the input: what happened, and the way on.
  const unsay = () => document.getElementById("tm-told")?.remove();
  const say = (text, { label = "", act = null, calm = false } = {}) => {
    unsay();
    const notice = Object.assign(document.createElement("p"), { id: "tm-told", className: calm ? "tm-status" : "tm-alert", textContent: text });
    notice.setAttribute("role", calm ? "status" : "alert");
    if (label) {
      const button = Object.assign(document.createElement("button"), { type: "button", className: "tm-button", textContent: label });
      button.addEventListener("click", act);
      notice.append(" ", button);
    }
    (document.getElementById("tm-notice-box") || document.body).append(notice);
  };

  // The first view comes with the document. The framework, a megabyte, is fetched when somebody turns to the page, and takes
  // over what was written, attached or pressed by then. A linked answer can be read without it.
  const first = () => document.getElementById("tm-first");
  const starting = () => Boolean(first()?.querySelector("#tm-question"));
  const wake = () => {
    for (const kind of SIGNS) removeEventListener(kind, wake, true);
    const { script, style } = first()?.dataset || {};
    if (!script || document.querySelector("script[type=module]")) return;
    document.head.append(
      Object.assign(document.createElement("link"), { rel: "stylesheet", crossOrigin: "", href: style }),
      Object.assign(document.createElement("script"), { type: "module", crossOrigin: "", src: script,
        onerror: () => document.dispatchEvent(new CustomEvent("tm:failed", { detail: 0 })) }));
  };
  const isLink = () => first()?.dataset.view === "link";
  // Without a model the first question needs no framework: its answer comes as a linked one does.
  const isDirect = () => first()?.dataset.view === "start" && first().dataset.direct !== undefined;
  const SIGNS = isDirect() ? [] : isLink() ? ["dragenter", "paste"] : ["pointermove", "pointerdown", "touchstart", "keydown", "dragenter", "paste"];
  for (const kind of SIGNS) addEventListener(kind, wake, { capture: true, passive: true });
  const wakeInTime = () => first().querySelector("#tm-question").addEventListener("focusin", wake, { once: true });
  if (isLink()) wakeInTime();
  if ((draft.text || interrupted) && !isDirect()) wake();
  // What the waiting files are, by their beginnings; lines are counted here.
  const HEAD = 16 * 1024, COUNTED = 2 ** 23;
  const recognise = async () => {
    const data = new FormData(), now = [...files];
    for (const file of now) {
      data.append("file", file.slice(0, HEAD), file.name);
      const text = file.size < COUNTED && !file.name.endsWith(".gz") ? await file.text() : "";
      data.append("lines", text && text.split("\n").length - text.endsWith("\n"));
    }
    data.append("language", words().lang.slice(0, 2));
    const html = await fetch("/first/files", { method: "POST", body: data }).then((answer) => (answer.ok ? answer.text() : "")).catch(() => "");
    if (html && starting() && now.length === files.length && now.every((file, at) => file === files[at])) chipsBox().innerHTML = html;
  };
  const chipsBox = () => first().querySelector("#tm-chips-box");
  const chips = () => {
    if (files.length && isDirect()) recognise();
    const list = Object.assign(document.createElement("ul"), { className: "tm-chips" });
    for (const [number, file] of files.entries()) {
      const chip = Object.assign(document.createElement("li"), { className: "tm-chip" });
      const button = Object.assign(document.createElement("button"), { type: "button", textContent: "×", title: words().removed });
      button.dataset.tmDrop = number;
      chip.append(Object.assign(document.createElement("b"), { textContent: file.name }), button);
      list.append(chip);
    }
    chipsBox().replaceChildren(...(files.length ? [list] : []));
  };
  // The first question, of the input or an example. The draft is kept until the answer is there.
  const row = (kind, text) => {
    const made = document.createElement("div"), said = document.createElement("div");
    Object.assign(made, { className: `message-row panel ${kind}` }).append(said);
    said.className = "prose chatbot md";
    said.append(Object.assign(document.createElement("p"), { textContent: text }));
    return made;
  };
  // The answer's HTML, or the status and what the server says of it; ``told`` hears how much was sent.
  const sent = (data, told) => new Promise((resolve) => {
    const request = new XMLHttpRequest();
    request.open("POST", "/first/ask");
    request.upload.onprogress = ({ loaded, total }) => told(loaded, total);
    request.onloadend = () => {
      let why = "";
      if (request.status !== 200) try { why = JSON.parse(request.responseText).error.message; } catch { /* a proxy's */ }
      resolve({ status: request.status, html: request.status === 200 ? request.responseText : "", why: why });
    };
    request.send(data);
  });
  const MB = (size) => (size / 2 ** 20).toFixed(1);
  let asking = false;
  const ask = async (example = "", title = "") => {
    if (asking) return;
    asking = true;
    const data = new FormData(), text = box().value, shown = example ? title : [text, names(files)].filter(Boolean).join("\n");
    if (!example) Object.assign(draft, { text: text, sent: true, before: "" });
    save();
    unsay();
    for (const [name, value] of Object.entries({ question: text, example: example, language: words().lang.slice(0, 2) })) data.append(name, value);
    for (const file of files) data.append("file", file);
    const wrap = Object.assign(document.createElement("div"), { id: "bot", innerHTML: '<div class="panel-wrap"><div class="message-wrap"></div></div>' });
    wrap.querySelector(".message-wrap").append(row("user-row", shown), row("bot-row", words().analysing));
    first().querySelector("#tm-scroll").append(wrap);
    document.body.classList.add("tm-asking");
    const begun = Date.now(), state = wrap.querySelector(".bot-row p");
    let sending = "";
    const clock = setInterval(() => {
      const seconds = Math.round((Date.now() - begun) / 1000);
      state.textContent = sending || `${words().analysing}${seconds > 2 ? ` ${seconds} s` : ""}`;
    }, 500);
    const { status, html, why } = await sent(data, (done, all) => {
      sending = done < all ? words().sendingSize.replace("{done}", MB(done)).replace("{all}", MB(all)) : "";
    });
    clearInterval(clock);
    document.body.classList.remove("tm-asking");
    wrap.remove();
    Object.assign(draft, { sent: false });
    save();
    asking = false;
    if (!html) {
      if (status === 401) say(words().signedOut, { label: words().reconnect, act: () => begin(true) });
      else say(why || (status ? words().refused.replace("{status}", status) : words().offlineSent), { label: words().sendAgain, act: () => ask(example, title) });
      return;
    }
    if (!example) { Object.assign(draft, { text: "" }); files = []; keep(); save(); }
    first().dataset.view = "link";
    first().querySelector("#main").outerHTML = html;
    document.body.classList.add("tm-talking", "tm-answered");
    box().value = draft.text;
    chips();
    window.tm?.addressed();
    window.tm?.remember();
    wakeInTime();
  };
  const SCROLLED = ["#tm-scroll", "#evidence"];
  // Pressed before the framework is there: done as soon as it is. ``selector`` may be a function that does it.
  const later = (selector) => {
    interrupted = { press: selector, again: true };
    wake();
    say(words().sending, { calm: true });
  };
  // How the same element of the framework's copy of the page is found.
  const NAMED = ["data-tm-example", "data-tm-follow", "data-tm-vote", "data-tm-fill", "data-tm-tab", "data-tm-theme", "data-tm-new", "href"];
  const nameOf = (element) => {
    const name = NAMED.find((each) => element?.hasAttribute(each));
    return name && first()?.contains(element) ? `${element.tagName}[${name}="${CSS.escape(element.getAttribute(name))}"]` : "";
  };
  const takeOver = () => {
    const area = starting() ? box() : null, at = area?.selectionStart ?? null, focused = area === document.activeElement;
    const name = nameOf(document.activeElement);
    const scrolled = SCROLLED.map((selector) => first()?.querySelector(selector)?.scrollTop || 0);
    const open = [...(first()?.querySelectorAll("#bot .message-row") || [])].map((row) => row.hasAttribute("data-tm-open"));
    first()?.remove();
    document.querySelectorAll("#bot .message-row").forEach((row, number) => row.toggleAttribute("data-tm-open", Boolean(open[number])));
    SCROLLED.forEach((selector, number) => { if (scrolled[number]) document.querySelector(selector)?.scrollTo(0, scrolled[number]); });
    if (name) document.querySelector(name)?.focus({ preventScroll: true });
    if (!box() || !area) return;
    if (area.value) write(area.value);
    if (focused) { box().focus(); box().setSelectionRange(at, at); }
  };

  // Attaching: every way in comes here, one upload after the other, so that our list is in the order of the framework's.
  let handing = false, uploaded = null, queue = Promise.resolve();
  const upload = (list) => new Promise((resolve) => {
    const input = picker();
    if (!input) { resolve(false); return; }
    const data = new DataTransfer();
    for (const file of list) data.items.add(file);
    const timer = setTimeout(() => resolve(false), UPLOAD_MS);
    uploaded = (ok) => { clearTimeout(timer); uploaded = null; resolve(ok); };
    handing = true;
    input.files = data.files;
    input.dispatchEvent(new Event("change", { bubbles: true }));
    handing = false;
  });
  const hand = (list) => {
    if (starting()) {
      files.push(...list);
      keep();
      chips();
      return queue;
    }
    queue = queue.then(async () => {
      files.push(...list);
      keep();
      if (await upload(list)) return;
      files = files.filter((file) => !list.includes(file));
      failed.push(...list);
      keep();
      say(words().notUploaded.replace("{names}", names(failed)), { label: words().sendAgain, act: () => { unsay(); hand(failed.splice(0)); } });
    });
    return queue;
  };
  // The same file under the same name is one upload, which a question names once.
  const isSame = async (a, b) => a === b || (a.name === b.name && a.size === b.size && (await a.text()) === (await b.text()));
  const unknown = async (chosen) => {
    const kept = [...files, ...failed], fresh = [];
    for (const file of chosen) {
      let known = false;
      for (const other of [...kept, ...fresh]) known ||= await isSame(file, other);
      if (!known) fresh.push(file);
    }
    return fresh;
  };
  const attach = async (all) => {
    const chosen = await unknown(await Promise.all(all.map(window.tmFolder.packed)));
    const limit = Number(words().maxFiles), most = Number(words().maxMb) * 2 ** 20;
    const fit = chosen.filter((file) => file.size <= most);
    const room = fit.slice(0, Math.max(0, limit - files.length - failed.length));
    if (fit.length < chosen.length) say(words().tooLarge.replace("{names}", names(chosen.filter((file) => file.size > most))));
    else if (room.length < fit.length) say(words().tooMany);
    else unsay();
    if (room.length) hand(room);
  };

  const ours = (event) => [...(event.dataTransfer?.types || [])].includes("Files") && box();
  const within = (event) => event.target.closest?.("#tm-question");
  const taken = (event) => { event.preventDefault(); event.stopImmediatePropagation(); };
  // What tells of the runs in folders; ``found`` waits for it, beside single files.
  const attachRuns = async (found) => {
    say(words().readingFolder, { calm: true });
    const all = (await Promise.all(found).catch(() => [])).flat().filter(Boolean);
    unsay();
    if (all.length) await attach(all); else say(words().noRun);
  };
  let leaving = 0;
  const mark = (on) => {
    clearTimeout(leaving);
    document.body.classList.toggle("tm-dropping", on);
    if (on) leaving = setTimeout(() => mark(false), 400); // a drag over the page repeats itself; one that left does not
    document.body.dataset.drop = words().drop || "";
  };
  for (const kind of ["dragenter", "dragover"]) {
    document.addEventListener(kind, (event) => { if (ours(event)) { taken(event); mark(true); } }, true);
  }
  document.addEventListener("drop", (event) => {
    if (!ours(event)) return;
    taken(event);
    mark(false);
    if (box().disabled) return;
    const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
    if (entries.some((entry) => entry.isDirectory)) {
      attachRuns(entries.map((entry) => (entry.isDirectory ? window.tmFolder.dropped(entry)
        : new Promise((resolve) => entry.file(resolve, () => resolve(null))))));
    }
    else attach([...event.dataTransfer.files]);
  }, true);
  document.addEventListener("change", (event) => {
    if (event.target.matches?.("[data-tm-folder]")) {
      if (event.target.files.length) attachRuns([window.tmFolder.picked([...event.target.files])]);
      event.target.value = "";
      return;
    }
    if (handing || event.target !== picker()) return;
    taken(event);
    attach([...event.target.files]);
  }, true);
  document.addEventListener("paste", (event) => {
    if (!within(event) || event.target !== box()) return;
    const text = event.clipboardData.getData("text"), pasted = [...event.clipboardData.files];
    if (text.length > LONG_PASTE) pasted.splice(0, pasted.length, new File([text], "pasted_text.txt", { type: "text/plain" }));
    else if (text || !pasted.length) return;
    taken(event);
    attach(pasted);
  }, true);

  // Writing and sending
  const write = (text) => {
    const area = box();
    area.value = text;
    area.dispatchEvent(new Event("input", { bubbles: true }));
  };
  // A label such as `algorithm: ` that nothing was written behind gives way to the next one.
  const fill = (text) => {
    const area = box();
    if (!area || area.disabled) return;
    const lines = area.value.trimEnd().split("\n");
    if (/^[\w.-]+:$/.test(lines[lines.length - 1])) lines.pop();
    if (text) write([...lines.filter((line, number) => number || line), text].join("\n"));
    area.focus();
    area.setSelectionRange(area.value.length, area.value.length);
  };
  const send = () => { if (isDirect()) ask(); else later(""); };
  const isEmpty = () => !box().value.trim() && !hasFiles() && !(starting() && files.length);
  document.addEventListener("input", (event) => {
    if (event.target !== box()) return;
    draft.text = event.target.value;
    save();
  });
  document.addEventListener("keydown", (event) => {
    if (event.target !== box() || event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    if (isEmpty()) { taken(event); say(words().empty); } else if (starting()) { taken(event); send(); }
  }, true);
  document.addEventListener("click", (event) => {
    const on = (selector) => event.target.closest?.(selector);
    const chip = on("[data-tm-drop]"), pressed = on("[data-tm-follow], [data-tm-example]");
    const kept = starting() && on("[data-tm-vote], [data-tm-forget]");
    if (chip) {
      files.splice(Number(chip.dataset.tmDrop), 1);
      keep();
      if (starting()) chips();
    }
    else if (kept) later(kept.dataset.tmVote ? `[data-tm-vote="${kept.dataset.tmVote}"]` : "[data-tm-forget]");
    else if (pressed) {
      const [name, value] = pressed.dataset.tmFollow ? ["follow", pressed.dataset.tmFollow] : ["example", pressed.dataset.tmExample];
      Object.assign(draft, { press: `[data-tm-${name}="${CSS.escape(value)}"]`, before: window.tm?.shown() || "" });
      save();
      if (isDirect()) { draft.press = ""; ask(value, pressed.querySelector("b").textContent); } else if (starting()) later(draft.press);
    } else if (on("#tm-question .submit-button")) {
      if (isEmpty()) { taken(event); say(words().empty); } else if (starting()) send();
    }
  }, true);

  // Back into the input: what the page had before it went, or what was sent without getting an answer.
  const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
  const until = async (true_, frames = 120) => { while (!true_() && frames--) await frame(); return true_(); };
  const restore = async () => {
    if (!(await until(() => box() && !box().disabled))) return;
    if (draft.text && !box().value) write(draft.text);
    const list = hasFiles() ? [] : files.splice(0);
    if (list.length) { await hand(list); await until(hasFiles); }
  };
  const press = (wanted) => { if (typeof wanted === "function") wanted(); else document.querySelector(wanted)?.click(); };
  const resume = ({ press: selector, again }) => {
    const send = () => { unsay(); press(selector || "#tm-question .submit-button"); };
    if (again) send();
    else if (!selector && !isEmpty()) say(words().interrupted, { label: words().sendAgain, act: send });
  };

  // Failures: `stream.js` tells of each call that did not reach the server or was refused.
  const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  // The server's name for its own run, empty if it has none yet; null if it cannot be reached.
  const run = () => fetch(`${location.pathname}gradio_api/app_id`, { cache: "no-store" })
    .then((answer) => (answer.ok ? answer.json().then((body) => body.app_id) : answer.status === 401 ? "" : null))
    .catch(() => null);
  const reached = async () => { for (;;) { const id = await run(); if (id !== null) return id; await wait(1000); } };
  const begin = (again) => { draft.again = again; save(); location.reload(); };
  const recover = async (again) => {
    draft.again = again; // already now: the framework too begins anew when it finds another server
    save();
    await reached();
    begin(again);
  };
  let lost = false, going = false;
  addEventListener("pagehide", () => { going = true; });
  // After a short break the page goes on as it is; a server that was started again knows none of its files.
  const returned = async () => {
    if ((await reached()) !== window.tmApp) { begin(false); return; }
    lost = false;
    unsay();
  };
  document.addEventListener("tm:failed", ({ detail: status }) => {
    if (lost || going) return;
    lost = true;
    const busy = Boolean(draft.sent || draft.press);
    const last = Number(sessionStorage.getItem("tm-begun"));
    if (status === 401) say(words().signedOut, { label: words().reconnect, act: () => begin(busy) });
    else if (busy) say(words().offlineSent, { label: words().sendAgain, act: () => recover(true) });
    else if ([403, 404].includes(status) && Date.now() - last > 10e3) { sessionStorage.setItem("tm-begun", String(Date.now())); recover(false); }
    else if (status) say(words().refused.replace("{status}", status), { label: words().reconnect, act: () => recover(false) });
    else { say(words().offline, { label: words().reconnect, act: () => recover(false) }); returned(); }
  });
  document.addEventListener("tm:uploaded", ({ detail: ok }) => uploaded?.(ok));

  addEventListener("DOMContentLoaded", () => { if (starting() && draft.text && !box().value) box().value = draft.text; });

  window.tmDraft = {
    wake: wake,
    fill: fill,
    later: later,
    // A question is on its way.
    sent: (text) => { Object.assign(draft, { text: text, sent: true, before: window.tm?.shown() || "" }); save(); unsay(); },
    // Nothing is under way any more: a question that got no answer comes back.
    settled: async () => {
      await stored;
      takeOver();
      await frame();
      await frame();
      const answer = document.querySelector(".tm-after[data-answer]")?.dataset.answer || "";
      if (answer && answer !== draft.before) {
        if (draft.sent || draft.press) window.tm?.remember();
        if (draft.sent) {
          draft.text = "";
          files = [];
          failed = [];
          keep();
        }
      }
      const last = interrupted;
      interrupted = null;
      Object.assign(draft, { sent: false, press: "", again: false });
      save();
      await restore();
      if (last) resume(last);
    },
  };
  // What the framework draws has places in the order of tabs that nobody can see.
  new MutationObserver(() => {
    for (const hidden of document.querySelectorAll("#tm-question .input-container > button:not([tabindex='-1']), #tm-question div[tabindex='0']")) {
      if (hidden.matches("button") || !hidden.offsetWidth || !hidden.offsetHeight) hidden.tabIndex = -1;
    }
  }).observe(document, { childList: true, subtree: true });
})();
