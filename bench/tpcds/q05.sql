WITH by_store AS (
    SELECT s_store_id AS id, sum(sales) AS sales, sum(profit) AS profit, sum(returned) AS returned,
        sum(loss) AS loss
    FROM (
        SELECT ss_store_sk AS store_sk, ss_sold_date_sk AS date_sk, ss_ext_sales_price AS sales,
            ss_net_profit AS profit, CAST(0 AS DECIMAL(7, 2)) AS returned,
            CAST(0 AS DECIMAL(7, 2)) AS loss
        FROM store_sales
        UNION ALL
        SELECT sr_store_sk, sr_returned_date_sk, CAST(0 AS DECIMAL(7, 2)),
            CAST(0 AS DECIMAL(7, 2)), sr_return_amt, sr_net_loss
        FROM store_returns
    ) AS both, date_dim, store
    WHERE date_sk = d_date_sk AND store_sk = s_store_sk
        AND d_date BETWEEN DATE '2000-08-19' AND DATE '2000-08-19' + INTERVAL 14 DAYS
    GROUP BY s_store_id
),
by_page AS (
    SELECT cp_catalog_page_id AS id, sum(sales) AS sales, sum(profit) AS profit,
        sum(returned) AS returned, sum(loss) AS loss
    FROM (
        SELECT cs_catalog_page_sk AS page_sk, cs_sold_date_sk AS date_sk,
            cs_ext_sales_price AS sales, cs_net_profit AS profit,
            CAST(0 AS DECIMAL(7, 2)) AS returned, CAST(0 AS DECIMAL(7, 2)) AS loss
        FROM catalog_sales
        UNION ALL
        SELECT cr_catalog_page_sk, cr_returned_date_sk, CAST(0 AS DECIMAL(7, 2)),
            CAST(0 AS DECIMAL(7, 2)), cr_return_amount, cr_net_loss
        FROM catalog_returns
    ) AS both, date_dim, catalog_page
    WHERE date_sk = d_date_sk AND page_sk = cp_catalog_page_sk
        AND d_date BETWEEN DATE '2000-08-19' AND DATE '2000-08-19' + INTERVAL 14 DAYS
    GROUP BY cp_catalog_page_id
),
by_site AS (
    SELECT web_site_id AS id, sum(sales) AS sales, sum(profit) AS profit,
        sum(returned) AS returned, sum(loss) AS loss
    FROM (
        SELECT ws_web_site_sk AS site_sk, ws_sold_date_sk AS date_sk, ws_ext_sales_price AS sales,
            ws_net_profit AS profit, CAST(0 AS DECIMAL(7, 2)) AS returned,
            CAST(0 AS DECIMAL(7, 2)) AS loss
        FROM web_sales
        UNION ALL
        SELECT ws_web_site_sk, wr_returned_date_sk, CAST(0 AS DECIMAL(7, 2)),
            CAST(0 AS DECIMAL(7, 2)), wr_return_amt, wr_net_loss
        FROM web_returns LEFT OUTER JOIN web_sales
            ON wr_item_sk = ws_item_sk AND wr_order_number = ws_order_number
    ) AS both, date_dim, web_site
    WHERE date_sk = d_date_sk AND site_sk = web_site_sk
        AND d_date BETWEEN DATE '2000-08-19' AND DATE '2000-08-19' + INTERVAL 14 DAYS
    GROUP BY web_site_id
)
SELECT channel, id, sum(sales) AS sales, sum(returned) AS returned, sum(profit) AS profit
FROM (
    SELECT 'store' AS channel, concat('store', id) AS id, sales, returned, profit - loss AS profit
    FROM by_store
    UNION ALL
    SELECT 'catalog', concat('page', id), sales, returned, profit - loss FROM by_page
    UNION ALL
    SELECT 'web', concat('site', id), sales, returned, profit - loss FROM by_site
) AS channels
GROUP BY ROLLUP (channel, id)
ORDER BY channel, id
LIMIT 100
