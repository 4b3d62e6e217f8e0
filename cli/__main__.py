"""`python -m triledger.cli` is the command `triledger`."""

import sys

from . import main

sys.exit(main())
