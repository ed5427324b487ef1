WITH near AS (
    SELECT ca_county, d_qoy, d_year, sum(ss_ext_sales_price) AS sales
    FROM store_sales, date_dim, customer_address
    WHERE ss_sold_date_sk = d_date_sk AND ss_addr_sk = ca_address_sk
    GROUP BY ca_county, d_qoy, d_year
),
web AS (
    SELECT ca_county, d_qoy, d_year, sum(ws_ext_sales_price) AS sales
    FROM web_sales, date_dim, customer_address
    WHERE ws_sold_date_sk = d_date_sk AND ws_bill_addr_sk = ca_address_sk
    GROUP BY ca_county, d_qoy, d_year
)
SELECT n1.ca_county, n1.d_year, w2.sales / w1.sales AS web_growth, n2.sales / n1.sales AS growth
FROM near AS n1, near AS n2, near AS n3, web AS w1, web AS w2, web AS w3
WHERE n1.d_qoy = 1 AND n1.d_year = 2000 AND n1.ca_county = n2.ca_county AND n2.d_qoy = 2
    AND n2.d_year = 2000 AND n2.ca_county = n3.ca_county AND n3.d_qoy = 3 AND n3.d_year = 2000
    AND n1.ca_county = w1.ca_county AND w1.d_qoy = 1 AND w1.d_year = 2000
    AND w1.ca_county = w2.ca_county AND w2.d_qoy = 2 AND w2.d_year = 2000
    AND w1.ca_county = w3.ca_county AND w3.d_qoy = 3 AND w3.d_year = 2000
    AND CASE WHEN w1.sales > 0 THEN w2.sales / w1.sales END
        > CASE WHEN n1.sales > 0 THEN n2.sales / n1.sales END
    AND CASE WHEN w2.sales > 0 THEN w3.sales / w2.sales END
        > CASE WHEN n2.sales > 0 THEN n3.sales / n2.sales END
ORDER BY n1.ca_county
