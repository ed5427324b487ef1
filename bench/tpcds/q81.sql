WITH returned AS (
    SELECT cr_returning_customer_sk AS customer_sk, ca_state AS state,
        sum(cr_return_amt_inc_tax) AS total
    FROM catalog_returns, date_dim, customer_address
    WHERE cr_returned_date_sk = d_date_sk AND d_year = 1998
        AND cr_returning_addr_sk = ca_address_sk
    GROUP BY cr_returning_customer_sk, ca_state
)
SELECT c_customer_id, c_salutation, c_first_name, c_last_name, ca_street_name, ca_city, ca_zip,
    total
FROM returned AS mine, customer_address, customer
WHERE mine.total > (
        SELECT avg(total) * 1.2 FROM returned AS others WHERE mine.state = others.state
    )
    AND ca_address_sk = c_current_addr_sk AND ca_state = 'TX' AND mine.customer_sk = c_customer_sk
ORDER BY c_customer_id, c_salutation, c_first_name, c_last_name, ca_street_name, ca_city, ca_zip
LIMIT 100
