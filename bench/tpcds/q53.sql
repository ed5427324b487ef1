SELECT *
FROM (
    SELECT i_manufact_id, sum(ss_sales_price) AS sales,
        avg(sum(ss_sales_price)) OVER (PARTITION BY i_manufact_id) AS mean
    FROM item, store_sales, date_dim, store
    WHERE ss_item_sk = i_item_sk AND ss_sold_date_sk = d_date_sk AND ss_store_sk = s_store_sk
        AND d_month_seq IN (1212, 1213, 1214, 1215, 1216, 1217)
        AND ((i_category IN ('Books', 'Children') AND i_class IN ('personal', 'portable'))
            OR (i_category IN ('Women', 'Music') AND i_class IN ('accessories', 'classical')))
    GROUP BY i_manufact_id, d_qoy
) AS quarterly
WHERE CASE WHEN mean > 0 THEN abs(sales - mean) / mean END > 0.1
ORDER BY mean, sales, i_manufact_id
LIMIT 100
