WITH by_store AS (
    SELECT i_manufact_id, sum(ss_ext_sales_price) AS sales
    FROM store_sales, date_dim, customer_address, item
    WHERE i_manufact_id IN (SELECT i_manufact_id FROM item WHERE i_category IN ('Books'))
        AND ss_item_sk = i_item_sk AND ss_sold_date_sk = d_date_sk AND d_year = 1999 AND d_moy = 3
        AND ss_addr_sk = ca_address_sk AND ca_gmt_offset = -5
    GROUP BY i_manufact_id
),
by_catalog AS (
    SELECT i_manufact_id, sum(cs_ext_sales_price) AS sales
    FROM catalog_sales, date_dim, customer_address, item
    WHERE i_manufact_id IN (SELECT i_manufact_id FROM item WHERE i_category IN ('Books'))
        AND cs_item_sk = i_item_sk AND cs_sold_date_sk = d_date_sk AND d_year = 1999 AND d_moy = 3
        AND cs_bill_addr_sk = ca_address_sk AND ca_gmt_offset = -5
    GROUP BY i_manufact_id
),
by_web AS (
    SELECT i_manufact_id, sum(ws_ext_sales_price) AS sales
    FROM web_sales, date_dim, customer_address, item
    WHERE i_manufact_id IN (SELECT i_manufact_id FROM item WHERE i_category IN ('Books'))
        AND ws_item_sk = i_item_sk AND ws_sold_date_sk = d_date_sk AND d_year = 1999 AND d_moy = 3
        AND ws_bill_addr_sk = ca_address_sk AND ca_gmt_offset = -5
    GROUP BY i_manufact_id
)
SELECT i_manufact_id, sum(sales) AS sales
FROM (
    SELECT * FROM by_store UNION ALL SELECT * FROM by_catalog UNION ALL SELECT * FROM by_web
) AS channels
GROUP BY i_manufact_id
ORDER BY sales
LIMIT 100
