"""Runs the tasks of an mdfsck plan on a cluster. The work is done by the program mdfsck: nothing here reads a database."""
