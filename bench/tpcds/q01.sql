WITH returned AS (
    SELECT sr_customer_sk AS customer_sk, sr_store_sk AS store_sk, sum(sr_return_amt) AS total
    FROM store_returns, date_dim
    WHERE sr_returned_date_sk = d_date_sk AND d_year = 2001
    GROUP BY sr_customer_sk, sr_store_sk
)
SELECT c_customer_id
FROM returned AS mine, store, customer
WHERE mine.total > (
        SELECT avg(total) * 1.2 FROM returned AS others WHERE mine.store_sk = others.store_sk
    )
    AND s_store_sk = mine.store_sk AND s_state = 'TN' AND mine.customer_sk = c_customer_sk
ORDER BY c_customer_id
LIMIT 100
