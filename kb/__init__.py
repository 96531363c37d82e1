"""The knowledge of trainmedic: values, parsing, rules, cases, option catalogues and the on-disk store.

Pure except for ``kb.store`` (and the page loaders, which read the package's own files).
"""
