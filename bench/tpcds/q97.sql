WITH near AS (
    SELECT ss_customer_sk AS customer_sk, ss_item_sk AS item_sk
    FROM store_sales, date_dim
    WHERE ss_sold_date_sk = d_date_sk AND d_month_seq BETWEEN 1211 AND 1222
    GROUP BY ss_customer_sk, ss_item_sk
),
catalog AS (
    SELECT cs_bill_customer_sk AS customer_sk, cs_item_sk AS item_sk
    FROM catalog_sales, date_dim
    WHERE cs_sold_date_sk = d_date_sk AND d_month_seq BETWEEN 1211 AND 1222
    GROUP BY cs_bill_customer_sk, cs_item_sk
)
SELECT
    sum(CASE WHEN near.customer_sk IS NOT NULL AND catalog.customer_sk IS NULL THEN 1 ELSE 0 END)
        AS store_only,
    sum(CASE WHEN near.customer_sk IS NULL AND catalog.customer_sk IS NOT NULL THEN 1 ELSE 0 END)
        AS catalog_only,
    sum(CASE WHEN near.customer_sk IS NOT NULL AND catalog.customer_sk IS NOT NULL
        THEN 1 ELSE 0 END) AS both
FROM near FULL OUTER JOIN catalog
    ON near.customer_sk = catalog.customer_sk AND near.item_sk = catalog.item_sk
LIMIT 100
