"""The messages that training frameworks print, by release: where, under which condition, and what to do."""
