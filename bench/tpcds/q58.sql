WITH near AS (
    SELECT i_item_id AS item_id, sum(ss_ext_sales_price) AS revenue
    FROM store_sales, item, date_dim
    WHERE ss_item_sk = i_item_sk AND ss_sold_date_sk = d_date_sk
        AND d_date IN (
            SELECT d_date FROM date_dim
            WHERE d_week_seq = (SELECT d_week_seq FROM date_dim WHERE d_date = DATE '1998-02-21')
        )
    GROUP BY i_item_id
),
catalog AS (
    SELECT i_item_id AS item_id, sum(cs_ext_sales_price) AS revenue
    FROM catalog_sales, item, date_dim
    WHERE cs_item_sk = i_item_sk AND cs_sold_date_sk = d_date_sk
        AND d_date IN (
            SELECT d_date FROM date_dim
            WHERE d_week_seq = (SELECT d_week_seq FROM date_dim WHERE d_date = DATE '1998-02-21')
        )
    GROUP BY i_item_id
),
web AS (
    SELECT i_item_id AS item_id, sum(ws_ext_sales_price) AS revenue
    FROM web_sales, item, date_dim
    WHERE ws_item_sk = i_item_sk AND ws_sold_date_sk = d_date_sk
        AND d_date IN (
            SELECT d_date FROM date_dim
            WHERE d_week_seq = (SELECT d_week_seq FROM date_dim WHERE d_date = DATE '1998-02-21')
        )
    GROUP BY i_item_id
)
SELECT near.item_id, near.revenue AS store_revenue,
    near.revenue / ((near.revenue + catalog.revenue + web.revenue) / 3) * 100 AS store_share,
    catalog.revenue AS catalog_revenue, web.revenue AS web_revenue,
    (near.revenue + catalog.revenue + web.revenue) / 3 AS average
FROM near, catalog, web
WHERE near.item_id = catalog.item_id AND near.item_id = web.item_id
    AND near.revenue BETWEEN 0.9 * catalog.revenue AND 1.1 * catalog.revenue
    AND near.revenue BETWEEN 0.9 * web.revenue AND 1.1 * web.revenue
    AND catalog.revenue BETWEEN 0.9 * web.revenue AND 1.1 * web.revenue
ORDER BY item_id, store_revenue
LIMIT 100
