"""Settings: their defaults and meaning, the settings file, and how it is found."""
