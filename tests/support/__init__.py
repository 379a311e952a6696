"""What tests need whatever they test: child processes, signals, deadlines.

- :mod:`support.processes`: child processes that do not depend on how the suite is started.
- :mod:`support.forks`: forks of this process, with bounds on memory and patience.
"""
