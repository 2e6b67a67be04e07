"""SQL over a trace and its report: tables of both in one database that can only be read."""
