WITH totals AS (
    SELECT c_customer_id, c_preferred_cust_flag, d_year, 's' AS channel,
        sum(ss_ext_list_price - ss_ext_discount_amt) AS total
    FROM customer, store_sales, date_dim
    WHERE c_customer_sk = ss_customer_sk AND ss_sold_date_sk = d_date_sk
    GROUP BY c_customer_id, c_preferred_cust_flag, d_year
    UNION ALL
    SELECT c_customer_id, c_preferred_cust_flag, d_year, 'w',
        sum(ws_ext_list_price - ws_ext_discount_amt)
    FROM customer, web_sales, date_dim
    WHERE c_customer_sk = ws_bill_customer_sk AND ws_sold_date_sk = d_date_sk
    GROUP BY c_customer_id, c_preferred_cust_flag, d_year
)
SELECT s2.c_customer_id, s2.c_preferred_cust_flag
FROM totals AS s1, totals AS s2, totals AS w1, totals AS w2
WHERE s2.c_customer_id = s1.c_customer_id AND s1.c_customer_id = w2.c_customer_id
    AND s1.c_customer_id = w1.c_customer_id AND s1.channel = 's' AND w1.channel = 'w'
    AND s2.channel = 's' AND w2.channel = 'w' AND s1.d_year = 2001 AND s2.d_year = 2002
    AND w1.d_year = 2001 AND w2.d_year = 2002 AND s1.total > 0 AND w1.total > 0
    AND CASE WHEN w1.total > 0 THEN w2.total / w1.total ELSE 0.0 END
        > CASE WHEN s1.total > 0 THEN s2.total / s1.total ELSE 0.0 END
ORDER BY s2.c_customer_id, s2.c_preferred_cust_flag
LIMIT 100
