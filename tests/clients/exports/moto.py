"""Serves S3 from memory on 127.0.0.1. Arguments: the folder of the packages, the port."""

import sys

sys.path.insert(0, sys.argv[1])

from moto.server import main  # noqa: E402

main(["-H", "127.0.0.1", "-p", sys.argv[2]])
