// A run's folder, dropped or picked: listed and read here; only what tells of the run is uploaded, long texts compressed.
// What that is, the server says by the names, sizes and times alone (`run_folder.toml`, as `trainmedic doctor` chooses).
(() => {
  "use strict";
  const MOST = 20000, DEEPEST = 6, TAIL = 64 * 1024, LONG = 2 ** 20, LONGEST = 256 * 2 ** 20;
  let known = null;
  const rule = async () => {
    known ||= await (await fetch("/first/folder")).json();
    const glob = (pattern) => pattern.replace(/[.+^${}()|\\]/g, "\\$&").replace(/\*/g, ".*").replace(/\?/g, ".");
    return { ...known, told: new RegExp(`^(?:${known.patterns.map(glob).join("|")})$`, "s") };
  };
  const isHidden = (name, leftOut) => (name.startsWith(".") && name !== ".hydra") || leftOut.includes(name);

  // Every file below a dropped folder, with its path there.
  const listed = (folder) => new Promise((resolve) => {
    const reader = folder.createReader(), all = [];
    const next = () => reader.readEntries((some) => { all.push(...some); if (some.length) next(); else resolve(all); }, () => resolve(all));
    next();
  });
  const below = async (folder, leftOut, prefix = "", depth = 0, found = []) => {
    for (const entry of await listed(folder)) {
      if (found.length >= MOST) break;
      if (entry.isDirectory) {
        if (depth < DEEPEST && !isHidden(entry.name, leftOut)) await below(entry, leftOut, `${prefix}${entry.name}/`, depth + 1, found);
      } else found.push({ path: prefix + entry.name, open: () => new Promise((resolve) => entry.file(resolve, () => resolve(null))) });
    }
    return found;
  };

  // Scripts and logs of ranks are chosen by what they say: the one script that trains, the first rank and those that failed.
  const telling = async (chosen, { telling: words, ranks, told_by: length }) => {
    const spoken = new Map(), programs = [];
    const kept = chosen.filter((each) => each.sure);
    for (const each of chosen.filter((one) => !one.sure).sort((a, b) => a.path.localeCompare(b.path, "en", { numeric: true }))) {
      const tail = await each.file.slice(-TAIL).text(), at = tail.search(new RegExp(words[each.role]));
      if (at < 0) continue;
      if (each.role === "program") programs.push(each);
      else if (!spoken.has(tail.slice(at, at + length))) spoken.set(tail.slice(at, at + length), each);
    }
    return [...kept, ...[...spoken.values()].slice(0, ranks), ...(programs.length === 1 ? programs : [])];
  };
  // ``all``: path, and how to open it. The files that tell of the run, named after the folder: two folders may be two runs.
  const chosenOf = async (name, all) => {
    const { told, ...given } = await rule(), opened = new Map();
    for (const { path, open } of all.filter((each) => told.test(each.path.toLowerCase()))) {
      const file = await open();
      if (file?.size) opened.set(path, file);
    }
    const files = [...opened].map(([path, { size, lastModified }]) => ({ path: path, size: size, modified: lastModified / 1000 }));
    const answer = await fetch("/first/folder", { method: "POST", body: JSON.stringify({ files: files }) });
    if (!answer.ok) return [];
    const chosen = (await answer.json()).map((each) => ({ ...each, file: opened.get(each.path) }));
    return (await telling(chosen, given)).map(({ path, file }) =>
      new File([file], `${name}-${path.replaceAll("/", "-")}`, { type: file.type, lastModified: file.lastModified }));
  };

  window.tmFolder = {
    dropped: async (folder) => chosenOf(folder.name, await below(folder, (await rule()).left_out)),
    // ``list``: what the dialogue for folders gives, each file with its path from the folder on.
    picked: async (list) => {
      const { left_out: leftOut } = await rule(), [name] = (list[0]?.webkitRelativePath || "").split("/");
      const inside = [...list].map((file) => ({ parts: file.webkitRelativePath.split("/").slice(1), open: () => file }))
        .filter(({ parts }) => parts.length <= DEEPEST + 1 && !parts.slice(0, -1).some((part) => isHidden(part, leftOut)));
      return chosenOf(name, inside.slice(0, MOST).map(({ parts, open }) => ({ path: parts.join("/"), open: open })));
    },
    // A long text compressed, the end alone of one that would take too long: the server reads all lines, and keeps what matters.
    packed: async (file) => {
      if (file.size < LONG || /\.(gz|bz2|zst|zip|tgz|png|jpe?g|webp|pdf|bin|wandb)$|tfevents/i.test(file.name) || !window.CompressionStream) return file;
      const end = file.slice(-LONGEST);
      const content = await new Response(end.stream().pipeThrough(new CompressionStream("gzip"))).blob();
      return new File([content], `${file.name}.gz`, { type: "application/gzip", lastModified: file.lastModified });
    },
  };
})();
