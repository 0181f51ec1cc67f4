"""From a function's syntax tree to the frontend form of a program."""
