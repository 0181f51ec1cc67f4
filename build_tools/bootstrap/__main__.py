"""Entry of bazelw: refuses an old interpreter in words that the old interpreter can still parse."""

import os
import sys

if sys.version_info < (3, 11):
    sys.stderr.write(
        "bazelw: error: %s is Python %d.%d; install Python 3.11 or newer,"
        " or set BAZELW_PYTHON to one\n"
        % (sys.executable, sys.version_info[0], sys.version_info[1])
    )
    sys.exit(2)

# The directory holds modules, not an installed package: its parent is the import root.
sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from bootstrap.launcher import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
