"""Parts that several commands share: options, settings, exit codes and the live display."""
