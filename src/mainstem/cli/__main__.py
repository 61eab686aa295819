"""`python -m mainstem.cli` is `mainstem`."""

import sys

from mainstem.cli.main import main

sys.exit(main())
