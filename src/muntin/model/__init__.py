"""What the rest of Muntin talks about: schemas, windows, time, the catalogue.

Plain values without behaviour of their own beyond checking themselves. Nothing here computes a
result, reads SQL or holds rows. Imports numpy and pyarrow only.
"""
