"""A grammar-based fuzzer of the in-process engine.

* :mod:`tests.fuzz.values`: column types, and values that fit them or do not.
* :mod:`tests.fuzz.grammar`: random valid queries; :mod:`tests.fuzz.broken`: broken SQL.
* :mod:`tests.fuzz.cases`: a case is a list of steps, drawn from a seed.
* :mod:`tests.fuzz.runner`: runs the steps and checks what comes out; :mod:`tests.fuzz.model` knows
  what must.
* :mod:`tests.fuzz.shrink`: makes a failing case small;
  :mod:`tests.fuzz.script` prints and reads it.

``python -m tests.fuzz --steps 100000 --processes 2`` stops after that number of steps.
"""
