WITH monthly AS (
    SELECT i_category, i_brand, s_store_name, d_year, d_moy, sum(ss_sales_price) AS sales,
        avg(sum(ss_sales_price)) OVER (
            PARTITION BY i_category, i_brand, s_store_name, d_year
        ) AS mean_sales,
        rank() OVER (
            PARTITION BY i_category, i_brand, s_store_name ORDER BY d_year, d_moy
        ) AS rn
    FROM item, store_sales, date_dim, store
    WHERE ss_item_sk = i_item_sk AND ss_sold_date_sk = d_date_sk AND ss_store_sk = s_store_sk
        AND (d_year = 2000 OR (d_year = 1999 AND d_moy = 12) OR (d_year = 2001 AND d_moy = 1))
    GROUP BY i_category, i_brand, s_store_name, d_year, d_moy
),
neighbours AS (
    SELECT m.i_category, m.i_brand, m.d_year, m.d_moy, m.mean_sales, m.sales,
        earlier.sales AS previous, later.sales AS next
    FROM monthly AS m, monthly AS earlier, monthly AS later
    WHERE m.i_category = earlier.i_category AND m.i_category = later.i_category
        AND m.i_brand = earlier.i_brand AND m.i_brand = later.i_brand
        AND m.s_store_name = earlier.s_store_name AND m.s_store_name = later.s_store_name
        AND m.rn = earlier.rn + 1 AND m.rn = later.rn - 1
)
SELECT *
FROM neighbours
WHERE d_year = 2000 AND mean_sales > 0
    AND CASE WHEN mean_sales > 0 THEN abs(sales - mean_sales) / mean_sales END > 0.1
ORDER BY sales - mean_sales, d_moy
LIMIT 100
