#!/bin/sh
# Stands for another assembler in analysis tests; nothing runs it.
exit 1
