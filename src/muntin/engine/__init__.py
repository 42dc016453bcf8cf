"""Muntin in process: streams pushed by the user, standing queries, results polled or subscribed to.

FairLock plans into running operators and moves time. Imports everything below it.
"""
