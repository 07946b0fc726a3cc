"""The program file, and nothing else: its keys, their lines, what is wrong with them; read into the nouns above.

What society prefers is read by `planning`, which can then make a plan.
"""

from dualmandate.program.program import ProgramFile, read_program

__all__ = ["ProgramFile", "read_program"]
