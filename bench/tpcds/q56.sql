WITH by_store AS (
    SELECT i_item_id, sum(ss_ext_sales_price) AS sales
    FROM store_sales, date_dim, customer_address, item
    WHERE i_item_id IN (SELECT i_item_id FROM item WHERE i_color IN ('orchid', 'chiffon', 'lace'))
        AND ss_item_sk = i_item_sk AND ss_sold_date_sk = d_date_sk AND d_year = 2000 AND d_moy = 1
        AND ss_addr_sk = ca_address_sk AND ca_gmt_offset = -8
    GROUP BY i_item_id
),
by_catalog AS (
    SELECT i_item_id, sum(cs_ext_sales_price) AS sales
    FROM catalog_sales, date_dim, customer_address, item
    WHERE i_item_id IN (SELECT i_item_id FROM item WHERE i_color IN ('orchid', 'chiffon', 'lace'))
        AND cs_item_sk = i_item_sk AND cs_sold_date_sk = d_date_sk AND d_year = 2000 AND d_moy = 1
        AND cs_bill_addr_sk = ca_address_sk AND ca_gmt_offset = -8
    GROUP BY i_item_id
),
by_web AS (
    SELECT i_item_id, sum(ws_ext_sales_price) AS sales
    FROM web_sales, date_dim, customer_address, item
    WHERE i_item_id IN (SELECT i_item_id FROM item WHERE i_color IN ('orchid', 'chiffon', 'lace'))
        AND ws_item_sk = i_item_sk AND ws_sold_date_sk = d_date_sk AND d_year = 2000 AND d_moy = 1
        AND ws_bill_addr_sk = ca_address_sk AND ca_gmt_offset = -8
    GROUP BY i_item_id
)
SELECT i_item_id, sum(sales) AS sales
FROM (
    SELECT * FROM by_store UNION ALL SELECT * FROM by_catalog UNION ALL SELECT * FROM by_web
) AS channels
GROUP BY i_item_id
ORDER BY sales, i_item_id
LIMIT 100
