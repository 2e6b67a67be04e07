"""Recording a program with nsys: what it and the system permit, the options that follow, the run, and its report."""
