SELECT channel, missing, d_year, d_qoy, i_category, count(*) AS sales, sum(price) AS amount
FROM (
    SELECT 'store' AS channel, 'ss_customer_sk' AS missing, d_year, d_qoy, i_category,
        ss_ext_sales_price AS price
    FROM store_sales, item, date_dim
    WHERE ss_customer_sk IS NULL AND ss_sold_date_sk = d_date_sk AND ss_item_sk = i_item_sk
    UNION ALL
    SELECT 'web', 'ws_promo_sk', d_year, d_qoy, i_category, ws_ext_sales_price
    FROM web_sales, item, date_dim
    WHERE ws_promo_sk IS NULL AND ws_sold_date_sk = d_date_sk AND ws_item_sk = i_item_sk
    UNION ALL
    SELECT 'catalog', 'cs_bill_customer_sk', d_year, d_qoy, i_category, cs_ext_sales_price
    FROM catalog_sales, item, date_dim
    WHERE cs_bill_customer_sk IS NULL AND cs_sold_date_sk = d_date_sk AND cs_item_sk = i_item_sk
) AS incomplete
GROUP BY channel, missing, d_year, d_qoy, i_category
ORDER BY channel, missing, d_year, d_qoy, i_category
LIMIT 100
