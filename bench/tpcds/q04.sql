WITH totals AS (
    SELECT c_customer_id, c_first_name, c_last_name, d_year, 's' AS channel,
        sum((ss_ext_list_price - ss_ext_wholesale_cost - ss_ext_discount_amt
            + ss_ext_sales_price) / 2) AS total
    FROM customer, store_sales, date_dim
    WHERE c_customer_sk = ss_customer_sk AND ss_sold_date_sk = d_date_sk
    GROUP BY c_customer_id, c_first_name, c_last_name, d_year
    UNION ALL
    SELECT c_customer_id, c_first_name, c_last_name, d_year, 'c',
        sum((cs_ext_list_price - cs_ext_wholesale_cost - cs_ext_discount_amt
            + cs_ext_sales_price) / 2)
    FROM customer, catalog_sales, date_dim
    WHERE c_customer_sk = cs_bill_customer_sk AND cs_sold_date_sk = d_date_sk
    GROUP BY c_customer_id, c_first_name, c_last_name, d_year
    UNION ALL
    SELECT c_customer_id, c_first_name, c_last_name, d_year, 'w',
        sum((ws_ext_list_price - ws_ext_wholesale_cost - ws_ext_discount_amt
            + ws_ext_sales_price) / 2)
    FROM customer, web_sales, date_dim
    WHERE c_customer_sk = ws_bill_customer_sk AND ws_sold_date_sk = d_date_sk
    GROUP BY c_customer_id, c_first_name, c_last_name, d_year
)
SELECT s2.c_customer_id, s2.c_first_name, s2.c_last_name
FROM totals AS s1, totals AS s2, totals AS c1, totals AS c2, totals AS w1, totals AS w2
WHERE s2.c_customer_id = s1.c_customer_id AND s1.c_customer_id = c2.c_customer_id
    AND s1.c_customer_id = c1.c_customer_id AND s1.c_customer_id = w1.c_customer_id
    AND s1.c_customer_id = w2.c_customer_id
    AND s1.channel = 's' AND c1.channel = 'c' AND w1.channel = 'w'
    AND s2.channel = 's' AND c2.channel = 'c' AND w2.channel = 'w'
    AND s1.d_year = 1999 AND s2.d_year = 2000 AND c1.d_year = 1999 AND c2.d_year = 2000
    AND w1.d_year = 1999 AND w2.d_year = 2000
    AND s1.total > 0 AND c1.total > 0 AND w1.total > 0
    AND CASE WHEN c1.total > 0 THEN c2.total / c1.total END
        > CASE WHEN s1.total > 0 THEN s2.total / s1.total END
    AND CASE WHEN c1.total > 0 THEN c2.total / c1.total END
        > CASE WHEN w1.total > 0 THEN w2.total / w1.total END
ORDER BY s2.c_customer_id, s2.c_first_name, s2.c_last_name
LIMIT 100
