"""Errors in the source of kernels."""
