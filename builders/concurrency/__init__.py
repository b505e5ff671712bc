"""The event loop of a process, concurrent coroutines, and threads for blocking work."""
