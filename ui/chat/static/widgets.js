// What the framework's widgets on the question page do in the browser; `diagnose.py` names these.
(() => {
  "use strict";
  const shown = () => (window.tm ? window.tm.shown() : "");
  window.tmWidgets = {
    // Under the answer: votes, follow-up questions, deletion, and the way back to an earlier answer's evidence.
    after: (element, trigger) => {
      document.addEventListener("tm:turn", (event) => trigger("turn", { index: event.detail }));
      element.addEventListener("click", (event) => {
        const vote = event.target.closest("[data-tm-vote]");
        const follow = event.target.closest("[data-tm-follow]");
        const forget = event.target.closest("[data-tm-forget]");
        const answer = element.querySelector(".tm-after")?.dataset.answer;
        // The second click of a double click would land on what the first one brought under the pointer.
        if (vote && event.detail < 2) {
          trigger("vote", { reaction: vote.dataset.tmVote, reason: vote.dataset.tmReason || "", answer: answer });
        }
        if (follow) trigger("follow", { id: follow.dataset.tmFollow });
        if (forget && confirm(forget.dataset.tmForget)) {
          window.tm?.unlist(element.querySelector(".tm-after").dataset.conversation);
          trigger("forget", { answer: answer });
        }
      });
    },
    // The waiting files.
    chips: (element, trigger) => {
      element.addEventListener("click", (event) => {
        const drop = event.target.closest("[data-tm-drop]");
        if (drop) trigger("drop", { index: Number(drop.dataset.tmDrop) });
      });
    },
    examples: (element, trigger) => {
      element.addEventListener("click", (event) => {
        const example = event.target.closest("[data-tm-example]");
        if (example) trigger("example", { id: example.dataset.tmExample });
      });
    },
    settled: () => { window.tm && window.tm.settled(); },
    stopped: () => { window.tmDraft && window.tmDraft.settled(); },
    asked: (value, session) => {
      window.tmDraft && window.tmDraft.sent(value.text);
      return [value, session, shown()];
    },
    followed: (session) => [session, shown()],
  };
})();
