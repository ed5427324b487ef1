WITH sold AS (
    SELECT s_store_sk, sum(ss_ext_sales_price) AS sales, sum(ss_net_profit) AS profit
    FROM store_sales, date_dim, store
    WHERE ss_sold_date_sk = d_date_sk AND ss_store_sk = s_store_sk
        AND d_date BETWEEN DATE '2000-08-16' AND DATE '2000-08-16' + INTERVAL 30 DAYS
    GROUP BY s_store_sk
),
brought_back AS (
    SELECT s_store_sk, sum(sr_return_amt) AS returned, sum(sr_net_loss) AS loss
    FROM store_returns, date_dim, store
    WHERE sr_returned_date_sk = d_date_sk AND sr_store_sk = s_store_sk
        AND d_date BETWEEN DATE '2000-08-16' AND DATE '2000-08-16' + INTERVAL 30 DAYS
    GROUP BY s_store_sk
),
ordered AS (
    SELECT cs_call_center_sk, sum(cs_ext_sales_price) AS sales, sum(cs_net_profit) AS profit
    FROM catalog_sales, date_dim
    WHERE cs_sold_date_sk = d_date_sk
        AND d_date BETWEEN DATE '2000-08-16' AND DATE '2000-08-16' + INTERVAL 30 DAYS
    GROUP BY cs_call_center_sk
),
sent_back AS (
    SELECT sum(cr_return_amount) AS returned, sum(cr_net_loss) AS loss
    FROM catalog_returns, date_dim
    WHERE cr_returned_date_sk = d_date_sk
        AND d_date BETWEEN DATE '2000-08-16' AND DATE '2000-08-16' + INTERVAL 30 DAYS
),
web AS (
    SELECT wp_web_page_sk, sum(ws_ext_sales_price) AS sales, sum(ws_net_profit) AS profit
    FROM web_sales, date_dim, web_page
    WHERE ws_sold_date_sk = d_date_sk AND ws_web_page_sk = wp_web_page_sk
        AND d_date BETWEEN DATE '2000-08-16' AND DATE '2000-08-16' + INTERVAL 30 DAYS
    GROUP BY wp_web_page_sk
)
SELECT channel, id, sum(sales) AS sales, sum(returned) AS returned, sum(profit) AS profit
FROM (
    SELECT 'store' AS channel, sold.s_store_sk AS id, sales, coalesce(returned, 0) AS returned,
        profit - coalesce(loss, 0) AS profit
    FROM sold LEFT JOIN brought_back ON sold.s_store_sk = brought_back.s_store_sk
    UNION ALL
    SELECT 'catalog', cs_call_center_sk, sales, returned, profit - loss FROM ordered, sent_back
    UNION ALL
    SELECT 'web', wp_web_page_sk, sales, 0, profit FROM web
) AS channels
GROUP BY ROLLUP (channel, id)
ORDER BY channel, id
LIMIT 100
