SELECT s_store_name, s_store_id,
    sum(CASE WHEN d_day_name = 'Sunday' THEN ss_sales_price END) AS sunday,
    sum(CASE WHEN d_day_name = 'Monday' THEN ss_sales_price END) AS monday,
    sum(CASE WHEN d_day_name = 'Friday' THEN ss_sales_price END) AS friday,
    sum(CASE WHEN d_day_name = 'Saturday' THEN ss_sales_price END) AS saturday
FROM date_dim, store_sales, store
WHERE d_date_sk = ss_sold_date_sk AND s_store_sk = ss_store_sk AND s_gmt_offset = -6
    AND d_year = 2001
GROUP BY s_store_name, s_store_id
ORDER BY s_store_name, s_store_id, sunday, monday, friday, saturday
LIMIT 100
