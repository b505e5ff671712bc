"""The event loop of a process, tasks that run together, and threads for blocking work."""
