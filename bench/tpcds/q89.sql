SELECT *
FROM (
    SELECT i_category, i_class, i_brand, s_store_name, s_company_name, d_moy,
        sum(ss_sales_price) AS sales,
        avg(sum(ss_sales_price)) OVER (
            PARTITION BY i_category, i_brand, s_store_name, s_company_name
        ) AS mean
    FROM item, store_sales, date_dim, store
    WHERE ss_item_sk = i_item_sk AND ss_sold_date_sk = d_date_sk AND ss_store_sk = s_store_sk
        AND d_year = 2001
        AND ((i_category IN ('Books', 'Children') AND i_class IN ('history', 'school-uniforms'))
            OR (i_category IN ('Men', 'Sports') AND i_class IN ('pants', 'tennis')))
    GROUP BY i_category, i_class, i_brand, s_store_name, s_company_name, d_moy
) AS monthly
WHERE CASE WHEN mean <> 0 THEN abs(sales - mean) / mean END > 0.1
ORDER BY sales - mean, s_store_name
LIMIT 100
