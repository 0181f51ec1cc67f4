"""The one error that the set-up raises for the reader of a terminal."""

from __future__ import annotations


class SetupError(Exception):
    """Something is missing or wrong on this machine.

    ``problem`` says what, ``remedy`` what to do about it. Both fit one line.
    """

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(f"{problem}; {remedy}")
        self.problem = problem
        self.remedy = remedy
