-- NEXMark: an online auction with persons, auctions and bids, and the queries q0 to q23 over them.
--
-- What has been adapted everywhere:
--   * Columns are written in snake_case: date_time, item_name, initial_bid.
--   * Joins, rankings and statistics that grow without bound in NEXMark are over the last ten
--     minutes, or over the current day where the query asks by day.
--   * Queries over tumbling, hopping and session windows emit each window once, when it is over.
--   * The clock of the machine is the clock of the events.
CREATE STREAM Person
  (id BIGINT, name VARCHAR, email_address VARCHAR, credit_card VARCHAR, city VARCHAR,
   state VARCHAR, date_time TIMESTAMP, extra VARCHAR)
  WITH (format = 'parquet', path = 'data/person', time = 'date_time');

CREATE STREAM Auction
  (id BIGINT, item_name VARCHAR, description VARCHAR, initial_bid BIGINT, reserve BIGINT,
   date_time TIMESTAMP, expires TIMESTAMP, seller BIGINT, category BIGINT, extra VARCHAR)
  WITH (format = 'parquet', path = 'data/auction', time = 'date_time');

CREATE STREAM Bid
  (auction BIGINT, bidder BIGINT, price BIGINT, channel VARCHAR, url VARCHAR,
   date_time TIMESTAMP, extra VARCHAR)
  WITH (format = 'parquet', path = 'data/bid', time = 'date_time');

CREATE TABLE SideInput (key BIGINT, value VARCHAR)
  WITH (format = 'csv', path = 'data/side_input.csv');

-- q0, pass through: all bids, unchanged. What reading and writing costs.
-- Adapted: every stream has a window; rows that are passed on do not depend on it.
CREATE QUERY q0 AS
  SELECT auction, bidder, price, date_time, extra
  FROM Bid WINDOW 10 SECONDS;

-- q1, currency conversion: prices in euros.
CREATE QUERY q1 AS
  SELECT auction, bidder, 0.908 * price AS price, date_time, extra
  FROM Bid WINDOW 10 SECONDS;

-- q2, selection: the bids for some of the auctions.
CREATE QUERY q2 AS
  SELECT auction, price
  FROM Bid WHERE auction % 123 = 0 WINDOW 10 SECONDS;

-- q3, local item suggestion: who sells in Oregon, Idaho or California, in category 10?
-- Adapted: of sellers who registered at most ten minutes before or after the auction began.
CREATE QUERY q3 AS
  SELECT P.name, P.city, P.state, A.id
  FROM Auction A JOIN Person P ON A.seller = P.id
  WHERE A.category = 10 AND P.state IN ('OR', 'ID', 'CA')
  WINDOW 10 MINUTES;

-- q4, average price for a category: of the best bids for each auction while it was open.
-- Adapted: over the auctions and bids of the last ten minutes.
CREATE QUERY q4 AS
  SELECT category, AVG(final) AS price
  FROM (
    SELECT A.category, MAX(B.price) AS final
    FROM Auction A JOIN Bid B ON A.id = B.auction AND B.date_time BETWEEN A.date_time AND A.expires
    GROUP BY A.id, A.category) AS best
  GROUP BY category
  WINDOW 10 MINUTES;

-- q5, hot items: the auctions with the most bids in ten seconds, every two seconds.
CREATE QUERY q5 AS
  WITH counts AS (
    SELECT auction, window_end, COUNT(*) AS num
    FROM HOP(Bid, 2 SECONDS, 10 SECONDS) GROUP BY auction, window_end)
  SELECT c.auction, c.num, c.window_end
  FROM counts c JOIN (SELECT window_end, MAX(num) AS num FROM counts GROUP BY window_end) AS most
    ON c.window_end = most.window_end AND c.num = most.num;

-- q6, average selling price by seller: of the last ten auctions that were sold.
-- Adapted: over the auctions and bids of the last ten minutes. The last ten of each seller are
-- chosen by row number, so there is one row per seller.
CREATE QUERY q6 AS
  WITH winning AS (
      SELECT A.id, A.seller, B.price, B.date_time
      FROM Auction A JOIN Bid B
        ON A.id = B.auction AND B.date_time BETWEEN A.date_time AND A.expires
      QUALIFY ROW_NUMBER() OVER (PARTITION BY A.id ORDER BY B.price DESC, B.date_time) = 1),
    latest AS (
      SELECT seller, price FROM winning
      QUALIFY ROW_NUMBER() OVER (PARTITION BY seller ORDER BY date_time DESC, id DESC) <= 10)
  SELECT seller, AVG(price) AS price FROM latest GROUP BY seller
  WINDOW 10 MINUTES;

-- q7, highest bid: the highest bids of every ten seconds.
CREATE QUERY q7 AS
  SELECT B.auction, B.price, B.bidder, B.date_time, B.extra
  FROM TUMBLE(Bid, 10 SECONDS) AS B JOIN (
    SELECT window_end, MAX(price) AS price FROM TUMBLE(Bid, 10 SECONDS) GROUP BY window_end) AS most
    ON B.window_end = most.window_end AND B.price = most.price;

-- q8, new users: who registered and began an auction in the same ten seconds?
CREATE QUERY q8 AS
  SELECT DISTINCT P.id, P.name, P.window_start
  FROM TUMBLE(Person, 10 SECONDS) AS P JOIN TUMBLE(Auction, 10 SECONDS) AS A
    ON P.id = A.seller AND P.window_start = A.window_start;

-- q9, winning bids: the best bid for each auction while it was open, the first of equal ones.
-- Adapted: over the auctions and bids of the last ten minutes.
CREATE QUERY q9 AS
  SELECT A.*, B.auction, B.bidder, B.price, B.date_time AS bid_date_time, B.extra AS bid_extra
  FROM Auction A JOIN Bid B ON A.id = B.auction AND B.date_time BETWEEN A.date_time AND A.expires
  QUALIFY ROW_NUMBER() OVER (PARTITION BY A.id ORDER BY B.price DESC, B.date_time) = 1
  WINDOW 10 MINUTES;

-- q10, log to files: all bids with the day and the minute by which they are filed.
CREATE QUERY q10 AS
  SELECT auction, bidder, price, date_time, extra,
    strftime(date_time, '%Y-%m-%d') AS dt, strftime(date_time, '%H:%M') AS hm
  FROM Bid WINDOW 10 SECONDS;

-- q11, user sessions: how many bids did each person make while active?
CREATE QUERY q11 AS
  SELECT bidder, COUNT(*) AS bid_count, window_start, window_end
  FROM SESSION(Bid, 10 SECONDS, bidder) GROUP BY bidder, window_start, window_end;

-- q12, bids in windows of the clock: bids of each person in ten seconds.
-- Adapted: in windows of event time.
CREATE QUERY q12 AS
  SELECT bidder, COUNT(*) AS bid_count, window_start, window_end
  FROM TUMBLE(Bid, 10 SECONDS) GROUP BY bidder, window_start, window_end;

-- q13, bounded side input: bids with what a stored table has for their auction.
CREATE QUERY q13 AS
  SELECT B.auction, B.bidder, B.price, B.date_time, S.value
  FROM Bid B JOIN SideInput S ON B.auction % 10000 = S.key
  WINDOW 10 SECONDS;

-- q14, calculation: bids of some prices, with the time of day and how often a letter occurs.
-- Adapted: the letter is counted by an expression, where NEXMark has a function in Java.
CREATE QUERY q14 AS
  SELECT auction, bidder, 0.908 * price AS price,
    CASE WHEN hour(date_time) BETWEEN 8 AND 18 THEN 'dayTime'
         WHEN hour(date_time) <= 6 OR hour(date_time) >= 20 THEN 'nightTime'
         ELSE 'otherTime' END AS bid_time_type,
    date_time, extra, length(extra) - length(replace(extra, 'c', '')) AS c_counts
  FROM Bid WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000
  WINDOW 10 SECONDS;

-- q15, bidding statistics of the current day: bids, bidders and auctions by level of price.
-- Adapted: a day that is over leaves the answer.
CREATE QUERY q15 AS
  SELECT strftime(window_start, '%Y-%m-%d') AS day,
    COUNT(*) AS total_bids,
    COUNT(*) FILTER (WHERE price < 10000) AS rank1_bids,
    COUNT(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,
    COUNT(*) FILTER (WHERE price >= 1000000) AS rank3_bids,
    COUNT(DISTINCT bidder) AS total_bidders,
    COUNT(DISTINCT bidder) FILTER (WHERE price < 10000) AS rank1_bidders,
    COUNT(DISTINCT bidder) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bidders,
    COUNT(DISTINCT bidder) FILTER (WHERE price >= 1000000) AS rank3_bidders,
    COUNT(DISTINCT auction) AS total_auctions,
    COUNT(DISTINCT auction) FILTER (WHERE price < 10000) AS rank1_auctions,
    COUNT(DISTINCT auction) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_auctions,
    COUNT(DISTINCT auction) FILTER (WHERE price >= 1000000) AS rank3_auctions
  FROM TUMBLE(Bid, 1 DAY) AS B GROUP BY window_start;

-- q16, the same for each channel, with the minute of its last bid.
CREATE QUERY q16 AS
  SELECT channel, strftime(window_start, '%Y-%m-%d') AS day,
    MAX(strftime(date_time, '%H:%M')) AS minute,
    COUNT(*) AS total_bids,
    COUNT(*) FILTER (WHERE price < 10000) AS rank1_bids,
    COUNT(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,
    COUNT(*) FILTER (WHERE price >= 1000000) AS rank3_bids,
    COUNT(DISTINCT bidder) AS total_bidders,
    COUNT(DISTINCT bidder) FILTER (WHERE price < 10000) AS rank1_bidders,
    COUNT(DISTINCT bidder) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bidders,
    COUNT(DISTINCT bidder) FILTER (WHERE price >= 1000000) AS rank3_bidders,
    COUNT(DISTINCT auction) AS total_auctions,
    COUNT(DISTINCT auction) FILTER (WHERE price < 10000) AS rank1_auctions,
    COUNT(DISTINCT auction) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_auctions,
    COUNT(DISTINCT auction) FILTER (WHERE price >= 1000000) AS rank3_auctions
  FROM TUMBLE(Bid, 1 DAY) AS B GROUP BY channel, window_start;

-- q17, auction statistics of the current day: bids and prices of each auction.
-- Adapted: a day that is over leaves the answer.
CREATE QUERY q17 AS
  SELECT auction, strftime(window_start, '%Y-%m-%d') AS day,
    COUNT(*) AS total_bids,
    COUNT(*) FILTER (WHERE price < 10000) AS rank1_bids,
    COUNT(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,
    COUNT(*) FILTER (WHERE price >= 1000000) AS rank3_bids,
    MIN(price) AS min_price, MAX(price) AS max_price,
    AVG(price) AS avg_price, SUM(price) AS sum_price
  FROM TUMBLE(Bid, 1 DAY) AS B GROUP BY auction, window_start;

-- q18, last bid: of each bidder for each auction.
-- Adapted: of the last ten minutes.
CREATE QUERY q18 AS
  SELECT auction, bidder, price, channel, url, date_time, extra
  FROM Bid QUALIFY ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY date_time DESC) = 1
  WINDOW 10 MINUTES;

-- q19, the ten highest bids for each auction, with their places.
-- Adapted: of the last ten minutes.
CREATE QUERY q19 AS
  SELECT auction, bidder, price, channel, url, date_time, extra, rank_number
  FROM (
    SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) AS rank_number
    FROM Bid) AS ranked
  WHERE rank_number <= 10
  WINDOW 10 MINUTES;

-- q20, bids with their auction, in category 10.
-- Adapted: of auctions that began at most ten minutes before or after the bid.
CREATE QUERY q20 AS
  SELECT B.auction, B.bidder, B.price, B.channel, B.url,
    B.date_time AS bid_date_time, B.extra AS bid_extra,
    A.item_name, A.description, A.initial_bid, A.reserve, A.date_time AS auction_date_time,
    A.expires, A.seller, A.category, A.extra AS auction_extra
  FROM Bid B JOIN Auction A ON B.auction = A.id
  WHERE A.category = 10
  WINDOW 10 MINUTES;

-- q21, channel numbers: of four channels by name, of others from the address of the page.
CREATE QUERY q21 AS
  SELECT auction, bidder, price, channel,
    CASE lower(channel)
      WHEN 'apple' THEN '0' WHEN 'google' THEN '1' WHEN 'facebook' THEN '2' WHEN 'baidu' THEN '3'
      ELSE regexp_extract(url, '(&|^)channel_id=([^&]*)', 2) END AS channel_id
  FROM Bid
  WHERE lower(channel) IN ('apple', 'google', 'facebook', 'baidu')
    OR regexp_matches(url, '(&|^)channel_id=')
  WINDOW 10 SECONDS;

-- q22, folders: the first three parts of the path of the page.
CREATE QUERY q22 AS
  SELECT auction, bidder, price, channel, split_part(url, '/', 4) AS dir1,
    split_part(url, '/', 5) AS dir2, split_part(url, '/', 6) AS dir3
  FROM Bid WINDOW 10 SECONDS;

-- q23, three streams: bids by persons who have also listed items, with these items.
-- Adapted: all three at most ten minutes apart.
CREATE QUERY q23 AS
  SELECT B.bidder, B.price, B.channel, B.url, B.extra AS bid_extra,
    P.id AS person_id, P.name, P.email_address, P.credit_card, P.city, P.state,
    P.extra AS person_extra,
    A.item_name, A.description, A.initial_bid, A.reserve, A.date_time AS auction_date_time,
    A.expires, A.seller, A.category, A.extra AS auction_extra
  FROM Bid B JOIN Person P ON P.id = B.bidder JOIN Auction A ON A.seller = B.bidder
  WINDOW 10 MINUTES;
