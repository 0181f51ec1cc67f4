"""A decode layer of a transformer, as a kernel library has it: a module for each part."""
