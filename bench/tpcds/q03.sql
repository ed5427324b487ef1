SELECT d.d_year, i_brand_id AS brand_id, i_brand AS brand, sum(ss_ext_discount_amt) AS discount
FROM date_dim AS d, store_sales, item
WHERE d.d_date_sk = ss_sold_date_sk AND ss_item_sk = i_item_sk
    AND i_manufact_id = 427 AND d.d_moy = 11
GROUP BY d.d_year, i_brand, i_brand_id
ORDER BY d.d_year, discount DESC, brand_id
LIMIT 100
