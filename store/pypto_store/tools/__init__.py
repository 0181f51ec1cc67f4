"""The commands of `python -m pypto_store`: whoever keeps a store looks into it, and looks after it.

`command_line` parses and prints; each command is a module of its own that is imported only when it
is the one asked for, with two functions:

    add_arguments(parser)           its options, beside the common ones
    run(options, surroundings)      what it found, as an `Answer`; CommandError if it cannot

Nothing of the request path imports anything here.
"""
