WITH web AS (
    SELECT d_year AS year, ws_item_sk AS item_sk, ws_bill_customer_sk AS customer_sk,
        sum(ws_quantity) AS quantity, sum(ws_sales_price) AS price
    FROM web_sales LEFT JOIN web_returns
            ON wr_order_number = ws_order_number AND ws_item_sk = wr_item_sk
        JOIN date_dim ON ws_sold_date_sk = d_date_sk
    WHERE wr_order_number IS NULL
    GROUP BY d_year, ws_item_sk, ws_bill_customer_sk
),
catalog AS (
    SELECT d_year AS year, cs_item_sk AS item_sk, cs_bill_customer_sk AS customer_sk,
        sum(cs_quantity) AS quantity, sum(cs_sales_price) AS price
    FROM catalog_sales LEFT JOIN catalog_returns
            ON cr_order_number = cs_order_number AND cs_item_sk = cr_item_sk
        JOIN date_dim ON cs_sold_date_sk = d_date_sk
    WHERE cr_order_number IS NULL
    GROUP BY d_year, cs_item_sk, cs_bill_customer_sk
),
near AS (
    SELECT d_year AS year, ss_item_sk AS item_sk, ss_customer_sk AS customer_sk,
        sum(ss_quantity) AS quantity, sum(ss_sales_price) AS price
    FROM store_sales LEFT JOIN store_returns
            ON sr_ticket_number = ss_ticket_number AND ss_item_sk = sr_item_sk
        JOIN date_dim ON ss_sold_date_sk = d_date_sk
    WHERE sr_ticket_number IS NULL
    GROUP BY d_year, ss_item_sk, ss_customer_sk
)
SELECT near.item_sk, near.quantity AS store_quantity, near.price AS store_price,
    round(near.quantity / (coalesce(web.quantity, 0) + coalesce(catalog.quantity, 0)), 2) AS ratio,
    coalesce(web.quantity, 0) + coalesce(catalog.quantity, 0) AS other_quantity
FROM near
    LEFT JOIN web ON web.year = near.year AND web.item_sk = near.item_sk
        AND web.customer_sk = near.customer_sk
    LEFT JOIN catalog ON catalog.year = near.year AND catalog.item_sk = near.item_sk
        AND catalog.customer_sk = near.customer_sk
WHERE coalesce(web.quantity, 0) + coalesce(catalog.quantity, 0) > 0 AND near.year = 2001
ORDER BY near.item_sk, store_quantity DESC, store_price DESC, other_quantity
LIMIT 100
