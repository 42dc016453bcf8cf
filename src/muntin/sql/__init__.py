"""From SQL text to bound statements.

What the user wrote, with every name resolved and every type known.

A script is cut into tokens once (``lexer``), then into statements (``script``, ``statements``). A
query's own clauses and window brackets are read off the tokens (``clauses``, ``shape``,
``windows``); what is left is plain SQL, which sqlglot parses to find mistakes and columns
(``syntax``). Expressions keep the user's text: only their columns are replaced (``writer``), so
their meaning is DuckDB's and nobody else's.

Nothing here holds rows or plans anything. Imports model, plan and expressions; the only home of
sqlglot.
"""
