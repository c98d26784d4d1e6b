"""Entry point of ``python -m analysis``."""

import sys

from analysis.command_line.cli import main

sys.exit(main())
