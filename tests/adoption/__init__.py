"""What other projects copy or use to have their traces diagnosed in CI: run, linted and attacked."""
