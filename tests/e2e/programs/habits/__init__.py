"""Small kernels in the ways that their authors have of writing them."""
