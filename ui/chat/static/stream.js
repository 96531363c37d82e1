// The framework's event stream, kept open while an event waits for it.
//
// The server ends the stream when nothing is under way. An event that is sent at that moment is lost: the framework
// sees that the stream is still open, opens none, and then reads the end of the old one (Gradio 6.31, `open_stream`).
// On a network that takes a tenth of a second, one question in eight that is sent right after typing would wait for
// ever. So the end is kept from it as long as an event waits, and the stream goes on with a new one.
//
// Calls that fail are told of to `composer.js`, as the event `tm:failed` with the status, 0 if there was no answer.
(() => {
  "use strict";
  const real = window.fetch.bind(window);
  const waiting = new Set(), done = new Set();
  let sending = 0;

  const address = (target) => new URL(target?.url || target, location.href).pathname;
  const tell = (name, detail) => document.dispatchEvent(new CustomEvent(name, { detail: detail }));
  const failing = (error) => { if (error?.name !== "AbortError") tell("tm:failed", 0); throw error; };
  const told = async (target, given) => {
    const answer = await real(target, given).catch(failing);
    if (!answer.ok) tell("tm:failed", answer.status);
    return answer;
  };
  const join = async (target, given) => {
    sending += 1;
    try {
      const answer = await told(target, given);
      const { event_id: id } = await answer.clone().json().catch(() => ({}));
      if (id && !done.delete(id)) waiting.add(id);
      return answer;
    } finally { sending -= 1; }
  };
  // Whether a message is the end of the stream; the end of an event is noted.
  const ends = (text) => {
    let message;
    try { message = JSON.parse(text.replace(/^data:/, "")); } catch { return false; }
    if (message.msg === "process_completed" && !waiting.delete(message.event_id)) done.add(message.event_id);
    return message.msg === "close_stream";
  };
  const messages = async function* (body) {
    const decoder = new TextDecoder();
    let rest = "";
    for (const reader = body.getReader(); ;) {
      const { value, done: over } = await reader.read();
      rest += over ? decoder.decode() : decoder.decode(value, { stream: true });
      const parts = rest.split("\n\n");
      rest = parts.pop();
      yield* parts;
      if (over) { if (rest) yield rest; return; }
    }
  };
  const copy = async (first, out, again) => {
    const encoder = new TextEncoder();
    for (let answer = first; answer; ) {
      let next = null;
      for await (const text of messages(answer.body)) {
        if (ends(text) && (sending || waiting.size)) next = await again();
        if (!next?.ok) out.enqueue(encoder.encode(`${text}\n\n`));
      }
      answer = next?.ok ? next : null;
    }
    if (waiting.size) tell("tm:failed", 0); // the server went in the middle of an answer
  };
  const stream = async (target, given) => {
    const first = await told(target, given);
    if (!first.ok || !first.body) return first;
    const body = new ReadableStream({
      start: (out) => copy(first, out, () => real(target, given)).catch(failing)
        .then(() => out.close(), (error) => out.error(error)),
    });
    return new Response(body, { status: first.status, headers: first.headers });
  };

  const upload = async (target, given) => {
    const answer = await real(target, given).catch((error) => { tell("tm:uploaded", false); throw error; });
    tell("tm:uploaded", answer.ok);
    return answer;
  };
  // Without it the framework, which may come out of the browser's cache, cannot start: it waits, and the reader is told.
  const config = async (target, given) => {
    const answer = await real(target, given).catch(() => { tell("tm:failed", 0); return new Promise(() => {}); });
    if (answer.ok) answer.clone().json().then((page) => { window.tmApp = page.app_id; });
    return answer;
  };
  // A cancelled event ends without a message of its own.
  const cancel = (target, given) => {
    try { waiting.delete(JSON.parse(given?.body).event_id); } catch { /* not ours */ }
    return real(target, given);
  };

  window.fetch = (target, given) => {
    const path = address(target);
    if (path.endsWith("/gradio_api/upload")) return upload(target, given);
    if (path.endsWith("/config")) return config(target, given);
    if (path.endsWith("/gradio_api/cancel")) return cancel(target, given);
    if (path.endsWith("/queue/join")) return join(target, given);
    if (path.endsWith("/queue/data")) return stream(target, given);
    return real(target, given);
  };
})();
