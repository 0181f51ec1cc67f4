"""What bazelw does before Bazel runs. Standard library only: nothing is installed yet."""
