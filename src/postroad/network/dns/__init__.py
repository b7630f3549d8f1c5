"""DNS lookups with small, typed and bounded answers.

Begin with `resolver.py`.
"""
