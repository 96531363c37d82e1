// The crosshair that all plots of a run share: it follows the mouse, a finger, and the slider below them, which takes the keys.
(() => {
  "use strict";
  const SIDE = 0.006; // the margin on either side of the picture
  const parsed = new WeakMap();
  const tracesOf = (run) => {
    if (!parsed.has(run)) {
      parsed.set(run, [...run.querySelectorAll("[data-tm-at]")].map((group, number) => {
        const plot = group.closest(".tm-plot"), { tmAt, places, values } = group.dataset;
        const place = [...plot.querySelectorAll("[data-tm-at]")].indexOf(group);
        return { at: tmAt.split("|").map(Number), places: places.split("|"), values: values.split("|"),
          now: plot.querySelectorAll(".tm-now > span")[place], number };
      }));
    }
    return parsed.get(run);
  };
  const stops = (run) => [...new Set(tracesOf(run).flatMap((trace) => trace.at))].sort((a, b) => a - b);
  const nearest = (list, wanted) => list.reduce((best, at, place) => Math.abs(at - wanted) < Math.abs(list[best] - wanted) ? place : best, 0);
  const share = (run, at) => {
    const first = Number(run.dataset.first), last = Number(run.dataset.last);
    return SIDE + (1 - 2 * SIDE) * (last > first ? (at - first) / (last - first) : 0.5);
  };
  const positionOf = (run, part) => {
    const first = Number(run.dataset.first), last = Number(run.dataset.last);
    return first + (last - first) * Math.min(1, Math.max(0, (part - SIDE) / (1 - 2 * SIDE)));
  };
  const show = (run, wanted) => {
    const all = stops(run), index = nearest(all, wanted), at = all[index], { place, line, file } = run.dataset;
    const read = [];
    let where = "";
    for (const trace of tracesOf(run)) {
      const point = nearest(trace.at, at), [step, row] = trace.places[point].split(":");
      trace.now.textContent = trace.values[point];
      read.push(`${trace.now.closest("figcaption").querySelector("b").textContent} ${trace.values[point]}`);
      if (trace.at[point] === at && !where) where = place.replace("{step}", step) + (row ? ` · ${line.replace("{file}", file).replace("{line}", row)}` : "");
    }
    for (const cross of run.querySelectorAll(".tm-cross")) {
      cross.style.left = `${100 * share(run, at)}%`;
      cross.hidden = false;
    }
    run.querySelector(".tm-where").textContent = where;
    const slider = run.querySelector("[data-tm-scrub]");
    slider.value = index;
    slider.setAttribute("aria-valuetext", `${where}: ${read.join(", ")}`);
  };
  const hide = (run) => {
    for (const cross of run.querySelectorAll(".tm-cross")) cross.hidden = true;
    for (const now of run.querySelectorAll(".tm-now > span, .tm-where")) now.textContent = "";
  };
  const follow = (event) => {
    const box = event.target.closest?.(".tm-plot-box"), run = box?.closest("[data-tm-run]");
    if (!run) return;
    const { left, width } = box.getBoundingClientRect();
    show(run, positionOf(run, (event.clientX - left) / width));
  };
  for (const kind of ["pointermove", "pointerdown"]) document.addEventListener(kind, follow, { passive: true });
  document.addEventListener("pointerout", (event) => {
    const run = event.pointerType === "mouse" && event.target.closest?.("[data-tm-run]");
    if (run && !run.contains(event.relatedTarget) && !run.contains(document.activeElement)) hide(run);
  });
  for (const kind of ["input", "focusin"]) {
    document.addEventListener(kind, (event) => {
      if (!event.target.matches?.("[data-tm-scrub]")) return;
      const run = event.target.closest("[data-tm-run]");
      show(run, stops(run)[Number(event.target.value)]);
    });
  }
})();
