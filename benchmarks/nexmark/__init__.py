"""NEXMark on Muntin and on Flink: an online auction as persons, auctions and bids."""
