WITH frequent AS (
    SELECT substr(i_item_desc, 1, 30) AS description, i_item_sk AS item_sk, d_date AS solddate,
        count(*) AS cnt
    FROM store_sales, date_dim, item
    WHERE ss_sold_date_sk = d_date_sk AND ss_item_sk = i_item_sk AND d_year IN (1999, 2000, 2001)
    GROUP BY substr(i_item_desc, 1, 30), i_item_sk, d_date
    HAVING count(*) > 4
),
top_sale AS (
    SELECT max(total) AS most
    FROM (
        SELECT c_customer_sk, sum(ss_quantity * ss_sales_price) AS total
        FROM store_sales, customer, date_dim
        WHERE ss_customer_sk = c_customer_sk AND ss_sold_date_sk = d_date_sk
            AND d_year IN (1999, 2000, 2001)
        GROUP BY c_customer_sk
    ) AS per_customer
),
best AS (
    SELECT c_customer_sk, sum(ss_quantity * ss_sales_price) AS total
    FROM store_sales, customer
    WHERE ss_customer_sk = c_customer_sk
    GROUP BY c_customer_sk
    HAVING sum(ss_quantity * ss_sales_price) > 0.95 * (SELECT most FROM top_sale)
)
SELECT sum(sales) AS sales
FROM (
    SELECT cs_quantity * cs_list_price AS sales
    FROM catalog_sales, date_dim
    WHERE d_year = 1999 AND d_moy = 1 AND cs_sold_date_sk = d_date_sk
        AND cs_item_sk IN (SELECT item_sk FROM frequent)
        AND cs_bill_customer_sk IN (SELECT c_customer_sk FROM best)
    UNION ALL
    SELECT ws_quantity * ws_list_price
    FROM web_sales, date_dim
    WHERE d_year = 1999 AND d_moy = 1 AND ws_sold_date_sk = d_date_sk
        AND ws_item_sk IN (SELECT item_sk FROM frequent)
        AND ws_bill_customer_sk IN (SELECT c_customer_sk FROM best)
) AS both
LIMIT 100
