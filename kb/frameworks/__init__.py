"""What each training framework accepts, by version, and what it means in common words.

Nothing here reads the user's text; it explains options that were already read. Importing this package costs nothing:
every table is read on first use and kept. The public functions:

``catalogue``
    ``frameworks() -> tuple[str, ...]``; ``versions(fw) -> tuple[str, ...]`` (catalogued releases, oldest first);
    ``releases(fw)`` (all releases the history looked at); ``nearest(fw, version) -> str | None``;
    ``option(fw, key, version=None, *, owner=None, transformers=None) -> OptionInfo | None`` (renames are not followed;
    dashes, unique abbreviations, ``no_`` switches and inherited TrainingArguments are);
    ``exists(fw, key, version) -> bool | None`` (None: unknown framework or version not given and it came or went);
    ``history(fw) -> Mapping[key, Life(first, last, gap)]``; ``keys(fw, version=None) -> tuple[str, ...]``;
    ``suggest(fw, key, version=None) -> Suggestion | None``; ``renamed(fw, key) -> tuple[Rename, ...]``;
    ``infer_versions(fw, keys) -> tuple[low, high, reason]``; ``pins(fw, version) -> Mapping[package, spec]``;
    ``template_of(model) -> str | None`` and ``templates()`` (LLaMA-Factory chat templates).
``canonical``
    ``SETTINGS`` (names, in order); ``canonicalise(options, framework, algorithm=None, stage=None, versions={},
    partial=False) -> Mapping[str, Setting]``; ``name_of(framework, key, scope="") -> str | None`` (the canonical
    setting an option spells); ``keys_of(framework, name, version=None) -> tuple[str, ...]``; ``warm()`` reads all
    catalogues ahead of the first question.
``spelling``
    ``spelling(framework, name, value, version=None, origin=Origin.FLAG, *, algorithm=None, prefer=None, scope="")``:
    ``Spelling(key, raw, drop)``: write ``key`` with ``raw`` (None: a bare flag) after removing the keys in ``drop``;
    ``key`` None: removing is all there is to do.
``recognise``
    ``recognise(regions, options, question="", versions={}) -> Recognition(framework, algorithm, stage, model,
    model_family)``, each a `kb.model.run.Recognised` or None; ``model_family(text) -> str | None``;
    ``TRAINING_STAGES``; ``stage_of(algorithm)``.
``batch``
    ``batch(settings, framework, algorithm=None) -> Batch(world_size, data_parallel, accumulation, global_batch)``,
    each a ``Known(value, how, names, options)`` or None when it cannot be computed.
``versions``
    ``version_key(text)`` (orders releases), ``satisfies(version, spec)``.
"""
