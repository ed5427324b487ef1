SELECT i_item_id, i_item_desc, i_category, i_class, i_current_price,
    sum(ws_ext_sales_price) AS revenue,
    sum(ws_ext_sales_price) * 100 / sum(sum(ws_ext_sales_price)) OVER (PARTITION BY i_class)
        AS share
FROM web_sales, item, date_dim
WHERE ws_item_sk = i_item_sk AND i_category IN ('Jewelry', 'Sports', 'Books')
    AND ws_sold_date_sk = d_date_sk
    AND d_date BETWEEN DATE '2001-01-12' AND DATE '2001-01-12' + INTERVAL 30 DAYS
GROUP BY i_item_id, i_item_desc, i_category, i_class, i_current_price
ORDER BY i_category, i_class, i_item_id, i_item_desc, share
LIMIT 100
