"""From a program to a plan: technologies compared, the choice, what it means, costs and rests on; and saved plans.

Import from its modules: `program` (load), `plan`, `saved_plan` (load_plan), `release_spec` (load_release). Publishing a
saved plan loads none of the economics.
"""
