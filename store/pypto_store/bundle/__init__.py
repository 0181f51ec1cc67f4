"""Entries of a store as one file, to carry them to another store.

`index` says what is in a bundle, `packing` writes one, `unpacking` reads one that may be hostile.
Used by the tools alone; the request path imports nothing here.
"""
