-- A station is doubtful if, within the last ten minutes, its air was more than ten degrees warmer
-- or colder than that of at least five others. All stations are on one mountain pass, so one of
-- them is wrong, and it is not the five.
CREATE STREAM Readings (ts TIMESTAMP, station SMALLINT, ambient_temp DOUBLE)
  WITH (format = 'parquet', path = 'readings', time = 'ts');

CREATE QUERY doubtful AS
  SELECT X.station, COUNT(DISTINCT Y.station) AS others, AVG(X.ambient_temp - Y.ambient_temp) AS off
  FROM Readings X, Readings Y
  WHERE X.station <> Y.station AND abs(X.ambient_temp - Y.ambient_temp) > 10
  GROUP BY X.station
  HAVING COUNT(DISTINCT Y.station) >= 5
  WINDOW 10 MINUTES
  EVERY 10 MINUTES
  EMIT SNAPSHOT;
