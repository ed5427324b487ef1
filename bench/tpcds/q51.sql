WITH web AS (
    SELECT ws_item_sk AS item_sk, d_date,
        sum(sum(ws_sales_price)) OVER (
            PARTITION BY ws_item_sk ORDER BY d_date
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS running
    FROM web_sales, date_dim
    WHERE ws_sold_date_sk = d_date_sk AND d_month_seq BETWEEN 1212 AND 1223
        AND ws_item_sk IS NOT NULL
    GROUP BY ws_item_sk, d_date
),
near AS (
    SELECT ss_item_sk AS item_sk, d_date,
        sum(sum(ss_sales_price)) OVER (
            PARTITION BY ss_item_sk ORDER BY d_date
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS running
    FROM store_sales, date_dim
    WHERE ss_sold_date_sk = d_date_sk AND d_month_seq BETWEEN 1212 AND 1223
        AND ss_item_sk IS NOT NULL
    GROUP BY ss_item_sk, d_date
)
SELECT *
FROM (
    SELECT item_sk, d_date, web_sales, store_sales,
        max(web_sales) OVER (
            PARTITION BY item_sk ORDER BY d_date
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS web_cumulative,
        max(store_sales) OVER (
            PARTITION BY item_sk ORDER BY d_date
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS store_cumulative
    FROM (
        SELECT CASE WHEN web.item_sk IS NOT NULL THEN web.item_sk ELSE near.item_sk END AS item_sk,
            CASE WHEN web.d_date IS NOT NULL THEN web.d_date ELSE near.d_date END AS d_date,
            web.running AS web_sales, near.running AS store_sales
        FROM web FULL OUTER JOIN near ON web.item_sk = near.item_sk AND web.d_date = near.d_date
    ) AS paired
) AS cumulated
WHERE web_cumulative > store_cumulative
ORDER BY item_sk, d_date
LIMIT 100
