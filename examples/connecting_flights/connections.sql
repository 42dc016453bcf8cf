-- Where do people miss their next flight? A flight of `distance` miles is assumed to take 30
-- minutes plus one minute per eight miles. A connection is planned if the next flight leaves 30 to
-- 90 minutes after the scheduled arrival of the first one; it is missed if the first is so late
-- that fewer than 30 minutes are left. Every three hours the query reports the connections of these
-- three hours, by airport.
CREATE STREAM Flights
  (ts TIMESTAMP, origin VARCHAR, destination VARCHAR, delay SMALLINT, distance SMALLINT)
  WITH (format = 'parquet', path = 'flights', time = 'ts');

CREATE QUERY hubs AS
  SELECT A.destination AS via, COUNT(*) AS planned,
    SUM(CASE WHEN B.ts < A.ts + to_minutes(60 + A.distance // 8) THEN 1 ELSE 0 END) AS missed
  FROM Flights A [RANGE 13 HOURS], Flights B [RANGE 3 HOURS]
  WHERE A.destination = B.origin AND A.origin <> B.destination
    AND B.ts >= A.ts + to_minutes(60 + A.distance // 8 - A.delay)
    AND B.ts <= A.ts + to_minutes(120 + A.distance // 8 - A.delay)
    AND B.ts >= A.ts AND B.ts < A.ts + INTERVAL 10 HOURS
  GROUP BY A.destination
  EVERY 3 HOURS
  EMIT SNAPSHOT;
