"""`python -m nsysdiag`: the same as the command `nsysdiag`."""

from nsysdiag.cli.app import main

main()
