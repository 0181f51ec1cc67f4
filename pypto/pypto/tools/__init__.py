"""Programs that show what a compilation or a run left in its directory.

They read files alone: nothing here compiles, runs or imports a kernel.
"""
