WITH totals AS (
    SELECT c_customer_id, c_first_name, c_last_name, d_year, 's' AS channel,
        max(ss_net_paid) AS total
    FROM customer, store_sales, date_dim
    WHERE c_customer_sk = ss_customer_sk AND ss_sold_date_sk = d_date_sk
        AND d_year IN (1999, 2000)
    GROUP BY c_customer_id, c_first_name, c_last_name, d_year
    UNION ALL
    SELECT c_customer_id, c_first_name, c_last_name, d_year, 'w', max(ws_net_paid)
    FROM customer, web_sales, date_dim
    WHERE c_customer_sk = ws_bill_customer_sk AND ws_sold_date_sk = d_date_sk
        AND d_year IN (1999, 2000)
    GROUP BY c_customer_id, c_first_name, c_last_name, d_year
)
SELECT s2.c_customer_id, s2.c_first_name, s2.c_last_name
FROM totals AS s1, totals AS s2, totals AS w1, totals AS w2
WHERE s2.c_customer_id = s1.c_customer_id AND s1.c_customer_id = w2.c_customer_id
    AND s1.c_customer_id = w1.c_customer_id AND s1.channel = 's' AND w1.channel = 'w'
    AND s2.channel = 's' AND w2.channel = 'w' AND s1.d_year = 1999 AND s2.d_year = 2000
    AND w1.d_year = 1999 AND w2.d_year = 2000 AND s1.total > 0 AND w1.total > 0
    AND CASE WHEN w1.total > 0 THEN w2.total / w1.total END
        > CASE WHEN s1.total > 0 THEN s2.total / s1.total END
ORDER BY 1, 3, 2
LIMIT 100
