"""The default encoder of trainmedic, and the search index of its pages. `trainmedic.kb.store.shipped` reads them."""
