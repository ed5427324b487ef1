WITH returned AS (
    SELECT wr_returning_customer_sk AS customer_sk, ca_state AS state, sum(wr_return_amt) AS total
    FROM web_returns, date_dim, customer_address
    WHERE wr_returned_date_sk = d_date_sk AND d_year = 2002
        AND wr_returning_addr_sk = ca_address_sk
    GROUP BY wr_returning_customer_sk, ca_state
)
SELECT c_customer_id, c_salutation, c_first_name, c_last_name, c_birth_country, total
FROM returned AS mine, customer_address, customer
WHERE mine.total > (
        SELECT avg(total) * 1.2 FROM returned AS others WHERE mine.state = others.state
    )
    AND ca_address_sk = c_current_addr_sk AND ca_state = 'IN' AND mine.customer_sk = c_customer_sk
ORDER BY c_customer_id, c_salutation, c_first_name, c_last_name, c_birth_country, total
LIMIT 100
