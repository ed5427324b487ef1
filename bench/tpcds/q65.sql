SELECT s_store_name, i_item_desc, mine.revenue, i_current_price, i_wholesale_cost, i_brand
FROM store, item, (
    SELECT ss_store_sk, avg(revenue) AS mean
    FROM (
        SELECT ss_store_sk, ss_item_sk, sum(ss_sales_price) AS revenue
        FROM store_sales, date_dim
        WHERE ss_sold_date_sk = d_date_sk AND d_month_seq BETWEEN 1221 AND 1232
        GROUP BY ss_store_sk, ss_item_sk
    ) AS per_item
    GROUP BY ss_store_sk
) AS means, (
    SELECT ss_store_sk, ss_item_sk, sum(ss_sales_price) AS revenue
    FROM store_sales, date_dim
    WHERE ss_sold_date_sk = d_date_sk AND d_month_seq BETWEEN 1221 AND 1232
    GROUP BY ss_store_sk, ss_item_sk
) AS mine
WHERE means.ss_store_sk = mine.ss_store_sk AND mine.revenue <= 0.1 * means.mean
    AND s_store_sk = mine.ss_store_sk AND i_item_sk = mine.ss_item_sk
ORDER BY s_store_name, i_item_desc
LIMIT 100
