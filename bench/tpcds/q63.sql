SELECT *
FROM (
    SELECT i_manager_id, sum(ss_sales_price) AS sales,
        avg(sum(ss_sales_price)) OVER (PARTITION BY i_manager_id) AS mean
    FROM item, store_sales, date_dim, store
    WHERE ss_item_sk = i_item_sk AND ss_sold_date_sk = d_date_sk AND ss_store_sk = s_store_sk
        AND d_month_seq IN (1181, 1182, 1183, 1184, 1185, 1186)
        AND ((i_category IN ('Books', 'Electronics') AND i_class IN ('reference', 'self-help'))
            OR (i_category IN ('Men', 'Music') AND i_class IN ('fragrances', 'pants')))
    GROUP BY i_manager_id, d_moy
) AS monthly
WHERE CASE WHEN mean > 0 THEN abs(sales - mean) / mean END > 0.1
ORDER BY i_manager_id, mean, sales
LIMIT 100
