"""Artifacts on other machines: servers and directories of many kinds behind one interface.

Nothing is imported here. `blob_store` has the interface, `engines` opens what a configuration says.
"""
