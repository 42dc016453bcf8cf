-- Two streams. On Spark their rows come from files; any source that Spark reads works as well.
CREATE STREAM Orders (id INT, customer VARCHAR, amount DOUBLE, ts TIMESTAMP)
  WITH (format = 'json', path = 'data/orders');
CREATE STREAM Payments (order_id INT, paid DOUBLE, ts TIMESTAMP)
  WITH (format = 'json', path = 'data/payments');

-- Orders without a payment within five minutes, each reported once, when the time is over.
CREATE QUERY unpaid AS
  SELECT O.id, O.customer, O.amount
  FROM Orders O ANTI JOIN Payments P ON O.id = P.order_id
  WINDOW 5 MINUTES
  WITH (sink = 'console');

-- What each customer has ordered in the last ten minutes: rows are added and taken back as orders
-- come and become older than that.
CREATE QUERY ordered AS
  SELECT customer, COUNT(*) AS orders, SUM(amount) AS amount
  FROM Orders
  GROUP BY customer
  WINDOW 10 MINUTES
  WITH (sink = 'json', path = 'results/ordered');
